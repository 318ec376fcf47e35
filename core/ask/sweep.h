// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Loops over the texts of a file, with progress, that leave out what has numbers already.

#include <functional>
#include <string>

#include "core/ask/answers.h"
#include "core/base/progress.h"

namespace headscope::ask {

/// "text 2 of 5" for number 1.
inline std::string text_label(const store::AskRecord& record, std::int64_t s) {
    return "text " + std::to_string(s + 1) + " of " + std::to_string(record.sequences.size());
}

/// Calls work(s) for each text that done(s) denies, and saved() after each. `all`: units of progress, one a text.
template <class Done, class Work>
void for_open_texts(const store::AskRecord& record, double all, Progress& progress, const std::function<void()>& saved,
                    const Done& done, const Work& work) {
    for (std::int64_t s = 0; s < std::ssize(record.sequences); ++s) {
        progress.advance(static_cast<double>(s), all, text_label(record, s));
        if (done(s)) continue;
        work(s);
        if (saved) saved();
    }
}

/// Cells of all texts that have no number yet: those of sweep.open(s).
template <class Sweep>
double open_cells(const Sweep& sweep, const store::AskRecord& record) {
    double all = 0;
    for (std::int64_t s = 0; s < std::ssize(record.sequences); ++s) all += static_cast<double>(sweep.open(s).size());
    return all;
}

/// For tools whose texts have cells of their own: sweep.open(s) lists those without a number, sweep.sequence(s, flag,
/// step) fills them and the text's number in `baseline`, and calls step() for each. `ahead`: units done before.
template <class Sweep>
void sweep_texts(Sweep& sweep, const store::AskRecord& record, const std::string& baseline, double ahead,
                 Progress& progress, const std::function<void()>& saved, const Cancellation& cancellation) {
    const double all = ahead + open_cells(sweep, record);
    double done = ahead;
    const std::int64_t texts = std::ssize(record.sequences);
    for (std::int64_t s = 0; s < texts; ++s) {
        if (has(record, baseline, {s}) && sweep.open(s).empty()) continue;
        sweep.sequence(s, cancellation, [&] {
            progress.advance(++done, all, text_label(record, s));
            if (saved) saved();
        });
    }
}

}  // namespace headscope::ask
