// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/reproduction_parts.h"

#include <algorithm>
#include <chrono>

#include "core/base/output_file.h"
#include "core/run/journal.h"
#include "core/run/journal_reader.h"

namespace headscope::app {

namespace fs = std::filesystem;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void write_file(const fs::path& path, const std::string& text) {
    OutputFile file(path, {}, "file");
    file.append(text);
    file.publish();
}

std::vector<double> step_seconds(const fs::path& run) {
    std::vector<double> seconds;
    for (const auto& event : training::read_journal(run / training::kJournalName)) {
        const auto* step = std::get_if<training::Step>(&event.what);
        if (step == nullptr || step->tokens_per_second <= 0 || step->step < 3) continue;
        const double tokens = static_cast<double>(step->tokens) / static_cast<double>(step->step);
        seconds.push_back(tokens / step->tokens_per_second);
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds;
}

}  // namespace headscope::app
