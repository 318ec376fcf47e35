// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/hashed/ngrams.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/tokenizer/hashed/split.h"
#include "core/tokenizer/hashing.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {
namespace {

constexpr std::uint64_t kLargestFile = 64'000'000;

/// Calls take(ngram) for each n-gram of a word, in the order of their ends.
template <class Take>
void each_ngram(std::string_view word, const Take& take) {
    // The last four code points: what ends here begins up to three earlier.
    std::array<char32_t, kLongestNgram> last{};
    std::size_t seen = 0;
    for (std::size_t at = 0; at < word.size();) {
        const auto [point, length] = decode_utf8(word, at);
        at += length;
        std::copy(last.begin() + 1, last.end(), last.begin());
        last.back() = point;
        ++seen;
        for (std::size_t size = 1; size <= std::min(seen, kLongestNgram); ++size) {
            Ngram ngram;
            std::copy(last.end() - static_cast<std::ptrdiff_t>(size), last.end(), ngram.points.begin());
            ngram.length = static_cast<std::uint32_t>(size);
            take(ngram);
        }
    }
}

std::string text_of(const Ngram& ngram) {
    std::string text;
    for (std::size_t i = 0; i < ngram.length; ++i) append_utf8(text, ngram.points[i]);
    return text;
}

}  // namespace

std::size_t NgramHash::operator()(const Ngram& ngram) const {
    const auto pair = [&](std::size_t first) {
        return static_cast<std::uint64_t>(ngram.points[first]) << 32U | ngram.points[first + 1];
    };
    return mix(hash_number(pair(0)) + ngram.length, pair(2) ^ 0xA0761D6478BD642FU);
}

Ngrams::Ngrams(std::vector<std::string> list, const std::string& where) : list_(std::move(list)) {
    slots_.resize(std::bit_ceil(2 * list_.size() + 2));
    for (std::size_t i = 0; i < list_.size(); ++i) {
        const auto refuse = [&](const std::string& expected) {
            throw Error(ErrorCode::format, where + "[" + std::to_string(i) + "]", "expected " + expected,
                        "found \"" + escaped(list_[i], 40) + "\"");
        };
        Ngram ngram;
        for (std::size_t at = 0; at < list_[i].size(); ++ngram.length) {
            if (ngram.length == kLongestNgram) refuse("an n-gram of 1 to 4 code points");
            const Decoded next = decode_utf8(list_[i], at);
            ngram.points[ngram.length] = next.point;
            at += next.length;
        }
        if (ngram.length == 0) refuse("an n-gram of 1 to 4 code points");
        Slot& slot = slots_[slot_of(ngram)];
        if (slot.place >= 0) refuse("another n-gram than those before it");
        slot = {ngram, static_cast<std::int32_t>(i)};
    }
}

std::shared_ptr<const Ngrams> Ngrams::from_file(const std::filesystem::path& path) {
    const nlohmann::json json = read_json_file(path, kLargestFile, "list of n-grams");
    const std::string where = escaped(path.filename().string());
    std::vector<std::string> list = JsonView(json, where).strings();
    if (list.empty()) throw Error(ErrorCode::format, where, "expected at least one n-gram", "found an empty list");
    return std::make_shared<Ngrams>(std::move(list), where);
}

std::size_t Ngrams::slot_of(const Ngram& ngram) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = NgramHash()(ngram) & mask;
    while (slots_[at].place >= 0 && slots_[at].ngram != ngram) at = (at + 1) & mask;
    return at;
}

void Ngrams::add_places(std::string_view word, std::vector<std::int32_t>& places) const {
    each_ngram(word, [&](const Ngram& ngram) {
        const std::int32_t place = slots_[slot_of(ngram)].place;
        if (place >= 0) places.push_back(place);
    });
}

void each_ngram_text(std::string_view word, const std::function<void(const std::string&)>& take) {
    each_ngram(word, [&take](const Ngram& ngram) { take(text_of(ngram)); });
}

std::string ngrams_json(const std::vector<std::string>& list) {
    return nlohmann::json(list).dump() + "\n";
}

void NgramCounter::feed_word(std::string_view word) {
    each_ngram(word, [this](const Ngram& ngram) { ++counts_[ngram]; });
}

void NgramCounter::feed(std::string_view text) {
    split_words(text, [this](const SplitWord& word) { feed_word(word.piece); });
}

void NgramCounter::forget_rare(std::size_t most) {
    if (counts_.size() <= most) return;
    for (std::int64_t least = 2; counts_.size() > most / 2; ++least)
        std::erase_if(counts_, [least](const auto& entry) { return entry.second < least; });
}

std::vector<std::string> NgramCounter::most_frequent(std::size_t count) const {
    using Entry = std::pair<std::int64_t, Ngram>;
    std::vector<Entry> all;
    all.reserve(counts_.size());
    for (const auto& [ngram, times] : counts_) all.emplace_back(times, ngram);
    const std::size_t kept = std::min(count, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                      [](const Entry& a, const Entry& b) {
                          if (a.first != b.first) return a.first > b.first;
                          if (a.second.points != b.second.points) return a.second.points < b.second.points;
                          return a.second.length < b.second.length;
                      });
    std::vector<std::string> list;
    for (std::size_t i = 0; i < kept; ++i) list.push_back(text_of(all[i].second));
    return list;
}

}  // namespace headscope::tokenizer
