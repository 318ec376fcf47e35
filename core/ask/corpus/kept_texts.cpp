// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/corpus/kept_texts.h"

#include <algorithm>
#include <numeric>

#include "core/ask/answers.h"

namespace headscope::ask::corpus {

KeptTexts::KeptTexts(store::AskRecord& record) : record_(record), uses_(record.sequences.size(), 0) {
    for (const double index : record.table("/corpus/kept_sequence").values)
        if (index >= 0) ++uses_.at(static_cast<std::size_t>(index));
    for (std::size_t i = 0; i < uses_.size(); ++i)
        if (uses_[i] == 0) unused_.insert(static_cast<std::int64_t>(i));
    resize();
}

std::vector<double>& KeptTexts::documents() {
    return answer_table(record_, "/corpus/document").values;
}

void KeptTexts::resize() {
    std::size_t longest = 0;
    for (const store::SequenceTokens& text : record_.sequences)
        longest = std::max({longest, text.ids.size(), text.predicted().ids.size()});
    for (store::AskDimension& dimension : record_.dimensions) {
        if (dimension.path == "/sequence") dimension.size = std::ssize(record_.sequences);
        if (dimension.path == "/token") dimension.size = static_cast<std::int64_t>(longest);
    }
    documents().resize(record_.sequences.size(), -1);
}

std::int64_t KeptTexts::keep(std::int64_t document, const store::SequenceTokens& text) {
    const std::vector<double>& known = documents();
    for (std::size_t i = 0; i < uses_.size(); ++i) {
        if (uses_[i] == 0 || known[i] != static_cast<double>(document)) continue;
        ++uses_[i];
        return static_cast<std::int64_t>(i);
    }
    if (unused_.empty()) {
        unused_.insert(std::ssize(uses_));
        uses_.push_back(0);
        record_.sequences.emplace_back();
    }
    const std::int64_t index = *unused_.begin();
    unused_.erase(unused_.begin());
    const auto at = static_cast<std::size_t>(index);
    record_.sequences[at] = text;
    uses_[at] = 1;
    resize();
    documents()[at] = static_cast<double>(document);
    return index;
}

void KeptTexts::release(std::int64_t index) {
    if (--uses_[static_cast<std::size_t>(index)] == 0) unused_.insert(index);
}

void KeptTexts::compact() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < uses_.size(); ++i)
        if (uses_[i] > 0) order.push_back(i);
    if (order.empty()) return;  // the text that the record began with stays
    const std::vector<double> before = documents();
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return before[a] < before[b]; });
    std::vector<double> places(uses_.size(), -1);
    std::vector<store::SequenceTokens> texts;
    std::vector<std::int64_t> uses;
    std::vector<double> numbers;
    for (const std::size_t old : order) {
        places[old] = static_cast<double>(texts.size());
        texts.push_back(std::move(record_.sequences[old]));
        uses.push_back(uses_[old]);
        numbers.push_back(before[old]);
    }
    for (double& index : answer_table(record_, "/corpus/kept_sequence").values)
        if (index >= 0) index = places[static_cast<std::size_t>(index)];
    record_.sequences = std::move(texts);
    uses_ = std::move(uses);
    unused_.clear();
    documents() = std::move(numbers);
    resize();
}

}  // namespace headscope::ask::corpus
