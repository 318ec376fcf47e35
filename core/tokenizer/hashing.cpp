// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/hashing.h"

#include <chrono>
#include <cstring>
#include <random>

namespace headscope::tokenizer {

namespace {

std::uint64_t draw_seed() {
    try {
        std::random_device device;
        return (static_cast<std::uint64_t>(device()) << 32) | device();
    } catch (...) {  // no source of random numbers: the clock must do
        return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    }
}

}  // namespace

const std::uint64_t hash_seed = draw_seed();

std::uint64_t hash_bytes(std::string_view bytes) {
    std::uint64_t hash = hash_seed ^ bytes.size();
    std::size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8) {
        std::uint64_t part = 0;
        std::memcpy(&part, bytes.data() + at, 8);
        hash = mix(hash ^ part, 0xA0761D6478BD642Full);
    }
    std::uint64_t rest = 0;
    if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
    return mix(hash ^ rest, 0xE7037ED1A0B428DBull);
}

}  // namespace headscope::tokenizer
