// SPDX-License-Identifier: GPL-3.0-or-later
// Jobs whose model is made of keys of the native configuration.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/load/native_config.h"
#include "core/model/load/presets.h"
#include "core/run/run_folder.h"
#include "core/training/job/job_keys.h"
#include "core/training/trainer/job_model.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using namespace headscope::training;
using namespace headscope::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// Keys of an encoder as the specification has it, without a preset.
const std::vector<std::string> kEncoder = {"model.preset=",
                                           "model.stack=encoder",
                                           "model.norm=layer",
                                           "model.layer_norm_eps=1e-12",
                                           "model.norm_place=post",
                                           "model.positions=learned",
                                           "model.max_position_embeddings=64",
                                           "model.feed_forward=plain",
                                           "model.hidden_act=gelu",
                                           "model.embedding_norm=true",
                                           "model.embedding_scale=2",
                                           "model.type_vocab_size=2",
                                           "model.attention_bias=true",
                                           "model.output_bias=true",
                                           "model.mlp_bias=true",
                                           "model.tie_word_embeddings=true",
                                           "model.num_hidden_layers=2",
                                           "objective.kind=masked"};

std::vector<std::string> with(std::vector<std::string> lines, const std::vector<std::string>& more) {
    lines.insert(lines.end(), more.begin(), more.end());
    return lines;
}

json config_of(const JobFile& job) {
    return json::parse(model_config(job, OfData(300)));
}

}  // namespace

TEST_CASE("Every key of a native configuration is a key of a job", "[training][job]") {
    const TemporaryFolder folder;
    std::vector<std::string> keys;
    for (const std::vector<std::string>& lines :
         {std::vector<std::string>{},
          kEncoder,
          {"model.stack=encoder_decoder", "objective.kind=translation", "model.decoder_start_token_id=1"}}) {
        const model::Inspection made = model::inspect_config(config_of(small_job(folder, lines)).dump());
        const json written = model::native_json(made.config);
        for (const auto& [key, value] : written.items()) keys.push_back(key);
    }
    CHECK(std::count(keys.begin(), keys.end(), "num_encoder_layers") == 1);
    CHECK(std::count(keys.begin(), keys.end(), "layer_norm_eps") == 1);
    for (const std::string& key : keys) {
        INFO(key);
        CHECK((key == "model_type" || find_key("model." + key) != nullptr));
    }
}

TEST_CASE("A job without a preset trains an encoder of the specification's keys", "[training][job]") {
    const TemporaryFolder folder;
    const JobFile job = small_job(folder, with(kEncoder, {"training.steps=40"}));
    const Told told = run(fresh(job, folder / "run"));
    CHECK(told.outcome.state == RunState::finished);
    const auto steps = told.all<Step>();
    REQUIRE(steps.size() == 40);
    CHECK(steps.back().loss < steps.front().loss);

    const json config = config_of(job);
    const model::ModelConfig made = model::inspect_config(config.dump()).config;
    CHECK_FALSE(made.causal);
    CHECK(made.norm == model::NormKind::layer);
    CHECK_FALSE(made.pre_norm);
    CHECK(made.positions == model::PositionKind::learned);
    CHECK(made.max_positions == 64);
    CHECK_FALSE(made.gated_feed_forward);
    CHECK(made.embedding_norm);
    CHECK(made.embedding_scale == 2);
    CHECK(made.token_types == 2);
    CHECK(made.head_transform);  // the objective's head
    CHECK(made.tied_head);
    // A resumed run continues the same model.
    TrainRequest request = fresh(job, folder / "parts");
    request.stop_after = [](std::int64_t step) { return step == 20; };
    run(request);
    run(resumed(folder / "parts"));
    CHECK(weights_of(folder / "parts", 40) == weights_of(folder / "run", 40));
}

TEST_CASE("Keys of a stack replace the preset's and those that follow from them", "[training][job]") {
    const TemporaryFolder folder;
    const auto config = [&](const std::vector<std::string>& lines) { return config_of(small_job(folder, lines)); };
    const json towers =
        config({"model.stack=encoder_decoder", "model.num_hidden_layers=4", "objective.kind=translation"});
    CHECK(towers.at("num_encoder_layers") == 2);
    CHECK(config({"model.stack=encoder_decoder", "model.num_hidden_layers=4", "model.num_encoder_layers=3",
                  "objective.kind=translation"})
              .at("num_encoder_layers") == 3);
    CHECK_FALSE(config({"model.preset=nano-mhe-translation", "model.stack=encoder", "objective.kind=masked"})
                    .contains("num_encoder_layers"));
    CHECK(config({"model.stack=encoder", "objective.kind=shuffle_random"}).at("head") ==
          json({{"kind", "token_classes"}, {"classes", 3}}));
    CHECK(config({"model.stack=encoder", "objective.kind=masked", "model.head={kind=\"language\"}"}).at("head") ==
          json({{"kind", "language"}}));
    // Keys of the format's defaults, without a preset.
    const json plain = config({"model.preset=", "model.num_hidden_layers=1"});
    CHECK_FALSE(plain.contains("attention_bias"));
    CHECK(plain.at("max_position_embeddings") == 2048);
}

TEST_CASE("A guide is the beginning of the text that the job names", "[training][job][guides]") {
    const TemporaryFolder folder;
    const std::string words = "Another corpus, which no layer learns from but which each reads.";
    write_file(folder / "guide.txt", words);
    write_file(folder / "guide.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"" + words + "\"}\n");
    const auto job = [&](const std::string& file) {
        return small_job(folder, {"model.mixer=fixed_seq_qk", "model.max_position_embeddings=32", "training.steps=1",
                                  "model.mixers.fixed_seq_qk.text=" + (folder / file).string()});
    };
    const auto guide = [&](const fs::path& run) {
        const auto file = checkpoint::Checkpoint::open(RunFolder{run}.snapshots() / snapshot_name(1));
        const at::Tensor ids = file->load("model.guide_ids", checkpoint::LoadAs::stored);
        return std::vector<std::int64_t>(ids.const_data_ptr<std::int64_t>(),
                                         ids.const_data_ptr<std::int64_t>() + ids.numel());
    };
    run(fresh(job("guide.txt"), folder / "text"));
    const std::vector<std::int64_t> begin(words.begin(), words.begin() + 32);
    CHECK(guide(folder / "text") == begin);
    // Documents end as those of the data do: with the token after the bytes.
    run(fresh(job("guide.jsonl"), folder / "lines"));
    const std::vector<std::int64_t> lines = guide(folder / "lines");
    CHECK(std::vector<std::int64_t>(lines.begin(), lines.begin() + 3) == std::vector<std::int64_t>{'a', 'b', 256});
    CHECK(std::equal(lines.begin() + 3, lines.end(), begin.begin()));
    // The option is the job's alone, and its path is absolute in the run.
    CHECK_FALSE(config_of(job("guide.txt")).at("mixers").at("fixed_seq_qk").contains("text"));
    JobFile relative = job("guide.txt");
    relative.model.mixers["fixed_seq_qk"]["text"] = "guide.txt";
    relative.base = folder.path();
    CHECK(guide_text(with_absolute_paths(relative)) == (folder / "guide.txt").string());
    run(fresh(relative, folder / "relative"));
    CHECK(guide(folder / "relative") == begin);

    write_file(folder / "short.txt", words.substr(0, 30));
    const auto refused = [&](const JobFile& bad, const std::string& part, ErrorCode code = ErrorCode::usage) {
        REQUIRE_THROWS_MATCHES(run(fresh(bad, folder / "refused")), Error, IsError(code, part));
        REQUIRE_THROWS_MATCHES(run(fresh(bad, folder / "refused")), Error, IsError(code, kGuideText));
        CHECK_FALSE(fs::exists(folder / "refused"));
    };
    refused(job("none.txt"), "none.txt", ErrorCode::io);
    JobFile too_few = job("short.txt");
    refused(too_few, "at least 32");
    set_key(too_few, "model.mixer=standard");
    refused(too_few, "fixed_seq_qk layers");
}

TEST_CASE("Keys that a stack does not read are refused at their place", "[training][job]") {
    const TemporaryFolder folder;
    const auto refused = [&](const std::vector<std::string>& lines, const std::string& key, const std::string& part) {
        INFO(part);
        const JobFile job = small_job(folder, lines);
        REQUIRE_THROWS_MATCHES(config_of(job), Error, IsError(ErrorCode::usage, key));
        REQUIRE_THROWS_MATCHES(config_of(job), Error, IsError(ErrorCode::usage, part));
    };
    refused({"model.preset="}, "model.num_hidden_layers", "model.preset is empty");
    refused({"model.layer_norm_eps=1e-6"}, "model.layer_norm_eps", "norm = \"layer\"");
    refused({"model.positions=learned", "model.rope_theta=500"}, "model.rope_theta", "rotary positions");
    refused({"model.stack=encoder", "objective.kind=masked", "model.head_bias=true"}, "model.head_bias",
            "another head");
    refused({"model.stack=encoder", "objective.kind=masked", "model.head={kind=\"none\"}"}, "model.head",
            "masked_language");
}
