// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/towers/check_batch.h"

#include <string>

#include "core/base/error.h"
#include "core/model/device.h"
#include "core/model/embedding/segments.h"
#include "core/model/model.h"
#include "core/model/towers/cache.h"

namespace headscope::model {
namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& expected, const std::string& found) {
    throw Error(code, "batch", expected, found);
}

/// `values` [B, L] int64, each in [0, limit).
void check_range(const at::Tensor& values, std::int64_t limit, const std::string& side, const std::string& what,
                 const std::string& bound) {
    const at::Tensor plain = on_processor(values).contiguous();
    const std::int64_t* data = plain.const_data_ptr<std::int64_t>();
    const std::int64_t length = plain.size(1);
    for (std::int64_t i = 0; i < plain.numel(); ++i) {
        if (data[i] >= 0 && data[i] < limit) continue;
        throw Error(ErrorCode::limit,
                    side + "sequence " + std::to_string(i / length) + ", token " + std::to_string(i % length),
                    "expected " + what + " from 0 to " + std::to_string(limit - 1) + " (" + bound + ")",
                    "found " + std::to_string(data[i]));
    }
}

void check_shape(const at::Tensor& tensor, const std::string& what) {
    if (!tensor.defined() || tensor.dim() != 2 || tensor.scalar_type() != at::kLong) {
        refuse(ErrorCode::usage, "expected " + what + " [batch, length] of int64", "found another tensor");
    }
}

void check_lengths(const Batch& batch) {
    if (batch.lengths.empty()) return;
    if (static_cast<std::int64_t>(batch.lengths.size()) != batch.ids.size(0)) {
        refuse(ErrorCode::usage, "expected a length for each of " + std::to_string(batch.ids.size(0)) + " sequences",
               "found " + std::to_string(batch.lengths.size()));
    }
    for (const std::int64_t length : batch.lengths) {
        if (length < 1 || length > batch.ids.size(1)) {
            refuse(ErrorCode::usage, "expected lengths from 1 to " + std::to_string(batch.ids.size(1)),
                   "found " + std::to_string(length));
        }
    }
}

void check_positions(std::int64_t total, const ModelConfig& config, bool beyond_positions, const std::string& side) {
    if (config.max_positions == 0 || total <= config.max_positions) return;
    const std::string limit =
        "expected at most " + std::to_string(config.max_positions) + " tokens, the model's positions";
    const std::string found = "found " + std::to_string(total);
    if (config.positions_are_a_table) {
        throw Error(ErrorCode::limit, side + "length", limit + " (a table: there are no more)", found);
    }
    if (!beyond_positions) {
        throw Error(ErrorCode::limit, side + "length", limit, found + " (--beyond-positions runs past the limit)");
    }
}

/// ModelConfig::dropped_token scales up the remaining tokens: at least one must remain.
void check_dropped(const Batch& batch, const ModelConfig& config, const std::string& side) {
    for (std::int64_t i = 0; config.dropped_token >= 0 && i < batch.ids.size(0); ++i) {
        const std::int64_t length =
            batch.lengths.empty() ? batch.ids.size(1) : batch.lengths[static_cast<std::size_t>(i)];
        if (batch.ids[i].narrow(0, 0, length).ne(config.dropped_token).any().item<bool>()) continue;
        throw Error(
            ErrorCode::limit, side + "sequence " + std::to_string(i),
            "expected a token other than the mask's (" + std::to_string(config.dropped_token) + ", token_dropout)",
            "found none");
    }
}

/// Batch::features: there for a hash embedding alone, of its size, and within its range.
void check_features(const Batch& batch, const tokenizer::HashSettings& hashed, const std::string& side) {
    const bool characters = hashed.kind == tokenizer::EmbeddingKind::characters;
    const std::int64_t size = characters ? 1 : hashed.bits;
    if (size == 0) {
        if (batch.features.defined())
            refuse(ErrorCode::usage, "expected no hashes of words for this model", "found some");
        return;
    }
    const at::ScalarType type = characters ? at::kLong : at::kByte;
    const std::vector<std::int64_t> shape = {batch.ids.size(0), batch.ids.size(1), size};
    if (!batch.features.defined() || batch.features.scalar_type() != type || batch.features.sizes() != shape) {
        refuse(ErrorCode::usage,
               characters ? "expected code points [batch, length, 1] of int64 beside the ids"
                          : "expected " + std::to_string(size) + " bits of each word, [batch, length, bits] of uint8",
               batch.features.defined() ? "found another tensor" : "found none");
    }
    check_range(batch.features.flatten(1).to(at::kLong), characters ? 0x110000 : 2, side,
                characters ? "a code point" : "a bit", characters ? "Unicode's" : "0 or 1");
}

/// One side; `side` begins what errors say of the place, and is empty for plain models.
void check_side(const Batch& batch, const ModelConfig& config, std::int64_t held, bool beyond_positions,
                const std::string& side) {
    check_shape(batch.ids, side + "ids");
    if (batch.ids.numel() == 0) refuse(ErrorCode::usage, "expected at least one token", "found an empty text");
    check_lengths(batch);
    if (batch.token_types.defined()) {
        check_shape(batch.token_types, "token types");
        if (config.token_types == 0) refuse(ErrorCode::usage, "expected no token types for this model", "found some");
        if (batch.token_types.sizes() != batch.ids.sizes()) {
            refuse(ErrorCode::usage, "expected token types of the shape of the ids", "found another");
        }
        check_range(batch.token_types, config.token_types, side, "a token type", "the model's token types");
    }
    check_dropped(batch, config, side);
    check_positions(held + batch.ids.size(1), config, beyond_positions, side);
    check_range(batch.ids, config.ids(), side, "an id",
                config.hashed.is_table() ? "the model's vocabulary" : "special tokens and rows of its hash embedding");
    check_features(batch, config.hashed, side);
}

}  // namespace

void check_length(std::int64_t tokens, const ModelConfig& config, bool beyond_positions) {
    check_positions(tokens, config.encoder ? *config.encoder : config, beyond_positions, "");
}

void check_batch(const Batch& batch, const ModelConfig& config, std::int64_t held, bool beyond_positions) {
    if (!config.encoder) {
        if (batch.target.defined())
            refuse(ErrorCode::usage, "expected no target for a model without an encoder", "found one");
        check_side(batch, config, held, beyond_positions, "");
        return;
    }
    if (!batch.target.defined())
        refuse(ErrorCode::usage, "expected what the decoder reads beside what the encoder does", "found no target");
    check_side({batch.target, batch.target_lengths, {}}, config, held, beyond_positions, "target ");
    if (held > 0) {
        if (batch.ids.defined()) refuse(ErrorCode::usage, "expected no source beside a cache of it", "found one");
        return;
    }
    check_side(batch, *config.encoder, 0, beyond_positions, "source ");
    if (batch.ids.size(0) != batch.target.size(0)) {
        refuse(ErrorCode::usage, "expected a target for each of " + std::to_string(batch.ids.size(0)) + " sources",
               "found " + std::to_string(batch.target.size(0)));
    }
}

void check_segments(const Segments& segments, const ModelConfig& config) {
    if (segments == Segments()) return;
    if (config.positions != PositionKind::relative) {
        throw Error(ErrorCode::usage, "--segment, --memory",
                    "expected a model with a memory of earlier segments (Transformer-XL)", "found " + config.family);
    }
    if (segments.tokens < 0 || segments.memory < -1)
        refuse(ErrorCode::usage, "expected segments and a memory of 0 tokens or more", "found less");
    if (!config.memory_is_a_window && segments.tokens == 0) {
        throw Error(ErrorCode::usage, "--memory", "expected --segment beside it, for a text is one segment without",
                    "found none");
    }
    if (config.memory_is_a_window && segments.memory == 0) {
        throw Error(ErrorCode::usage, "--segment, --memory",
                    "expected a memory of at least 1 token, which includes the token itself (same_length)", "found 0");
    }
}

void check_cache(const Cache& cache, const ModelConfig& config, const Batch& batch) {
    const auto refuse_cache = [](const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::usage, "cache", "expected " + expected, "found " + found);
    };
    if (!config.causal) refuse_cache("a causal model", "an encoder");
    if (cache.spoiled()) refuse_cache("one whose passes all ended", "one that was stopped within");
    if (!batch.lengths.empty() || !batch.target_lengths.empty())
        refuse_cache("sequences of equal length", "a padded batch");
    const std::int64_t sequences = batch.predicted().size(0);
    if (cache.batch() != 0 && cache.batch() != sequences) {
        refuse_cache(std::to_string(cache.batch()) + " sequences, as it holds", std::to_string(sequences));
    }
}

void check_only_position(const ForwardOptions& options, const Batch& batch) {
    if (options.only_position < 0) return;
    if (options.cache || options.probe || options.training)
        refuse(ErrorCode::usage, "expected all positions with a cache, a probe or training", "found one alone");
    const std::int64_t length = batch.predicted().size(1);
    if (options.only_position >= length)
        refuse(ErrorCode::usage, "expected a position below " + std::to_string(length),
               "found " + std::to_string(options.only_position));
}

}  // namespace headscope::model
