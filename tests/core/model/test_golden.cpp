// SPDX-License-Identifier: GPL-3.0-or-later
// Models against transformers' eager float64 forward pass (tests/oracle/models/models.py).
#include "tests/catch_with_torch.h"

#include <ATen/ops/eye.h>

#include "core/mixers/shared/attend.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using checkpoint::LoadAs;
using test::GoldenModel;
using test::largest_difference;
using test::largest_value;
using test::RecordingProbe;

namespace {

/// Some cases run past max_position_embeddings on purpose.
at::Tensor forward(model::Model& model, const GoldenModel& golden, model::Probe* probe = nullptr) {
    model::ForwardOptions options;
    options.beyond_positions = true;
    options.probe = probe;
    return model.forward(golden.batch, options);
}

at::Tensor all_logits(model::Model& model, const at::Tensor& hidden) {
    return model.logits(hidden.flatten(0, 1)).unflatten(0, {hidden.size(0), hidden.size(1)});
}

void compare_logits(const GoldenModel& golden, LoadAs precision, double error) {
    const auto model = golden.checkpoint.build(precision);
    const at::Tensor logits = all_logits(*model, forward(*model, golden));
    REQUIRE(logits.scalar_type() == at::kFloat);
    REQUIRE(largest_value(golden.logits) > 0.1);
    CHECK(largest_difference(logits, golden.logits, golden.batch.lengths) < error * largest_value(golden.logits));
}

const std::vector<std::string> kCases{
    "gpt2",
    "gpt2-old-file",
    "llama",
    "llama-tied-bf16-sharded",
    "llama-backbone-f16",
    "llama-rope-linear",
    "llama-rope-dynamic",
    "llama-rope-dynamic-short",
    "llama-rope-yarn",
    "llama-rope-yarn-mscale",
    "llama-rope-longrope-long",
    "llama-rope-longrope-short",
    "llama-rope-llama3",
    "llama-rope-proportional",
    "qwen2",
    "qwen2-windows",
    "bert",
    "bert-old-names",
    "bert-untied",
    "roberta",
    "roberta-old-names",
    "roberta-untied",
    "xlm-roberta-bf16",
    "camembert",
    "data2vec-text",
    "distilbert",
    "distilbert-old-names",
    "albert",
    "albert-groups-untied",
    "albert-old-names",
    "modernbert",
    "modernbert-biases",
    "modernbert-old",
    "electra",
    "electra-wide-untied-old",
    "electra-decoder",
    "mpnet",
    "mpnet-more-buckets-old",
    "eurobert",
    "eurobert-tied-old",
    "nomic-bert",
    "nomic-bert-hub-keys-old",
    "nomic-bert-renamed-untied",
    "esm",
    "esm-old",
    "esm-absolute-untied",
    "esm-no-frequencies",
    "fnet",
    "fnet-1",
    "fnet-63",
    "fnet-64-untied",
    "fnet-65-old-bf16",
    "fnet-token-classes",
    "fnet-text-classes",
    "bert-token-classes",
    "roberta-token-classes",
    "xlm-roberta-token-classes",
    "camembert-token-classes",
    "data2vec-token-classes",
    "distilbert-token-classes",
    "electra-token-classes",
    "albert-token-classes",
    "mpnet-token-classes",
    "esm-token-classes",
    "nomic-bert-token-classes",
    "modernbert-token-classes",
    "eurobert-token-classes",
    "opt",
    "opt-small-embedding-post-norm",
    "opt-plain-norms",
    "opt-old-file",
    "bloom",
    "bloom-old-file",
    "neox",
    "neox-serial-old",
    "neox-plain-tied",
    "mistral",
    "mistral-no-window-old",
    "mistral-not-causal",
    "gpt-oss-not-causal",
    "qwen3",
    "qwen3-windows-biases",
    "gemma2",
    "gemma2-uncapped-old",
    "phi",
    "phi-key-norm-old",
    "gptj",
    "gptj-tied-old",
    "olmo2",
    "olmo2-biases-old",
    "gpt-oss",
    "gpt-oss-limit-old",
    "gpt-oss-packed",
    "gemma",
    "gemma-old",
    "gemma3",
    "gemma3-old",
    "gemma3-both-ways",
    "gemma3-both-ways-lengths",
    "gemma3-images",
    "gemma3-images-old",
    "phi3",
    "phi3-longrope-old",
    "phi3-longrope-unsaid",
    "smollm3",
    "smollm3-old",
    "olmo",
    "olmo-old",
    "olmo3",
    "olmo3-old",
    "granite",
    "granite-old",
    "starcoder2",
    "starcoder2-old",
    "stablelm",
    "stablelm-key-norms-parallel-old",
    "glm",
    "glm-scaled-old",
    "glm4",
    "glm4-unsaid-old",
    "cohere",
    "cohere-key-norms-old",
    "cohere2",
    "cohere2-old",
    "falcon",
    "falcon-groups",
    "falcon-one-norm-old",
    "falcon-alibi",
    "falcon-alibi-beside-old",
    "falcon-alibi-many-heads",
    "mpt",
    "mpt-old-file",
    "nemotron",
    "nemotron-biases-old",
    "exaone4",
    "exaone4-pattern-old",
    "exaone4-no-windows-old",
    "ministral",
    "ministral-old",
    "ministral3",
    "ministral3-window-old",
    "ministral3-unsaid-old",
    "ministral3-images",
    "ministral3-images-tied-old",
    "mistral-images-old",
    "seed-oss",
    "seed-oss-biases-old",
    "apertus",
    "apertus-old",
    "apertus-unsaid-old",
    "mixtral",
    "mixtral-stacked-old",
    "qwen2-moe",
    "qwen2-moe-stacked-windows-old",
    "qwen3-moe",
    "qwen3-moe-stacked-old",
    "olmoe",
    "olmoe-stacked-old",
    "granitemoe",
    "granitemoe-renamed-old",
    "deepseek-v2",
    "deepseek-v2-stacked-old",
    "deepseek-v3",
    "deepseek-v3-stacked-halves-old",
    "kimi-k2-old",
    "glm4-moe",
    "glm4-moe-stacked-old",
    "llama4",
    "llama4-plain-old",
    "llama4-images-old",
};

}  // namespace

TEST_CASE("Logits equal those of transformers in float32 and float64", "[model][golden]") {
    for (const std::string& name : kCases) {
        DYNAMIC_SECTION(name) {
            const GoldenModel golden = test::golden_model(name);
            compare_logits(golden, LoadAs::float32, test::kFloatError);
            // transformers computes rotary tables and RMS norms in float32 whatever the model's type.
            compare_logits(golden, LoadAs::float64, test::kFloatError);
        }
    }
}

TEST_CASE("Logits in bfloat16 are those of transformers to eight bits", "[model][golden]") {
    for (const std::string name : {"gpt2",         "llama",
                                   "qwen2",        "bert",
                                   "roberta",      "distilbert",
                                   "albert",       "modernbert",
                                   "opt",          "bloom",
                                   "neox",         "qwen3",
                                   "gemma2",       "phi",
                                   "gptj",         "olmo2",
                                   "gemma",        "gemma3",
                                   "gemma3-both-ways",
                                   "phi3",         "smollm3",
                                   "olmo",         "olmo3",
                                   "granite",      "starcoder2",
                                   "stablelm",     "stablelm-key-norms-parallel-old",
                                   "glm",          "glm4",
                                   "cohere",       "cohere2",
                                   "falcon",       "falcon-groups",
                                   "falcon-alibi", "mpt",
                                   "nemotron",     "exaone4",
                                   "ministral",    "ministral3",
                                   "seed-oss",     "apertus",
                                   "mixtral",      "qwen2-moe",
                                   "qwen3-moe",    "olmoe",
                                   "granitemoe",   "cohere-key-norms-old",
                                   "deepseek-v2",  "kimi-k2-old",
                                   "glm4-moe",     "llama4",
                                   "electra",      "mpnet",
                                   "eurobert",     "nomic-bert",
                                   "esm",          "fnet"}) {
        DYNAMIC_SECTION(name) {
            compare_logits(test::golden_model(name), LoadAs::bfloat16, test::kBfloatError);
        }
    }
}

TEST_CASE("Hidden states equal those of transformers at every layer", "[model][golden]") {
    for (const std::string name :
         {"gpt2",       "llama",     "bert",       "roberta",       "distilbert",   "albert",   "albert-groups-untied",
          "modernbert", "opt",       "bloom",      "neox",          "qwen3",        "gemma2",   "phi",
          "gptj",       "olmo2",     "gpt-oss",    "gemma",         "gemma3",       "phi3",     "smollm3",
          "olmo",       "olmo3",     "granite",    "starcoder2",    "stablelm",     "glm",      "glm4",
          "cohere",     "cohere2",   "falcon",     "falcon-groups", "falcon-alibi", "mpt",      "nemotron",
          "exaone4",    "ministral", "ministral3", "seed-oss",      "apertus",      "mixtral",  "qwen2-moe",
          "qwen3-moe",  "olmoe",     "granitemoe", "deepseek-v2",   "deepseek-v3",  "glm4-moe", "llama4",
          "electra",    "mpnet",     "eurobert",   "nomic-bert",    "esm",          "fnet"}) {
        DYNAMIC_SECTION(name) {
            const GoldenModel golden = test::golden_model(name);
            const auto model = golden.checkpoint.build();
            RecordingProbe probe(false, {"embedding", "hidden", "final_norm"});
            forward(*model, golden, &probe);
            const std::size_t layers = golden.hidden.size() - 1;
            REQUIRE(layers == static_cast<std::size_t>(model->config().layers));
            for (std::size_t boundary = 0; boundary <= layers; ++boundary) {
                const bool last = boundary == layers;
                const at::Tensor& ours = boundary == 0 ? probe.at("embedding")
                                         : last        ? probe.at("final_norm")
                                                       : probe.at("hidden", static_cast<std::int64_t>(boundary) - 1);
                const at::Tensor& theirs = golden.hidden[boundary];
                CHECK(largest_difference(ours, theirs, golden.batch.lengths) <
                      test::kFloatError * largest_value(theirs));
            }
        }
    }
}

TEST_CASE("Attention weights equal those of transformers' eager attention", "[model][golden]") {
    for (const std::string name : {"gpt2",
                                   "llama",
                                   "qwen2-windows",
                                   "bert",
                                   "roberta",
                                   "distilbert",
                                   "albert",
                                   "modernbert",
                                   "modernbert-biases",
                                   "electra",
                                   "mpnet",
                                   "eurobert",
                                   "nomic-bert",
                                   "esm",
                                   "opt",
                                   "opt-small-embedding-post-norm",
                                   "bloom",
                                   "neox",
                                   "mistral",
                                   "qwen3",
                                   "gemma2",
                                   "phi",
                                   "gptj",
                                   "olmo2",
                                   "gpt-oss",
                                   "mistral-not-causal",
                                   "gpt-oss-not-causal",
                                   "gemma",
                                   "gemma3",
                                   "gemma3-both-ways",
                                   "phi3",
                                   "smollm3",
                                   "olmo",
                                   "olmo3",
                                   "granite",
                                   "starcoder2",
                                   "stablelm",
                                   "stablelm-key-norms-parallel-old",
                                   "glm",
                                   "glm4",
                                   "cohere",
                                   "cohere2",
                                   "falcon",
                                   "falcon-groups",
                                   "falcon-alibi",
                                   "mpt",
                                   "nemotron",
                                   "exaone4",
                                   "ministral",
                                   "ministral3",
                                   "seed-oss",
                                   "apertus",
                                   "mixtral",
                                   "qwen2-moe",
                                   "qwen3-moe",
                                   "olmoe",
                                   "granitemoe",
                                   "cohere-key-norms-old",
                                   "qwen2-moe-stacked-windows-old",
                                   "deepseek-v2",
                                   "deepseek-v3",
                                   "glm4-moe",
                                   "llama4",
                                   "llama4-plain-old"}) {
        DYNAMIC_SECTION(name) {
            const GoldenModel golden = test::golden_model(name);
            const auto model = golden.checkpoint.build();
            RecordingProbe probe(true, {"nothing"});
            forward(*model, golden, &probe);
            REQUIRE(probe.sites.size() == golden.attention.size());
            for (const RecordingProbe::Measured& site : probe.sites) {
                // With the unit matrix as values, the output is the weights.
                const std::int64_t keys = site.key.size(2);
                const at::Tensor unit =
                    at::eye(keys, at::kFloat).expand({site.key.size(0), site.key.size(1), keys, keys});
                const at::Tensor weights = mixers::dense_attention(site.query, site.key, unit, site.rule);
                const at::Tensor& theirs = golden.attention[static_cast<std::size_t>(site.site)];
                CHECK(largest_difference(weights.transpose(1, 2), theirs.transpose(1, 2), golden.batch.lengths) <
                      test::kFloatError);
            }
        }
    }
}

TEST_CASE("A setting read wrongly would show: each one of these changes the logits", "[model][golden]") {
    struct Change {
        const char* name;
        const char* pointer;
        nlohmann::json value;
    };
    const std::vector<Change> changes{
        {"gpt2", "/activation_function", "gelu"},
        {"gpt2", "/scale_attn_weights", false},
        {"gpt2-old-file", "/scale_attn_by_inverse_layer_idx", false},
        {"llama", "/rope_theta", 9000.0},
        {"llama", "/rms_norm_eps", 1e-3},
        {"llama-tied-bf16-sharded", "/hidden_act", "gelu"},
        {"llama-rope-linear", "/rope_parameters/factor", 2.0},
        {"llama-rope-dynamic", "/rope_parameters/factor", 2.0},
        {"llama-rope-dynamic", "/max_position_embeddings", 18},
        {"llama-rope-yarn", "/rope_parameters/attention_factor", 1.0},
        {"llama-rope-yarn", "/rope_parameters/factor", 5.0},
        {"llama-rope-yarn", "/rope_parameters/original_max_position_embeddings", 20},
        {"llama-rope-yarn-mscale", "/rope_parameters/mscale", 1.2},
        {"llama-rope-yarn-mscale", "/rope_parameters/mscale_all_dim", 0.6},
        {"llama-rope-yarn-mscale", "/rope_parameters/beta_fast", 4},
        {"llama-rope-yarn-mscale", "/rope_parameters/truncate", true},
        {"llama-rope-longrope-long", "/rope_parameters/long_factor", {1.0, 2.0, 3.0, 4.0}},
        {"llama-rope-longrope-long", "/rope_parameters/original_max_position_embeddings", 24},
        {"llama-rope-longrope-short", "/rope_parameters/factor", 5.0},
        {"llama-rope-llama3", "/rope_parameters/low_freq_factor", 1.5},
        {"llama-rope-llama3", "/rope_parameters/factor", 4.0},
        {"llama-rope-proportional", "/rope_parameters/partial_rotary_factor", 1.0},
        {"qwen2-windows", "/sliding_window", 5},
        {"qwen2-windows", "/layer_types/0", "sliding_attention"},
        {"bert", "/hidden_act", "gelu_new"},
        {"bert", "/is_decoder", true},
        {"bert", "/layer_norm_eps", 1e-3},
        {"neox", "/use_parallel_residual", false},
        {"neox", "/rope_parameters/partial_rotary_factor", 1.0},
        {"neox-serial-old", "/rotary_emb_base", 50.0},
        {"neox-serial-old", "/rotary_pct", 1.0},
        {"mistral", "/sliding_window", nullptr},
        {"mistral", "/is_causal", false},
        {"mistral-not-causal", "/is_causal", true},
        {"qwen3", "/rms_norm_eps", 1e-2},
        {"qwen3-windows-biases", "/use_sliding_window", false},
        {"qwen3-windows-biases", "/max_window_layers", 0},
        {"gemma2", "/attn_logit_softcapping", nullptr},
        {"gemma2", "/final_logit_softcapping", nullptr},
        {"gemma2", "/query_pre_attn_scalar", 6},
        {"gemma2", "/hidden_activation", "silu"},
        {"gemma2-uncapped-old", "/sliding_window", 4},
        {"phi", "/rope_parameters/partial_rotary_factor", 1.0},
        {"phi-key-norm-old", "/partial_rotary_factor", 1.0},
        {"gptj", "/rotary_dim", 12},
        {"gptj-tied-old", "/activation_function", "relu2"},
        {"olmo2", "/rms_norm_eps", 1e-2},
        {"gpt-oss", "/num_experts_per_tok", 1},
        {"gpt-oss", "/layer_types/1", "sliding_attention"},
        {"gpt-oss", "/rope_parameters/factor", 2.0},
        {"gpt-oss-limit-old", "/swiglu_limit", 0.2},
        {"gpt-oss-limit-old", "/swiglu_alpha", 1.702},
        {"gpt-oss-limit-old", "/rope_theta", 10000.0},
        {"gemma", "/hidden_act", "silu"},
        {"gemma", "/rms_norm_eps", 1e-2},
        {"gemma-old", "/hidden_act", "gelu_python"},
        {"gemma3", "/rope_parameters/full_attention/factor", 2.0},
        {"gemma3", "/rope_parameters/sliding_attention/rope_theta", 60.0},
        {"gemma3", "/layer_types/0", "full_attention"},
        {"gemma3", "/query_pre_attn_scalar", 6},
        {"gemma3", "/final_logit_softcapping", nullptr},
        {"gemma3-both-ways", "/use_bidirectional_attention", false},
        {"gemma3-both-ways", "/sliding_window", 4},
        {"gemma3-old", "/sliding_window_pattern", 3},
        {"gemma3-old", "/rope_local_base_freq", 500.0},
        {"gemma3-old", "/rope_scaling", nullptr},
        {"gemma3-old", "/rope_theta", 5000.0},
        {"gemma3-images", "/text_config/sliding_window", 5},
        {"gemma3-images-old", "/text_config/rope_local_base_freq", 500.0},
        {"phi3", "/sliding_window", nullptr},
        {"phi3", "/rope_parameters/partial_rotary_factor", 0.34},
        {"phi3-longrope-old", "/original_max_position_embeddings", 16},
        {"phi3-longrope-old", "/rope_scaling/long_factor/1", 4.0},
        {"phi3-longrope-old", "/max_position_embeddings", 128},
        {"phi3-longrope-unsaid", "/original_max_position_embeddings", 8},
        {"smollm3", "/no_rope_layers/1", 1},
        {"smollm3", "/layer_types/1", "full_attention"},
        {"smollm3-old", "/no_rope_layer_interval", 3},
        {"olmo", "/clip_qkv", 0.4},
        {"olmo", "/clip_qkv", nullptr},
        {"olmo3", "/rope_parameters/truncate", false},
        {"olmo3", "/rope_parameters/full_attention/factor", 2.0},
        {"olmo3", "/rope_parameters/sliding_attention/rope_theta", 60.0},
        {"olmo3-old", "/rope_theta", 5000.0},
        {"olmo3-old", "/sliding_window", 4},
        {"granite", "/embedding_multiplier", 2.0},
        {"granite", "/attention_multiplier", 0.5},
        {"granite", "/residual_multiplier", 0.5},
        {"granite", "/logits_scaling", 2.0},
        {"starcoder2", "/sliding_window", nullptr},
        {"starcoder2", "/norm_epsilon", 1e-2},
        {"starcoder2-old", "/hidden_act", "gelu_new"},
        {"stablelm", "/rope_parameters/partial_rotary_factor", 1.0},
        {"stablelm", "/layer_norm_eps", 1e-2},
        {"stablelm-key-norms-parallel-old", "/partial_rotary_factor", 0.5},
        {"glm", "/rope_parameters/partial_rotary_factor", 0.5},
        {"glm", "/rms_norm_eps", 0.01},
        {"glm-scaled-old", "/partial_rotary_factor", 0.5},
        {"glm-scaled-old", "/rope_scaling/factor", 2.0},
        {"glm4", "/hidden_act", "gelu"},
        {"glm4-unsaid-old", "/partial_rotary_factor", 1.0},
        {"cohere", "/logit_scale", 0.4},
        {"cohere", "/layer_norm_eps", 0.01},
        {"cohere-key-norms-old", "/rope_theta", 10000.0},
        {"cohere-key-norms-old", "/logit_scale", 0.125},
        {"cohere2", "/layer_types/0", "full_attention"},
        {"cohere2", "/sliding_window", 5},
        {"cohere2-old", "/sliding_window_pattern", 3},
        {"falcon", "/layer_norm_epsilon", 0.01},
        {"falcon", "/rope_parameters/rope_theta", 60.0},
        {"falcon", "/activation", "gelu_new"},
        {"falcon-groups", "/activation", "gelu"},
        {"falcon-one-norm-old", "/rope_theta", 5000.0},
        {"falcon-alibi", "/alibi", false},
        {"falcon-alibi-beside-old", "/layer_norm_epsilon", 0.01},
        {"mpt", "/attn_config/clip_qkv", 0.4},
        {"mpt", "/attn_config/clip_qkv", nullptr},
        {"mpt-old-file", "/attn_config/softmax_scale", nullptr},
        {"mpt", "/layer_norm_epsilon", 0.01},
        {"nemotron", "/norm_eps", 0.01},
        {"nemotron", "/hidden_act", "gelu"},
        {"nemotron-biases-old", "/partial_rotary_factor", 0.5},
        {"exaone4", "/layer_types/2", "full_attention"},
        {"exaone4", "/rms_norm_eps", 0.01},
        {"exaone4-pattern-old", "/sliding_window_pattern", 3},
        {"exaone4-no-windows-old", "/sliding_window", 64},
        {"ministral", "/layer_types/1", "sliding_attention"},
        {"ministral-old", "/sliding_window", 4},
        {"ministral3", "/rope_parameters/llama_4_scaling_beta", 0.3},
        {"ministral3", "/rope_parameters/original_max_position_embeddings", 6},
        {"ministral3", "/rope_parameters/mscale_all_dim", 1.0},
        {"ministral3-window-old", "/sliding_window", nullptr},
        {"ministral3-window-old", "/rope_scaling/llama_4_scaling_beta", 0.0},
        {"mistral-images-old", "/text_config/sliding_window", 5},
        {"ministral3-images", "/text_config/rope_parameters/factor", 2.0},
        {"seed-oss", "/rms_norm_eps", 0.01},
        {"seed-oss", "/rope_parameters/rope_theta", 60.0},
        {"apertus", "/rms_norm_eps", 0.01},
        {"apertus", "/hidden_act", "gelu"},
        {"apertus-old", "/rope_scaling/low_freq_factor", 1.5},
        {"apertus-old", "/rope_scaling/factor", 4.0},
        {"apertus-unsaid-old", "/rope_scaling", {{"rope_type", "default"}}},
        {"mixtral", "/num_experts_per_tok", 1},
        {"mixtral", "/hidden_act", "gelu"},
        {"mixtral-stacked-old", "/sliding_window", nullptr},
        {"mixtral-stacked-old", "/num_experts_per_tok", 2},
        {"qwen2-moe", "/norm_topk_prob", true},
        {"qwen2-moe", "/num_experts_per_tok", 3},
        {"qwen2-moe-stacked-windows-old", "/max_window_layers", 3},
        {"qwen2-moe-stacked-windows-old", "/use_sliding_window", false},
        {"qwen2-moe-stacked-windows-old", "/norm_topk_prob", false},
        {"qwen3-moe", "/norm_topk_prob", true},
        {"qwen3-moe", "/rms_norm_eps", 0.01},
        {"qwen3-moe-stacked-old", "/use_sliding_window", false},
        {"qwen3-moe-stacked-old", "/sliding_window", 5},
        {"olmoe", "/clip_qkv", 0.4},
        {"olmoe", "/clip_qkv", nullptr},
        {"olmoe", "/norm_topk_prob", true},
        {"olmoe-stacked-old", "/rope_theta", 60.0},
        {"granitemoe", "/embedding_multiplier", 2.0},
        {"granitemoe", "/attention_multiplier", 0.5},
        {"granitemoe", "/residual_multiplier", 0.5},
        {"granitemoe", "/logits_scaling", 2.0},
        {"granitemoe", "/num_experts_per_tok", 1},
        {"deepseek-v2", "/topk_group", 3},
        {"deepseek-v2", "/topk_method", "greedy"},
        {"deepseek-v2", "/routed_scaling_factor", 1.0},
        {"deepseek-v2", "/rope_parameters/mscale_all_dim", 1.0},
        {"deepseek-v2", "/rms_norm_eps", 0.01},
        {"deepseek-v2-stacked-old", "/rope_scaling/mscale_all_dim", 0.0},
        {"deepseek-v2-stacked-old", "/rope_scaling/factor", 2.0},
        {"deepseek-v2-stacked-old", "/num_experts_per_tok", 2},
        {"deepseek-v3", "/norm_topk_prob", false},
        {"deepseek-v3", "/topk_group", 3},
        {"deepseek-v3", "/n_group", 2},
        {"deepseek-v3", "/rope_interleave", nullptr},
        {"deepseek-v3", "/routed_scaling_factor", 1.0},
        {"deepseek-v3", "/rope_parameters/mscale", 1.0},
        {"deepseek-v3-stacked-halves-old", "/norm_topk_prob", true},
        {"deepseek-v3-stacked-halves-old", "/rope_interleave", true},
        {"deepseek-v3-stacked-halves-old", "/rope_scaling/factor", 2.0},
        {"kimi-k2-old", "/rope_scaling/mscale_all_dim", 0.5},
        {"glm4-moe", "/use_qk_norm", false},
        {"glm4-moe", "/topk_group", 3},
        {"glm4-moe", "/norm_topk_prob", false},
        {"glm4-moe", "/routed_scaling_factor", 1.0},
        {"glm4-moe", "/rope_parameters/partial_rotary_factor", 1.0},
        {"glm4-moe-stacked-old", "/partial_rotary_factor", nullptr},
        {"glm4-moe-stacked-old", "/norm_topk_prob", true},
        {"llama4", "/attention_chunk_size", 5},
        {"llama4", "/layer_types/0", "full_attention"},
        {"llama4", "/no_rope_layers/1", 1},
        {"llama4", "/use_qk_norm", false},
        {"llama4", "/attn_temperature_tuning", false},
        {"llama4", "/attn_scale", 0.3},
        {"llama4", "/floor_scale", 4},
        {"llama4", "/num_experts_per_tok", 1},
        {"llama4-plain-old", "/rope_scaling/factor", 4.0},
        {"llama4-plain-old", "/use_qk_norm", true},
        {"llama4-plain-old", "/layer_types/0", "chunked_attention"},
        {"llama4-images-old", "/text_config/attention_chunk_size", 3},
        {"roberta", "/layer_norm_eps", 1e-3},
        {"roberta", "/hidden_act", "gelu"},
        {"distilbert", "/activation", "gelu_new"},
        {"albert", "/hidden_act", "gelu"},
        {"albert-groups-untied", "/num_hidden_layers", 4},
        {"electra", "/layer_norm_eps", 1e-2},
        {"electra", "/hidden_act", "gelu"},
        {"electra-decoder", "/is_decoder", false},
        {"mpnet", "/hidden_act", "gelu"},
        {"mpnet", "/layer_norm_eps", 1e-2},
        {"eurobert", "/rms_norm_eps", 1e-2},
        {"eurobert", "/rope_parameters/rope_theta", 900.0},
        {"eurobert-tied-old", "/rope_scaling/factor", 3.0},
        {"nomic-bert", "/hidden_act", "silu"},
        {"nomic-bert", "/rope_parameters/rope_theta", 900.0},
        {"nomic-bert-renamed-untied", "/max_position_embeddings", 9},
        {"esm", "/token_dropout", false},
        {"esm", "/mask_token_id", 31},
        {"esm", "/layer_norm_eps", 1e-2},
        {"esm-no-frequencies", "/rope_theta", 100.0},
        {"modernbert", "/local_attention", 4},
        {"modernbert", "/layer_types/1", "full_attention"},
        {"modernbert", "/norm_eps", 1e-2},
        {"modernbert-old", "/global_attn_every_n_layers", 3},
        {"modernbert-old", "/local_rope_theta", 60.0},
        {"modernbert-old", "/global_rope_theta", 500.0},
        {"modernbert-biases", "/classifier_activation", "relu"},
        {"modernbert-biases", "/rope_parameters/sliding_attention/rope_theta", 60.0},
        {"opt", "/activation_function", "gelu"},
        {"opt", "/_remove_final_layer_norm", true},
        {"bloom", "/apply_residual_connection_post_layernorm", true},
        {"bloom-old-file", "/layer_norm_epsilon", 1e-5},
    };
    for (const Change& change : changes) {
        CAPTURE(change.name, change.pointer);
        GoldenModel golden = test::golden_model(change.name);
        golden.checkpoint.config[nlohmann::json::json_pointer(change.pointer)] = change.value;
        const auto model = golden.checkpoint.build();
        const double difference =
            largest_difference(all_logits(*model, forward(*model, golden)), golden.logits, golden.batch.lengths);
        CHECK(difference > 2 * test::kFloatError * largest_value(golden.logits));
    }
}
