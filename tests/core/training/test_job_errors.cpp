// SPDX-License-Identifier: GPL-3.0-or-later
// Job files that are refused: what is wrong with a line and where.
#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

#include "core/base/text/nearest_word.h"
#include "core/training/job/job.h"
#include "core/training/job/job_keys.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/training/job_sample.h"

using namespace headscope;
using namespace headscope::test::jobs;
using namespace headscope::training;
using headscope::test::IsError;

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

TEST_CASE("Two letters that changed places are one slip", "[training][job]") {
    const std::vector<std::string> known = {"mlp", "standard", "kjv", "markov"};
    CHECK(nearest_word("mpl", known) == "mlp");
    CHECK(nearest_word("kvj", known) == "kjv");
    CHECK(nearest_word("satndrad", known) == "standard");
    CHECK(nearest_word("pml", known).empty());
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
