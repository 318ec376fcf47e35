// SPDX-License-Identifier: GPL-3.0-or-later
// Evaluations as the window starts them: which runs share one, the words of the command, the output of its process,
// the models on offer.
#include <QSignalSpy>
#include <QTest>
#include <filesystem>

#include "app/window/launch.h"
#include "app/window/training/evaluate_offer.h"
#include "core/run/run_folder.h"
#include "tests/catch_with_torch.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/training/sample_run.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::app;
using test::TemporaryFolder;
using test::write_file;
namespace fs = std::filesystem;

namespace {

constexpr int kPatience = 30'000;  // ms
constexpr std::int64_t kStep = 10;

EvaluatedRun run_of(const char* name, const std::string& job, bool snapshot = true) {
    auto record = std::make_shared<workspace::LiveRun>();
    training::Started started = test::sample_start();
    started.job = job;
    record->add({0, started});
    if (snapshot) {
        training::Snapshot best;
        best.step = kStep;
        best.name = training::snapshot_name(kStep);
        record->add({0, best});
    }
    return {QStringLiteral("/runs/") + QLatin1String(name), QLatin1String(name), record};
}

/// A stand-in for our program: says what it is given as progress, waits for FILE.go, writes its last argument or,
/// where FILE.fail is there, says an error.
struct Service {
    Service() {
        program = write_file(folder / "program", R"(#!/bin/sh
for last; do :; done
echo 'headscope: reading' >&2
echo 'headscope:  40 %  copa' >&2
while [ ! -e "$0.go" ]; do [ -e "$0" ] || exit 1; sleep 0.02; done
if [ -e "$0.fail" ]; then echo 'headscope: [--data] expected a folder; found none' >&2; exit 1; fi
echo "$@" > "$0.words"
echo done > "$last"
)");
        fs::permissions(program, fs::perms::owner_all);
        service = std::make_unique<EvaluationService>(&desk, program.string());
        service->set_folder(folder.path());
    }
    bool application = (widgets::ensure_application(), true);
    TemporaryFolder folder;
    fs::path program;
    widgets::Desk desk;
    std::unique_ptr<EvaluationService> service;
};

}  // namespace

TEST_CASE("Runs are asked together that can be asked the same", "[app][evaluations]") {
    const std::string text = "name = \"a\"\n[data]\ncorpus = \"kjv\"\nsequence_length = 64\n";
    const std::string longer = "name = \"b\"\n[data]\ncorpus = \"kjv\"\nsequence_length = 256\n";
    const std::string recall = "name = \"c\"\n[data]\ngenerator = { name = \"mqar\" }\n";
    const auto plans =
        evaluation_plans({run_of("a", text), run_of("c", recall), run_of("b", longer), run_of("early", text, false)});
    REQUIRE(plans.size() == 2);
    CHECK(plans[0].words() == QStringList{"evaluate", "/runs/a", "/runs/b", "--task", "perplexity,next_token_accuracy",
                                          "--length", "4,8,16,32,64"});
    CHECK(plans[1].words() == QStringList{"evaluate", "/runs/c", "--task", "mqar"});
    CHECK(evaluation_plans({}).empty());
    // An encoder has no next token, and items of files are not held out.
    const auto kinds =
        evaluation_plans({run_of("a", text), run_of("m", text + "[objective]\nkind = \"masked\"\n"),
                          run_of("f", "[data]\ntext = [\"a.jsonl\"]\n[objective]\nkind = \"classify\"\n")});
    REQUIRE(kinds.size() == 2);
    CHECK(kinds[0].names == QStringList{"a"});
    CHECK(kinds[1].words() == QStringList{"evaluate", "/runs/m", "--task", "masked"});
}

TEST_CASE("A process's progress is the last line of it", "[app][evaluations]") {
    CHECK(told_progress("").isEmpty());
    CHECK(told_progress("headscope: [x] expected; found\n").isEmpty());
    CHECK(told_progress("headscope:   5 %  a\nheadscope:  40 %  copa, 3 items/s\nheadscope: reading\n") ==
          QStringLiteral("40 % copa, 3 items/s"));
    CHECK(told_progress("headscope: 100 %  done\nheadscope: [a] no 3 %") == QStringLiteral("100 % done"));
}

TEST_CASE("An evaluation reports its progress, then its file", "[app][evaluations]") {
    Service at;
    QSignalSpy written(at.service.get(), &EvaluationService::written);
    QSignalSpy failed(at.service.get(), &EvaluationService::failed);
    const widgets::EvaluationShelf& shelf = at.desk.evaluations();
    at.service->evaluate({"evaluate", "/models/small", "--task", "copa"}, {"small"});
    CHECK_FALSE(shelf.evaluating().isEmpty());
    REQUIRE(QTest::qWaitFor([&] { return shelf.progress() == QStringLiteral("40 % copa"); }, kPatience));
    CHECK(shelf.evaluating().contains(QStringLiteral("small")));
    write_file(at.folder / "program.go", "");
    REQUIRE(QTest::qWaitFor([&] { return shelf.evaluating().isEmpty(); }, kPatience));
    CHECK(failed.count() == 0);
    REQUIRE(written.count() == 1);
    const QString path = written.front().front().toString();
    CHECK(path.startsWith(QString::fromStdString((at.folder / "evaluations/small-").string())));
    CHECK(path.endsWith(QStringLiteral(".evaluation.h5")));
    CHECK(test::read_file(at.folder / "program.words") ==
          "evaluate /models/small --task copa -o " + path.toStdString() + "\n");
    CHECK(shelf.progress().isEmpty());
}

TEST_CASE("A process's error is reported as its own line", "[app][evaluations]") {
    Service at;
    write_file(at.folder / "program.fail", "");
    write_file(at.folder / "program.go", "");
    QSignalSpy written(at.service.get(), &EvaluationService::written);
    QSignalSpy failed(at.service.get(), &EvaluationService::failed);
    at.service->evaluate({"evaluate", "/models/small", "--task", "copa"}, {"small"});
    REQUIRE(QTest::qWaitFor([&] { return failed.count() == 1; }, kPatience));
    CHECK(failed.front().front().toString() == QStringLiteral("[--data] expected a folder; found none"));
    CHECK(written.count() == 0);
    CHECK(at.desk.evaluations().evaluating().isEmpty());
}

TEST_CASE("A stopped evaluation reports nothing more", "[app][evaluations]") {
    Service at;
    QSignalSpy written(at.service.get(), &EvaluationService::written);
    QSignalSpy failed(at.service.get(), &EvaluationService::failed);
    at.service->evaluate({"evaluate", "/models/small", "--task", "copa"}, {"small"});
    REQUIRE(QTest::qWaitFor([&] { return !at.desk.evaluations().progress().isEmpty(); }, kPatience));
    Q_EMIT at.desk.evaluations().evaluate_unwanted();
    REQUIRE(QTest::qWaitFor([&] { return at.desk.evaluations().evaluating().isEmpty(); }, kPatience));
    CHECK(written.count() + failed.count() == 0);
}

TEST_CASE("Models that cannot be evaluated are offered with the reason", "[app][evaluations]") {
    widgets::ModelCard card;
    card.path = card.name = QStringLiteral("/models/one");
    card.tokenizer = card.head = true;
    CHECK(offered_model(card).refusal.isEmpty());
    CHECK(offered_model(card).place == QStringLiteral("/models/one"));
    card.tokenizer = false;
    CHECK(offered_model(card).refusal.contains(QStringLiteral("tokenizer")));
    card.tokenizer = true;
    card.causal = false;
    CHECK(offered_model(card).refusal.contains(QStringLiteral("both directions")));
    card.encoder_decoder = true;
    CHECK(offered_model(card).refusal.isEmpty());
    card.head = false;
    CHECK(offered_model(card).refusal.contains(QStringLiteral("head")));
    card.tensors_only = true;
    CHECK(offered_model(card).refusal.contains(QStringLiteral("cannot be run")));

    const std::string text = "name = \"a\"\n[data]\ncorpus = \"kjv\"\n";
    CHECK(offered_run(run_of("early", text, false)).refusal.contains(QStringLiteral("no snapshot")));
    CHECK(offered_run(run_of("gone", text)).refusal.contains(QStringLiteral("/runs/gone")));
    // A run whose best snapshot is there.
    const TemporaryFolder folder;
    fs::create_directories(folder / "snapshots");
    fs::copy(fs::path(HEADSCOPE_SOURCE_DIR) / "resources/samples/llama-kjv-shakespeare",
             folder / "snapshots" / training::snapshot_name(kStep));
    EvaluatedRun run = run_of("there", text);
    run.folder = QString::fromStdString(folder.path().string());
    CHECK(offered_run(run).refusal.isEmpty());
    CHECK(offered_run(run).held_out);
    CHECK(offered_run(run).place == run.folder);
}

TEST_CASE("Every task that reads text is offered, and sets of them", "[app][evaluations]") {
    const widgets::EvaluateOffer offer = offered_tasks();
    const auto data_of = [&](const char* name) {
        for (const auto& task : offer.tasks)
            if (task.name == QLatin1String(name)) return static_cast<int>(task.data);
        return -1;
    };
    using Data = widgets::EvaluateOffer::Data;
    CHECK(data_of("copa") == static_cast<int>(Data::items));
    CHECK(data_of("perplexity") == static_cast<int>(Data::text));
    CHECK(data_of("niah_single_1") == static_cast<int>(Data::made));
    CHECK(data_of("mqar") == -1);  // its ids are no text
    REQUIRE_FALSE(offer.sets.empty());
    for (const auto& set : offer.sets) {
        CHECK_FALSE(set.tasks.isEmpty());
        for (const QString& name : set.tasks) {
            INFO(set.title.toStdString() << ": " << name.toStdString());
            CHECK(data_of(qPrintable(name)) >= 0);
        }
    }
    for (const auto& task : offer.tasks)
        CHECK(task.examples == (task.data == Data::items && !task.name.startsWith(QStringLiteral("lambada")) &&
                                task.name != QStringLiteral("wikitext")));
}

TEST_CASE("Texts of the panel, bundled ones and corpora are offered to tasks on text", "[app][evaluations]") {
    using Kind = widgets::TextSource::Kind;
    const auto texts = offered_texts("/resources", {{QStringLiteral("prose"), QStringLiteral("Once.")}},
                                     {{Kind::text, QStringLiteral("In the  beginning")},
                                      {Kind::text, QStringLiteral("  ")},
                                      {Kind::file, QStringLiteral("/a/b.txt")},
                                      {Kind::example, QStringLiteral("prose")}});
    REQUIRE(texts.size() >= 4);
    CHECK(texts[0].title == QStringLiteral("Text “In the beginning”"));
    CHECK(texts[0].content == "In the  beginning");
    CHECK(texts[1].title == "File b.txt");
    CHECK(texts[1].value == "/a/b.txt");
    CHECK(texts[2].title == "Bundled text prose");
    CHECK(texts[2].value == "/resources/texts/prose.txt");
    const auto kjv = std::find_if(texts.begin(), texts.end(), [](const auto& text) { return text.value == "kjv"; });
    REQUIRE(kjv != texts.end());
    CHECK(kjv->title == "Corpus The King James Bible");
    CHECK(kjv->refusal.isEmpty() == fs::exists("/usr/lib/bible.data"));
}

TEST_CASE("A typed text is written once, by its content", "[app][evaluations]") {
    const TemporaryFolder folder;
    const QString path = write_text(folder / "texts", QStringLiteral("Größe\n"));
    CHECK(test::read_file(path.toStdString()) == "Größe\n");
    CHECK(write_text(folder / "texts", QStringLiteral("Größe\n")) == path);
    CHECK(write_text(folder / "texts", QStringLiteral("other")) != path);
}

TEST_CASE("Sets of tasks have titles", "[app][evaluations]") {
    const auto sets = offered_tasks().sets;
    REQUIRE(sets.size() == 5);
    CHECK(sets[0].title == "Deconstructing Attention");
    CHECK(sets[1].title == "NAtS-L");
    CHECK(sets[2].title == "Lazy Attention");
    CHECK(sets[3].title == "All zero-shot tasks");
    CHECK(sets[4].title == "LongBench");
    CHECK(sets[1].tasks.size() == 14);
}
