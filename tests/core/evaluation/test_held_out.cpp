// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/evaluation/scripted_model.h"

#include <cmath>
#include <limits>

#include "core/evaluation/describe.h"
#include "core/evaluation/sources.h"
#include "core/evaluation/tasks.h"
#include "core/evaluation/text_score.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/data/corpus.h"

using namespace headscope;

namespace {

training::JobFile job_on(const std::filesystem::path& text) {
    training::JobFile job;
    job.data.text = {text.string()};
    job.data.tokenizer = "bytes";
    job.tokenizer_given = true;
    job.data.sequence_length = 8;
    job.data.validation = 0.5;
    return job;
}

}  // namespace

TEST_CASE("What a run held out is scored behind the token before it, and cut at a token", "[evaluation]") {
    test::Corpus corpus;
    std::string written;
    for (int i = 0; i < 200; ++i) written += "abcd ";
    const auto path = corpus.write("a.txt", written);
    NoProgress progress;
    const Cancellation cancellation;
    const auto text = evaluation::held_out_part(job_on(path), corpus.folder / "run", progress, cancellation);
    REQUIRE(text);
    CHECK(text->name == "held-out part of a.txt");
    // Another share of the same file is another text, whatever their names.
    auto more = job_on(path);
    more.data.validation = 0.6;
    CHECK(evaluation::held_out_part(more, corpus.folder / "run", progress, cancellation)->sha256 != text->sha256);
    const auto& documents = text->documents;
    // 257 ids; all the same logits: each token costs log 257.
    test::ScriptedModel model(at::zeros({257, 257}));
    evaluation::TextOptions options;
    options.length = 8;
    const auto whole = evaluation::score_text(model, *documents, options);
    CHECK(whole.tokens.targets() >= 490);
    CHECK(whole.tokens.targets() <= 502);
    CHECK_FALSE(whole.cut);
    CHECK(whole.bytes <= whole.tokens.targets());  // the end of the text is a token and no byte
    CHECK(whole.bytes + 1 >= whole.tokens.targets());
    options.most_tokens = 100;
    const auto part = evaluation::score_text(model, *documents, options);
    CHECK(part.tokens.targets() == 100);
    CHECK(part.bytes == 100);
    CHECK(part.words == Approx(21).margin(1));
    CHECK(part.byte_loss() == Approx(std::log(257.0)).epsilon(1e-6));
}

TEST_CASE("A job of a generator, or without a part held out, has no text to score", "[evaluation]") {
    test::Corpus corpus;
    NoProgress progress;
    const Cancellation cancellation;
    training::JobFile job;
    job.data.generator = data::GeneratorSettings{"copy", {}};
    CHECK_FALSE(evaluation::held_out_part(job, corpus.folder / "run", progress, cancellation));
    auto without = job_on(corpus.write("a.txt", std::string(400, 'x')));
    without.data.validation = 0;
    CHECK_FALSE(evaluation::held_out_part(without, corpus.folder / "run", progress, cancellation));
}

TEST_CASE("A job's fixed token has the id that it says, or that of the checkpoint's tokenizer", "[evaluation]") {
    const test::TemporaryFolder folder;
    CHECK(evaluation::trained_token({3, 5}, folder.path(), 6).id == 5);
    CHECK_THROWS_MATCHES(evaluation::trained_token({3, 6}, folder.path(), 6), Error,
                         test::IsError(ErrorCode::limit, "expected an id from 0 to 5, as the model has; found 6"));
    test::write_file(folder / "tokenizer.json",
                     R"({"version": "1.0", "model": {"type": "WordLevel", "vocab": {"x": 0, "[MASK]": 1},
                         "unk_token": "x"}, "pre_tokenizer": {"type": "WhitespaceSplit"}})");
    const auto token = evaluation::trained_token({3, {}}, folder.path(), 2);
    CHECK(token.position == 3);
    CHECK(token.id == 1);
}

TEST_CASE("Generated tasks are scored with their own targets at any length", "[evaluation]") {
    // Every token is followed by itself: of a copy task the separator alone leads to a symbol, so hits are rare.
    at::Tensor logits = at::zeros({64, 64});
    for (int i = 0; i < 64; ++i) logits[i][i] = 4.0;
    test::ScriptedModel model(logits);
    evaluation::Request request;
    request.tasks = {"copy", "induction"};
    request.lengths = {16, 32};
    request.sequences = 20;
    request.generator_options["copy"] = {{"symbols", 16}};
    request.generator_options["induction"] = {{"symbols", 16}};
    NoProgress progress;
    const auto rows = evaluation::run_tasks(model, request, {}, 3, progress);
    REQUIRE(rows.size() == 8);
    for (const auto& row : rows) {
        CHECK(row.model == 3);
        CHECK(row.count > 0);
        if (row.metric == "accuracy") CHECK(row.value < 0.5);
    }
    const auto again = evaluation::run_tasks(model, request, {}, 3, progress);
    for (std::size_t i = 0; i < rows.size(); ++i) CHECK(again[i].value == rows[i].value);
    request.seed = 2;
    CHECK(evaluation::run_tasks(model, request, {}, 3, progress)[1].value != rows[1].value);
    request.tasks = {"perplexity"};
    CHECK_THROWS_AS(evaluation::run_tasks(model, request, {}, 3, progress), Error);
    request.tasks = {"mqar"};  // 8192 ids by default
    CHECK_THROWS_AS(evaluation::run_tasks(model, request, {}, 3, progress), Error);
}

TEST_CASE("A model with non-finite numbers is reported, not scored", "[evaluation]") {
    test::ScriptedModel model(at::zeros({64, 64}).fill_(std::numeric_limits<double>::quiet_NaN()));
    evaluation::Request request;
    request.tasks = {"copy"};
    request.lengths = {16};
    request.sequences = 4;
    request.generator_options["copy"] = {{"symbols", 16}};
    NoProgress progress;
    CHECK_THROWS_MATCHES(evaluation::run_tasks(model, request, {}, 0, progress), Error,
                         test::IsError(ErrorCode::limit, "copy at 16"));
}

TEST_CASE("A stack is described by its other mixer and its layout's other layers", "[evaluation]") {
    CHECK(evaluation::mixer_of({"standard", "standard"}) == "standard");
    CHECK(evaluation::mixer_of({"mlp", "standard", "mlp"}) == "mlp");
    CHECK(evaluation::mixer_of({"mlp", "standard", "approximate"}) == "several");
    CHECK(evaluation::other_layers({"mlp", "standard", "mlp"}) == std::set<int>{0, 2});
    CHECK(evaluation::other_layers({}).empty());
}

TEST_CASE("A run's folder means its best snapshot, else its last one", "[evaluation]") {
    const test::TemporaryFolder folder;
    const auto snapshots = folder / "snapshots";
    std::filesystem::create_directories(snapshots / "step-000010");
    test::write_file(snapshots / "step-000010" / "config.json", "{}");
    test::write_file(folder / "job.toml", "[data]\ncorpus = \"kjv\"\n");
    std::filesystem::create_directories(snapshots / "step-000009");
    std::filesystem::create_directories(snapshots / "step-000011.damaged");
    CHECK(evaluation::checkpoint_in(folder.path()) == snapshots / "step-000010");  // a file system without links
    std::filesystem::create_directory_symlink("step-000010", snapshots / "last");
    CHECK(evaluation::checkpoint_in(folder.path()) == snapshots / "last");
    std::filesystem::create_directory_symlink("step-000010", snapshots / "best");
    CHECK(evaluation::checkpoint_in(folder.path()) == snapshots / "best");
    const auto job = evaluation::job_of(snapshots / "best");
    REQUIRE(job.has_value());
    CHECK(job->data.corpus == "kjv");
    CHECK_FALSE(evaluation::job_of(folder.path().parent_path() / "nowhere").has_value());
}
