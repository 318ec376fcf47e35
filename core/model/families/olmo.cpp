// SPDX-License-Identifier: GPL-3.0-or-later
// OLMo (Groeneveld et al., arXiv 2402.00838): Llama with layer norms that learn nothing, and heads whose numbers are
// cut.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_llama(reader, 2048);
    config.norm = NormKind::layer;
    config.norm_affine = false;
    config.norm_epsilon = 1e-5;  // whatever the file says
    config.feed_forward_bias = false;
    if (reader.has("clip_qkv")) config.query_key_value_clip = reader.positive("clip_qkv", 1);
    return config;
}

}  // namespace

const Family kOlmo{
    "olmo", {"olmo"}, "OLMo: Llama with norms that learn nothing, cut queries, keys and values", read, llama_names};

}  // namespace headscope::model
