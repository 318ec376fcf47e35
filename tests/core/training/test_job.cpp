// SPDX-License-Identifier: GPL-3.0-or-later
// Job files: every key with its default, what is wrong with a line and where, --set, and writing back.
#include <catch2/catch.hpp>

#include <fstream>

#include "core/base/text/nearest_word.h"
#include "core/run/run_folder.h"
#include "core/training/job/job.h"
#include "core/training/job/job_keys.h"
#include "core/training/job/job_name.h"
#include "core/training/job/run_end.h"
#include "core/training/job/schedule.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::training;
using headscope::test::IsError;

namespace {

const std::string kLeast = "[data]\ncorpus = \"kjv\"\n";

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

JobFile read(const std::string& text) {
    return read_job(text, "job.toml");
}

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

TEST_CASE("A bad job is refused with line, column, key and the nearest name", "[training][job]") {
    struct Case {
        const char* text;
        ErrorCode code;
        std::vector<std::string> parts;
    };
    const std::vector<Case> cases = {
        {"[data]\ncorpus = \"kjv\"\n[training]\n  stesp = 5\n",
         ErrorCode::format,
         {"job.toml: line 4, column 3", "training.stesp", "training.steps"}},
        {"sede = 5\n", ErrorCode::format, {"line 1, column 1", "sede", "seed"}},
        {"[trainig]\nsteps = 5\n", ErrorCode::format, {"line 1", "trainig", "training"}},
        {"[model]\nlearning_rate = 5\n", ErrorCode::format, {"line 2", "optimizer.learning_rate"}},
        {"[training]\nsteps = \"many\"\n",
         ErrorCode::format,
         {"line 2, column 1", "training.steps", "a whole number from 1", "\"many\""}},
        {"[training]\nsteps = 1.5\n", ErrorCode::format, {"training.steps", "1.5"}},
        {"[training]\nsteps = 0\n", ErrorCode::limit, {"line 2", "training.steps", "found 0"}},
        {"[training]\nsteps = 99999999999999999999\n", ErrorCode::format, {"line 2"}},
        {"[training]\ndropout = 1.0\n", ErrorCode::limit, {"training.dropout", "0.99"}},
        {"[training]\nattention_dropout = 1.0\n", ErrorCode::limit, {"training.attention_dropout", "0.99"}},
        {"[training]\nclip = nan\n", ErrorCode::format, {"line 2", "finite"}},
        {"[training]\nprecision = \"float23\"\n", ErrorCode::format, {"float32", "(float32?)"}},
        {"[training]\nminutes = 5\nsteps = 7\n",
         ErrorCode::usage,
         {"one of steps, tokens, minutes and epochs", "2 of them"}},
        {"[training]\nsteps = 5\nsteps = 7\n", ErrorCode::format, {"line 3"}},
        {"[training\nsteps = 5\n", ErrorCode::format, {"line 1", "TOML"}},
        {"[optimizer]\nbetas = [0.9]\n", ErrorCode::format, {"a list of two numbers"}},
        {"[optimizer]\nbetas = [0.9, 1.0]\n", ErrorCode::limit, {"optimizer.betas"}},
        {"[optimizer]\nlearning_rate = -1\n", ErrorCode::limit, {"optimizer.learning_rate"}},
        {"[schedule]\nminimum_rate = 1.0\n[data]\ncorpus = \"kjv\"\n",
         ErrorCode::usage,
         {"line 2", "schedule.minimum_rate"}},
        {"[schedule]\ndecay_share = 0.5\n[data]\ncorpus = \"kjv\"\n",
         ErrorCode::usage,
         {"line 2", "schedule.decay_share", "found cosine"}},
        {"[data]\ncorpus = \"kjv\"\ntext = \"a.txt\"\n", ErrorCode::usage, {"2 of them"}},
        {"[data]\ngenerator = \"copy\"\n", ErrorCode::format, {"data.generator", "a table"}},
        {"[data]\ngenerator = { pairs = 3 }\n", ErrorCode::format, {"name = \"induction\""}},
        {"[data]\ngenerator = { name = \"copy\", x = \"y\" }\n", ErrorCode::format, {"option x"}},
        {"[data]\nfixed_token = 2\n", ErrorCode::format, {"line 2, column 1: data.fixed_token", "a table"}},
        {"[data]\nfixed_token = { id = 2 }\n", ErrorCode::format, {"data.fixed_token", "{ position = 2 }"}},
        {"[data]\nfixed_token = { position = -1 }\n", ErrorCode::format, {"from 0", "position", "-1"}},
        {"[data]\nfixed_token = { position = 2, id = \"x\" }\n", ErrorCode::format, {"from 0", "id", "\"x\""}},
        {"[data]\nfixed_token = { position = 2, it = 2 }\n", ErrorCode::format, {"nothing but position and id"}},
        {"[model]\nmixers.approximate = 3\n", ErrorCode::format, {"line 2", "model.mixers", "approximate"}},
        {"[model]\npreset = \"a\"\nfrom = \"b\"\n", ErrorCode::usage, {"either preset or from", "both"}},
        {"[model]\nlayers = [\"mlp\"]\nmixer = \"mlp\"\n", ErrorCode::usage, {"model.layers"}},
        {"[model]\nlayers = []\n", ErrorCode::format, {"at least one"}},
        {"training = 5\n", ErrorCode::format, {"the section [training]"}},
        {"name = 1979-05-27\n", ErrorCode::format, {"a date or time"}},
        {"\"training.steps\" = 5\n", ErrorCode::format, {"line 1"}},
        {"[snapshots]\nkeep = 1\n", ErrorCode::limit, {"snapshots.keep", "from 2"}},
        {"name = \"\x01\"\n", ErrorCode::format, {"line 1"}},
    };
    for (const Case& bad : cases) {
        INFO(bad.text);
        for (const std::string& part : bad.parts)
            REQUIRE_THROWS_MATCHES(read(bad.text), Error, IsError(bad.code, part));
    }
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

TEST_CASE("Text that was made to hurt is refused", "[training][job]") {
    std::string parts = "a", lists, tables;
    for (int i = 0; i < 200'000; ++i) parts += ".a";
    for (int i = 0; i < 100; ++i) {
        lists += "[";
        tables += "{ a = ";
    }
    const std::vector<std::string> nests = {
        "[model]\n" + parts + " = 1\n",
        "\n[model." + parts + "]\n",
        "[model]\nmixers = { \"b.c\".'d'. " + parts + " = 1 }\n",
        "name = \"\"\"\nx.y\"\"\"\n" + parts + " = 1\n",
        "[model]\nlayers = " + lists + std::string(100, ']') + "\n",
        "[model]\nmixers = " + tables + "1" + std::string(100, '}') + "\n",
    };
    for (const std::string& text : nests) REQUIRE_THROWS_MATCHES(read(text), Error, IsError(ErrorCode::format, "line"));
    // Points that part no key.
    const std::string points(100, '.'), name = "a" + points + ".b \" . . . . . . . . . . . . . . . . . . . .";
    CHECK(read("# " + points + " a.a.a\nname = '" + name + "' # a" + points + "\n" + kLeast).name == name);
    CHECK(read("name = \"\"\"\n" + points + "\n''\"\"\"\n" + kLeast).name == points + "\n''");
    REQUIRE_THROWS_MATCHES(read(std::string(1'000'001, '#')), Error, IsError(ErrorCode::limit, "1.00 MB"));
}

TEST_CASE("An update's tokens are a number that can be counted", "[training][job]") {
    const std::string many = "[training]\nbatch = 1048576\naccumulate = 1048576\ntokens = 5\n";
    REQUIRE_THROWS_MATCHES(read(many + "[data]\ncorpus = \"kjv\"\nsequence_length = 16777216\n"), Error,
                           IsError(ErrorCode::limit, "line 2, column 1: training.batch"));
    JobFile job = read(kLeast);
    set_key(job, "training.batch=1048576");
    check_sizes(job);
    set_key(job, "training.accumulate=1048576");
    REQUIRE_THROWS_MATCHES(check_sizes(job), Error, IsError(ErrorCode::limit, "tokens in an update"));
}

TEST_CASE("What could not be written into a job's file is refused when it is set", "[training][job]") {
    JobFile job = read(kLeast);
    REQUIRE_THROWS_MATCHES(set_key(job, "name=\xff"), Error, IsError(ErrorCode::format, "UTF-8"));
    REQUIRE_THROWS_MATCHES(set_key(job, "data.text=/tmp/\xff.txt"), Error, IsError(ErrorCode::format, "\\xFF"));
    set_key(job, "data.text=/a.txt");
    job.data.text = {"a.txt"};
    job.base = "/\xff";
    REQUIRE_THROWS_MATCHES(with_absolute_paths(job), Error, IsError(ErrorCode::usage, "data.text"));
    job.base = "/\xC3\xA4";
    CHECK(with_absolute_paths(job).data.text.front() == "/\xC3\xA4/a.txt");
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

TEST_CASE("Two letters that changed places are one slip", "[training][job]") {
    const std::vector<std::string> known = {"mlp", "standard", "kjv", "markov"};
    CHECK(nearest_word("mpl", known) == "mlp");
    CHECK(nearest_word("kvj", known) == "kjv");
    CHECK(nearest_word("satndrad", known) == "standard");
    CHECK(nearest_word("pml", known).empty());
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

TEST_CASE("Lengths in tokens, shares and epochs become updates", "[training][job][schedule]") {
    const std::string training = kLeast + "sequence_length = 32\n[training]\nbatch = 4\naccumulate = 2\n";
    const auto lengths = [&](const std::string& more, std::int64_t epoch) {
        return run_lengths(read(training + more), epoch);
    };
    CHECK(lengths("epochs = 2\n", 20).updates == 5);
    CHECK(lengths("epochs = 0.5\n", 20).updates == 2);  // 10 sequences, 8 an update
    CHECK(lengths("epochs = 0.1\n", 80).updates == 1);
    CHECK(lengths("epochs = 0.3\n", 80).updates == 3);  // rounded up, but not by the last bit of 0.3
    CHECK(lengths("epochs = 2\n", 0).updates == 0);
    const std::string tokens = "tokens = 2560\n[schedule]\n";  // 10 updates
    CHECK(lengths(tokens, 20).warmup == 100);
    CHECK(lengths(tokens + "warmup_tokens = 257\n", 20).warmup == 2);
    CHECK(lengths(tokens + "warmup_tokens = 0\n", 20).warmup == 0);
    CHECK(lengths(tokens + "warmup_share = 0.3\n", 20).warmup == 3);
    CHECK(lengths(tokens + "warmup_share = 0.01\n", 20).warmup == 1);
    CHECK(lengths(tokens + "warmup_share = 0\n", 20).warmup == 0);
    CHECK(lengths("[evaluation]\nevery_epochs = 0.4\n", 20).evaluation_every == 1);
    CHECK(lengths("[evaluation]\nevery_epochs = 1\n", 20).evaluation_every == 3);
    CHECK(lengths("epochs = 4\n[schedule]\nwarmup_share = 0.06\n[evaluation]\nevery_epochs = 0.5\n", 160).text() ==
          "80 updates, a warm-up of 5, an evaluation every 10");

    JobFile job = read(kLeast);
    set_key(job, "training.epochs=3");
    CHECK_FALSE(job.training.steps);
    set_key(job, "schedule.warmup_share=0.1");
    CHECK_FALSE(job.schedule.warmup_steps);
    set_key(job, "evaluation.every_epochs=0.2");
    CHECK_FALSE(job.evaluation.every);
    CHECK(job_differences(read(job_text(job)), job, false).empty());
    set_key(job, "evaluation.every=7");
    CHECK_FALSE(job.evaluation.every_epochs);
    const auto refused = [&](const std::string& more, const std::string& key) {
        REQUIRE_THROWS_MATCHES(read(kLeast + more), Error, IsError(ErrorCode::usage, key));
    };
    refused("[training]\nepochs = 2\nsteps = 3\n", "training.epochs");
    refused("[schedule]\nwarmup_steps = 2\nwarmup_share = 0.5\n", "schedule.warmup_share");
    refused("[training]\nminutes = 2\n[schedule]\nwarmup_share = 0.5\n", "schedule.warmup_share");
    refused("[evaluation]\nevery = 2\nevery_epochs = 0.5\n", "evaluation.every_epochs");
    REQUIRE_THROWS_MATCHES(check_epochs(read(kLeast + "[training]\nepochs = 2\n"), 0), Error,
                           IsError(ErrorCode::usage, "training.epochs"));
}

TEST_CASE("evaluation.metric is one of the objective's", "[training][job]") {
    const auto metric = [&](const std::string& objective, const std::string& name) {
        return read(kLeast + "[evaluation]\nmetric = \"" + name + "\"\n[objective]\n" + objective).evaluation.metric;
    };
    CHECK(read(kLeast).evaluation.metric == "loss");
    CHECK(metric("kind = \"masked\"\n", "accuracy") == "accuracy");
    CHECK(metric("kind = \"classify\"\n", "matthews") == "matthews");
    CHECK(metric("kind = \"classify\"\nclasses = 1\n", "spearman") == "spearman");
    CHECK(metric("kind = \"spans\"\n", "exact_match") == "exact_match");
    CHECK(metric("kind = \"spans\"\n", "f1") == "f1");
    CHECK(metric("kind = \"translation\"\n", "bleu") == "bleu");
    for (const auto& [objective, name] :
         {std::pair{"kind = \"next_token\"\n", "accuracy"}, std::pair{"kind = \"masked\"\n", "f1"},
          std::pair{"kind = \"spans\"\n", "bleu"}, std::pair{"kind = \"translation\"\n", "exact_match"},
          std::pair{"kind = \"classify\"\n", "spearman"}, std::pair{"kind = \"classify\"\nclasses = 1\n", "f1"}})
        REQUIRE_THROWS_MATCHES(metric(objective, name), Error, IsError(ErrorCode::usage, "evaluation.metric"));
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

TEST_CASE("A default minimum follows the learning rate", "[training][job]") {
    JobFile job = read(kLeast);
    CHECK(job.schedule.minimum_rate == 4e-5);
    set_key(job, "optimizer.learning_rate=1e-5");
    CHECK(job.schedule.minimum_rate == Approx(1e-6));
    CHECK(read(job_text(job)).optimizer.learning_rate == 1e-5);  // a run's job must be one that can be read
    set_key(job, "optimizer.learning_rate=1e-2");
    CHECK(job.schedule.minimum_rate == 4e-5);
    set_key(job, "schedule.minimum_rate=1e-3");
    set_key(job, "optimizer.learning_rate=5e-4");
    CHECK(job.schedule.minimum_rate == 1e-3);
    REQUIRE_THROWS_MATCHES(check_together(job), Error, IsError(ErrorCode::usage, "schedule.minimum_rate"));
}

TEST_CASE("A list of layers may be called a custom layout", "[training][job]") {
    const JobFile job =
        read("[data]\ncorpus = \"kjv\"\n[model]\nlayout = \"custom\"\nlayers = [\"mlp\", \"standard\"]\n");
    CHECK(job.model.layers == std::vector<std::string>{"mlp", "standard"});
    CHECK(read(job_text(job)).model.layers == job.model.layers);
}

TEST_CASE("Bad data is reported at its key", "[training][job]") {
    const JobFile job = read("[data]\n\ntext = \"a.txt\"\nvalidation = [\"b.txt\"]\ntokenizer = \"t.json\"\n");
    const auto place = [&](const std::string& where) {
        return error_in_data(job, Error(ErrorCode::usage, where, "expected", "found")).where();
    };
    CHECK(place("data") == "job.toml: line 3, column 1: data.text");
    CHECK(place("data.validation") == "job.toml: line 4, column 1: data.validation");
    CHECK(place("b.txt, line 2") == "job.toml: line 4, column 1: data.validation: b.txt, line 2");
    CHECK(place("t.json") == "job.toml: line 5, column 1: data.tokenizer: t.json");
    CHECK(place("a.txt") == "job.toml: line 3, column 1: data.text: a.txt");
    const JobFile fixed = read("[data]\ncorpus = \"kjv\"\nfixed_token = { position = 512 }\n");
    CHECK(error_in_data(fixed, Error(ErrorCode::usage, "data.fixed_token, position", "", "")).where() ==
          "job.toml: line 3, column 17: data.fixed_token.position");
    CHECK(error_in_data(fixed, Error(ErrorCode::usage, "data.fixed_token", "", "")).where() ==
          "job.toml: line 3, column 1: data.fixed_token");
    const JobFile generated = read("[data]\ngenerator = { name = \"markov\", oder = 2 }\n");
    CHECK(error_in_data(generated, Error(ErrorCode::usage, "data.generator markov", "", "")).where() ==
          "job.toml: line 2, column 1: data.generator markov");
    CHECK(error_in_data(generated, Error(ErrorCode::usage, "data.generator markov, oder", "", "")).where() ==
          "job.toml: line 2, column 32: data.generator.oder");
    CHECK(error_in_data(generated, Error(ErrorCode::usage, "data.generator markov, order", "", "")).where() ==
          "job.toml: line 2, column 1: data.generator markov, order");
    CHECK(error_in_data(generated, Error(ErrorCode::usage, "data", "", "")).where() ==
          "job.toml: line 2, column 15: data.generator.name");
}

TEST_CASE("The rate rises in a line, falls as its kind says, and ends at the minimum", "[training][schedule]") {
    ScheduleSettings schedule;
    schedule.warmup_steps = 10;
    schedule.minimum_rate = 0.1;
    const auto rate = [&](std::int64_t update) { return learning_rate(schedule, 1.0, update, 110); };
    CHECK(rate(1) == Approx(0.1));
    CHECK(rate(10) == Approx(1.0));
    CHECK(rate(60) == Approx(0.1 + 0.9 * 0.5));
    CHECK(rate(110) == Approx(0.1));
    schedule.kind = "linear";
    CHECK(rate(35) == Approx(1.0 - 0.9 * 0.25));
    CHECK(rate(110) == Approx(0.1));
    schedule.kind = "constant";
    CHECK(rate(110) == Approx(1.0));
    schedule.kind = "wsd";
    schedule.decay_share = 0.5;
    CHECK(rate(55) == Approx(1.0));
    CHECK(rate(110) == Approx(0.1));
    CHECK(rate(82) == Approx(1.0 - 0.9 * (82.0 / 110 - 0.5) / 0.5));
    schedule.warmup_start = 0.5;
    CHECK(rate(5) == Approx(0.75));
    CHECK_FALSE(depends_on_end(schedule, 55, 110));
    CHECK(depends_on_end(schedule, 56, 110));
    schedule.kind = "constant";
    CHECK_FALSE(depends_on_end(schedule, 110, 110));
    for (const char* kind : {"cosine", "linear", "cosine_restarts"}) {
        schedule.kind = kind;
        CHECK_FALSE(depends_on_end(schedule, 10, 110));
        CHECK(depends_on_end(schedule, 11, 110));
    }
    schedule.kind = "wsd";
    // A peak that was set below the minimum is the minimum.
    CHECK(learning_rate(schedule, 0.05, 100, 110) == Approx(0.05));
}

TEST_CASE("Rates are those of transformers' schedules", "[training][schedule]") {
    std::ifstream file(test::golden_file("schedules.json"));
    REQUIRE(file.good());
    for (const auto& one : nlohmann::json::parse(file)) {
        ScheduleSettings schedule;
        schedule.kind = one.at("kind").get<std::string>();
        schedule.warmup_steps = one.at("warmup").get<std::int64_t>();
        schedule.minimum_rate = 0;
        INFO(schedule.kind << ", warm-up " << schedule.warmup_steps.value_or(0));
        const auto rates = one.at("rates").get<std::vector<double>>();
        const auto updates = static_cast<std::int64_t>(rates.size());
        for (std::int64_t update = 1; update <= updates; ++update) {
            INFO("update " << update);
            // Twelve digits; where a fall ends and the next begins, the last ones decide which it is.
            CHECK(learning_rate(schedule, 3e-5, update, updates) ==
                  Approx(3e-5 * rates[static_cast<std::size_t>(update - 1)]).epsilon(1e-10).margin(1e-15));
        }
    }
}

TEST_CASE("A schedule that ends at 0 does so unless another end is given", "[training][schedule][job]") {
    for (const char* kind : {"linear", "cosine_restarts"}) {
        const std::string text = kLeast + "[schedule]\nkind = \"" + kind + "\"\n";
        CHECK(read(text).schedule.minimum_rate == 0);
        CHECK(read(text + "minimum_rate = 1e-5\n").schedule.minimum_rate == 1e-5);
        JobFile job = read(kLeast);
        set_key(job, std::string("schedule.kind=") + kind);
        CHECK(job.schedule.minimum_rate == 0);
        set_key(job, "schedule.kind=wsd");
        CHECK(job.schedule.minimum_rate == 4e-5);
        set_key(job, "schedule.minimum_rate=1e-5");
        set_key(job, std::string("schedule.kind=") + kind);
        CHECK(job.schedule.minimum_rate == 1e-5);
    }
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

TEST_CASE("A job of minutes plans its updates from its pace", "[training][schedule]") {
    TimePlan plan(100);
    CHECK(plan.plan(0, 0.0, 0) == 0);
    CHECK(plan.plan(10, 0.5, 0) == 0);
    CHECK(plan.plan(20, 1.0, 0) == 2000);
    CHECK(plan.plan(21, 1.1, 2000) == 0);
    CHECK(plan.plan(200, 20.0, 2000) == 1000);
    CHECK(plan.plan(201, 21.0, 1000) == 0);
    // The machine was busy: what is planned would be done long before the time is over.
    CHECK(plan.plan(230, 21.2, 1000) == 0);
    CHECK(plan.plan(300, 24.0, 1000) == 1250);
    CHECK(plan.plan(320, 24.9, 1250) == 0);
    TimePlan resumed(100);
    resumed.resume(21.0);
    CHECK(resumed.plan(201, 21.0, 1000) == 0);
    CHECK(resumed.plan(260, 26.0, 1000) == 1000);
    CHECK_FALSE(plan.over(99.9));
    CHECK(plan.over(100.0));
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
