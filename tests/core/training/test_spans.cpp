// SPDX-License-Identifier: GPL-3.0-or-later
// An encoder learns to answer questions from their contexts.
#include "tests/catch_with_torch.h"

#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/checkpoint/checkpoint.h"
#include "core/data/tokenizer_choice.h"
#include "core/evaluation/questions.h"
#include "core/model/model.h"
#include "core/run/run_folder.h"
#include "core/training/trainer/trainer.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using namespace headscope::training;
using namespace headscope::test;
using nlohmann::json;

namespace {

using Words = std::vector<std::string>;

/// 200 questions: of which kind a word of the context is meant.
std::string made_questions() {
    const std::vector<std::pair<std::string, Words>> kinds{{"animal", {"cat", "dog", "horse", "bird"}},
                                                           {"color", {"red", "blue", "green", "white"}},
                                                           {"number", {"two", "five", "seven", "nine"}}};
    const Words fillers{"was", "there", "near", "then"};
    std::string lines;
    for (std::size_t n = 0; n < 200; ++n) {
        std::string context;
        std::vector<std::pair<std::string, std::size_t>> placed;  // a word of each kind, and its byte
        for (std::size_t i = 0; i < 3; ++i) {
            const std::size_t kind = (i + n / 3) % 3;
            context += (context.empty() ? "" : " ") + fillers[(n * 7 + i * 5 + n / 4) % 4] + " ";
            placed.emplace_back(kinds[kind].second[(n / 2 + i * 3 + n / 16) % 4], context.size());
            context += placed.back().first;
        }
        const std::size_t asked = n % 3;
        json one{{"id", std::to_string(n)}, {"context", context}};
        one["question"] = "which " + kinds[(asked + n / 3) % 3].first;
        one["answers"]["text"] = json::array({placed[asked].first});
        one["answers"]["answer_start"] = json::array({placed[asked].second});
        lines += one.dump() + "\n";
    }
    return lines;
}

}  // namespace

TEST_CASE("An encoder fits made-up questions", "[training][objective][squad]") {
    const TemporaryFolder folder;
    for (const char* name : {"questions.jsonl", "held-out.jsonl"}) write_file(folder / name, made_questions());
    const std::string file = (folder / "questions.jsonl").string();
    const JobFile job = small_job(
        folder, {"objective.kind=spans", "objective.stride=8", "model.preset=nano-mhe-encoder", "model.mixer=standard",
                 "data.text=" + file, "data.validation=[\"" + (folder / "held-out.jsonl").string() + "\"]",
                 "data.tokenizer=train:320", "data.sequence_length=32", "training.steps=1000", "training.batch=16",
                 "schedule.warmup_steps=40", "optimizer.learning_rate=3e-3", "evaluation.every=250",
                 "snapshots.every=0", "probe.every=0", "sample.every=0", "evaluation.metric=f1"});
    const Told told = run(fresh(job, folder / "run"));
    CHECK(told.all<Validation>().back().accuracy > 0.9);
    double f1 = -1;  // the last one that the log has
    for (const Log& line : told.all<Log>())
        if (line.text.starts_with("f1 ")) f1 = std::stod(line.text.substr(3));
    CHECK(f1 > 0.9);
    CHECK(f1 <= 1);
    const auto snapshot = RunFolder{folder / "run"}.snapshots() / "last";
    const auto checkpoint = checkpoint::Checkpoint::open(snapshot);
    CHECK(checkpoint->tensors().at("qa_outputs.weight").shape.front() == 2);
    const auto model = model::Model::build(*checkpoint, checkpoint::LoadAs::float32);
    CHECK(model->config().head == model::HeadKind::spans);
    const Cancellation never;
    for (const char* task : {evaluation::kSquad, evaluation::kSquad2}) {
        const auto items = evaluation::read_question_items(file, task, never);
        CHECK(items.questions.size() == 200);
        evaluation::QuestionOptions options;
        options.stride = 8;
        const auto said =
            evaluation::answer_questions(*model, data::tokenizer_at(snapshot), items, 32, options, {}, {});
        std::map<std::string, double> values;
        for (const auto& one : evaluation::score_questions(items, said, 32, {})) values[one.metric] = one.value;
        CHECK(values.at("f1") > 0.9);
    }
}

TEST_CASE("Windows of questions are as long as the job says, by default 384", "[training][objective][squad]") {
    const auto length = [](const std::string& text) { return read_job(text, "job").data.sequence_length; };
    const std::string spans = "[data]\ntext = \"a.jsonl\"\n[objective]\nkind = \"spans\"\n[training]\nsteps = 1\n";
    CHECK(length(spans) == 384);
    CHECK(length("[model]\nmax_position_embeddings = 100\n" + spans) == 100);
    CHECK(length("[data]\nsequence_length = 64\ntext = \"a.jsonl\"\n[objective]\nkind = \"spans\"\n") == 64);
    JobFile job = read_job("[data]\ntext = \"a.jsonl\"\n", "job");
    CHECK(job.data.sequence_length == 256);
    set_key(job, "objective.kind=spans");
    CHECK(job.data.sequence_length == 384);
    CHECK(read_job(job_text(job, false), "job").data.sequence_length == 384);
    set_key(job, "data.sequence_length=256");
    CHECK(read_job(job_text(job, false), "job").data.sequence_length == 256);
    CHECK_THROWS_MATCHES(read_job("[data]\ntext = \"a.txt\"\n[objective]\nstride = 4\n", "job"), Error,
                         IsError(ErrorCode::usage, "objective.stride"));
}
