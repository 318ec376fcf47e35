// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/io/md5.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace headscope {
namespace {

using State = std::array<std::uint32_t, 4>;
constexpr State kStart = {0x67452301U, 0xefcdab89U, 0x98badcfeU, 0x10325476U};
constexpr std::size_t kBlock = 64;

/// floor(2^32 |sin(i + 1)|).
const std::array<std::uint32_t, 64> kSines = [] {
    std::array<std::uint32_t, 64> sines{};
    for (std::size_t i = 0; i < 64; ++i)
        sines[i] = static_cast<std::uint32_t>(std::floor(0x1p32 * std::abs(std::sin(static_cast<double>(i + 1)))));
    return sines;
}();

/// One round of 16 steps; `mix` is its function of three words, `first` and `step` the order of the block's words.
template <class Mix>
void run_round(State& s, const std::array<std::uint32_t, 16>& words, std::size_t number, std::size_t first,
               std::size_t step, const std::array<int, 4>& turns, const Mix& mix) {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i) {
        const std::uint32_t sum =
            s[0] + mix(s[1], s[2], s[3]) + words[(first + step * i) % 16] + kSines[16 * number + i];
        s = {s[3], s[1] + std::rotl(sum, turns[i % 4]), s[1], s[2]};
    }
}

void add_block(State& state, const char* block) {
    std::array<std::uint32_t, 16> words{};
    for (std::size_t i = 0; i < 16; ++i) {
        std::array<unsigned char, 4> b{};
        std::memcpy(b.data(), block + 4 * i, 4);
        words[i] = b[0] | std::uint32_t{b[1]} << 8U | std::uint32_t{b[2]} << 16U | std::uint32_t{b[3]} << 24U;
    }
    using U = std::uint32_t;
    State s = state;
    run_round(s, words, 0, 0, 1, {7, 12, 17, 22}, [](U b, U c, U d) { return d ^ (b & (c ^ d)); });
    run_round(s, words, 1, 1, 5, {5, 9, 14, 20}, [](U b, U c, U d) { return c ^ (d & (b ^ c)); });
    run_round(s, words, 2, 5, 3, {4, 11, 16, 23}, [](U b, U c, U d) { return b ^ c ^ d; });
    run_round(s, words, 3, 0, 7, {6, 10, 15, 21}, [](U b, U c, U d) { return c ^ (b | ~d); });
    for (std::size_t i = 0; i < 4; ++i) state[i] += s[i];
}

/// The rest of a message of which `before` bytes, whole blocks, are in `state`.
Md5Digest finish(State state, std::string_view bytes, std::size_t before) {
    const std::uint64_t bits = 8 * (static_cast<std::uint64_t>(before) + bytes.size());
    while (bytes.size() >= kBlock) {
        add_block(state, bytes.data());
        bytes.remove_prefix(kBlock);
    }
    std::array<char, 2 * kBlock> end{};
    if (!bytes.empty()) std::memcpy(end.data(), bytes.data(), bytes.size());
    end[bytes.size()] = '\x80';
    const std::size_t size = bytes.size() < kBlock - 8 ? kBlock : 2 * kBlock;
    for (std::size_t i = 0; i < 8; ++i) end[size - 8 + i] = static_cast<char>(bits >> (8 * i));
    for (std::size_t at = 0; at < size; at += kBlock) add_block(state, end.data() + at);
    Md5Digest digest{};
    for (std::size_t i = 0; i < 16; ++i) digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (8 * (i % 4)));
    return digest;
}

std::string_view text_of(const Md5Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

Md5Digest md5(std::string_view bytes) {
    return finish(kStart, bytes, 0);
}

HmacMd5::HmacMd5(std::string_view key) : inner_(kStart), outer_(kStart) {
    Md5Digest digest{};
    if (key.size() > kBlock) {
        digest = md5(key);
        key = text_of(digest);
    }
    std::array<char, kBlock> inner{}, outer{};
    inner.fill('\x36');
    outer.fill('\x5c');
    for (std::size_t i = 0; i < key.size(); ++i) {
        inner[i] = static_cast<char>(inner[i] ^ key[i]);
        outer[i] = static_cast<char>(outer[i] ^ key[i]);
    }
    add_block(inner_, inner.data());
    add_block(outer_, outer.data());
}

Md5Digest HmacMd5::operator()(std::string_view bytes) const {
    const Md5Digest digest = finish(inner_, bytes, kBlock);
    return finish(outer_, text_of(digest), kBlock);
}

}  // namespace headscope
