// SPDX-License-Identifier: GPL-3.0-or-later
// Models of flash-linear-attention (Yang and Zhang, github.com/fla-org/flash-linear-attention, version 0.6.0): pre-norm
// blocks with RMS norms and a gated feed-forward around a mixer; here what they share, and its softmax Transformer.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/mixers/types/standard.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

/// One entry of `attn`: softmax attention in some layers.
struct Softmax {
    std::int64_t heads = 0, key_value_heads = 0;
    bool biases = false;
};

/// `otherwise` 0: the file must say how many heads.
Softmax read_softmax(const ConfigReader& reader, const ModelConfig& config, std::int64_t otherwise) {
    Softmax softmax;
    softmax.heads = otherwise > 0 ? reader.size("num_heads", otherwise) : reader.size("num_heads");
    if (softmax.heads > kMostHeads) reader.refuse("num_heads", "at most " + std::to_string(kMostHeads));
    if (config.hidden % (2 * softmax.heads) != 0) {
        reader.refuse("num_heads",
                      "a number of heads of even size, hidden_size (" + std::to_string(config.hidden) + ") over that");
    }
    softmax.key_value_heads = reader.size("num_kv_heads", softmax.heads);
    if (softmax.heads % softmax.key_value_heads != 0)
        reader.refuse("num_kv_heads", "a divisor of num_heads (" + std::to_string(softmax.heads) + ")");
    softmax.biases = read_fla_flag(reader, "qkv_bias", false);
    return softmax;
}

double read_base(const ConfigReader& reader) {
    return reader.positive("rope_theta", 10000.0);
}

void enter_softmax(ModelConfig& config, const ConfigReader& reader, const Softmax& softmax) {
    config.heads = softmax.heads;
    config.key_value_heads = softmax.key_value_heads;
    config.head_size = config.hidden / softmax.heads;
    config.query_key_value_bias = softmax.biases;
    config.positions = PositionKind::rotary;
    config.max_positions = reader.size(SizeKeys().positions, 2048);
}

/// By that library's names; its sigmoid and logsigmoid are not built.
Activation read_feature_map(const ConfigReader& reader) {
    const std::string name = reader.text("feature_map", "");
    if (name == "relu") return Activation::relu;
    if (name == "silu" || name == "swish") return Activation::silu;
    if (name == "sqrelu") return Activation::relu_squared;
    if (name == "gelu") return Activation::gelu_tanh;
    reader.unsupported("feature_map", "relu, silu, swish, sqrelu, gelu or none");
}

std::set<std::int64_t> read_layer_numbers(const ConfigReader& reader, std::int64_t layers) {
    const std::string expected = "a list of layers from 0 to " + std::to_string(layers - 1) + ", each once";
    if (!reader.has("layers")) reader.refuse("layers", expected);
    std::set<std::int64_t> numbers;
    for (const double number : reader.numbers("layers")) {
        const auto layer = number >= 0 && number < static_cast<double>(layers) ? static_cast<std::int64_t>(number) : -1;
        if (layer < 0 || static_cast<double>(layer) != number || !numbers.insert(layer).second)
            reader.refuse("layers", expected);
    }
    return numbers;
}

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_fla(reader, {.layers = 24, .heads = 32});
    enter_softmax(config, reader, read_softmax(reader, config, config.heads));
    config.rope.theta = read_base(reader);
    config.mixers = mixers::standard_layers(config.layers);
    if (read_fla_flag(reader, "qk_norm", false)) {
        config.query_key_norm = QueryKeyNorm::each_head;
        config.query_key_norm_epsilon = 1e-5;
    }
    if (reader.has("window_size"))
        config.windows.assign(static_cast<std::size_t>(config.layers), reader.size("window_size"));
    return config;
}

}  // namespace

bool read_fla_flag(const ConfigReader& reader, const std::string& key, bool otherwise) {
    return !reader.is_null(key) && reader.boolean(key, otherwise);
}

ModelConfig read_fla(const ConfigReader& reader, const FlaDefaults& defaults) {
    refuse_layer_configs(reader);
    const SizeKeys keys;
    ModelConfig config;
    config.vocabulary = reader.size(keys.vocabulary, 32000);
    config.hidden = reader.size(keys.hidden, 2048);
    config.layers = reader.size(keys.layers, defaults.layers);
    if (config.layers > kMostLayers) reader.refuse(keys.layers, "at most " + std::to_string(kMostLayers));
    config.heads = config.key_value_heads = reader.size("num_heads", defaults.heads);
    if (config.heads > kMostHeads) reader.refuse("num_heads", "at most " + std::to_string(kMostHeads));
    // A ratio that says nothing is the feed-forward's own, 4.
    const double ratio =
        reader.positive("hidden_ratio", reader.is_null("hidden_ratio") ? 4 : defaults.feed_forward_ratio);
    const double inner = static_cast<double>(config.hidden) * ratio * 2 / 3;
    if (!reader.has(keys.feed_forward) && inner > 1e9) reader.refuse("hidden_ratio", "a feed-forward of at most 10^9");
    config.feed_forward = reader.has(keys.feed_forward) ? reader.size(keys.feed_forward)
                                                        : (static_cast<std::int64_t>(inner) + 255) / 256 * 256;
    const std::string activation = reader.text("hidden_act", "swish");
    if (activation != "swish" && activation != "silu") reader.unsupported("hidden_act", "swish");
    if (reader.has("attnres_block_size")) reader.unsupported("attnres_block_size", "none: residuals are plain sums");
    config.activation = Activation::silu;
    config.gated_feed_forward = true;
    config.norm = NormKind::rms;
    config.norm_epsilon = reader.positive("norm_eps", 1e-6);
    config.positions = PositionKind::none;
    config.tied_head = reader.boolean("tie_word_embeddings", false);
    const double deviation = reader.number("initializer_range", config.initializer_range);
    if (deviation > 0) config.initializer_range = deviation;
    return config;
}

std::int64_t read_fla_head(const ConfigReader& reader, const ModelConfig& config, const std::string& key,
                           double otherwise) {
    const double all = static_cast<double>(config.hidden) * reader.positive(key, otherwise);
    const auto size = all < 1e9 ? static_cast<std::int64_t>(all) : 0;
    if (size < 1 || size % config.heads != 0)
        reader.refuse(key,
                      "hidden_size times that to be a multiple of num_heads (" + std::to_string(config.heads) + ")");
    return size / config.heads;
}

void set_fla_heads(ModelConfig& config, const mixers::MixerType& mixer, std::int64_t key_size,
                   std::int64_t value_size) {
    config.head_size = key_size;
    config.mixer_options.set(mixer, "num_heads", config.heads);
    config.mixer_options.set(mixer, "head_dim", key_size);
    config.mixer_options.set(mixer, "expand_v", static_cast<double>(value_size) / static_cast<double>(key_size));
}

void read_fla_layers(ModelConfig& config, const ConfigReader& reader, const mixers::MixerType& mixer) {
    config.mixers.assign(static_cast<std::size_t>(config.layers), mixer.name);
    std::vector<std::int64_t> windows(static_cast<std::size_t>(config.layers), 0);
    std::map<std::int64_t, LayerHeads> heads;
    std::optional<LayerHeads> usual;              // the first entry's
    std::optional<double> in_windows, elsewhere;  // the first bases of rotary positions
    for (const ConfigReader& entry : reader.objects("attn")) {
        const Softmax softmax = read_softmax(entry, config, 0);
        const LayerHeads own{softmax.heads, softmax.key_value_heads, softmax.biases, read_base(entry)};
        const std::int64_t window = entry.has("window_size") ? entry.size("window_size") : 0;
        if (!usual) usual = own;
        std::optional<double>& base = window > 0 ? in_windows : elsewhere;
        if (!base) base = own.theta;
        for (const std::int64_t layer : read_layer_numbers(entry, config.layers)) {
            std::string& mixer_of_layer = config.mixers.at(static_cast<std::size_t>(layer));
            if (mixers::is_standard(mixer_of_layer)) entry.refuse("layers", "layers that no other entry has");
            mixer_of_layer = mixers::kStandard.name;
            windows.at(static_cast<std::size_t>(layer)) = window;
            LayerHeads expected = *usual;
            expected.theta = *base;
            if (own != expected) heads[layer] = own;
        }
    }
    if (std::none_of(config.mixers.begin(), config.mixers.end(), mixers::is_standard)) return;
    enter_softmax(config, reader, {usual->heads, usual->key_value_heads, usual->biases});
    config.layer_heads = std::move(heads);
    config.rope.theta = elsewhere ? *elsewhere : *in_windows;
    if (!in_windows) return;
    config.windows = windows;
    config.window_rope = config.rope;
    config.window_rope->theta = *in_windows;
}

void read_fla_linear(ModelConfig& config, const ConfigReader& reader, const mixers::MixerType& mixer, double expand_key,
                     double expand_value) {
    if (reader.has("feature_map")) config.feature_map = read_feature_map(reader);
    if (!read_fla_flag(reader, "elementwise_affine", true)) reader.unsupported("elementwise_affine", "true or absent");
    set_fla_heads(config, mixer, read_fla_head(reader, config, "expand_k", expand_key),
                  read_fla_head(reader, config, "expand_v", expand_value));
    const std::int64_t shared = reader.size("num_kv_heads", config.heads);
    if (config.heads % shared != 0)
        reader.refuse("num_kv_heads", "a divisor of num_heads (" + std::to_string(config.heads) + ")");
    config.mixer_options.set(mixer, "num_key_value_heads", shared);
    config.mixer_options.set(mixer, "use_gate", read_fla_flag(reader, "use_output_gate", true));
}

TensorNames fla_names(const ModelConfig&) {
    TensorNames names;
    names.keys.heads = "num_heads";
    names.keys.key_value_heads = "num_kv_heads";
    names.keys.head_size = "hidden_size / num_heads";
    names.prefixes = {"model.", ""};
    names.token_embedding = "embeddings";
    names.layer = "layers.{}.";
    names.in_layer.input_norm = "attn_norm";
    names.in_layer.query = "attn.q_proj";
    names.in_layer.key = "attn.k_proj";
    names.in_layer.value = "attn.v_proj";
    names.in_layer.query_norm = "attn.q_norm";
    names.in_layer.key_norm = "attn.k_norm";
    names.in_layer.recurrent.stem = "attn.";
    names.in_layer.output = "attn.o_proj";
    names.in_layer.feed_forward_norm = "mlp_norm";
    names.in_layer.gate = "mlp.gate_proj";
    names.in_layer.up = "mlp.up_proj";
    names.in_layer.down = "mlp.down_proj";
    names.final_norm = "norm";
    names.head = "lm_head";
    names.buffers = {"rotary.inv_freq"};
    return names;
}

TensorNames fla_linear_names(const ModelConfig& config) {
    TensorNames names = fla_names(config);
    names.in_layer.recurrent.norm = "g_norm_swish_gate";
    names.in_layer.recurrent.other_norm = "g_norm";  // without a gate, or with fuse_norm false
    return names;
}

const Family kFlaTransformer{"transformer",
                             {"transformer"},
                             "flash-linear-attention's Transformer: rotary positions, RMS norms, perhaps a window",
                             read,
                             fla_names};

}  // namespace headscope::model
