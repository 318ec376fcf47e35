// SPDX-License-Identifier: GPL-3.0-or-later
// Runs for every objective: they learn, report accuracies, resume to the bit, write what others open, and start from
// earlier training.
#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <ATen/ops/equal.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/checkpoint/checkpoint.h"
#include "core/data/tokenizer_choice.h"
#include "core/model/fresh/fresh_weights.h"
#include "core/model/trainable.h"
#include "core/run/run_folder.h"
#include "core/run/run_history.h"
#include "core/tokenizer/hashed/word_tokenizer.h"
#include "core/training/trainer/learner.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using namespace headscope::training;
using namespace headscope::test;
namespace fs = std::filesystem;

namespace {

using Lines = std::vector<std::string>;

const std::vector<std::string> kWords = {"one", "two", "three", "four"};

/// Texts of some of the words, with what `more` makes of the first one's number, a JSON object a line.
std::string items(const char* text, const std::function<std::string(std::size_t)>& more) {
    std::string lines;
    for (std::size_t n = 0; n < 60; ++n) {
        std::string words = kWords[n % 4];
        for (std::size_t i = 0; i < n % 3; ++i) words += " " + kWords[(n / 4 + i) % 4];
        lines += std::string("{\"") + text + "\": \"" + words + "\", " + more(n % 4) + "}\n";
    }
    return lines;
}

struct Objective {
    const char* name;
    Lines lines;
    bool accurate = true;
};

/// A cheap job of each kind; what it reads is written into the folder.
std::vector<Objective> objectives(const TemporaryFolder& folder) {
    const auto wrote = [&](const char* name, const std::string& content) {
        write_file(folder / name, content);
        return "data.text=" + (folder / name).string();
    };
    const std::string classes =
        wrote("classes.jsonl", items("text", [](std::size_t n) { return "\"label\": " + std::to_string(n % 3); }));
    const std::string numbers =
        wrote("numbers.jsonl", items("text", [](std::size_t n) { return "\"label\": " + std::to_string(n) + ".5"; }));
    const std::string pairs =
        wrote("pairs.jsonl",
              items("source", [](std::size_t n) { return "\"target\": \"" + std::string(n + 1, 'x') + "\""; }));
    const std::string questions = wrote("questions.jsonl", items("context", [](std::size_t n) {
                                            // Every context begins with that word.
                                            return "\"question\": \"first\", \"answers\": {\"text\": [\"" + kWords[n] +
                                                   "\"], \"answer_start\": [0]}";
                                        }));
    const data::ChosenTokenizer bytes = data::byte_tokenizer();
    write_file(folder / "tokenizer.json", bytes.files.at(0).content);
    const std::string pieces = "data.tokenizer=" + (folder / "tokenizer.json").string();
    return {
        {"masked",
         {"objective.kind=masked", "objective.mask=0.3", "model.preset=nano-mhe-encoder", "model.mixer=mhe_mul"}},
        {"shuffle_random", {"objective.kind=shuffle_random", "model.preset=nano-mhe-encoder", "model.mixer=fnet"}},
        {"md5", {"objective.kind=shuffle_random", "model.preset=nano-hashformer-md5-pool"}},
        {"lsh", {"objective.kind=shuffle_random", "model.preset=nano-hashformer-lsh-add"}},
        {"lsh rows", {"objective.kind=shuffle_random", "model.preset=nano-hashformer-lsh-emb"}},
        {"characters", {"objective.kind=shuffle_random", "model.preset=nano-canine-like"}},
        {"lsh of pieces",
         {"objective.kind=shuffle_random", "model.preset=nano-hashformer-lsh-add",
          "model.embedding={kind=\"add\", hash=\"lsh\", bits=16, words=\"tokenizer\"}", pieces}},
        {"classify", {"objective.kind=classify", "objective.classes=3", "model.preset=nano-mhe-encoder", classes}},
        {"classify with a decoder", {"objective.kind=classify", "objective.classes=3", classes}},
        {"classify with a state",
         {"objective.kind=classify", "objective.classes=3", "model.mixer=gated_deltanet", classes}},
        {"number with a decoder", {"objective.kind=classify", "objective.classes=1", numbers}, false},
        {"classify hashes", {"objective.kind=classify", "objective.classes=3", "model.preset=nano-proformer", classes}},
        {"number", {"objective.kind=classify", "objective.classes=1", "model.preset=nano-mhe-encoder", numbers}, false},
        {"spans",
         {"objective.kind=spans", "objective.stride=4", "data.sequence_length=32", "model.preset=nano-mhe-encoder",
          questions}},
        {"translation",
         {"objective.kind=translation", "model.preset=nano-mhe-translation", "model.mixer=mhe_add", pairs}},
    };
}

Lines with(Lines lines, const Lines& more) {
    lines.insert(lines.end(), more.begin(), more.end());
    return lines;
}

fs::path snapshot_of(const fs::path& run, std::int64_t step) {
    return RunFolder{run}.snapshots() / snapshot_name(step);
}

/// A job from a checkpoint, whose sizes are its own.
JobFile job_from(const fs::path& checkpoint, const std::string& text, const Lines& lines) {
    JobFile job = read_job("[data]\ntext = \"" + text + "\"\n", "job");
    for (const std::string& line :
         with({"model.from=" + checkpoint.string(), "data.sequence_length=32", "data.validation=0.1",
               "training.steps=4", "training.batch=4", "training.threads=1", "optimizer.learning_rate=5e-3",
               "schedule.warmup_steps=1", "evaluation.every=2", "snapshots.every=2", "probe.every=0", "sample.every=2"},
              lines))
        set_key(job, line);
    return job;
}

}  // namespace

TEST_CASE("A run for any objective resumes to the bit, and reports its accuracy", "[training][objective][resume]") {
    const TemporaryFolder folder;
    for (const Objective& one : objectives(folder)) {
        DYNAMIC_SECTION(one.name) {
            const TemporaryFolder runs;
            const JobFile job = small_job(folder, with(one.lines, {"training.dropout=0.1", "training.accumulate=2"}));
            const Told whole = run(fresh(job, runs / "whole"));
            CHECK(whole.outcome.state == RunState::finished);
            TrainRequest request = fresh(job, runs / "parts");
            request.stop_after = [](std::int64_t step) { return step == 5; };
            run(request);
            const Told rest = run(resumed(runs / "parts"));
            CHECK(rest.outcome.validation == whole.outcome.validation);
            CHECK(weights_of(runs / "parts", 12) == weights_of(runs / "whole", 12));
            CHECK(optimizer_of(runs / "parts", 12) == optimizer_of(runs / "whole", 12));
            const auto history = read_run(runs / "parts"), expected = read_run(runs / "whole");
            CHECK(history.training.loss == expected.training.loss);
            for (const Step& step : whole.all<Step>()) {
                CHECK(std::isfinite(step.loss));
                CHECK(std::isnan(step.accuracy) != one.accurate);
                if (one.accurate) CHECK((step.accuracy >= 0 && step.accuracy <= 1));
            }
            for (const Validation& validation : whole.all<Validation>())
                CHECK(std::isnan(validation.accuracy) != one.accurate);
            if (one.accurate) CHECK(history.training.accuracy == expected.training.accuracy);
            CHECK(whole.all<SampleText>().empty());  // none of them can continue a text
            for (const Log& log : whole.all<Log>()) CHECK(log.level == LogLevel::note);
            const auto probes = whole.all<ProbeResult>();
            REQUIRE(probes.size() == 3);
            CHECK(checkpoint::Checkpoint::open(snapshot_of(runs / "whole", 12))->has_config());
        }
    }
}

TEST_CASE("A model learns what its objective asks for", "[training][objective]") {
    const TemporaryFolder folder;
    for (const Objective& one : objectives(folder)) {
        // Shuffled words of a text without order cannot be detected.
        if (std::string(one.name).find("classify") != 0 && std::string(one.name) != "number") continue;
        DYNAMIC_SECTION(one.name) {
            const Told told =
                run(fresh(small_job(folder, with(one.lines, {"training.steps=150", "training.batch=16",
                                                             "optimizer.learning_rate=2e-3", "schedule.warmup_steps=20",
                                                             "snapshots.every=0"})),
                          folder / "run"));
            const auto steps = told.all<Step>();
            INFO("from " << steps.front().loss << " to " << steps.back().loss);
            // Classes: below the entropy of their frequencies (1.04 nats of 1.1). Numbers: below their variance (1.25
            // of 5).
            CHECK(steps.back().loss < (one.accurate ? 0.5 : 0.15) * steps.front().loss);
            // One batch holds 16 items, of which a few decide: the last ten hold 160.
            if (one.accurate) {
                double accuracy = 0.0;
                for (const Step& step : std::span(steps).last(10)) accuracy += step.accuracy / 10.0;
                CHECK(accuracy > 0.8);
            }
            fs::remove_all(folder / "run");
        }
    }
}

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

TEST_CASE("A run ends when its evaluations find no lower loss", "[training][objective][resume]") {
    const TemporaryFolder folder;
    // Nothing is learned at a rate of 0: the first evaluation is the best.
    const JobFile job = small_job(folder, {"optimizer.learning_rate=0", "schedule.minimum_rate=0", "evaluation.every=2",
                                           "evaluation.patience=2"});
    const Told whole = run(fresh(job, folder / "whole"));
    CHECK(whole.outcome.state == RunState::finished);
    CHECK(whole.outcome.step == 6);
    CHECK(run(resumed(folder / "whole")).outcome.step == 6);
    TrainRequest request = fresh(job, folder / "parts");
    request.stop_after = [](std::int64_t step) { return step == 5; };
    run(request);
    CHECK(run(resumed(folder / "parts")).outcome.step == 6);
    CHECK(weights_of(folder / "parts", 6) == weights_of(folder / "whole", 6));
    CHECK(run(fresh(small_job(folder, {"evaluation.every=2", "evaluation.patience=50"}), folder / "learns"))
              .outcome.step == 12);
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

TEST_CASE("The best snapshot follows the job's metric", "[training][objective][resume]") {
    const TemporaryFolder folder;
    // Every text to learn from has class 1, three of five held-out ones do. The held-out accuracy is at its peak once
    // class 1 is the likelier one; the loss falls until its probability is 3/5.
    const auto texts = [&](const char* name, const std::function<int(std::size_t)>& label) {
        std::string lines;
        for (std::size_t n = 0; n < 40; ++n)
            lines += "{\"text\": \"" + kWords[n % 4] + " " + kWords[n / 4 % 4] +
                     "\", \"label\": " + std::to_string(label(n)) + "}\n";
        write_file(folder / name, lines);
        return (folder / name).string();
    };
    const std::string learned = texts("learned.jsonl", [](std::size_t) { return 1; });
    const std::string held_out = texts("held-out.jsonl", [](std::size_t n) { return n % 5 < 3 ? 1 : 0; });
    const auto job = [&](const Lines& more) {
        return small_job(
            folder, with({"objective.kind=classify", "model.preset=nano-mhe-encoder", "data.text=" + learned,
                          "data.validation=[\"" + held_out + "\"]", "training.steps=40", "optimizer.learning_rate=1e-3",
                          "schedule.kind=constant", "evaluation.every=2", "evaluation.batches=1", "snapshots.every=2",
                          "probe.every=0"},
                         more));
    };
    const auto best_of = [&](const fs::path& run) {
        return snapshot_step(fs::read_symlink(RunFolder{run}.snapshots() / "best").filename().string());
    };
    const Told told = run(fresh(job({"evaluation.metric=accuracy"}), folder / "accuracy"));
    std::int64_t peak = 0, lowest = 0;
    double accuracy = -1, loss = 1e9;
    for (const Validation& one : told.all<Validation>()) {
        CHECK(one.tokens == 40);  // all items, not evaluation.batches
        if (one.step > 0 && one.accuracy > accuracy) {
            accuracy = one.accuracy;
            peak = one.step;
        }
        if (one.step > 0 && one.loss < loss) {
            loss = one.loss;
            lowest = one.step;
        }
    }
    REQUIRE(peak < lowest);
    CHECK(best_of(folder / "accuracy") == peak);
    CHECK(fs::exists(snapshot_of(folder / "accuracy", peak)));
    run(fresh(job({"evaluation.metric=accuracy", "snapshots.every=30"}), folder / "between"));  // not at the peak
    CHECK(best_of(folder / "between") == peak);
    CHECK(weights_of(folder / "between", peak) == weights_of(folder / "accuracy", peak));
    run(fresh(job({"evaluation.metric=accuracy", "snapshots.every=0"}), folder / "end"));
    CHECK(best_of(folder / "end") == 40);  // the only one
    run(fresh(job({"evaluation.batches=10"}), folder / "loss"));
    CHECK(best_of(folder / "loss") > peak);

    // Patience follows it too.
    std::int64_t best = 0, last = 0, waited = 0;
    double highest = -1;
    for (const Validation& one : told.all<Validation>()) {
        if (one.step == 0 || waited == 3) continue;
        last = one.step;
        waited = one.accuracy > highest ? 0 : waited + 1;
        if (waited == 0) best = one.step;
        highest = std::max(highest, one.accuracy);
    }
    REQUIRE(waited == 3);
    const Lines patient = {"evaluation.metric=accuracy", "evaluation.patience=3"};
    CHECK(run(fresh(job(patient), folder / "whole")).outcome.step == last);
    TrainRequest request = fresh(job(patient), folder / "parts");
    request.stop_after = [&](std::int64_t step) { return step == last - 3; };
    run(request);
    CHECK(run(resumed(folder / "parts")).outcome.step == last);
    CHECK(best_of(folder / "parts") == best);
}

TEST_CASE("Every metric of an objective is measured and logged", "[training][objective]") {
    const TemporaryFolder folder;
    for (const Objective& one : objectives(folder)) {
        const std::string kind = one.name;
        if (kind != "classify" && kind != "number" && kind != "spans" && kind != "translation") continue;
        const JobFile plain = small_job(folder, one.lines);
        for (const std::string& metric : metrics_of(plain.data.objective)) {
            if (metric == "loss") continue;
            const TemporaryFolder runs;
            const JobFile job = small_job(folder, with(one.lines, {"training.steps=4", "evaluation.metric=" + metric}));
            const Told told = run(fresh(job, runs / "run"));
            const auto lines = told.all<Log>();
            INFO(kind << " " << metric);
            CHECK(std::any_of(lines.begin(), lines.end(), [&](const Log& line) {
                return line.text.starts_with(metric + " ") && line.text.ends_with(" held-out items");
            }));
        }
    }
}

TEST_CASE("A run of epochs ends, warms up and evaluates by the data's length, and logs it",
          "[training][objective][resume]") {
    const TemporaryFolder folder;
    std::string lines;
    for (int n = 0; n < 40; ++n)
        lines += "{\"text\": \"" + kWords[n % 4] + "\", \"label\": " + (n % 2 ? "1}\n" : "0}\n");
    for (const char* name : {"forty.jsonl", "held-out.jsonl"}) write_file(folder / name, lines);
    const std::string file = (folder / "forty.jsonl").string(), held_out = (folder / "held-out.jsonl").string();
    const JobFile job =
        small_job(folder, {"objective.kind=classify", "model.preset=nano-mhe-encoder", "data.text=" + file,
                           "data.validation=[\"" + held_out + "\"]", "training.epochs=1.5", "schedule.warmup_share=0.2",
                           "evaluation.every_epochs=0.5", "snapshots.every=5", "probe.every=0"});
    // 60 sequences, 4 an update.
    const Told told = run(fresh(job, folder / "run"));
    CHECK(told.outcome.step == 15);
    const auto logs = told.all<Log>();
    CHECK(std::any_of(logs.begin(), logs.end(), [](const Log& line) {
        return line.text == "the run has 15 updates, a warm-up of 3, an evaluation every 5";
    }));
    std::vector<std::int64_t> evaluated;
    for (const Validation& one : told.all<Validation>()) evaluated.push_back(one.step);
    CHECK(evaluated == std::vector<std::int64_t>{0, 5, 10, 15});
    const auto steps = told.all<Step>();
    CHECK(steps[1].learning_rate < steps[2].learning_rate);
    CHECK(steps[2].learning_rate == Approx(5e-3));
    TrainRequest request = fresh(job, folder / "parts");
    request.stop_after = [](std::int64_t step) { return step == 7; };
    run(request);
    CHECK(run(resumed(folder / "parts")).outcome.step == 15);
    CHECK(weights_of(folder / "parts", 15) == weights_of(folder / "run", 15));
    // A share of the run is fixed once it began.
    TrainRequest longer = resumed(folder / "parts");
    set_key(longer.job, "training.epochs=3");
    REQUIRE_THROWS_MATCHES(run(longer), Error, IsError(ErrorCode::mismatch, "warmup_share"));
}

TEST_CASE("A model that cannot be trained for a job's objective is refused at its key", "[training][objective]") {
    const TemporaryFolder folder;
    const auto refused = [&](const Lines& lines, const std::string& key, const std::string& part) {
        INFO(lines.front() << " " << lines.back());
        TrainRequest request = fresh(small_job(folder, lines), folder / "run");
        REQUIRE_THROWS_MATCHES(run(request), Error, IsError(ErrorCode::unsupported, part));
        REQUIRE_THROWS_MATCHES(run(request), Error, IsError(ErrorCode::unsupported, key));
        CHECK_FALSE(fs::exists(folder / "run"));
    };
    refused({"objective.kind=masked"}, "objective.kind", "found a decoder");
    refused({"model.preset=nano-mhe-encoder"}, "objective.kind", "found an encoder");
    refused({"objective.kind=masked", "model.preset=nano-hashformer-md5-add"}, "objective.kind", "hashes of words");
    refused({"objective.kind=masked", "model.preset=nano-mhe-encoder",
             "model.embedding={kind=\"emb\", hash=\"md5\", rows=50}"},
            "objective.kind", "hashes of words");
    refused({"objective.kind=translation", "model.preset=nano-mhe-encoder"}, "objective.kind", "found an encoder");
    refused({"objective.kind=shuffle_random", "model.preset=nano-mhe-decoder"}, "objective.kind", "found a decoder");
}
