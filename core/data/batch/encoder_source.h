// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/data/batch/batch_source.h"
#include "core/data/batch/corruption.h"
#include "core/data/token_code.h"
#include "core/data/token_file.h"

namespace headscope::data {

/// Numbers (token_code.h) of a text's tokens, N - 2 for each sequence.
struct TextRows {
    std::int64_t epoch = 0;  ///< sequences until they come again; 0: never
    std::function<std::vector<std::int64_t>(std::int64_t index)> read;
};

/// The windows of one part of a token file, in another order each epoch, as WindowSource has them; of N - 2 tokens,
/// without a token behind them. Error usage when the part is shorter than one.
TextRows window_rows(std::shared_ptr<const TokenFile> file, Split split, std::int64_t tokens, std::uint64_t seed);

/// Input of encoders: <s>, N - 2 tokens, </s>, corrupted by Random(seed, index): differently each epoch.
class EncoderSource final : public BatchSource {
public:
    /// `length`: N, at least 3.
    EncoderSource(TextRows rows, TokenCode code, SpecialIds special, Corruption corruption, std::int64_t length,
                  std::uint64_t seed);
    std::int64_t epoch() const override { return rows_.epoch; }
    DataBatch read(std::int64_t first, std::int64_t count) const override;

private:
    TextRows rows_;
    TokenCode code_;
    SpecialIds special_;
    Corruption corruption_;
    std::uint64_t seed_;
};

}  // namespace headscope::data
