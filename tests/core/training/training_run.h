// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A tiny job on a text of its own, and what is asked of its run.

#include <filesystem>
#include <string>
#include <vector>

#include "core/run/events.h"
#include "core/training/trainer/trainer.h"
#include "tests/core/base/temporary_folder.h"

namespace headscope::test {

/// A text that can be learned: counted words in a fixed random order.
std::string small_text(std::size_t bytes = 20'000);

/// Two layers, 32 wide, sequences of 32 bytes, 12 steps; `extra` are lines for set_key().
training::JobFile small_job(const TemporaryFolder& folder, const std::vector<std::string>& extra = {});

struct Told {
    training::TrainOutcome outcome;
    std::vector<training::Event> events;

    template <class T>
    std::vector<T> all() const {
        std::vector<T> found;
        for (const auto& event : events)
            if (const auto* what = std::get_if<T>(&event.what)) found.push_back(*what);
        return found;
    }
};

training::TrainRequest fresh(const training::JobFile& job, const std::filesystem::path& run);
training::TrainRequest resumed(const std::filesystem::path& run);
/// Runs it, adding to the request's own on_event.
Told run(training::TrainRequest request, int threads = 1);

/// The bytes of a snapshot's weights, and of its optimiser's state.
std::string weights_of(const std::filesystem::path& run, std::int64_t step);
std::string optimizer_of(const std::filesystem::path& run, std::int64_t step);

}  // namespace headscope::test
