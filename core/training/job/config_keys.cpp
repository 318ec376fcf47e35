// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/job/config_keys.h"

#include <utility>

namespace headscope::training {
namespace {

using nlohmann::json;

class ConfigTable {
public:
    std::vector<JobKey> build() {
        sizes();
        stack();
        positions();
        parts();
        return std::move(keys_);
    }

private:
    JobKey& add(const char* name, OptionKind kind, const char* help) {
        JobKey key;
        key.section = "model";
        key.name = name;
        key.kind = kind;
        key.help = help;
        key.get = [name = key.name](const JobFile& job) {
            const auto found = job.model.config.find(name);
            return found == job.model.config.end() ? json() : *found;
        };
        key.set = [name = key.name](JobFile& job, const json& value) {
            if (value.is_null())
                job.model.config.erase(name);
            else
                job.model.config[name] = value;
        };
        return keys_.emplace_back(std::move(key));
    }

    JobKey& number(const char* name, double lowest, double highest, const char* help) {
        JobKey& key = add(name, OptionKind::number, help);
        key.lowest = lowest;
        key.highest = highest;
        return key;
    }

    void count(const char* name, double lowest, double highest, const char* help) {
        number(name, lowest, highest, help).kind = OptionKind::whole;
    }

    void choice(const char* name, std::vector<std::string> choices, const char* help) {
        add(name, OptionKind::choice, help).choices = std::move(choices);
    }

    void flag(const char* name, const char* help) { add(name, OptionKind::flag, help); }

    void sizes() {
        count("vocab_size", 1, 1 << 22, "Rows of the embedding; default: the tokenizer's tokens");
        count("hidden_size", 1, 1 << 17, "Width of the residual stream");
        count("intermediate_size", 0, 1 << 20, "Width of the feed-forward; 0: no feed-forward");
        count("num_hidden_layers", 1, 4096, "Blocks, of both towers of an encoder-decoder");
        count("num_encoder_layers", 1, 4096, "Blocks of the encoder of an encoder-decoder; default: half of them");
        count("num_attention_heads", 1, 4096, "Query heads of a layer");
        count("num_key_value_heads", 1, 4096, "Key and value heads of a layer; fewer than query heads: grouped");
        count("head_dim", 1, 1 << 14, "Size of a head; default: hidden_size / num_attention_heads");
        count("max_position_embeddings", 1, 1 << 24, "Tokens of the longest text");
        count("type_vocab_size", 0, 1 << 16, "Rows of a table of token types, row 0 of which is added; 0: none");
        number("initializer_range", 0, 10, "Standard deviation of fresh weights");
    }

    void stack() {
        choice("stack", {"decoder", "encoder", "encoder_decoder"},
               "Towers; an encoder has no causal mask; default: decoder");
        count("decoder_start_token_id", 0, 1 << 22,
              "Token that a target begins with; default: the tokenizer's for translation");
        choice("norm", {"rms", "layer"}, "Every norm of the stack; default: rms");
        choice("norm_place", {"pre", "post"}, "pre: x + part(norm(x)); post: norm(x + part(x)); default: pre");
        number("rms_norm_eps", 0, 1, "Added to the mean square in norms").above = true;
        number("layer_norm_eps", 0, 1, "Added to the variance in norms of norm = \"layer\"").above = true;
    }

    void positions() {
        choice("positions", {"rotary", "learned", "sinusoidal", "none"},
               "Positions of tokens; learned has max_position_embeddings rows; default: rotary");
        flag("rotary", "Rotary positions; without them heads may be of any size");
        number("rope_theta", 0, 1e12, "Base of the rotary frequencies").above = true;
        add("rope_parameters", OptionKind::table,
            "Other rotary positions, as Llama's: { rope_type = \"linear\", factor = 2 }");
    }

    void parts() {
        add("embedding", OptionKind::table,
            "Hashes of words in place of a vocabulary: { kind = \"emb\", hash = \"md5\", rows = 1000 }");
        number("embedding_scale", 0, 1e6, "Factor of token vectors before positions are added; default: 1").above =
            true;
        flag("embedding_norm", "A norm over the sum of token, position and type");
        flag("attention_bias", "Biases of queries, keys and values");
        flag("output_bias", "A bias of attention's output map");
        flag("mlp_bias", "Biases of the feed-forward");
        flag("qk_norm", "RMS norms of each query and key head");
        choice("feed_forward", {"gated", "plain"}, "gated, or plain: down(act(up(x))); default: gated");
        choice("hidden_act", {"silu", "gelu", "gelu_pytorch_tanh", "quick_gelu", "relu", "relu2", "tanh"},
               "Activation of the feed-forward; default: silu");
        add("head", OptionKind::table,
            "Head: { kind = \"language\" }, masked_language, token_classes or sequence_classes with classes, spans, "
            "none; default: the objective's");
        flag("head_bias", "A bias of a language head");
        flag("tie_word_embeddings", "The head is the embedding");
    }

    std::vector<JobKey> keys_;
};

}  // namespace

std::vector<JobKey> config_keys() {
    return ConfigTable().build();
}

}  // namespace headscope::training
