// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/cost/measure.h"
#include "core/cost/parameters.h"
#include "core/mixers/types/type.h"
#include "core/model/load/presets.h"

using namespace headscope;

namespace {

// A stack that is quickly built; sizes are multiples of a register block's columns, so tiles have no dead columns.
constexpr std::int64_t kHidden = 64, kHeads = 4, kLength = 96, kBatch = 2;

std::string configuration() {
    nlohmann::json config = model::preset_json("nano-100k");
    config["hidden_size"] = kHidden;
    config["num_attention_heads"] = config["num_key_value_heads"] = kHeads;
    config["head_dim"] = kHidden / kHeads;
    return config.dump();
}

cost::MeasuredMixer measured(const std::string& mixer, std::int64_t length = kLength) {
    cost::MeasureOptions options;
    options.batch = kBatch;
    options.length = length;
    return cost::measure_mixer(configuration(), mixer, 2, options).layers.back();
}

cost::CostNumbers paper(const std::string& mixer) {
    cost::CostSetting setting;
    setting.batch = kBatch;
    setting.length = kLength;
    setting.hidden = kHidden;
    setting.heads = kHeads;
    setting.bytes = 4;
    return cost::evaluate(cost::mixer_cost(mixer), setting);
}

}  // namespace

TEST_CASE("Every mixer with an entry can be measured", "[cost]") {
    for (const std::string& mixer : mixers::known_names()) {
        INFO(mixer);
        const cost::MeasuredMixer here = measured(mixer);
        CHECK(here.mixer == mixer);
        CHECK((here.prefill_flops > 0) == (mixer != "fnet"));  // a Fourier transform is no product
        CHECK(here.activation_bytes > 0);
        CHECK(std::isnan(here.decode_flops) == !mixers::find_type(mixer)->in_decoders);
        if (!std::isnan(here.decode_flops)) CHECK(here.decode_flops > 0);
    }
}

TEST_CASE("Counts of parameters are those of models, with grouped heads too", "[cost]") {
    for (const std::int64_t groups : {kHeads, kHeads / 2, std::int64_t{1}}) {
        std::int64_t standard = 0;
        for (const char* mixer :
             {"standard", "mlp", "approximate", "non_approximate", "rnd_emb_qk", "fixed_seq_qk", "static_emb_qk"}) {
            INFO(mixer << ", " << groups << " groups");
            nlohmann::json config = nlohmann::json::parse(configuration());
            config["num_key_value_heads"] = groups;
            config["qk_norm"] = config["attention_bias"] = false;
            config["layers"] = std::vector<std::string>(config["num_hidden_layers"].get<std::size_t>(), mixer);
            cost::StackSizes sizes;
            sizes.vocabulary = config["vocab_size"];
            sizes.hidden = kHidden;
            sizes.feed_forward = config["intermediate_size"];
            sizes.layers = config["num_hidden_layers"];
            sizes.heads = kHeads;
            sizes.key_value_heads = groups;
            sizes.mixers = config["layers"];
            const std::int64_t counted = cost::count_parameters(sizes).total();
            CHECK(counted == model::inspect_config(config.dump()).parameters);
            if (standard == 0) standard = counted;
            if (std::string(mixer) == "mlp" && groups < kHeads)
                CHECK(counted > standard);
            else
                CHECK(counted == standard);
        }
    }
}

TEST_CASE("MLP executes what the paper counts and holds no cache", "[cost]") {
    const auto here = measured("mlp");
    CHECK(here.prefill_flops == paper("mlp").prefill);
    CHECK(here.decode_flops == paper("mlp").decode);
    CHECK(here.cache_bytes == 0);
}

TEST_CASE("Mixers with a state execute, hold and have what their formulas say", "[cost]") {
    // Values of 32 numbers fill a register block; two whole chunks of NAtS-L, eight whole mini-batches.
    constexpr std::int64_t kTokens = 128;
    for (const char* mixer : {"gated_deltanet", "deltanet", "mamba2", "natsl", "retnet", "gla", "lightning", "kda",
                              "ttt_linear", "titans"}) {
        INFO(mixer);
        const bool learns = std::string(mixer) == "ttt_linear" || std::string(mixer) == "titans";
        const bool wide = learns || std::string(mixer) == "mamba2";
        nlohmann::json config = nlohmann::json::parse(configuration());
        config["layers"] = std::vector<std::string>(2, mixer);
        config["num_hidden_layers"] = 2;
        config["mixers"][mixer] = {{"num_heads", kHeads}, {"head_dim", wide ? 32 : 16}};
        if (std::string(mixer) == "mamba2")
            config["mixers"][mixer]["state_size"] = 24;
        else if (!learns)
            config["mixers"][mixer]["expand_v"] = 2.0;
        const auto inspection = model::inspect_config(config.dump());
        cost::CostSetting setting;
        setting.batch = kBatch;
        setting.length = kTokens;
        setting.hidden = kHidden;
        setting.heads = kHeads;
        setting.bytes = 4;
        setting.options = inspection.config.mixer_options;
        cost::MeasureOptions options;
        options.batch = kBatch;
        options.length = kTokens;
        const auto here = cost::measure_mixer(config.dump(), mixer, 2, options).layers.back();
        const auto formula = [&] { return cost::evaluate(cost::mixer_cost(mixer), setting); };
        // Besides a layer's mixer: embedding and head, the last norm; W^O, two norms, the feed-forward.
        const std::int64_t others =
            2 * config["vocab_size"].get<std::int64_t>() * kHidden + kHidden +
            2 * (kHidden * kHeads * 32 + 2 * kHidden + 3 * kHidden * config["intermediate_size"].get<std::int64_t>());
        CHECK(static_cast<double>(inspection.parameters) == static_cast<double>(others) + 2 * formula().parameters);
        if (std::string(mixer) != "natsl") {
            CHECK(here.prefill_flops == formula().prefill);
            // One more token in a mini-batch that has begun.
            if (learns) options.length = setting.length = kTokens + 8;
            const auto then = learns ? cost::measure_mixer(config.dump(), mixer, 2, options).layers.back() : here;
            CHECK(then.decode_flops == formula().decode);
            CHECK(then.cache_bytes == formula().cache);
            continue;
        }
        // Work of its softmax heads depends on the types of chunks; masked pairs are left out.
        setting.softmax_share = 0;
        const double least = formula().cache;
        setting.softmax_share = 1;
        CHECK(here.cache_bytes >= least);
        CHECK(here.cache_bytes <= formula().cache);
        CHECK(here.prefill_flops < formula().prefill);
        setting.softmax_share = (here.cache_bytes - least) / (formula().cache - least);
        CHECK(16 * setting.softmax_share == Approx(std::round(16 * setting.softmax_share)));  // of 16 chunks
    }
}

TEST_CASE("Variants of softmax attention execute the projections and hold the cache of their formulas", "[cost]") {
    for (const char* mixer : {"lazy", "streaming_llm", "sha", "mqa", "skv", "el_att", "mhe_add", "mhe_mul"}) {
        INFO(mixer);
        const auto here = measured(mixer);
        const auto& formulas = cost::mixer_cost(mixer);
        cost::CostSetting setting;
        setting.batch = kBatch;
        setting.hidden = kHidden;
        setting.heads = kHeads;
        setting.bytes = 4;
        setting.length = 0;  // what is left is the projections of one token
        const double projections = static_cast<double>(kLength) * cost::evaluate(formulas, setting).decode;
        const double pairs = paper(mixer).prefill - projections;
        CHECK(here.prefill_flops > projections + 0.4 * pairs);
        CHECK(here.prefill_flops < projections + 1.6 * pairs);  // tiles are rounded up
        CHECK(here.cache_bytes == paper(mixer).cache);
        CHECK(here.decode_flops >= paper(mixer).decode);
    }
}

TEST_CASE("Linear executes what its formula says, FNet no product, and both are measured in encoders", "[cost]") {
    const auto linear = measured("linear"), fnet = measured("fnet");
    CHECK(linear.prefill_flops == paper("linear").prefill);
    CHECK(fnet.prefill_flops == paper("fnet").prefill);
    CHECK(std::isnan(linear.cache_bytes));
    CHECK(std::isnan(fnet.decode_flops));
}

TEST_CASE("Standard executes the projections, and of the scores no more than all pairs", "[cost]") {
    const auto here = measured("standard");
    const double projections = 6.0 * kBatch * kLength * kHidden * kHidden;
    const double pairs = paper("standard").prefill - projections;
    CHECK(here.prefill_flops > projections + 0.4 * pairs);
    CHECK(here.prefill_flops < projections + 1.6 * pairs);  // tiles are rounded up
    CHECK(here.cache_bytes == paper("standard").cache);     // keys and values in float32
    CHECK(here.decode_flops >= paper("standard").decode);
    // Twice the length: projections twice, pairs four times.
    const auto longer = measured("standard", 2 * kLength);
    CHECK(longer.prefill_flops > 2 * here.prefill_flops);
    CHECK(longer.cache_bytes == 2 * here.cache_bytes);
}

TEST_CASE("What training keeps of Standard has no L x L matrix in it", "[cost]") {
    const auto here = measured("standard");
    const double numbers = 4.0 * kBatch * kLength * kHidden;  // bytes of one [B, L, d]
    CHECK(here.activation_bytes >= 3 * numbers);              // queries, keys, values at least
    const auto longer = measured("standard", 4 * kLength);
    CHECK(longer.activation_bytes == Approx(4 * here.activation_bytes).epsilon(0.1));
}

TEST_CASE("Parameters from sizes are those of the model", "[cost]") {
    for (const auto& preset : model::presets()) {
        INFO(preset.name);
        if (!preset.mixers.empty() || preset.manner >= model::Preset::bert) continue;  // other sizes
        const auto inspection = model::inspect_config(model::preset_json(preset.name).dump());
        cost::StackSizes sizes;
        sizes.vocabulary = preset.vocabulary;
        sizes.hidden = preset.hidden;
        sizes.feed_forward = preset.feed_forward;
        sizes.layers = preset.layers;
        sizes.heads = preset.heads;
        sizes.query_key_value_bias = preset.manner == model::Preset::qwen2;
        sizes.query_key_norm = preset.manner == model::Preset::qwen3;
        CHECK(cost::count_parameters(sizes).total() == inspection.parameters);
    }
}

TEST_CASE("A table has rows by mixer and length, and is written as CSV with empty cells where nothing was measured",
          "[cost]") {
    cost::CostSetting setting;
    setting.hidden = kHidden;
    setting.heads = kHeads;
    cost::CostTable table = cost::paper_table(setting, {16, 32}, {"mlp", "rnd_emb_qk"});
    REQUIRE(table.rows.size() == 4);
    CHECK(table.rows[1].length == 32);
    NoProgress progress;
    const Cancellation cancellation;
    const std::string before = cost::cost_csv(table);
    CHECK(before.find("mlp,1,16,64,4,1,2,65536,393216,24576,8192,0,,,,,,,,12288,,,,,,\n") != std::string::npos);
    cost::measure_table(table, configuration(), progress, cancellation);
    CHECK(table.rows[0].measured->prefill_flops == 393216);
    CHECK(table.rows[0].guide_flops == 0);
    CHECK(*table.rows[2].guide_flops > 0);
    CHECK(cost::cost_csv(table) != before);
    CHECK_THROWS_AS(cost::paper_table(setting, {16}, {"mlq"}), Error);
}
