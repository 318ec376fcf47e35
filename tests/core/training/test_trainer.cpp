// SPDX-License-Identifier: GPL-3.0-or-later
// A run from start to end: it learns, reports its events, and leaves snapshots that others open.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/generate/generate.h"
#include "core/model/load/residence.h"
#include "core/model/model.h"
#include "core/run/journal_reader.h"
#include "core/run/run_folder.h"
#include "core/run/run_history.h"
#include "core/tokenizer/tokenizer.h"
#include "core/training/job/job_keys.h"
#include "core/training/trainer/snapshots.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using namespace headscope::training;
using namespace headscope::test;
namespace fs = std::filesystem;

TEST_CASE("A tiny model learns a text, and its run records everything", "[training][trainer]") {
    const TemporaryFolder folder;
    const fs::path run_path = folder / "run";
    const Told told = run(fresh(small_job(folder, {"training.steps=60", "snapshots.every=20"}), run_path));
    CHECK(told.outcome.state == RunState::finished);
    CHECK(told.outcome.step == 60);
    const auto steps = told.all<Step>();
    REQUIRE(steps.size() == 60);
    // Before the first update every byte is about as likely as another.
    CHECK(steps.front().loss == Approx(std::log(260)).margin(0.3));
    CHECK(steps.back().loss < 0.5 * steps.front().loss);
    CHECK(told.outcome.validation < 0.5 * steps.front().loss);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        CHECK(steps[i].step == static_cast<std::int64_t>(i) + 1);
        CHECK(steps[i].tokens == static_cast<std::int64_t>(i + 1) * 4 * 32);
        CHECK(steps[i].gradient_norm > 0);
        CHECK(steps[i].memory > 1e6);
    }
    CHECK(steps[0].learning_rate == Approx(5e-3 / 3));
    CHECK(steps[59].learning_rate == Approx(1e-3));

    const auto started = told.all<Started>();
    REQUIRE(started.size() == 1);
    CHECK(started[0].mixers == std::vector<std::string>{"standard", "standard"});
    CHECK(started[0].steps == 60);
    CHECK(started[0].sites.size() == 2);
    CHECK(read_job(started[0].job, "started").training.steps == 60);

    CHECK(told.all<Validation>().size() == 1 + 60 / 4);
    const auto probes = told.all<ProbeResult>();
    REQUIRE(probes.size() == 1 + 60 / 6);
    const auto& entropy = probes.back().indicators.at(1);
    CHECK(entropy.name == "entropy_row_mean");
    REQUIRE(entropy.values.size() == 4);
    for (const double value : entropy.values) {
        CHECK(value > 0);
        CHECK(value < std::log(16));
    }
    CHECK(probes.back().thumbnails.size() == 4 * 16 * 16);
    CHECK(told.all<SampleText>().size() == 10);
    CHECK_FALSE(told.all<SampleText>().back().text.empty());

    // The journal holds the same, and run.h5 is made of it.
    CHECK(read_journal(run_path / kJournalName).size() == told.events.size());
    CHECK(read_run(run_path).training.step.size() == 60);
    CHECK(fs::exists(run_path / "run.h5"));
    CHECK_FALSE(being_written(run_path / kJournalName));
}

TEST_CASE("Probes of NAtS-L have the softmax fraction of its linear heads", "[training][trainer]") {
    const TemporaryFolder folder;
    const auto job =
        small_job(folder, {"model.mixer=natsl", "model.mixers.natsl.num_heads=2", "model.mixers.natsl.head_dim=8",
                           "model.mixers.natsl.chunk_size=4", "training.steps=3", "probe.every=1"});
    const Told told = run(fresh(job, folder / "run"));
    const auto probes = told.all<ProbeResult>();
    REQUIRE(probes.size() == 4);
    const auto& fraction = probes.back().indicators.back();
    REQUIRE(fraction.name == "softmax_fraction");
    REQUIRE(fraction.values.size() == 4 * 2);  // sites by heads
    for (std::size_t i = 0; i < fraction.values.size(); ++i) {
        const bool linear = i / 2 % 2 == 1;
        CHECK(std::isnan(fraction.values[i]) != linear);
        // Two sequences of four chunks.
        if (linear) CHECK(fraction.values[i] * 8 == Approx(std::round(fraction.values[i] * 8)));
    }
}

TEST_CASE("A snapshot is an ordinary checkpoint with a manifest", "[training][snapshots]") {
    const TemporaryFolder folder;
    const fs::path run_path = folder / "run", snapshot = run_path / "snapshots" / "step-000012";
    const Told told = run(fresh(small_job(folder, {"snapshots.keep=2"}), run_path));
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(run_path / "snapshots")) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    CHECK(names == std::vector<std::string>{"best", "last", "step-000008", "step-000012"});
    CHECK(fs::read_symlink(run_path / "snapshots" / "last") == "step-000012");
    CHECK(fs::exists(run_path / "snapshots" / "best" / "manifest.json"));

    const auto file = checkpoint::Checkpoint::open(snapshot);
    const auto model = model::Model::build(*file);
    CHECK(model->config().family == "qwen2");  // uniform standard with biases: transformers knows it
    CHECK(tokenizer::Tokenizer::is_in(snapshot));
    // End tokens, where transformers and generate look for them.
    const std::int64_t end = *tokenizer::Tokenizer::from_folder(snapshot)->id_of("<|endoftext|>");
    CHECK(file->config().at("eos_token_id") == end);
    CHECK(model::end_tokens(*file) == std::vector<std::int64_t>{end});
    const Cancellation never;
    const TrainingState state = verify_snapshot(snapshot, never);
    CHECK(state.step == 12);
    CHECK(state.position == 48);
    CHECK(state.validation == told.outcome.validation);
}

TEST_CASE("A checkpoint is trained on with its own tokenizer, unless another is named", "[training][trainer]") {
    const TemporaryFolder folder;
    run(fresh(small_job(folder, {"data.tokenizer=train:300", "training.steps=2"}), folder / "first"));
    const fs::path snapshot = folder / "first" / "snapshots" / "step-000002";
    const std::string own = read_file(snapshot / "tokenizer.json");
    const auto job_from = [&](const fs::path& from, const std::vector<std::string>& extra) {
        JobFile job = small_job(folder, {"training.steps=1"});
        job.model = ModelSettings();
        set_key(job, "model.from=" + from.string());
        for (const std::string& line : extra) set_key(job, line);
        return job;
    };
    const auto tokenizer_of = [&](const JobFile& job, const char* name) {
        run(fresh(job, folder / name));
        return read_file(folder / name / "snapshots" / "step-000001" / "tokenizer.json");
    };
    CHECK(tokenizer_of(job_from(snapshot, {}), "own") == own);
    CHECK(tokenizer_of(job_from(snapshot / "model.safetensors", {}), "file") == own);
    CHECK(tokenizer_of(job_from(snapshot, {"data.tokenizer=bytes"}), "bytes") != own);

    // It resumes with its first one, and so does a fork whose job names none.
    TrainRequest request = resumed(folder / "own");
    set_key(request.job, "training.steps=1");
    CHECK(run(request).outcome.step == 1);
    request = fresh(small_job(folder, {"training.steps=3"}), folder / "fork");
    request.job.model = ModelSettings();
    request.start = TrainRequest::Start::fork;
    request.from = snapshot;
    run(request);
    CHECK(read_file(folder / "fork" / "snapshots" / "step-000003" / "tokenizer.json") == own);
    // Also on other text, of which another one would be made.
    write_file(folder / "other.txt", "Other words entirely: " + small_text(9000) + " and so on.");
    request.run = folder / "fork on other text";
    request.job = stored_job(snapshot);
    set_key(request.job, "data.text=" + (folder / "other.txt").string());
    set_key(request.job, "training.steps=3");
    run(request);
    CHECK(read_file(request.run / "snapshots" / "step-000003" / "tokenizer.json") == own);

    fs::copy(snapshot, folder / "none");
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) fs::remove(folder / "none" / name);
    REQUIRE_THROWS_MATCHES(run(fresh(job_from(folder / "none", {}), folder / "not")), Error,
                           IsError(ErrorCode::usage, "data.tokenizer"));
    CHECK_FALSE(fs::exists(folder / "not"));
    run(fresh(job_from(folder / "none", {"data.tokenizer=" + snapshot.string()}), folder / "named"));
}

TEST_CASE("Every key of the model's configuration can be trained with", "[training][trainer]") {
    const TemporaryFolder folder;
    int number = 0;
    const std::vector<std::vector<std::string>> all = {
        {"model.rotary=false", "model.hidden_size=33", "model.num_attention_heads=3"},  // heads of odd size
        {"model.output_bias=true"},
        {"model.mlp_bias=true"},
        {"model.hidden_act=gelu"},
        {"model.hidden_act=relu2"},
        {"model.rope_parameters={ rope_type = \"linear\", factor = 2 }"},
        {"model.rope_parameters={ rope_type = \"yarn\", factor = 2.0 }", "model.rope_theta=5000"},
        {"model.attention_bias=false", "model.qk_norm=true", "model.tie_word_embeddings=true"},
    };
    for (const std::vector<std::string>& lines : all) {
        INFO(lines.front());
        std::vector<std::string> extra = {"training.steps=3", "probe.every=1"};
        extra.insert(extra.end(), lines.begin(), lines.end());
        const fs::path path = folder / std::to_string(++number);
        const Told told = run(fresh(small_job(folder, extra), path));
        REQUIRE(told.all<Step>().size() == 3);
        CHECK(told.all<Step>().back().loss < told.all<Step>().front().loss);
        // The snapshot is the model that was trained.
        const auto file = checkpoint::Checkpoint::open(path / "snapshots" / "step-000003");
        const auto config = nlohmann::json::parse(told.all<Started>().front().config_json);
        CHECK(model::inspect(*file).parameters == told.all<Started>().front().parameters);
        if (lines.front() == "model.rotary=false") CHECK(config.at("rotary") == false);
    }
    const auto refused = [&](const std::string& line, const char* part) {
        REQUIRE_THROWS_MATCHES(run(fresh(small_job(folder, {line}), folder / "no")), Error,
                               IsError(ErrorCode::unsupported, part));
    };
    refused("model.rope_parameters={ rope_type = \"linaer\", factor = 2 }", "rope_type");
}

TEST_CASE("A run folder has one owner, and is not begun twice", "[training][trainer]") {
    const TemporaryFolder folder;
    const fs::path run_path = folder / "run";
    TrainRequest request = fresh(small_job(folder), run_path);
    bool tried = false;
    request.on_event = [&](const Event& event) {
        if (tried || !std::holds_alternative<Step>(event.what)) return;
        tried = true;
        REQUIRE_THROWS_MATCHES(run(resumed(run_path)), Error, IsError(ErrorCode::usage));
    };
    run(request);
    CHECK(tried);
    REQUIRE_THROWS_MATCHES(run(fresh(small_job(folder), run_path)), Error, IsError(ErrorCode::usage, "not empty"));
    REQUIRE_THROWS_MATCHES(run(resumed(folder / "text.txt")), Error, IsError(ErrorCode::usage));
}

TEST_CASE("run.h5 comes while a run that takes no snapshots is at work", "[training][trainer]") {
    const TemporaryFolder folder;
    const fs::path path = folder / "run";
    TrainRequest request = fresh(small_job(folder, {"snapshots.every=0", "training.steps=100000"}), path);
    request.run_file_every = std::chrono::milliseconds(20);
    const auto start = std::chrono::steady_clock::now();
    bool seen = false;
    request.stop_after = [&](std::int64_t) {
        seen = seen || fs::exists(path / "run.h5");
        return seen || std::chrono::steady_clock::now() - start > std::chrono::seconds(60);
    };
    const Told told = run(request);
    CHECK(seen);
    CHECK(read_run(path).training.step.size() == told.all<Step>().size());
    CHECK_FALSE(fs::exists(path / "run.h5.partial"));
}

TEST_CASE("A folder that a kill left before it was a run can start a new run", "[training][trainer]") {
    const TemporaryFolder folder;
    const auto leave = [&](const fs::path& run, const std::string& journal) {
        fs::create_directory(run);
        write_file(run / "events.log", journal);
        write_file(run / "job.toml.partial", "[mod");
    };
    leave(folder / "a", "");
    leave(folder / "b", journal_header());
    for (const char* name : {"a", "b"}) {
        REQUIRE_THROWS_MATCHES(stored_job(folder / name), Error, IsError(ErrorCode::usage, "train JOB.toml"));
        CHECK(run(fresh(small_job(folder, {"training.steps=1"}), folder / name)).outcome.step == 1);
        CHECK_FALSE(fs::exists(folder / name / "job.toml.partial"));
    }
    // With the job at hand --resume begins, too.
    leave(folder / "c", journal_header());
    TrainRequest request = fresh(small_job(folder, {"training.steps=1"}), folder / "c");
    request.start = TrainRequest::Start::resume;
    CHECK(run(request).outcome.step == 1);
    // Anything else there is somebody's.
    leave(folder / "d", journal_header());
    write_file(folder / "d" / "thesis.txt", "of years");
    REQUIRE_THROWS_MATCHES(run(fresh(small_job(folder), folder / "d")), Error, IsError(ErrorCode::usage, "not empty"));
}

TEST_CASE("Jobs that cannot be are refused before a folder is made", "[training][job]") {
    const TemporaryFolder folder;
    const auto refused = [&](const std::vector<std::string>& lines, ErrorCode code, const std::string& part) {
        INFO(lines.front());
        REQUIRE_THROWS_MATCHES(run(fresh(small_job(folder, lines), folder / "run")), Error, IsError(code, part));
        CHECK_FALSE(fs::exists(folder / "run"));
    };
    refused({"model.preset=nano-100"}, ErrorCode::usage, "nano-100k");
    refused({"model.mixer=standart"}, ErrorCode::usage, "standard");
    refused({"model.layout=evne"}, ErrorCode::usage, "model.layout");
    refused({"model.layers=[\"standard\"]"}, ErrorCode::usage, "2 layers");
    refused({"model.hidden_size=33"}, ErrorCode::mismatch, "a divisor of");
    refused({"model.max_position_embeddings=16"}, ErrorCode::usage, "32");
    refused({"model.vocab_size=100"}, ErrorCode::mismatch, "model.vocab_size");
    refused({"model.from=" + (folder / "none").string()}, ErrorCode::usage, "the sizes of the checkpoint");
    refused({"data.text=" + (folder / "none.txt").string()}, ErrorCode::io, "none.txt");
    refused({"data.corpus=kvj"}, ErrorCode::usage, "kjv");
    refused({"data.tokenizer=" + (folder / "none").string()}, ErrorCode::usage, "data.tokenizer");
    refused({"data.sequence_length=100000"}, ErrorCode::usage, "data");
}

TEST_CASE("A job that no memory holds is refused before any is taken", "[training][trainer]") {
    const TemporaryFolder folder;
    const auto refused = [&](const std::vector<std::string>& lines, const char* key) {
        REQUIRE_THROWS_MATCHES(run(fresh(small_job(folder, lines), folder / "run")), Error,
                               IsError(ErrorCode::limit, key));
        CHECK_FALSE(fs::exists(folder / "run"));
    };
    refused({"model.hidden_size=131072", "model.num_hidden_layers=4096"}, "model] expected a job that fits into");
    refused({"training.batch=1048576", "data.sequence_length=900", "model.hidden_size=4096"}, "training.batch");
}

TEST_CASE("A job may name every residence of weights", "[training]") {
    const auto& keys = headscope::training::job_keys();
    const auto key = std::find_if(keys.begin(), keys.end(), [](const headscope::training::JobKey& one) {
        return one.section == "model" && one.name == "weights";
    });
    REQUIRE(key != keys.end());
    CHECK(key->choices == headscope::model::residence_choices());
}
