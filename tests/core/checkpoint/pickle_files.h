// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Pickles written opcode by opcode, and what is expected of them.

#include <chrono>
#include <string>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/pytorch/pickle_opcodes.h"
#include "core/checkpoint/pytorch/pickle_reader.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/pytorch_builder.h"

namespace headscope::test {

constexpr auto format = ErrorCode::format, unsupported = ErrorCode::unsupported, too_much = ErrorCode::limit;

/// The pickle alone, with a storage "0" of 24 bytes.
inline checkpoint::PickleObjects read(const std::string& pickle) {
    return checkpoint::read_pickle(pickle, "x.pt", [](std::string_view key) -> std::optional<std::uint64_t> {
        return key == "0" ? std::optional<std::uint64_t>(24) : std::nullopt;
    });
}

inline void refused(const std::string& pickle, ErrorCode code, const std::string& part) {
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE_THROWS_MATCHES(read(pickle), Error, IsError(code, part));
    REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}

/// The whole file, opened.
inline std::shared_ptr<const checkpoint::Checkpoint> open(const TemporaryFolder& folder, const std::string& pickle) {
    return checkpoint::Checkpoint::open(write_file(folder / "x.pt", pytorch_bytes(pickle)));
}

inline std::string repeated(std::string_view text, std::size_t times) {
    std::string all;
    all.reserve(text.size() * times);
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
}

}  // namespace headscope::test
