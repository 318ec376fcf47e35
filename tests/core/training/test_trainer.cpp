// SPDX-License-Identifier: GPL-3.0-or-later
// A run from its begin to its end: it learns, tells what happens, and leaves snapshots that others open.
#include <cmath>

#include "core/base/error.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/model.h"
#include "core/tokenizer/tokenizer.h"
#include "core/training/journal_reader.h"
#include "core/training/run_folder.h"
#include "core/training/run_history.h"
#include "core/training/snapshots.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using namespace headscope::training;
using namespace headscope::test;
namespace fs = std::filesystem;

TEST_CASE("A tiny model learns a text, and its run tells everything", "[training][trainer]") {
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
    const Cancellation never;
    const TrainingState state = verify_snapshot(snapshot, never);
    CHECK(state.step == 12);
    CHECK(state.position == 48);
    CHECK(state.validation == told.outcome.validation);
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
