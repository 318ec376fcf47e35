// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Requests to a running job: small JSON files in the run's folder control/, each written aside and renamed, so that a
// file is whole and several senders do not collide. The trainer reads them between two steps, records its action in the
// journal (event Control, with the request's id) and removes the file.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/run/run_folder.h"

namespace headscope::training {

enum class ControlAction { pause, resume, stop, snapshot, evaluate, learning_rate };

struct ControlRequest {
    std::string id;  ///< of the file; what its journal event says
    ControlAction action = ControlAction::pause;
    double value = 0;  ///< of learning_rate: the schedule's new peak
};

const char* action_name(ControlAction action);  ///< "pause", ..., "learning_rate"
/// By action_name(), and "rate" for short. Error usage with the nearest name.
ControlAction action_of(const std::string& name);

/// Writes a request and returns its id. `value`: of learning_rate, "1e-4". Error usage for a bad value or for a run
/// that no process trains; io.
std::string send_control(const RunFolder& run, ControlAction action, const std::string& value = "");

/// Pending requests, oldest first. Removes files that are none, with a line each in `refused`.
std::vector<ControlRequest> read_control(const RunFolder& run, std::vector<std::string>& refused);
/// Call after the request is in the journal.
void remove_control(const RunFolder& run, const std::string& id);
/// Files in control/.
std::vector<std::filesystem::path> found_control(const RunFolder& run);
/// Removes requests found before this process had the journal: they were meant for an earlier process. Later ones stay.
/// A folder that is a link is removed as such.
void clear_control(const RunFolder& run, const std::vector<std::filesystem::path>& found);

}  // namespace headscope::training
