// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/replay_pace.h"

#include <filesystem>
#include <optional>

#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/checkpoint/fingerprint.h"

namespace headscope::app {
namespace {

std::optional<std::filesystem::path> pace_file() {
    const auto folder = checkpoint::cache_folder();
    return folder ? std::optional(*folder / "replays.json") : std::nullopt;
}

}  // namespace

void keep_replay_pace(const std::string& paper, const reproduce::Pace& pace) {
    const auto file = pace_file();
    if (!file) return;
    try {
        reproduce::keep_pace(*file, paper, processor_name(), pace);
    } catch (const Stopped&) {
        throw;
    } catch (const Error&) {
    }
}

std::string minutes_warning(const std::string& paper, const reproduce::Settings& settings) {
    const auto file = pace_file();
    if (!file) return "";
    const auto pace = reproduce::kept_pace(*file, paper, processor_name(), settings.threads);
    if (!pace) return "";
    try {
        return reproduce::outlook(paper, settings, *pace).text();
    } catch (const Stopped&) {
        throw;
    } catch (const Error&) {  // of a version that timed other models
        return "";
    }
}

}  // namespace headscope::app
