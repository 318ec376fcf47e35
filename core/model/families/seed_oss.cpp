// SPDX-License-Identifier: GPL-3.0-or-later
// Seed-OSS (ByteDance, 2025): Llama with biases on query, key and value, and perhaps on what the heads return.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    SizeDefaults sizes;
    sizes.key_value_heads = 8;
    sizes.head_size = 128;
    ModelConfig config = read_llama(reader, 524288, sizes);
    config.query_key_value_bias = reader.boolean("attention_bias", true);
    config.output_bias = reader.boolean("attention_out_bias", false);
    return config;
}

}  // namespace

const Family kSeedOss{
    "seed_oss", {"seed_oss"}, "Seed-OSS: Llama with biases on query, key and value", read, llama_names};

}  // namespace headscope::model
