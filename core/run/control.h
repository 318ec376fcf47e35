// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What a running job is asked to do: small JSON files in the run's folder control/, each written aside and renamed, so
// that one is there whole or not at all, and several senders do not meet. The trainer reads them between two steps,
// records in its journal what it did (the event Control, with the wish's id) and removes the file.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/run/run_folder.h"

namespace headscope::training {

enum class ControlAction { pause, resume, stop, snapshot, evaluate, learning_rate };

struct ControlWish {
    std::string id;  ///< of the file; what its journal event says
    ControlAction action = ControlAction::pause;
    double value = 0;  ///< of learning_rate: the schedule's new peak
};

const char* action_name(ControlAction action);  ///< "pause", ..., "learning_rate"
/// Of action_name()'s, and "rate" for short. Error usage with the nearest name.
ControlAction action_of(const std::string& name);

/// Writes a wish and returns its id. `value`: of learning_rate, "1e-4". Error usage for a value that is none, or for a
/// run that nobody writes; io.
std::string send_control(const RunFolder& run, ControlAction action, const std::string& value = "");

/// What waits, oldest first. Files that are no wish are removed, with a line each in `refused`.
std::vector<ControlWish> read_control(const RunFolder& run, std::vector<std::string>& refused);
/// After the wish was journalled.
void remove_control(const RunFolder& run, const std::string& id);
/// Whatever lies in control/.
std::vector<std::filesystem::path> found_control(const RunFolder& run);
/// Removes what was found there before this process had the journal: wishes to one that died are not those of the one
/// that goes on. What came since is for this one and stays. A folder that is a link is removed as such.
void clear_control(const RunFolder& run, const std::vector<std::filesystem::path>& found);

}  // namespace headscope::training
