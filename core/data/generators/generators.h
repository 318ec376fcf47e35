// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// One file a kind of generator, one line each in catalog.cpp. A kind turns options, already within their bounds, and
// the length of a sequence into a Generator; Error usage for options that do not fit each other or the length.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/data/catalog.h"
#include "core/data/random.h"

namespace headscope::data {

class GeneratorOptions {
public:
    GeneratorOptions(std::string name, std::map<std::string, double> values)
        : name_(std::move(name)), values_(std::move(values)) {}
    std::int64_t whole(const std::string& option) const { return static_cast<std::int64_t>(values_.at(option)); }
    double number(const std::string& option) const { return values_.at(option); }
    [[noreturn]] void refuse(const std::string& expected, const std::string& found) const;
    /// Throws unless sequences have at least `least` tokens.
    void need_length(std::int64_t least, std::int64_t length) const;

private:
    std::string name_;
    std::map<std::string, double> values_;
};

/// Key of a split's sequences and items, besides their index.
inline std::uint64_t item_key(Split split, std::uint64_t seed) {
    return key_of(seed, split == Split::training ? 1 : 2);
}

/// Sequences that never end: number i has random numbers of its own, and those of the two splits differ.
class GeneratedSource : public BatchSource {
public:
    GeneratedSource(std::int64_t length, std::int64_t vocabulary, Split split, std::uint64_t seed)
        : BatchSource(length, vocabulary), key_(item_key(split, seed)) {}
    std::int64_t epoch() const final { return 0; }

protected:
    virtual void fill(Random& random, std::int64_t* ids, std::int64_t* targets) const = 0;

private:
    void write(std::int64_t index, std::int64_t* ids, std::int64_t* targets) const final {
        Random random(key_, static_cast<std::uint64_t>(index));
        fill(random, ids, targets);
    }
    std::uint64_t key_;
};

/// Adds prefix0, prefix1, ...
void add_pieces(std::vector<std::string>& pieces, const std::string& prefix, std::int64_t count);

/// Words by their ids, with spaces between them.
std::string joined(const std::vector<std::string>& pieces, const std::vector<std::int64_t>& words);
/// Writes as many tokens of an endless text as fit, word after word, each with the next one as target. `next` appends
/// words to what is there, at least one.
void fill_from(const std::function<void(std::vector<std::int64_t>& words)>& next, std::int64_t length,
               std::int64_t* ids, std::int64_t* targets);

Generator make_agreement(const GeneratorOptions& options, std::int64_t length);
Generator make_common_words(const GeneratorOptions& options, std::int64_t length);
Generator make_copy(const GeneratorOptions& options, std::int64_t length);
Generator make_frequent_words(const GeneratorOptions& options, std::int64_t length);
Generator make_induction(const GeneratorOptions& options, std::int64_t length);
Generator make_markov(const GeneratorOptions& options, std::int64_t length);
Generator make_mqar(const GeneratorOptions& options, std::int64_t length);
Generator make_needle(const GeneratorOptions& options, std::int64_t length);
Generator make_niah(const GeneratorOptions& options, std::int64_t length);
Generator make_tracing(const GeneratorOptions& options, std::int64_t length);
Generator make_translation(const GeneratorOptions& options, std::int64_t length);

}  // namespace headscope::data
