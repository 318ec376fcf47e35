// SPDX-License-Identifier: GPL-3.0-or-later
// A form's change of one key as a change of the job's text.
#include <catch2/catch.hpp>

#include "core/base/error.h"
#include "core/training/job/job_keys.h"
#include "core/workspace/job_edit.h"

using namespace headscope;
using workspace::edited_job;

namespace {

const std::string kText = R"(# my job
name = "first"   # of many

[model]
preset = "tiny-1m"
mixer = "mlp" # what mixes

[data]
text = [
    "a.txt",  # one
    "b # no comment.txt",
]

[training]
steps = 1_000
batch = 8
)";

}  // namespace

TEST_CASE("A changed value leaves every other byte as it was", "[workspace][job]") {
    std::string expected = kText;
    expected.replace(expected.find("1_000"), 5, "250");
    CHECK(edited_job(kText, "training.steps=250") == expected);
    expected = kText;
    expected.replace(expected.find("\"mlp\""), 5, "\"approximate\"");
    CHECK(edited_job(kText, "model.mixer=\"approximate\"") == expected);
    CHECK(edited_job(kText, "training.steps=1000") == kText);
}

TEST_CASE("A key that the text lacks comes to its section's end", "[workspace][job]") {
    const std::string text = edited_job(kText, "training.clip=0.5");
    CHECK(text == kText + "clip = 0.5\n");
    const std::string made = edited_job(kText, "optimizer.learning_rate=1e-3");
    CHECK(made == kText + "\n[optimizer]\nlearning_rate = 0.001\n");
    const std::string top = edited_job(kText, "seed=7");
    CHECK(top.find("name = \"first\"   # of many\nseed = 7\n\n[model]") != std::string::npos);
}

TEST_CASE("A list over several lines is replaced as a whole", "[workspace][job]") {
    const std::string text = edited_job(kText, "data.text=[\"/c.txt\"]");
    CHECK(text.find("text = [\"/c.txt\"]\n\n[training]") != std::string::npos);
    CHECK(text.find("a.txt") == std::string::npos);
}

TEST_CASE("What a key stands instead of goes", "[workspace][job]") {
    const std::string text = edited_job(kText, "training.minutes=5");
    CHECK(text.find("steps") == std::string::npos);
    const auto job = training::read_job(text, "job");
    CHECK(job.training.minutes == 5.0);
    CHECK_FALSE(job.training.steps);
    const auto other = training::read_job(edited_job(kText, "data.corpus=\"kjv\""), "job");
    CHECK(other.data.corpus == "kjv");
    CHECK(other.data.text.empty());
}

TEST_CASE("What is refused changes nothing and names its key", "[workspace][job]") {
    CHECK_THROWS_WITH(edited_job(kText, "training.steps=-3"), Catch::Contains("training.steps"));
    CHECK_THROWS_AS(edited_job(kText, "training.stepz=3"), Error);
    CHECK_THROWS_AS(edited_job("[training\n", "training.steps=3"), Error);
}

TEST_CASE("A job that says nothing to train on is mended by the key that does", "[workspace][job]") {
    const std::string nothing = "[training]\nsteps = 10\n";
    REQUIRE_THROWS_AS(training::read_job(nothing, "job"), Error);
    CHECK_THROWS_AS(edited_job(nothing, "training.steps=20"), Error);
    const std::string mended = edited_job(nothing, "data.corpus=\"kjv\"");
    CHECK(training::read_job(mended, "job").data.corpus == "kjv");
    CHECK(mended.starts_with(nothing));
}

TEST_CASE("A text that cannot be edited by lines is rewritten", "[workspace][job]") {
    const std::string inlined = "data = { corpus = \"kjv\" }\ntraining = { steps = 10 }\n";
    const auto job = training::read_job(edited_job(inlined, "training.batch=3"), "job");
    CHECK(job.training.batch == 3);
    CHECK(job.training.steps == 10);
    CHECK(job.data.corpus == "kjv");
}

TEST_CASE("Every key's default can be written over and over", "[workspace][job]") {
    for (const auto& key : training::job_keys()) {
        const auto value = key.get(training::read_job(kText, "job"));
        // Relative paths become absolute ones.
        if (value.is_null() || key.kind == OptionKind::table || key.kind == OptionKind::paths) continue;
        INFO(key.full_name());
        const std::string text = edited_job(kText, key.full_name() + "=" + training::toml_value(value));
        CHECK(key.get(training::read_job(text, "job")) == value);
    }
}

TEST_CASE("A tokenizer that follows from the checkpoint is not written", "[workspace][job]") {
    const std::string text = edited_job(kText, "model.from=\"/model\"");
    CHECK(text.find("tokenizer") == std::string::npos);
    CHECK(training::read_job(text, "job").data.tokenizer == "/model");
    const std::string said = edited_job(text, "data.tokenizer=\"bytes\"");
    CHECK(training::read_job(said, "job").data.tokenizer == "bytes");
    training::JobFile wanted = training::read_job(said, "job");
    wanted.tokenizer_given = false;
    wanted.data.tokenizer = training::standard_tokenizer(wanted);
    CHECK(edited_job(said, wanted) == text);
}
