// SPDX-License-Identifier: GPL-3.0-or-later
// Differential Transformer (Ye et al., arXiv 2410.05258) in Llama's form (kajuma/DiffLlama): the difference of two
// softmax maps in the place of each.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    const SizeDefaults sizes{0, 0, 32'000, 2048, 16, 32, 8192};
    ModelConfig config = read_llama(reader, 2048, sizes);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.feed_forward_bias = false;
    config.differential = true;
    if (config.key_value_heads % 2 != 0)
        reader.refuse("num_key_value_heads", "an even number, whose halves are subtracted from each other");
    if (reader.number("attention_dropout", 0) > 0) reader.unsupported("attention_dropout", "0");
    return config;
}

}  // namespace

const Family kDiffLlama{
    "diffllama", {"diffllama"}, "Differential Transformer: Llama with differences of softmax maps", read, llama_names};

}  // namespace headscope::model
