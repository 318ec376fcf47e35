// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/progress.h"

namespace headscope::app {

/// True if a line of progress is due where there is no terminal, `since_last` after the one before: steps at most twice
/// a second, a long step again every five seconds.
bool is_line_due(bool same_step, std::chrono::duration<double> since_last);

/// Progress on standard error: a bar with rate and time left on a terminal, lines as is_line_due() has them otherwise.
class ConsoleProgress final : public Progress {
public:
    ConsoleProgress();
    ~ConsoleProgress() override;
    void advance(double done, double total, const std::string& what) override;

private:
    using Clock = std::chrono::steady_clock;
    bool terminal_;
    Clock::time_point start_, last_;
    std::string step_;
    double last_done_ = 0;
};

/// Ends a bar that is on the screen, so that the next line stands alone. Harmless without one.
void finish_progress_line();

/// Writes to standard output; throws Error (io) when that fails.
void print(const std::string& text);
void print_json(const nlohmann::json& document);
/// Text that a model or a tokenizer made: as it is into a file or a pipe, and with nothing that a terminal would act on
/// (showable_lines) where there is one.
void print_made_text(const std::string& text);

/// Columns padded to their widest cell, two spaces between; columns of numbers to the right.
std::string format_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

/// Terminal columns of a text, near enough: code points, with East Asian wide ones counted twice.
std::size_t display_width(const std::string& text);

std::string format_seconds(double seconds);  ///< "1:23", "12 s"

}  // namespace headscope::app
