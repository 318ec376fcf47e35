// SPDX-License-Identifier: GPL-3.0-or-later
// Native models of every mixer that there is: against tests/oracle/random/native_oracle.py, token by token against the
// whole text, and gradients against finite differences.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "core/base/error.h"
#include "core/mixers/types/type.h"
#include "core/model/load/presets.h"
#include "core/model/towers/cache.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/golden_matrices.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using model::Trainable;
using test::GoldenModel;
using test::largest_difference;
using test::largest_value;
using test::native_config;
using test::some_tokens;

namespace {

/// Those of decoders (test_native_stacks.cpp has encoders).
std::vector<std::string> all_mixers() {
    return mixers::names_where([](const mixers::MixerType& type) { return type.in_decoders; });
}

/// Mixers with a state, whose heads are of sizes of their own.
bool is_recurrent(const std::string& mixer) {
    const auto& options = mixers::find_type(mixer)->options;
    return std::any_of(options.begin(), options.end(), [](const Option& option) { return option.name == "num_heads"; });
}

/// Mixers whose state learns divide by the spread of the numbers that it makes of a key: of few numbers it may come
/// near 0, and roundings grow by its inverse square.
constexpr std::array<const char*, 2> kLearners{"ttt_linear", "titans"};

/// native_config(), with heads of such layers that are wide enough.
nlohmann::json stack_config(const std::vector<std::string>& layers, const nlohmann::json& options = {}) {
    nlohmann::json config = native_config(layers, options);
    for (const char* mixer : kLearners) {
        const bool there = std::find(layers.begin(), layers.end(), mixer) != layers.end();
        if (there && !config["mixers"][mixer].contains("head_dim")) config["mixers"][mixer]["head_dim"] = 16;
    }
    return config;
}

const std::vector<std::pair<std::string, nlohmann::json>> kOptions{
    {"biases", {{"attention_bias", true}}},
    {"one key head, norms", {{"attention_bias", false}, {"qk_norm", true}, {"num_key_value_heads", 1}}},
    {"sparsemax", {{"mixers", {{"standard", {{"normaliser", "sparsemax"}}}}}}},
    {"grouped values, narrow, no gate",
     {{"mixers",
       {{"gated_deltanet",
         {{"num_heads", 2},
          {"num_value_heads", 4},
          {"head_dim", 3},
          {"expand_v", 2.0 / 3},
          {"conv_size", 1},
          {"use_gate", false},
          {"allow_neg_eigval", true}}}}}}},
    {"no convolution, gate", {{"mixers", {{"deltanet", {{"conv_size", 0}, {"use_gate", true}}}}}}},
    {"over sums, no writes of their own",
     {{"mixers", {{"deltanet", {{"qk_activation", "elu"}, {"qk_norm", "sum"}, {"use_beta", false}}}}}}},
    {"shared keys, another base",
     {{"mixers", {{"retnet", {{"num_heads", 4}, {"num_key_value_heads", 2}, {"rope_theta", 7.0}}}}}}},
    {"shared keys, convolution, bounded decay",
     {{"mixers",
       {{"gla",
         {{"num_heads", 4},
          {"num_key_value_heads", 2},
          {"conv_size", 3},
          {"use_gate", false},
          {"clamp_min", -0.05}}}}}}},
    {"groups, another convolution",
     {{"mixers",
       {{"mamba2", {{"num_heads", 6}, {"head_dim", 5}, {"state_size", 7}, {"num_groups", 3}, {"conv_size", 2}}}}}}},
    {"no convolution, no feed-forward",
     {{"intermediate_size", 0}, {"mixers", {{"mamba2", {{"num_heads", 2}, {"state_size", 9}, {"conv_size", 0}}}}}}},
    {"two heads, narrow values", {{"mixers", {{"lightning", {{"num_heads", 2}, {"head_dim", 4}, {"expand_v", 0.5}}}}}}},
    {"two heads, wide values, one tap",
     {{"mixers",
       {{"kda",
         {{"num_heads", 2}, {"head_dim", 3}, {"expand_v", 2.0}, {"conv_size", 1}, {"allow_neg_eigval", true}}}}}}},
    {"a short window, constant offsets",
     {{"mixers", {{"lazy", {{"window", 3}, {"offset", "constant"}, {"offset_init", -0.3}}}}}}},
    {"a fixed offset, no bias", {{"mixers", {{"lazy", {{"distance_bias", false}, {"offset", "fixed"}}}}}}},
    {"entmax", {{"mixers", {{"lazy", {{"normaliser", "entmax"}, {"window", 5}}}}}}},
    {"another bias", {{"mixers", {{"sigmoid", {{"bias", 0.5}}}}}}},
    {"a small window", {{"mixers", {{"streaming_llm", {{"first", 2}, {"window", 5}}}}}}},
    {"positions in the cache, shared keys",
     {{"num_key_value_heads", 1},
      {"mixers", {{"streaming_llm", {{"first", 2}, {"window", 5}, {"positions", "cache"}}}}}}},
    {"mini-batches of four, no gate",
     {{"mixers",
       {{"ttt_linear",
         {{"num_heads", 2}, {"head_dim", 14}, {"use_gate", false}, {"mini_batch_size", 4}, {"base_lr", 0.5}}}}}}},
    {"mini-batches of one, no convolution",
     {{"mixers", {{"ttt_linear", {{"head_dim", 14}, {"conv_size", 0}, {"mini_batch_size", 1}}}}}}},
    {"mini-batches of four, one tap",
     {{"mixers",
       {{"titans",
         {{"num_heads", 2}, {"head_dim", 14}, {"conv_size", 1}, {"mini_batch_size", 4}, {"base_lr", 0.5}}}}}}},
    {"mini-batches of one, no convolution, no gate",
     {{"mixers", {{"titans", {{"head_dim", 14}, {"conv_size", 0}, {"use_gate", false}, {"mini_batch_size", 1}}}}}}},
    {"no rotary positions, tied", {{"rotary", false}, {"tie_word_embeddings", true}}},
};

/// `f(what, config)` for a uniform and a hybrid stack of every mixer, with every option.
template <class F>
void for_every_stack(F f) {
    for (const std::string& mixer : all_mixers()) {
        for (const auto& layers : {std::vector<std::string>{mixer, mixer}, {mixer, "standard", mixer}}) {
            for (const auto& [name, options] : kOptions) {
                if (layers.size() == 3 && name == kOptions.back().first) continue;
                if (options.contains("mixers") && !options.at("mixers").contains(mixer)) continue;  // another mixer's
                const std::string what = mixer + ", " + std::to_string(layers.size()) + " layers, " + name;
                INFO(what);
                f(stack_config(layers, options));
            }
        }
    }
}

void compare(const std::string& name) {
    INFO(name);
    const GoldenModel golden = test::golden_model(name);
    for (const auto precision : {checkpoint::LoadAs::float32, checkpoint::LoadAs::float64}) {
        const auto model = golden.checkpoint.build(precision);
        const at::Tensor hidden = model->forward(golden.batch);
        const at::Tensor logits = model->logits(hidden.flatten(0, 1)).unflatten(0, {hidden.size(0), hidden.size(1)});
        CHECK(largest_difference(logits, golden.logits) < test::kFloatError * largest_value(golden.logits));
    }
    test::compare_matrices(golden);
}

/// The model's logits when it reads `first` tokens at once and then one after the other.
at::Tensor in_pieces(model::Model& model, const at::Tensor& ids, std::int64_t first) {
    const auto cache = model.new_cache();
    model::ForwardOptions options;
    options.cache = cache.get();
    at::Tensor hidden = at::full({ids.size(0), ids.size(1), model.config().hidden}, 0.0, at::kFloat);
    for (std::int64_t done = 0; done < ids.size(1);) {
        const std::int64_t count = done == 0 ? first : 1;
        const at::Tensor part = model.forward({ids.narrow(1, done, count), {}, {}}, options);
        hidden.narrow(1, done, count).copy_(part);
        done += count;
    }
    return hidden;
}

}  // namespace

TEST_CASE("Native models of every mixer are what the oracle says", "[native][golden]") {
    for (const std::string& mixer : all_mixers()) {
        compare("native-" + mixer);
        compare("native-" + mixer + "-norms");
    }
    for (const char* mixer :
         {"gated_deltanet", "deltanet", "retnet", "gla", "lightning", "kda", "natsl", "mamba2", "ttt_linear", "titans"})
        compare(std::string("native-") + mixer + "-options");
    for (const char* ablation : {"softmax-inside", "linear-inside", "kept-whole", "one-norm", "no-weights"})
        compare(std::string("native-natsl-") + ablation);
    for (const char* baseline : {"sigmoid-bias", "alibi-six-heads", "streaming-llm-text", "streaming-llm-cache"})
        compare(std::string("native-") + baseline);
    compare("native-deltanet-plain");
    compare("native-mamba2-alone");
    compare("native-standard-sparsemax");
    for (const char* ablation : {"small-window", "no-bias", "constant", "fixed", "softmax", "sparsemax", "entmax"})
        compare(std::string("native-lazy-") + ablation);
}

TEST_CASE("A text read in pieces is the text read at once, for every mixer and option", "[native][decoding]") {
    for_every_stack([](const nlohmann::json& config) {
        const auto trainable = Trainable::create(config.dump(), 3, at::kFloat);
        // All lengths for one stack of each mixer, two beyond a power of two for the others.
        const bool one = config.at("layers").size() == 2 && config.at("attention_bias") && config.value("rotary", true);
        for (const std::int64_t length :
             one ? std::vector<std::int64_t>{1, 2, 63, 64, 65, 300} : std::vector<std::int64_t>{2, 34}) {
            INFO(length);
            const at::Tensor ids = some_tokens(2, length).ids;
            model::Model& model = trainable->model();
            const at::Tensor whole = model.forward({ids, {}, {}});
            CHECK(largest_difference(in_pieces(model, ids, (length + 1) / 2), whole) <
                  3 * test::kFloatError * largest_value(whole));  // of three layers
        }
    });
}

TEST_CASE("A cache that is cloned goes on by itself", "[native][decoding]") {
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        const auto trainable = Trainable::create(stack_config({mixer, mixer}).dump(), 3, at::kFloat);
        model::Model& model = trainable->model();
        const at::Tensor ids = some_tokens(1, 9).ids;
        const auto first = model.new_cache();
        model::ForwardOptions options;
        options.cache = first.get();
        model.forward({ids.narrow(1, 0, 8), {}, {}}, options);
        const auto second = first->clone();
        CHECK(second->length() == 8);
        const at::Tensor one = model.forward({ids.narrow(1, 8, 1), {}, {}}, options);
        options.cache = second.get();
        CHECK(at::Tensor(one - model.forward({ids.narrow(1, 8, 1), {}, {}}, options)).abs().max().item<double>() == 0);
    }
}

TEST_CASE("Texts that go on from the same beginning may share a cache of it", "[native][decoding]") {
    const std::vector<std::int64_t> chosen{1, 0, 1};
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        const auto trainable = Trainable::create(native_config({mixer, "standard", mixer}).dump(), 3, at::kFloat);
        model::Model& model = trainable->model();
        const at::Tensor begin = some_tokens(2, 70).ids, rest = some_tokens(3, 9).ids;
        const at::Tensor which = at::tensor(chosen, at::kLong);
        const auto first = model.new_cache();
        model::ForwardOptions options;
        options.cache = first.get();
        model.forward({begin, {}, {}}, options);
        const auto own = first->chosen(which);
        CHECK(own->batch() == 3);
        options.cache = own.get();
        const at::Tensor after = model.forward({rest, {}, {}}, options);
        const at::Tensor whole = model.forward({at::cat({begin.index_select(0, which), rest}, 1), {}, {}});
        CHECK(largest_difference(after, whole.narrow(1, 70, 9)) < 3 * test::kFloatError * largest_value(whole));
        CHECK(first->batch() == 2);
        CHECK(first->length() == 70);
        CHECK(model.new_cache()->chosen(which)->batch() == 0);
    }
}

TEST_CASE("A padded text gives what it gives alone, for every mixer", "[native]") {
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        const auto trainable = Trainable::create(stack_config({mixer, "standard", mixer}).dump(), 3, at::kFloat);
        const model::Batch both = {some_tokens(2, 12).ids, {12, 7}, {}};
        const at::Tensor alone = trainable->model().forward({both.ids.narrow(0, 1, 1).narrow(1, 0, 7), {}, {}});
        const at::Tensor together = trainable->model().forward(both);
        CHECK(together.isfinite().all().item<bool>());
        CHECK(largest_difference(together.narrow(0, 1, 1).narrow(1, 0, 7), alone) <
              test::kFloatError * largest_value(alone));
    }
}

TEST_CASE("Gradients of every mixer and option agree with finite differences", "[native][gradients]") {
    for_every_stack([](const nlohmann::json& config) {
        const auto model = Trainable::create(config.dump(), 1, at::kDouble);
        const model::Batch batch = some_tokens(2, 6);
        test::next_token_loss(*model, batch).backward();
        const at::Tensor gradient = model->gradients();
        for (const model::Parameter& parameter : model->parameters()) {
            if (!parameter.trained) continue;
            // An element of every tensor.
            const std::int64_t i = parameter.value.storage_offset() + parameter.value.numel() / 2;
            INFO(parameter.name);
            // Central differences: step^2 of the third derivative and 1e-15 / step of rounding.
            CHECK(gradient[i].item<double>() ==
                  Approx(test::finite_difference(*model, batch, i)).epsilon(2e-5).margin(1e-8));
        }
    });
}

TEST_CASE("Gradients in float32 are those of float64", "[native][gradients]") {
    // Three layers there and back, whose products each processor sums in an order of its own.
    constexpr double kGradientError = 16 * test::kFloatError;
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        const std::string config = stack_config({mixer, "standard", mixer}, {{"num_key_value_heads", 1}}).dump();
        const auto single = Trainable::create(config, 1, at::kFloat);
        const auto exact = Trainable::create(config, 1, at::kDouble);
        exact->weights().copy_(single->weights());
        for (std::size_t i = 0; i < exact->parameters().size(); ++i)
            exact->parameters()[i].value.copy_(single->parameters()[i].value);
        const model::Batch batch = some_tokens(3, 40);
        test::next_token_loss(*single, batch).backward();
        test::next_token_loss(*exact, batch).backward();
        CHECK(largest_difference(single->gradients().unsqueeze(0), exact->gradients().unsqueeze(0)) <
              kGradientError * largest_value(exact->gradients()));
    }
}

TEST_CASE("Gradients in bfloat16 are those of float64 to its eight bits", "[native][gradients]") {
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        const std::string config = stack_config({mixer, "standard", mixer}, {{"initializer_range", 0.2}}).dump();
        const auto half = Trainable::create(config, 1, at::kBFloat16);
        const auto exact = Trainable::create(config, 1, at::kDouble);
        for (std::size_t i = 0; i < exact->parameters().size(); ++i)
            exact->parameters()[i].value.copy_(half->parameters()[i].value);
        const model::Batch batch = some_tokens(2, 24);
        test::next_token_loss(*half, batch).backward();
        test::next_token_loss(*exact, batch).backward();
        const at::Tensor error = half->gradients().to(at::kDouble) - exact->gradients();
        // Mixers with a state round about twice as often: gates, decays and norms of heads surround it.
        const double roundings = is_recurrent(mixer) ? 8 : 4;
        CHECK(error.norm().item<double>() < roundings * test::kBfloatError * exact->gradients().norm().item<double>());
    }
}

TEST_CASE("Mixers without a state have as many parameters as their maps, but for the guide", "[native]") {
    const auto count = [](const std::string& mixer, const nlohmann::json& options) {
        nlohmann::json config = stack_config({mixer, mixer, mixer}, options);
        config["attention_bias"] = options.value("attention_bias", false);
        return model::inspect_config(config.dump()).parameters;
    };
    const std::int64_t standard = count("standard", {{"qk_norm", false}});
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        // Per layer, beside the output projection: {weights, biases and norms}. The maps of `mlp` have neither biases
        // nor norms; `lazy` has 512 distances and an offset for each of three heads.
        static const std::map<std::string, std::pair<std::int64_t, std::int64_t>> others{
            {"mlp", {432, 0}},      {"sink_logits", {435, 36}}, {"sha", {144, 12}},
            {"mqa", {240, 20}},     {"skv", {288, 24}},         {"el_att", {144, 12}},
            {"mhe_add", {180, 12}}, {"mhe_mul", {180, 12}},     {"lazy", {432 + 3 * 513, 36}}};
        const auto found = others.find(mixer);
        const auto [weights, biases] =
            found == others.end() ? std::pair<std::int64_t, std::int64_t>{432, 36} : found->second;
        if (!is_recurrent(mixer)) {
            CHECK(count(mixer, {{"qk_norm", false}}) == standard + 3 * (weights - 432));
            CHECK(count(mixer, {{"attention_bias", true}}) == standard + 3 * (weights - 432 + biases));
        }
        const auto made = Trainable::create(stack_config({mixer, mixer}).dump(), 1, at::kFloat);
        std::int64_t trained = 0, given = 0;
        for (const model::Parameter& one : made->parameters()) (one.trained ? trained : given) += one.value.numel();
        CHECK(trained == made->model().parameters());
        CHECK(given == (mixer == "rnd_emb_qk" ? 320 * 12 : mixer == "fixed_seq_qk" ? 320 : 0));
    }
}

TEST_CASE("A layer without a matrix has a place among the sites and is never measured", "[native]") {
    const auto trainable = Trainable::create(stack_config({"standard", "mlp"}).dump(), 1, at::kFloat);
    model::Model& model = trainable->model();
    REQUIRE(model.sites().size() == 2);
    CHECK(model.sites()[0].has_matrix);
    CHECK_FALSE(model.sites()[1].has_matrix);
    test::RecordingProbe probe(true);
    model::ForwardOptions options;
    options.probe = &probe;
    model.forward(some_tokens(1, 5), options);
    CHECK(probe.sites.size() == 1);
}

TEST_CASE("The implicit matrix of a state makes a head's output of its values", "[native]") {
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        const auto trainable = Trainable::create(stack_config({"standard", mixer}).dump(), 1, at::kFloat);
        model::Model& model = trainable->model();
        if (!model.sites()[1].has_implicit) continue;
        CHECK_FALSE(model.sites()[1].has_matrix);
        for (const std::int64_t length : {1, 63, 64, 65}) {
            INFO(length);
            test::RecordingProbe probe(true, {"value", "head_output"});
            model::ForwardOptions options;
            options.probe = &probe;
            model.forward(some_tokens(2, length), options);
            REQUIRE(probe.implicits.size() == 1);
            const auto& [site, weights, statistics, deviation] = probe.implicits.front();
            CHECK(site == 1);
            CHECK(weights.triu(1).abs().max().item<double>() == 0);
            const at::Tensor& output = probe.at("head_output", 1);
            CHECK(largest_difference(weights.matmul(probe.at("value", 1)), output) <
                  test::kFloatError * largest_value(output));
            CHECK(deviation < test::kFloatError * largest_value(output));
            CHECK(statistics.entropy.size() == static_cast<std::size_t>(2 * output.size(1)));
        }
    }
}

TEST_CASE("A state that learns has neither a matrix nor an implicit one", "[native]") {
    for (const char* mixer : kLearners) {
        INFO(mixer);
        const auto trainable = Trainable::create(stack_config({mixer}).dump(), 1, at::kFloat);
        model::Model& model = trainable->model();
        REQUIRE(model.sites().size() == 1);
        CHECK_FALSE(model.sites()[0].has_matrix);
        CHECK_FALSE(model.sites()[0].has_implicit);
        test::RecordingProbe probe(true, {"value", "head_output"});
        model::ForwardOptions options;
        options.probe = &probe;
        model.forward(some_tokens(2, 21), options);
        CHECK(probe.implicits.empty());
        CHECK(probe.at("value", 0).sizes() == std::vector<std::int64_t>{2, 3, 21, 16});
        CHECK(probe.at("head_output", 0).sizes() == std::vector<std::int64_t>{2, 3, 21, 16});
    }
}

TEST_CASE("A cache of a state that learns does not grow with the text", "[native][decoding]") {
    for (const char* mixer : kLearners) {
        INFO(mixer);
        const auto trainable = Trainable::create(stack_config({mixer}).dump(), 1, at::kFloat);
        model::Model& model = trainable->model();
        const auto bytes = [&model](std::int64_t length) {
            const auto cache = model.new_cache();
            model::ForwardOptions options;
            options.cache = cache.get();
            model.forward(some_tokens(1, length), options);
            return cache->bytes();
        };
        CHECK(bytes(17) == bytes(305));  // one token after a mini-batch's end
    }
}

TEST_CASE("Sizes of a mixer with a state that do not fit are refused by their option", "[native]") {
    const auto refuses = [](const std::string& mixer, const nlohmann::json& options, ErrorCode code,
                            const std::string& part, const nlohmann::json& more = nlohmann::json::object()) {
        CAPTURE(mixer, part);
        nlohmann::json config = native_config({mixer}, more);
        config["mixers"][mixer] = options;
        CHECK_THROWS_MATCHES(Trainable::create(config.dump(), 1, at::kFloat), Error, test::IsError(code, part));
    };
    refuses("gated_deltanet", {{"num_value_heads", 4}}, ErrorCode::mismatch, "gated_deltanet.num_value_heads");
    refuses("deltanet", {{"expand_v", 0.3}}, ErrorCode::mismatch, "deltanet.expand_v");
    refuses("gla", {{"num_key_value_heads", 2}}, ErrorCode::mismatch, "gla.num_key_value_heads");
    refuses("gla", {{"clamp_min", 1}}, ErrorCode::mismatch, "clamp_min");
    refuses("retnet", {{"head_dim", 3}}, ErrorCode::mismatch, "retnet.head_dim");
    refuses("deltanet", {{"qk_norm", "l1"}}, ErrorCode::mismatch, "qk_norm");
    refuses("kda", {{"expand_v", 0.3}}, ErrorCode::mismatch, "kda.expand_v");
    refuses("ttt_linear", {{"mini_batch_size", 0}}, ErrorCode::mismatch, "mini_batch_size");
    refuses("titans", {{"base_lr", 0}}, ErrorCode::mismatch, "base_lr");
    refuses("titans", {{"expand_v", 2.0}}, ErrorCode::mismatch, "expand_v");
    // Heads as large as the model's, which no option bounds.
    refuses("lightning", {{"num_heads", 2}}, ErrorCode::mismatch, "lightning.head_dim", {{"head_dim", 1 << 27}});
    refuses("deltanet", {{"num_heads", 2}, {"expand_v", 1024}}, ErrorCode::mismatch, "deltanet.expand_v",
            {{"head_dim", 1 << 20}});
    refuses("mamba2", nlohmann::json::object(), ErrorCode::mismatch, "mamba2.head_dim", {{"head_dim", 1 << 27}});
    refuses("gla", {{"head_dim", 65537}}, ErrorCode::mismatch, "head_dim");
    refuses("mamba2", {{"state_size", std::int64_t{1} << 31}}, ErrorCode::mismatch, "state_size");
    refuses("standard", nlohmann::json::object(), ErrorCode::mismatch, "head_dim",
            {{"head_dim", std::int64_t{1} << 31}});
    refuses("retnet", {{"use_gate", false}}, ErrorCode::unsupported, "retnet",
            {{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}}});
}

TEST_CASE("A configuration that says no bias has sigmoid attention's own, and keeps it", "[native]") {
    const auto bias_of = [](const nlohmann::json& config) {
        const auto made = Trainable::create(config.dump(), 1, at::kFloat);
        return nlohmann::json::parse(made->config_json()).at("mixers").at("sigmoid").at("bias").get<double>();
    };
    CHECK(bias_of(native_config({"sigmoid"})) == -std::log(320.0));
    CHECK(bias_of(native_config({"sigmoid"}, {{"mixers", {{"sigmoid", nlohmann::json::object()}}}})) ==
          -std::log(320.0));
    CHECK(bias_of(native_config({"sigmoid"}, {{"mixers", {{"sigmoid", {{"bias", 0.0}}}}}})) == 0.0);
}

TEST_CASE("A cache of StreamingLLM holds its first tokens and its window, and not the text", "[native][decoding]") {
    for (const char* positions : {"text", "cache"}) {
        INFO(positions);
        const nlohmann::json options = {
            {"mixers", {{"streaming_llm", {{"first", 2}, {"window", 5}, {"positions", positions}}}}}};
        const auto trainable = Trainable::create(native_config({"streaming_llm"}, options).dump(), 1, at::kFloat);
        const auto bytes_after = [&](std::int64_t length) {
            const auto cache = trainable->model().new_cache();
            model::ForwardOptions forward;
            forward.cache = cache.get();
            const at::Tensor ids = some_tokens(1, length).ids;
            for (std::int64_t i = 0; i < length; ++i)
                trainable->model().forward({ids.narrow(1, i, 1), {}, {}}, forward);
            return cache->bytes();
        };
        CHECK(bytes_after(300) <= 2 * bytes_after(60));
    }
}

TEST_CASE("StreamingLLM sees the first keys and the window, and what it sees moves it", "[native]") {
    const nlohmann::json options = {
        {"mixers", {{"streaming_llm", {{"first", 1}, {"window", 3}, {"positions", "cache"}}}}}};
    const auto trainable = Trainable::create(native_config({"streaming_llm"}, options).dump(), 1, at::kDouble);
    const at::Tensor ids = some_tokens(1, 9).ids;
    const at::Tensor before = trainable->model().forward({ids, {}, {}});
    for (std::int64_t place = 0; place < 8; ++place) {
        INFO(place);
        const at::Tensor other = ids.clone();
        other[0][place].fill_((ids[0][place].item<std::int64_t>() + 1) % 29);
        const at::Tensor after = trainable->model().forward({other, {}, {}});
        const bool moved = largest_difference(before.narrow(1, 8, 1), after.narrow(1, 8, 1)) > 1e-9;
        CHECK(moved == (place < 1 || 8 - place < 3));
    }
}

TEST_CASE("Sink logits are trained, and take no weight decay", "[native][gradients]") {
    const auto made = Trainable::create(native_config({"sink_logits"}).dump(), 1, at::kFloat);
    const model::Parameter* sinks = test::find_parameter(*made, "model.layers.0.self_attn.sinks");
    REQUIRE(sinks != nullptr);
    CHECK(sinks->trained);
    CHECK_FALSE(sinks->decays);
    CHECK(sinks->value.abs().max().item<double>() == 0);
    test::next_token_loss(*made, some_tokens(2, 9)).backward();
    const std::int64_t first = sinks->value.storage_offset();
    for (std::int64_t h = 0; h < 3; ++h) CHECK(made->gradients()[first + h].item<double>() != 0);
}

TEST_CASE("Positions in the cache are refused where angles depend on the text's length", "[native]") {
    nlohmann::json config = native_config({"streaming_llm"});
    config["mixers"]["streaming_llm"]["positions"] = "cache";
    config["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2.0}};
    CHECK_THROWS_MATCHES(Trainable::create(config.dump(), 1, at::kFloat), Error,
                         test::IsError(ErrorCode::unsupported, "mixers.streaming_llm.positions"));
}

namespace {

/// Weight or bias (`kind`) that standard attention's map to query, key or value (`part`) needs to compute what the
/// variant does.
at::Tensor tied(const Trainable& variant, const std::string& mixer, const std::string& stem, const std::string& part,
                const std::string& kind) {
    const auto of = [&](const std::string& name) {
        const model::Parameter* found = test::find_parameter(variant, stem + name);
        return found == nullptr ? at::Tensor() : found->value;
    };
    const bool weight = kind == "weight";
    if (mixer == "el_att" && part != "q") return weight ? at::eye(12, at::kDouble) : at::zeros({12}, at::kDouble);
    at::Tensor rows = of((mixer == "skv" && part == "v" ? "k" : part) + "_proj." + kind);
    if (!rows.defined()) rows = at::zeros({12}, at::kDouble);
    rows = weight ? rows.repeat({12 / rows.size(0), 1}) : rows.repeat({12 / rows.size(0)});
    if (mixer != "mhe_add" && mixer != "mhe_mul") return rows;
    const at::Tensor embedding = of(part + "_head_embedding").flatten();
    if (mixer == "mhe_add") return weight ? rows : rows + embedding;
    return rows * (weight ? (embedding + 1).unsqueeze(1) : embedding + 1);
}

}  // namespace

TEST_CASE("Heads that share their maps are standard attention with tied weights", "[native]") {
    for (const std::string mixer : {"sha", "mqa", "skv", "el_att", "mhe_add", "mhe_mul"}) {
        for (const bool bias : {true, false}) {
            CAPTURE(mixer, bias);
            const nlohmann::json options = {{"attention_bias", bias}, {"qk_norm", bias}};
            const auto variant = Trainable::create(native_config({mixer, mixer}, options).dump(), 3, at::kDouble);
            variant->weights().add_(at::arange(variant->weights().numel(), at::kDouble).sin() * 0.1);
            const auto standard = Trainable::create(
                native_config({"standard", "standard"}, {{"attention_bias", true}, {"qk_norm", bias}}).dump(), 5,
                at::kDouble);
            for (const model::Parameter& one : standard->parameters()) {
                const std::size_t at = one.name.find("_proj.");
                const std::string part = at == std::string::npos ? "" : one.name.substr(at - 1, 1);
                if (one.name.find("self_attn.") != std::string::npos && (part == "q" || part == "k" || part == "v"))
                    one.value.copy_(tied(*variant, mixer, one.name.substr(0, at - 1), part, one.name.substr(at + 6)));
                else
                    one.value.copy_(test::find_parameter(*variant, one.name)->value);
            }
            const at::Tensor ids = some_tokens(2, 33).ids;
            const at::Tensor expected = standard->model().forward({ids, {}, {}});
            CHECK(largest_difference(variant->model().forward({ids, {}, {}}), expected) <
                  1e-12 * largest_value(expected));
        }
    }
}

TEST_CASE("Head embeddings are announced as they are stored", "[native]") {
    const auto made = Trainable::create(native_config({"mhe_add", "standard"}).dump(), 3, at::kFloat);
    CHECK(made->model().sites()[0].has_head_embeddings);
    CHECK_FALSE(made->model().sites()[1].has_head_embeddings);
    test::RecordingProbe probe(false, {"head_embeddings"});
    model::ForwardOptions options;
    options.probe = &probe;
    made->model().forward({some_tokens(1, 9).ids, {}, {}}, options);
    REQUIRE(probe.values.size() == 1);
    for (const auto& [part, row] : {std::pair("q", 0), std::pair("k", 1), std::pair("v", 2)}) {
        const auto* stored =
            test::find_parameter(*made, std::string("model.layers.0.self_attn.") + part + "_head_embedding");
        REQUIRE(stored);
        CHECK(probe.at("head_embeddings", 0)[row].equal(stored->value));
    }
}

TEST_CASE("Caches hold what heads share once", "[native][decoding]") {
    const auto numbers_of = [](const std::string& mixer) {
        const auto made = Trainable::create(native_config({mixer}).dump(), 1, at::kFloat);
        const auto cache = made->model().new_cache();
        model::ForwardOptions options;
        options.cache = cache.get();
        made->model().forward({some_tokens(1, 64).ids, {}, {}}, options);
        return cache->bytes() / 4 / 64;
    };
    CHECK(numbers_of("standard") == 24);
    for (const char* mixer : {"sha", "mqa", "mhe_add", "mhe_mul"}) CHECK(numbers_of(mixer) == 8);
    for (const char* mixer : {"skv", "el_att"}) CHECK(numbers_of(mixer) == 12);
}

TEST_CASE("EL-attention is refused where heads are no parts of the layer's input", "[native]") {
    CHECK_THROWS_MATCHES(Trainable::create(native_config({"el_att"}, {{"head_dim", 6}}).dump(), 1, at::kFloat), Error,
                         test::IsError(ErrorCode::mismatch, "mixers.el_att"));
}
