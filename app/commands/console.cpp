// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/console.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/base/text/text.h"

namespace headscope::app {
namespace {

bool line_open = false;

/// ", 0:12 min left"; empty before a rate is known, and at the end.
std::string time_left(double share, double seconds) {
    if (share <= 0.01 || share >= 1 || seconds <= 0.5) return "";
    return ", " + format_seconds(seconds * (1 - share) / share) + " left";
}

bool is_number(const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789.,+-eE% ") == std::string::npos;
}

}  // namespace

bool is_line_due(bool same_step, std::chrono::duration<double> since_last) {
    constexpr std::chrono::duration<double> quick_step{0.5}, long_step{5};
    return since_last >= (same_step ? long_step : quick_step);
}

ConsoleProgress::ConsoleProgress() : terminal_(isatty(STDERR_FILENO) == 1), start_(Clock::now()), last_(start_) {}

ConsoleProgress::~ConsoleProgress() {
    finish_progress_line();
}

void ConsoleProgress::advance(double done, double total, const std::string& what) {
    const auto now = Clock::now();
    if (done < last_done_) start_ = now;  // another job: its rate is its own
    last_done_ = done;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double share = total > 0 ? std::clamp(done / total, 0.0, 1.0) : 0;
    if (!terminal_) {
        if ((!step_.empty() || what.empty()) && !is_line_due(what == step_, now - last_)) return;
        step_ = what;
        last_ = now;
        std::fprintf(stderr, "headscope: %3.0f %%  %s%s\n", 100 * share, what.c_str(),
                     time_left(share, seconds).c_str());
        return;
    }
    if (line_open && done < total && now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    std::string bar;
    for (int i = 0; i < 24; ++i) bar += i < std::lround(24 * share) ? "█" : "·";
    std::string tail;
    if (share > 0.01 && seconds > 0.5) {
        tail = std::to_string(std::lround(100 * share / seconds * 10) / 10.0);
        tail.resize(tail.find('.') + 2);
        tail += " %/s" + time_left(share, seconds);
    }
    std::fprintf(stderr, "\r\033[K%s %3.0f %%  %s  %s", bar.c_str(), 100 * share, what.c_str(), tail.c_str());
    std::fflush(stderr);
    line_open = true;
}

void finish_progress_line() {
    if (!line_open) return;
    std::fprintf(stderr, "\r\033[K");
    std::fflush(stderr);
    line_open = false;
}

void print(const std::string& text) {
    finish_progress_line();
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        throw Error(ErrorCode::io, "standard output", "expected to write all output", "found an error");
}

void print_json(const nlohmann::json& document) {
    print(showable_json(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)) + "\n");
}

void print_made_text(const std::string& text) {
    print(isatty(STDOUT_FILENO) == 1 ? showable_lines(text) : text);
}

std::size_t display_width(const std::string& text) {
    std::size_t width = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if ((byte & 0xC0U) == 0x80U) continue;
        width += byte >= 0xE3 && byte < 0xF0 ? 2 : 1;
    }
    return width;
}

std::string format_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths(header.size());
    for (std::size_t c = 0; c < header.size(); ++c) {
        widths[c] = display_width(header[c]);
        for (const auto& row : rows)
            if (c < row.size()) widths[c] = std::max(widths[c], display_width(row[c]));
    }
    std::string text;
    const auto line = [&](const std::vector<std::string>& cells, bool heading) {
        std::string out;
        for (std::size_t c = 0; c < cells.size() && c < widths.size(); ++c) {
            const std::string pad(widths[c] - display_width(cells[c]), ' ');
            const bool right =
                heading ? !rows.empty() && c < rows[0].size() && is_number(rows[0][c]) : is_number(cells[c]);
            if (c > 0) out += "  ";
            out += right ? pad + cells[c] : cells[c] + pad;
        }
        while (!out.empty() && out.back() == ' ') out.pop_back();
        text += out + "\n";
    };
    line(header, true);
    for (const auto& row : rows) line(row, false);
    return text;
}

std::string format_seconds(double seconds) {
    char buffer[32];
    const long whole = std::lround(seconds);
    if (whole < 60)
        std::snprintf(buffer, sizeof buffer, "%ld s", whole);
    else if (whole < 3600)
        std::snprintf(buffer, sizeof buffer, "%ld:%02ld min", whole / 60, whole % 60);
    else
        std::snprintf(buffer, sizeof buffer, "%ld:%02ld h", whole / 3600, whole / 60 % 60);
    return buffer;
}

}  // namespace headscope::app
