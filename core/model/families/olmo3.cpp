// SPDX-License-Identifier: GPL-3.0-or-later
// OLMo 3 (arXiv 2512.13961): OLMo 2 with windows on three of four layers; rope_scaling and rope_theta are the others'.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_llama_without_positions(reader, 2048);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.feed_forward_bias = false;
    config.query_key_norm = QueryKeyNorm::all_heads;
    config.windows = read_windows_where(reader, config.layers, read_window(reader, 4096),
                                        [](std::int64_t layer) { return (layer + 1) % 4 != 0; });
    RopeDefaults full, windowed;
    full.theta = windowed.theta = 500'000.0;
    windowed.theta_key = "";  // rope_theta does not reach them
    read_two_ropes(config, reader, full, windowed);
    return config;
}

}  // namespace

const Family kOlmo3{"olmo3", {"olmo3"}, "OLMo 3: OLMo 2 with windows on three of four layers", read, olmo2_names};

}  // namespace headscope::model
