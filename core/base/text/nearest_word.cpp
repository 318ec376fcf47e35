// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/text/nearest_word.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace headscope {
namespace {

/// Letters that are changed, left out, put in, or two that changed places.
std::size_t edits(const std::string& a, const std::string& b) {
    std::vector<std::size_t> row(b.size() + 1), above, before;
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        before = std::exchange(above, row);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, change});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
    }
    return row.back();
}

}  // namespace

std::string nearest_word(const std::string& word, const std::vector<std::string>& known) {
    std::string nearest;
    std::size_t fewest = word.size() < 4 ? 2 : std::max<std::size_t>(2, word.size() / 3) + 1;
    if (word.size() > 64) return nearest;
    for (const std::string& candidate : known) {
        // The beginning of a name is as good as one slip of the finger.
        const bool begins = word.size() >= 3 && candidate.compare(0, word.size(), word) == 0;
        const std::size_t needed = begins ? std::min<std::size_t>(1, edits(word, candidate)) : edits(word, candidate);
        if (needed < fewest) {
            fewest = needed;
            nearest = candidate;
        }
    }
    return nearest;
}

}  // namespace headscope
