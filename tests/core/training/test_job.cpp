// SPDX-License-Identifier: GPL-3.0-or-later
// Job files: every key with its default, --set, and writing back.
#include <catch2/catch.hpp>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/run/run_folder.h"
#include "core/training/job/job.h"
#include "core/training/job/job_keys.h"
#include "core/training/job/job_name.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/training/job_sample.h"

using namespace headscope;
using namespace headscope::test::jobs;
using namespace headscope::training;
using headscope::test::IsError;

namespace {

/// The job file of the specification, with every key written out.
const std::string kWhole = R"(name = "hybrid, even layers standard"
seed = 7

[model]
preset = "nano-2l"
mixer = "approximate"
layout = "even"
mixers.approximate = { second_order = "full", normalisation = "joint" }
hidden_size = 96

[data]
text = ["corpus/*.txt"]
tokenizer = "train:2048"
sequence_length = 128
validation = 0.05

[training]
tokens = 5_000_000
batch = 8
accumulate = 2
precision = "bfloat16"
clip = 0.5
dropout = 0.1
threads = 1

[optimizer]
learning_rate = 1e-3
betas = [0.9, 0.99]
eps = 1e-9
weight_decay = 0.05

[schedule]
kind = "wsd"
warmup_steps = 10
minimum_rate = 1e-5

[evaluation]
every = 10
batches = 2

[snapshots]
every = 20
keep = 4

[probe]
every = 5
sequences = 2
length = 64
)";

}  // namespace

TEST_CASE("A job needs to say only what to train on", "[training][job]") {
    const JobFile job = read(kLeast);
    CHECK(job.model.preset == "tiny-1m");
    CHECK(job.training.steps == 1000);
    CHECK(job.training.batch == 16);
    CHECK(job.optimizer.learning_rate == 4e-4);
    CHECK(job.optimizer.betas == std::array<double, 2>{0.9, 0.95});
    CHECK(job.schedule.minimum_rate == 4e-5);
    CHECK(job.schedule.warmup_steps == 100);
    CHECK(job.data.sequence_length == 256);
    CHECK(job.snapshots.keep == 3);
    CHECK(job.probe.every == 50);
    CHECK(job.step_tokens() == 16 * 256);
    REQUIRE_THROWS_MATCHES(read(""), Error, IsError(ErrorCode::usage, "one of text, corpus and generator"));
}

TEST_CASE("All keys of a job are read, and written back as they were", "[training][job]") {
    const JobFile job = read(kWhole);
    CHECK(job.name == "hybrid, even layers standard");
    CHECK(job.seed == 7);
    CHECK(job.model.mixer == "approximate");
    CHECK(job.model.layout == "even");
    CHECK(job.model.mixers.at("approximate").at("second_order") == "full");
    CHECK(job.model.config.at("hidden_size") == 96);
    CHECK(job.data.text == std::vector<std::string>{"corpus/*.txt"});
    CHECK(job.data.tokenizer == "train:2048");
    CHECK_FALSE(job.training.steps);
    CHECK(job.training.tokens == 5'000'000);
    CHECK(job.training.accumulate == 2);
    CHECK(job.training.precision == "bfloat16");
    CHECK(job.optimizer.betas[1] == 0.99);
    CHECK(job.schedule.kind == "wsd");
    CHECK(job.schedule.minimum_rate == 1e-5);
    CHECK(job.probe.length == 64);

    for (const bool explained : {false, true}) {
        const JobFile again = read(job_text(job, explained));
        CHECK(job_differences(again, job, false).empty());
        CHECK(job_text(again) == job_text(job));
    }
    // The table has every key of the text, and the text every key of the table that has a value.
    for (const JobKey& key : job_keys()) {
        INFO(key.full_name());
        CHECK_FALSE(key.help.empty());
        const std::string line = "\n" + key.name + (key.name == "mixers" ? "." : " = ");
        const bool there = ("\n" + job_text(job)).find(line) != std::string::npos;
        CHECK(there == !key.get(job).is_null());
    }
}

TEST_CASE("A list of layers, files to validate on and a generator are read", "[training][job]") {
    const JobFile job = read(R"(
[model]
layers = ["standard", "mlp"]
[data]
generator = { name = "induction", pairs = 4, unique = true }
validation = ["a.txt", "b.txt"]
fixed_token = { position = 16, id = 7 }
)");
    REQUIRE(job.data.fixed_token);
    CHECK(job.data.fixed_token->position == 16);
    CHECK(job.data.fixed_token->id == 7);
    CHECK(job_differences(job, read(job_text(job)), true).empty());
    CHECK(job.model.layers == std::vector<std::string>{"standard", "mlp"});
    CHECK(job.model.layout.empty());
    REQUIRE(job.data.generator);
    CHECK(job.data.generator->name == "induction");
    CHECK(job.data.generator->options.at("pairs") == 4);
    CHECK(job.data.generator->options.at("unique") == 1);
    CHECK(job.data.validation_files.size() == 2);
    CHECK(job_differences(read(job_text(job)), job, false).empty());
}

TEST_CASE("What runs of several seeds have in common is all but the seed and what changes no number",
          "[training][job]") {
    const JobFile job = read(kLeast);
    const std::string text = text_but_for_seed(job);
    for (const char* same : {"seed=7", "name=other", "training.threads=3", "data.workers=2", "evaluation.every=7",
                             "snapshots.keep=5", "probe.every=3", "sample.tokens=9"}) {
        JobFile changed = job;
        set_key(changed, same);
        INFO(same);
        CHECK(text_but_for_seed(changed) == text);
    }
    for (const char* other : {"training.steps=7", "data.fixed_token={ position = 2 }", "data.sequence_length=99",
                              "model.mixers.approximate.second_order=diagonal", "optimizer.learning_rate=1e-3"}) {
        JobFile changed = job;
        set_key(changed, other);
        INFO(other);
        CHECK(text_but_for_seed(changed) != text);
    }
}

TEST_CASE("--set changes a key, takes the place of others, and refuses as a file does", "[training][job]") {
    JobFile job = read(kWhole);
    set_key(job, "training.minutes = 2.5");
    CHECK(job.training.minutes == 2.5);
    CHECK_FALSE(job.training.tokens);
    set_key(job, "model.mixer=mlp");
    CHECK(job.model.mixer == "mlp");
    set_key(job, "name=a plain text");
    CHECK(job.name == "a plain text");
    set_key(job, "name=12");
    CHECK(job.name == "12");
    set_key(job, "name=\"in quotes\"");
    CHECK(job.name == "in quotes");
    set_key(job, "model.layers=[\"mlp\", \"standard\"]");
    CHECK(job.model.mixer.empty());
    CHECK(job.model.layout.empty());
    set_key(job, "model.layout=odd");
    CHECK(job.model.layers.empty());
    CHECK(job.model.layout == "odd");
    set_key(job, "model.mixers.approximate.normalisation=per_order");
    CHECK(job.model.mixers["approximate"]["normalisation"] == "per_order");
    CHECK(job.model.mixers["approximate"]["second_order"] == "full");
    set_key(job, "data.generator.name=copy");
    REQUIRE(job.data.generator);
    CHECK(job.data.text.empty());
    set_key(job, "data.generator.length=9");
    CHECK(job.data.generator->options.at("length") == 9);
    set_key(job, "data.fixed_token.position=3");
    REQUIRE(job.data.fixed_token);
    CHECK(job.data.fixed_token->position == 3);
    CHECK_FALSE(job.data.fixed_token->id);
    set_key(job, "data.fixed_token={ position = 4, id = 1 }");
    CHECK(job.data.fixed_token->id == 1);
    set_key(job, "data.text=some.txt");
    CHECK(std::filesystem::path(job.data.text.at(0)).is_absolute());
    CHECK_FALSE(job.data.generator);
    set_key(job, "data.tokenizer=bytes");
    CHECK(job.data.tokenizer == "bytes");
    set_key(job, "optimizer.betas=[0.8, 0.9]");
    CHECK(job.optimizer.betas[0] == 0.8);

    REQUIRE_THROWS_MATCHES(set_key(job, "training.stesp=5"), Error, IsError(ErrorCode::format, "training.steps"));
    REQUIRE_THROWS_MATCHES(set_key(job, "steps=5"), Error, IsError(ErrorCode::format, "training.steps"));
    REQUIRE_THROWS_MATCHES(set_key(job, "training.steps=0"), Error, IsError(ErrorCode::limit, "--set: training.steps"));
    REQUIRE_THROWS_MATCHES(set_key(job, "training.steps=x\ny=3"), Error, IsError(ErrorCode::format));
    REQUIRE_THROWS_MATCHES(set_key(job, "nothing"), Error, IsError(ErrorCode::usage, "section.key=value"));
}

TEST_CASE("A job file's paths are found from its own folder", "[training][job]") {
    const test::TemporaryFolder folder;
    test::write_file(folder / "job.toml", "[data]\ntext = [\"a.txt\", \"/b.txt\"]\nvalidation = [\"c/*.txt\"]\n");
    const JobFile job = with_absolute_paths(read_job_file(folder / "job.toml"));
    CHECK(job.data.text == std::vector<std::string>{(folder / "a.txt").string(), "/b.txt"});
    CHECK(job.data.validation_files == std::vector<std::string>{(folder.path() / "c/*.txt").string()});
    CHECK(job.data.tokenizer == "bytes");
    REQUIRE_THROWS_MATCHES(read_job_file(folder / "none.toml"), Error, IsError(ErrorCode::io));
    test::write_file(folder / "job.toml", "name = \"\xff\"\n");
    REQUIRE_THROWS_MATCHES(read_job_file(folder / "job.toml"), Error, IsError(ErrorCode::format, "UTF-8"));
}

TEST_CASE("Differences of two jobs name what a resumed run may not change", "[training][job]") {
    const JobFile was = read(kWhole);
    JobFile job = was;
    set_key(job, "training.threads=3");
    set_key(job, "evaluation.every=7");
    CHECK(job_differences(job, was, true).empty());
    CHECK(job_differences(job, was, false).size() == 2);
    set_key(job, "training.minutes=3");  // another end is another question
    CHECK(job_differences(job, was, true).empty());
    set_key(job, "optimizer.learning_rate=2e-3");
    REQUIRE(job_differences(job, was, true).size() == 1);
    CHECK(job_differences(job, was, true)[0] == "optimizer.learning_rate: 0.002, was 0.001");
}

TEST_CASE("Without a choice a job that continues a checkpoint has the checkpoint's tokenizer", "[training][job]") {
    CHECK(read(kLeast).data.tokenizer == "bytes");
    const std::string from = "[model]\nfrom = \"model\"\n" + kLeast;
    JobFile job = read(from);
    CHECK(job.data.tokenizer == "model");
    CHECK_FALSE(job.tokenizer_given);
    set_key(job, "model.from=/other");
    CHECK(job.data.tokenizer == "/other");
    CHECK(read(job_text(job)).data.tokenizer == "/other");
    set_key(job, "model.preset=tiny-1m");
    CHECK(job.data.tokenizer == "bytes");
    set_key(job, "data.tokenizer=bytes");
    set_key(job, "model.from=/other");
    CHECK(job.data.tokenizer == "bytes");  // said
    CHECK(read(from + "tokenizer = \"bytes\"\n").data.tokenizer == "bytes");
    // Generators have their own.
    CHECK(read("[model]\nfrom = \"model\"\n[data]\ngenerator = { name = \"markov\" }\n").data.tokenizer == "bytes");

    job = read(from);
    job.base = "/jobs";
    CHECK(with_absolute_paths(job).data.tokenizer == "/jobs/model");
}

TEST_CASE("All that a native configuration says is a key of a job", "[training][job]") {
    const JobFile job = read(
        "[model]\nrotary = false\noutput_bias = true\nmlp_bias = true\nhidden_act = \"gelu\"\n"
        "rope_parameters = { rope_type = \"linear\", factor = 2 }\n" +
        kLeast);
    CHECK(job.model.config.at("rotary") == false);
    CHECK(job.model.config.at("hidden_act") == "gelu");
    CHECK(job.model.config.at("rope_parameters").at("factor") == 2);
    CHECK(job_differences(read(job_text(job)), job, false).empty());
    REQUIRE_THROWS_MATCHES(read("[model]\nhidden_act = \"gleu\"\n" + kLeast), Error,
                           IsError(ErrorCode::format, "(gelu?)"));
    REQUIRE_THROWS_MATCHES(read("[model]\nrope_parameters = 2\n" + kLeast), Error,
                           IsError(ErrorCode::format, "a table"));
}

TEST_CASE("A job may have no preset, and its text keeps that", "[training][job]") {
    const JobFile job = read("[model]\npreset = \"\"\nhidden_size = 32\n" + kLeast);
    CHECK(job.model.preset.empty());
    CHECK(read(job_text(job)).model.preset.empty());
    JobFile changed = read(kLeast);
    set_key(changed, "model.preset=");
    CHECK(job_text(changed).find("\npreset = \"\"\n") != std::string::npos);
    set_key(changed, "model.from=/other");
    CHECK(job_text(changed).find("\npreset") == std::string::npos);
}

TEST_CASE("A head in a job is a table of kind and classes", "[training][job]") {
    const JobFile job = read("[model]\nhead = { kind = \"token_classes\", classes = 3 }\n" + kLeast);
    CHECK(job.model.config.at("head").at("classes") == 3);
    CHECK(job_differences(read(job_text(job)), job, false).empty());
    for (const char* head : {"{ kind = 3 }", "{ classes = 0 }", "{ classes = \"two\" }", "{ size = 2 }"})
        REQUIRE_THROWS_MATCHES(read(std::string("[model]\nhead = ") + head + "\n" + kLeast), Error,
                               IsError(ErrorCode::format, "line 2, column 1: model.head"));
}

TEST_CASE("A list of layers may be called a custom layout", "[training][job]") {
    const JobFile job =
        read("[data]\ncorpus = \"kjv\"\n[model]\nlayout = \"custom\"\nlayers = [\"mlp\", \"standard\"]\n");
    CHECK(job.model.layers == std::vector<std::string>{"mlp", "standard"});
    CHECK(read(job_text(job)).model.layers == job.model.layers);
}

TEST_CASE("What a job is trained for is read, written and held against its other keys", "[training][job]") {
    const JobFile job = read(kLeast);
    CHECK(job.data.objective.kind == "next_token");
    CHECK(std::string(loss_words(job.data.objective).name) == "loss");
    CHECK_FALSE(has_accuracy(job.data.objective));
    const JobFile masked =
        read("[objective]\nkind = \"masked\"\nmask = 0.25\n" + kLeast + "[evaluation]\npatience = 3\n");
    CHECK(masked.data.objective.kind == "masked");
    CHECK(masked.data.objective.mask == 0.25);
    CHECK(masked.evaluation.patience == 3);
    CHECK(has_accuracy(masked.data.objective));
    CHECK(job_differences(read(job_text(masked)), masked, false).empty());
    CHECK(job_differences(masked, job, true).size() == 3);  // of a resumed run none of them may change
    JobFile number = read("[objective]\nkind = \"classify\"\nclasses = 1\n" + kLeast);
    CHECK_FALSE(has_accuracy(number.data.objective));
    CHECK(std::string(loss_words(number.data.objective).unit).empty());
    set_key(number, "objective.classes=4");
    CHECK(has_accuracy(number.data.objective));
    CHECK(std::string(loss_words(number.data.objective).unit) == "nats a text");
    const JobFile hashed = read("[model]\nembedding = { kind = \"emb\", hash = \"md5\", rows = 23 }\n" + kLeast);
    CHECK(hashed.model.config.at("embedding").at("rows") == 23);

    struct Case {
        std::string text;
        ErrorCode code;
        const char* part;
    };
    for (const Case& bad : std::vector<Case>{
             {"[objective]\nkind = \"maskd\"\n" + kLeast, ErrorCode::format, "(masked?)"},
             {"[objective]\nmask = 1.5\n" + kLeast, ErrorCode::limit, "line 2, column 1: objective.mask"},
             {"[objective]\nmask = 0.2\n" + kLeast, ErrorCode::usage, "objective.kind = \"masked\""},
             {"[objective]\nkind = \"masked\"\nshuffle = 0.2\n" + kLeast, ErrorCode::usage,
              "line 3, column 1: objective.shuffle"},
             {"[objective]\nkind = \"masked\"\nrandom = 0.2\n" + kLeast, ErrorCode::usage, "found masked"},
             {"[objective]\nclasses = 3\n" + kLeast, ErrorCode::usage, "objective.kind = \"classify\""},
             {"[objective]\nkind = \"classify\"\nclasses = 0\n" + kLeast, ErrorCode::limit, "objective.classes"},
             {"[objective]\nkind = \"masked\"\n" + kLeast + "fixed_token = { position = 2 }\n", ErrorCode::usage,
              "data.fixed_token"},
             {kLeast + "[evaluation]\npatience = 2\nevery = 0\n", ErrorCode::usage, "evaluation.patience"},
             {kLeast + "validation = 0\n[evaluation]\npatience = 2\n", ErrorCode::usage, "data.validation = 0"},
         }) {
        INFO(bad.text);
        REQUIRE_THROWS_MATCHES(read(bad.text), Error, IsError(bad.code, bad.part));
    }
}

TEST_CASE("A snapshot is called like its job", "[training][job]") {
    namespace fs = std::filesystem;
    const headscope::test::TemporaryFolder folder;
    const RunFolder run{folder / "tenth try"};
    const fs::path step = run.snapshots() / snapshot_name(40);
    fs::create_directories(step);
    fs::create_directory_symlink(step.filename(), run.snapshots() / "last");
    fs::create_directory_symlink(step, folder / "chosen");
    CHECK(snapshot_title(step) == "tenth try, step 40");  // of a run without a job
    std::ofstream(run.job()) << "name = \"wide\"\n" + kLeast;
    CHECK(snapshot_title(step) == "wide, step 40");
    CHECK(snapshot_title(run.snapshots() / "last" / "") == "wide, step 40");
    CHECK(snapshot_title(folder / "chosen").empty());  // somebody's own name
    CHECK(snapshot_title(run.snapshots() / "none").empty());
    CHECK(snapshot_title(run.path).empty());
    CHECK(snapshot_title("").empty());
    std::ofstream(run.job()) << "name = \"" + std::string(5000, 'n') + "\"\n" + kLeast;
    CHECK(snapshot_title(step).size() < 300);
}
