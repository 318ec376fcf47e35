// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/hashed/word_hash.h"

#include <algorithm>

#include "core/base/error.h"

namespace headscope::tokenizer {
namespace {

/// Hyperplanes whose sums stay in registers while a word's n-grams are read.
constexpr std::size_t kTogether = 16;

std::vector<std::int32_t> places_of(const Ngrams& ngrams, std::string_view word) {
    std::vector<std::int32_t> places;
    places.reserve(kLongestNgram * word.size());
    ngrams.add_places(word, places);
    return places;
}

/// sum over places of normal[place + 1 + j], j < kTogether, into `sums`; `normal` begins at the first of them.
void add_up(const double* normal, const std::vector<std::int32_t>& places, double* sums) {
    std::array<double, kTogether> sum{};
    for (const std::int32_t place : places) {
        const double* numbers = normal + place + 1;
#pragma GCC unroll 16
        for (std::size_t j = 0; j < kTogether; ++j) sum[j] += numbers[j];
    }
    std::copy(sum.begin(), sum.end(), sums);
}

}  // namespace

WordHash::WordHash(HashSettings settings) : settings_(std::move(settings)) {
    if (settings_.hash == WordHashKind::md5) md5_.emplace(settings_.key);
}

WordHash::WordHash(HashSettings settings, std::shared_ptr<const Ngrams> ngrams, const std::vector<float>& normal)
    : settings_(std::move(settings)), ngrams_(std::move(ngrams)) {
    const std::size_t size = normal.size();
    if (size == 0 || size != ngrams_->list().size()) {
        throw Error(ErrorCode::mismatch, "ngrams.json",
                    "expected as many n-grams as model.hash_normal has numbers, " + std::to_string(size),
                    "found " + std::to_string(ngrams_->list().size()));
    }
    const std::size_t planes = settings_.kind == EmbeddingKind::emb
                                   ? std::min(size, static_cast<std::size_t>(settings_.rows))
                                   : static_cast<std::size_t>(settings_.bits);
    normal_.resize(size + planes + kTogether);
    for (std::size_t i = 0; i < normal_.size(); ++i) normal_[i] = static_cast<double>(normal[i % size]);
}

std::int32_t WordHash::id(std::string_view word) const {
    if (settings_.kind != EmbeddingKind::emb) return kSpecialTokens;
    if (!md5_) return kSpecialTokens + static_cast<std::int32_t>(lsh_row(word));
    __extension__ using Wide = unsigned __int128;
    Wide number = 0;
    for (const std::uint8_t byte : (*md5_)(word)) number = number << 8U | byte;
    return kSpecialTokens + static_cast<std::int32_t>(number % static_cast<Wide>(settings_.rows));
}

std::int64_t WordHash::lsh_row(std::string_view word) const {
    const std::vector<std::int32_t> places = places_of(*ngrams_, word);
    // Rotations repeat from here on: the first of equals is before.
    const std::int64_t planes = std::min(settings_.rows, ngrams_->size());
    std::array<double, kTogether> sums{};
    double largest = 0;
    std::int64_t row = -1;
    for (std::int64_t first = 0; first < planes; first += static_cast<std::int64_t>(kTogether)) {
        add_up(normal_.data() + first, places, sums.data());
        const auto here = static_cast<std::size_t>(std::min<std::int64_t>(planes - first, kTogether));
        for (std::size_t j = 0; j < here; ++j) {
            if (row >= 0 && sums[j] <= largest) continue;
            largest = sums[j];
            row = first + static_cast<std::int64_t>(j);
        }
    }
    return row;
}

void WordHash::lsh_bits(std::string_view word, std::span<std::uint8_t> bits) const {
    const std::vector<std::int32_t> places = places_of(*ngrams_, word);
    std::array<double, kTogether> sums{};
    for (std::size_t first = 0; first < bits.size(); first += kTogether) {
        add_up(normal_.data() + first, places, sums.data());
        const std::size_t here = std::min(bits.size() - first, kTogether);
        for (std::size_t j = 0; j < here; ++j) bits[first + j] = sums[j] >= 0 ? 1 : 0;
    }
}

void WordHash::bits(std::string_view word, std::span<std::uint8_t> bits) const {
    if (!md5_) return lsh_bits(word, bits);
    const Md5Digest digest = (*md5_)(word);
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = digest[i / 8] >> (7 - i % 8) & 1U;
}

std::string WordHash::hex(std::string_view word) const {
    std::vector<std::uint8_t> all(static_cast<std::size_t>(settings_.shown_bits()));
    if (!all.empty()) bits(word, all);
    return bits_hex(all);
}

std::string bits_hex(std::span<const std::uint8_t> bits) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string hex;
    for (std::size_t i = 0; i < bits.size(); i += 4) {
        std::size_t digit = 0;
        for (std::size_t j = i; j < i + 4; ++j) digit = 2 * digit + (j < bits.size() ? bits[j] : 0U);
        hex.push_back(digits[digit]);
    }
    return hex;
}

void read_bits_hex(std::string_view hex, std::span<std::uint8_t> bits, const std::string& where) {
    const auto refuse = [&] {
        throw Error(ErrorCode::format, where,
                    "expected " + std::to_string(bits.size()) + " bits as " + std::to_string((bits.size() + 3) / 4) +
                        " digits 0-9a-f, zeros behind the last",
                    "found \"" + escaped(hex, 60) + "\"");
    };
    if (hex.size() != (bits.size() + 3) / 4) refuse();
    for (std::size_t i = 0; i < 4 * hex.size(); ++i) {
        const char letter = hex[i / 4];
        const bool number = letter >= '0' && letter <= '9';
        if (!number && (letter < 'a' || letter > 'f')) refuse();
        const auto digit = static_cast<unsigned>(number ? letter - '0' : letter - 'a' + 10);
        const auto bit = static_cast<std::uint8_t>(digit >> (3 - i % 4) & 1U);
        if (i < bits.size())
            bits[i] = bit;
        else if (bit != 0)
            refuse();
    }
}

std::vector<std::int32_t> codes_of(std::span<const std::uint8_t> bits, std::int64_t group_bits) {
    std::vector<std::int32_t> codes;
    for (std::size_t i = 0; i < bits.size(); ++i) {
        if (i % static_cast<std::size_t>(group_bits) == 0) codes.push_back(0);
        codes.back() = 2 * codes.back() + bits[i];
    }
    return codes;
}

}  // namespace headscope::tokenizer
