// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Golden cases of encoder-decoders.

#include "tests/catch_with_torch.h"

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "core/model/model.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

namespace headscope::test::families {

struct GoldenPair {
    TinyCheckpoint checkpoint;
    model::Batch batch;
    nlohmann::json json;

    /// One of the lists of numbers, in this shape; `index` of a list of them.
    at::Tensor numbers(const char* name, std::vector<std::int64_t> shape, std::size_t index = 0) const {
        const nlohmann::json& list = json.at(name);
        const auto flat = (list[0].is_array() ? list[index] : list).get<std::vector<double>>();
        return at::tensor(flat, at::kDouble).reshape(shape);
    }
    at::Tensor logits() const {
        const auto& config = checkpoint.config;
        const char* const key = config.contains("decoder_vocab_size") && !config["share_encoder_decoder_embeddings"]
                                    ? "decoder_vocab_size"
                                    : "vocab_size";
        return numbers("logits", {batch.target.size(0), batch.target.size(1), config[key]});
    }
};

inline at::Tensor rows_of(const nlohmann::json& rows) {
    std::vector<at::Tensor> all;
    for (const auto& row : rows) all.push_back(at::tensor(row.get<std::vector<std::int64_t>>(), at::kLong));
    std::vector<at::Tensor> stacked;
    for (const at::Tensor& row : all) stacked.push_back(row.unsqueeze(0));
    return at::cat(stacked, 0);
}

inline GoldenPair golden_pair(const std::string& name) {
    std::ifstream file(test::golden_model_file(name));
    REQUIRE(file.good());
    GoldenPair golden;
    golden.json = nlohmann::json::parse(file);
    golden.checkpoint = test::golden_checkpoint(name);
    golden.batch.ids = rows_of(golden.json.at("ids"));
    golden.batch.lengths = golden.json.value("lengths", std::vector<std::int64_t>());
    if (golden.json.contains("target")) golden.batch.target = rows_of(golden.json["target"]);
    golden.batch.target_lengths = golden.json.value("target_lengths", std::vector<std::int64_t>());
    return golden;
}

}  // namespace headscope::test::families
