// SPDX-License-Identifier: GPL-3.0-or-later
// Jobs of objectives that start from earlier training: heads, hyperplanes and tokens that they keep or replace.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/equal.h>
#include <nlohmann/json.hpp>

#include "core/checkpoint/checkpoint.h"
#include "core/model/fresh/fresh_weights.h"
#include "core/model/trainable.h"
#include "core/tokenizer/hashed/word_tokenizer.h"
#include "core/training/trainer/learner.h"
#include "tests/core/training/objective_jobs.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using namespace headscope::training;
using namespace headscope::test;
namespace fs = std::filesystem;

TEST_CASE("A head for classes takes the place of that of pre-training", "[training][objective]") {
    const TemporaryFolder folder;
    const auto all = objectives(folder);
    // In the native names, and in BERT's.
    for (const char* mixer : {"mhe_mul", "standard"}) {
        INFO(mixer);
        const TemporaryFolder runs;
        run(fresh(small_job(folder, with(all[0].lines, {std::string("model.mixer=") + mixer})), runs / "masked"));
        const fs::path before = snapshot_of(runs / "masked", 12);
        // A rate of 0 leaves what was taken over as it is.
        const JobFile job = job_from(
            before, (folder / "classes.jsonl").string(),
            {"objective.kind=classify", "objective.classes=3", "schedule.minimum_rate=0", "optimizer.learning_rate=0"});
        const Told told = run(fresh(job, runs / "classes"));
        CHECK(told.outcome.state == RunState::finished);
        CHECK(std::isfinite(told.all<Step>().back().accuracy));
        const auto was = model::Trainable::open(*checkpoint::Checkpoint::open(before), at::kFloat);
        const auto is =
            model::Trainable::open(*checkpoint::Checkpoint::open(snapshot_of(runs / "classes", 4)), at::kFloat);
        CHECK(std::as_const(*is).model().config().head == model::HeadKind::sequence_classes);
        CHECK(std::as_const(*is).model().config().classes == 3);
        std::size_t kept = 0, fresh_ones = 0;
        for (const auto& now : is->parameters()) {
            const auto old = std::find_if(was->parameters().begin(), was->parameters().end(),
                                          [&](const auto& one) { return one.name == now.name; });
            const bool of_head = now.name.find("classifier") != std::string::npos ||
                                 now.name.find("pooler") != std::string::npos || now.name.find("head.") == 0;
            INFO(now.name);
            CHECK((old == was->parameters().end() || of_head) == of_head);
            if (of_head) {
                ++fresh_ones;
            } else {
                ++kept;
                CHECK(at::equal(old->value, now.value));
            }
        }
        CHECK(fresh_ones == 4);
        CHECK(kept > 20);
    }
}

TEST_CASE("A run with LSH hashes by the hyperplanes that its model has, and so do those who go on",
          "[training][objective]") {
    const TemporaryFolder folder;
    const auto all = objectives(folder);
    const JobFile job = small_job(folder, with(all[3].lines, {"seed=7"}));
    run(fresh(job, folder / "run"));
    const fs::path snapshot = snapshot_of(folder / "run", 12);
    const auto tokenizer = tokenizer::Tokenizer::from_folder(snapshot);
    REQUIRE(tokenizer->word_hash() != nullptr);
    REQUIRE(tokenizer->word_hash()->ngrams() != nullptr);
    const std::int64_t ngrams = tokenizer->word_hash()->ngrams()->size();
    CHECK(ngrams > 10);
    const at::Tensor normal = checkpoint::Checkpoint::open(snapshot)->load("model.hash_normal");
    REQUIRE(normal.numel() == ngrams);
    const std::vector<float> expected = model::fresh_hash_normal(7, ngrams);
    CHECK(std::equal(expected.begin(), expected.end(), normal.const_data_ptr<float>()));
    // A fork and a job from the snapshot keep the list, whatever they read.
    write_file(folder / "other.txt",
               "five six seven eight nine ten five six seven eight nine ten. " + small_text(4000));
    TrainRequest fork = fresh(job, folder / "fork");
    fork.start = TrainRequest::Start::fork;
    fork.from = snapshot;
    fork.keep_optimizer = false;
    set_key(fork.job, "data.text=" + (folder / "other.txt").string());
    CHECK(run(fork).outcome.state == RunState::finished);
    run(fresh(
        job_from(snapshot, (folder / "classes.jsonl").string(), {"objective.kind=classify", "objective.classes=3"}),
        folder / "tuned"));
    for (const fs::path& later : {snapshot_of(folder / "fork", 12), snapshot_of(folder / "tuned", 4)}) {
        CHECK(read_file(later / "ngrams.json") == read_file(snapshot / "ngrams.json"));
        CHECK(at::equal(checkpoint::Checkpoint::open(later)->load("model.hash_normal"), normal));
    }
}

TEST_CASE("A translator that goes on begins targets with the token that its own files name", "[training][objective]") {
    const TemporaryFolder folder;
    run(fresh(small_job(folder, objectives(folder).back().lines), folder / "run"));
    const auto made =
        model::Trainable::open(*checkpoint::Checkpoint::open(snapshot_of(folder / "run", 12)), at::kFloat);
    auto config = nlohmann::json::parse(made->config_json());
    const auto read = [&](std::int64_t start) {
        config["decoder_start_token_id"] = start;
        JobFile job = small_job(folder, {"objective.kind=translation"});
        const Learner learner(model::Trainable::create(config.dump(), 1, at::kFloat), job);
        data::DataBatch batch;
        batch.sequences = batch.length = 1;
        batch.ids = {7};
        batch.target_length = 2;
        batch.target_ids = {9, 8};
        batch.targets = {8, 3};
        return learner.read(batch).target;
    };
    CHECK(read(3)[0][0].item<std::int64_t>() == 3);
    CHECK(read(3)[0][1].item<std::int64_t>() == 8);
    CHECK(read(4)[0][0].item<std::int64_t>() == 4);
}

TEST_CASE("A decoder learns classes of texts and pairs, also from a language model", "[training][objective]") {
    const TemporaryFolder folder;
    // The class is that of the first text's word.
    const auto pairs = [&](const char* name, std::size_t begin, std::size_t end) {
        std::string lines;
        for (std::size_t n = begin; n < end; ++n)
            lines += "{\"text\": \"" + kWords[n % 4] + "\", \"pair\": \"" + kWords[n / 4 % 4] +
                     "\", \"label\": " + (n % 4 < 2 ? "0}\n" : "1}\n");
        write_file(folder / name, lines);
        return (folder / name).string();
    };
    const std::string file = pairs("pairs.jsonl", 0, 80);
    const std::string held_out = pairs("held_out.jsonl", 80, 112);
    const Lines learning{"objective.kind=classify",
                         "training.steps=60",
                         "training.batch=8",
                         "evaluation.every=20",
                         "data.validation=[\"" + held_out + "\"]",
                         "snapshots.every=0",
                         "probe.every=0"};
    const Told told = run(fresh(small_job(folder, with(learning, {"data.text=" + file})), folder / "learns"));
    CHECK(told.all<Validation>().back().accuracy > 0.95);
    const auto tensors = checkpoint::Checkpoint::open(snapshot_of(folder / "learns", 60))->tensors();
    CHECK(tensors.at("score.weight").shape == std::vector<std::int64_t>{2, 32});
    CHECK_FALSE(tensors.contains("lm_head.weight"));

    run(fresh(small_job(folder), folder / "language"));
    const fs::path language = snapshot_of(folder / "language", 12);
    run(fresh(job_from(language, file, {"objective.kind=classify"}), folder / "tuned"));
    const auto tuned =
        model::Trainable::open(*checkpoint::Checkpoint::open(snapshot_of(folder / "tuned", 4)), at::kFloat);
    const model::ModelConfig& config = std::as_const(*tuned).model().config();
    CHECK(config.causal);
    CHECK(config.head == model::HeadKind::sequence_classes);
    CHECK(config.text_pooling == model::TextPooling::last);
    const std::string written = nlohmann::json::parse(tuned->config_json()).at("architectures")[0];
    CHECK(written.ends_with("ForSequenceClassification"));
}
