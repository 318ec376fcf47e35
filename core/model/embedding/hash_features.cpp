// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/embedding/hash_features.h"

#include <functional>

#include <ATen/ops/zeros.h>

#include "core/base/error.h"
#include "core/base/text/text.h"

namespace headscope::model {
namespace {

using tokenizer::EmbeddingKind;
using tokenizer::HashSettings;

/// Calls fill(token, bits) for each word.
using FillBits = std::function<void(std::size_t token, std::span<std::uint8_t> bits)>;

at::Tensor features(const HashSettings& settings, std::span<const std::int32_t> ids,
                    const std::vector<std::string>& pieces, const FillBits& fill) {
    const auto length = static_cast<std::int64_t>(ids.size());
    if (settings.kind == EmbeddingKind::characters) {
        at::Tensor points = at::zeros({1, length, 1}, at::kLong);
        auto* data = points.mutable_data_ptr<std::int64_t>();
        for (std::size_t i = 0; i < ids.size(); ++i) {
            if (ids[i] < tokenizer::kSpecialTokens) continue;
            char32_t point = 0;
            if (const std::string& piece = pieces.at(i); decode_utf8(piece, point) != piece.size() || piece.empty()) {
                throw Error(ErrorCode::mismatch, "token " + std::to_string(i), "expected one character",
                            "found \"" + escaped(piece, 40) + "\"");
            }
            data[i] = static_cast<std::int64_t>(point);
        }
        return points;
    }
    if (settings.bits == 0) return {};
    at::Tensor bits = at::zeros({1, length, settings.bits}, at::kByte);
    const auto size = static_cast<std::size_t>(settings.bits);
    const std::span<std::uint8_t> all(bits.mutable_data_ptr<std::uint8_t>(), ids.size() * size);
    for (std::size_t i = 0; i < ids.size(); ++i)
        if (ids[i] >= tokenizer::kSpecialTokens) fill(i, all.subspan(i * size, size));
    return bits;
}

}  // namespace

at::Tensor hash_features(const tokenizer::WordHash& hash, std::span<const std::int32_t> ids,
                         const std::vector<std::string>& pieces) {
    return features(hash.settings(), ids, pieces,
                    [&](std::size_t token, std::span<std::uint8_t> bits) { hash.bits(pieces.at(token), bits); });
}

at::Tensor stored_features(const HashSettings& settings, std::span<const std::int32_t> ids,
                           const std::vector<std::string>& pieces, const std::vector<std::string>& hashes) {
    return features(settings, ids, pieces, [&](std::size_t token, std::span<std::uint8_t> bits) {
        tokenizer::read_bits_hex(token < hashes.size() ? hashes[token] : "", bits, "token " + std::to_string(token));
    });
}

}  // namespace headscope::model
