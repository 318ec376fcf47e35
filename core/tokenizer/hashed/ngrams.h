// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// N-grams of 1 to 4 code points, without marks for a word's ends: a list of known ones (ngrams.json), and the most
// frequent ones of a text. Words are valid UTF-8. Threads: const members are safe from several.

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headscope::tokenizer {

inline constexpr std::size_t kLongestNgram = 4;  ///< code points

/// Code points, zeros behind them.
struct Ngram {
    std::array<char32_t, kLongestNgram> points{};
    std::uint32_t length = 0;
    bool operator==(const Ngram&) const = default;
};
struct NgramHash {
    std::size_t operator()(const Ngram& ngram) const;
};

class Ngrams {
public:
    /// Error(format) names the entry of `where` that is no n-gram or comes twice.
    Ngrams(std::vector<std::string> list, const std::string& where);
    /// ngrams.json: a JSON array of strings.
    static std::shared_ptr<const Ngrams> from_file(const std::filesystem::path& path);

    const std::vector<std::string>& list() const { return list_; }
    std::int64_t size() const { return static_cast<std::int64_t>(list_.size()); }
    /// Adds the place in the list of each n-gram of the word that is known, once for each time that it is there.
    void add_places(std::string_view word, std::vector<std::int32_t>& places) const;

private:
    struct Slot {
        Ngram ngram;
        std::int32_t place = -1;  ///< -1: free
    };
    std::size_t slot_of(const Ngram& ngram) const;

    std::vector<std::string> list_;
    std::vector<Slot> slots_;  ///< a power of two of them, at most half full
};

/// Calls take(n-gram) for each n-gram of a word, known or not, as text, in the order of their ends.
void each_ngram_text(std::string_view word, const std::function<void(const std::string&)>& take);

/// The text of an ngrams.json.
std::string ngrams_json(const std::vector<std::string>& list);

/// Counts the n-grams of words. Threads: one at a time.
class NgramCounter {
public:
    void feed_word(std::string_view word);
    /// All words of a text (split.h).
    void feed(std::string_view text);
    /// Above `most` different n-grams, drops the rarest until at most half of `most` are left (Manku and Motwani 2002).
    /// Dropped ones count from 0 again if they return.
    void forget_rare(std::size_t most);
    std::int64_t different() const { return static_cast<std::int64_t>(counts_.size()); }
    /// At most `count`, the most frequent ones first, of equals the one of smaller code points.
    std::vector<std::string> most_frequent(std::size_t count) const;

private:
    std::unordered_map<Ngram, std::int64_t, NgramHash> counts_;
};

}  // namespace headscope::tokenizer
