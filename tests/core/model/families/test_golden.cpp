// SPDX-License-Identifier: GPL-3.0-or-later
// Models against transformers' eager float64 forward pass (tests/oracle/models/models.py).
#include "tests/catch_with_torch.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ops/eye.h>

#include "core/mixers/shared/attend.h"
#include "tests/core/model/families/family_forward.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using namespace headscope::test::families;
using checkpoint::LoadAs;
using test::GoldenModel;
using test::largest_difference;
using test::largest_value;
using test::RecordingProbe;

namespace {

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
    "bert-spans",
    "roberta-spans",
    "distilbert-spans",
    "electra-spans",
    "albert-spans",
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
    for (const std::string name : {"gpt2",
                                   "llama",
                                   "qwen2",
                                   "bert",
                                   "roberta",
                                   "distilbert",
                                   "albert",
                                   "modernbert",
                                   "opt",
                                   "bloom",
                                   "neox",
                                   "qwen3",
                                   "gemma2",
                                   "phi",
                                   "gptj",
                                   "olmo2",
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
                                   "deepseek-v2",
                                   "kimi-k2-old",
                                   "glm4-moe",
                                   "llama4",
                                   "electra",
                                   "mpnet",
                                   "eurobert",
                                   "nomic-bert",
                                   "esm",
                                   "fnet"}) {
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
