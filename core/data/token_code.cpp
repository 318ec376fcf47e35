// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/token_code.h"

#include <algorithm>
#include <utility>

#include "core/tokenizer/hashed/word_hash.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::data {
namespace {

constexpr std::int64_t kBitsPerNumber = 16;
constexpr std::int64_t kCodePoints = 0x110000;

/// Numbers of words as they come.
class PackingSink final : public tokenizer::TokenSink {
public:
    PackingSink(const tokenizer::WordHash& hash, std::int64_t bits, std::vector<std::int32_t>& numbers)
        : hash_(hash), bits_(static_cast<std::size_t>(bits)), numbers_(numbers) {}

    void add(const tokenizer::FoundToken& token) override {
        if (!bits_.empty())
            add_bits(*token.respelled);
        else if (hash_.settings().kind == tokenizer::EmbeddingKind::characters)
            numbers_.push_back(static_cast<std::int32_t>(tokenizer::decode_utf8(*token.respelled, 0).point));
        else
            numbers_.push_back(token.id);
    }

private:
    void add_bits(std::string_view word) {
        hash_.bits(word, bits_);
        for (std::size_t i = 0; i < bits_.size(); ++i) {
            if (i % kBitsPerNumber == 0) numbers_.push_back(0);
            numbers_.back() |= static_cast<std::int32_t>(bits_[i]) << (i % kBitsPerNumber);
        }
    }

    const tokenizer::WordHash& hash_;
    std::vector<std::uint8_t> bits_;
    std::vector<std::int32_t>& numbers_;
};

}  // namespace

TokenCode::TokenCode(std::shared_ptr<const tokenizer::Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)), ids_(tokenizer_->vocabulary_size()) {
    vocabulary_ = ids_;
    const tokenizer::WordHash* hash = tokenizer_->word_hash();
    if (hash == nullptr) return;
    hashed_ = true;
    bits_ = hash->settings().bits;
    points_ = hash->settings().kind == tokenizer::EmbeddingKind::characters;
    if (points_) vocabulary_ = kCodePoints;
    if (bits_ == 0) return;
    width_ = (bits_ + kBitsPerNumber - 1) / kBitsPerNumber;
    vocabulary_ = std::int64_t{1} << kBitsPerNumber;
}

std::vector<std::int32_t> TokenCode::encode(std::string_view text, const Cancellation* cancellation) const {
    if (!hashed_) return tokenizer_->encode(text, /*add_special_tokens=*/false, cancellation).ids;
    std::vector<std::int32_t> numbers;
    PackingSink sink(*tokenizer_->word_hash(), bits_, numbers);
    tokenizer_->encode_into(sink, text, /*add_special_tokens=*/false, cancellation);
    return numbers;
}

void TokenCode::unpack(std::span<const std::int64_t> numbers, SpoiltSequence& to) const {
    if (bits_ == 0 && !points_) {
        to.ids.insert(to.ids.end(), numbers.begin(), numbers.end());
        return;
    }
    to.ids.insert(to.ids.end(), numbers.size() / static_cast<std::size_t>(width_), tokenizer::kSpecialTokens);
    if (points_) to.points.insert(to.points.end(), numbers.begin(), numbers.end());
    for (std::size_t word = 0; bits_ > 0 && word < numbers.size(); word += static_cast<std::size_t>(width_))
        for (std::int64_t bit = 0; bit < bits_; ++bit)
            to.bits.push_back(static_cast<std::uint8_t>(
                numbers[word + static_cast<std::size_t>(bit / kBitsPerNumber)] >> (bit % kBitsPerNumber) & 1));
}

void TokenCode::append_special(std::int64_t id, SpoiltSequence& to) const {
    to.ids.push_back(id);
    to.bits.insert(to.bits.end(), static_cast<std::size_t>(bits_), 0);
    if (points_) to.points.push_back(0);
}

DataBatch TokenCode::batch(const std::vector<SpoiltSequence>& sequences, std::int64_t padding) const {
    DataBatch out;
    out.sequences = static_cast<std::int64_t>(sequences.size());
    for (const SpoiltSequence& one : sequences)
        out.length = std::max(out.length, static_cast<std::int64_t>(one.ids.size()));
    const auto width = static_cast<std::size_t>(out.length), bits = static_cast<std::size_t>(bits_);
    const auto extend = [](auto& to, const auto& values, std::size_t size, auto filling) {
        to.insert(to.end(), values.begin(), values.end());
        to.insert(to.end(), size - values.size(), filling);
    };
    out.bits_per_token = bits_;
    const bool typed =
        std::any_of(sequences.begin(), sequences.end(), [](const SpoiltSequence& one) { return !one.types.empty(); });
    for (const SpoiltSequence& one : sequences) {
        out.lengths.push_back(static_cast<std::int64_t>(one.ids.size()));
        extend(out.ids, one.ids, width, std::max<std::int64_t>(padding, 0));
        extend(out.bits, one.bits, width * bits, std::uint8_t{0});
        if (points_) extend(out.points, one.points, width, std::int64_t{0});
        if (typed) extend(out.types, one.types, width, std::int64_t{0});
        if (one.targets.size() == one.ids.size()) extend(out.targets, one.targets, width, no_target);
    }
    out.counted = std::count_if(out.targets.begin(), out.targets.end(), [](auto t) { return t != no_target; });
    if (std::all_of(out.lengths.begin(), out.lengths.end(), [&](auto n) { return n == out.length; }))
        out.lengths.clear();
    return out;
}

}  // namespace headscope::data
