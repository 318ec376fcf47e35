// SPDX-License-Identifier: GPL-3.0-or-later
// The dialog of ask: problems in words, the words of the command, the controls.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "core/ask/options/tool_options.h"
#include "tests/widgets/child.h"
#include "widgets/panels/ask/ask_dialog.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope::widgets;

namespace {

using headscope::tests::child;

const std::vector<AskSource> kSources{{"/models/small", "small", ""}, {"/models/bert", "bert", "bert is no decoder"}};

AskChoice asked(const QString& tool) {
    AskChoice choice;
    choice.tool = tool;
    choice.model = QStringLiteral("/models/small");
    choice.texts.sources = {{TextSource::Kind::text, QStringLiteral("The king")}};
    choice.output = QStringLiteral("/out/a.ask.h5");
    return choice;
}

bool refused(const AskChoice& choice, const char* words) {
    const QString problem = problem_of(choice, kSources);
    INFO(problem.toStdString());
    CHECK(problem.contains(QLatin1String(words)));
    return !problem.isEmpty();
}

QString command(const AskChoice& choice) {
    CHECK(problem_of(choice, kSources) == "");
    return ask_words(choice, {{"lantern", "A lantern"}}).join(QLatin1Char('|'));
}

}  // namespace

TEST_CASE("What cannot be asked is refused in words", "[ask_dialog]") {
    AskChoice choice = asked("lens");
    choice.model.clear();
    CHECK(refused(choice, "Open a checkpoint"));
    choice.model = "/models/bert";
    CHECK(refused(choice, "no decoder"));
    choice = asked("lens");
    choice.texts.sources.front().used = false;
    CHECK(refused(choice, "text panel"));
    choice.texts.sources = {{TextSource::Kind::text, QString(200'000, 'a')}};
    CHECK(refused(choice, "100,000 bytes"));
    choice = asked("lens");
    choice.output.clear();
    CHECK(refused(choice, "a file for the result"));
    CHECK(refused(asked("attribution"), "the answer"));
    choice = asked("ablate");
    choice.metric = "probability";
    CHECK(refused(choice, "Probability needs an answer"));
    choice.metric = "logit_difference";
    choice.answer = "5";
    CHECK(refused(choice, "compared with"));
    choice.against = "Paris";
    CHECK(refused(choice, "in quotes"));
    choice.against = "\" Paris\",7";
    choice.position = "last";
    CHECK(refused(choice, "position"));
    choice.position = "all";
    CHECK(problem_of(choice, kSources) == "");
    choice = asked("attribution");
    choice.answer = "5";
    choice.position = "all";
    CHECK(refused(choice, "is a number"));
    choice = asked("ablate");
    choice.options["--how"] = "resample";
    CHECK(refused(choice, "reference tokens"));
    choice = asked("patch");
    choice.answer = "5";
    choice.against = "6";
    CHECK(refused(choice, "clean text"));
    choice.clean = choice.corrupted = "The king";
    CHECK(refused(choice, "the same"));
    choice.corrupted = "The queen";
    CHECK(refused(choice, "points to patch"));
    choice.options["--sites"] = "hidden";
    CHECK(problem_of(choice, kSources) == "");
    choice.options["--approximation"] = "integrated";
    CHECK(refused(choice, "need their points"));
    choice = asked("corpus");
    CHECK(refused(choice, "either a folder"));
    choice.options["--folder"] = "/texts";
    CHECK(problem_of(choice, kSources) == "");
    choice.options["--json-lines"] = "/texts.jsonl";
    CHECK(refused(choice, "either a folder"));
    CHECK(problem_of(asked("sinks"), kSources) == "");
    choice = asked("cache");
    CHECK(refused(choice, "the context"));
    choice.options["--context"] = "64";
    CHECK(problem_of(choice, kSources) == "");
    CHECK(refused(asked("knockout"), "8-11 and 2-4"));
    CHECK(refused(asked("steer"), "points to"));
    choice = asked("kinds");
    choice.texts.sources.clear();
    CHECK(problem_of(choice, kSources) == "");
    choice.options["--needle"] = "2-3";
    CHECK(refused(choice, "Retrieval needs both"));
    choice.options["--generate"] = "4";
    CHECK(refused(choice, "A needle lies in a text"));
    choice = asked("circuits");
    choice.texts.sources.clear();
    CHECK(problem_of(choice, kSources) == "");
    CHECK(problem_of(asked("generate"), kSources) == "");
    choice = asked("series");
    CHECK(refused(choice, "folders of checkpoints"));
    choice.models = QStringList{"/run/snapshots"};
    choice.model.clear();  // none is open
    CHECK(problem_of(choice, kSources) == "");
    choice.texts.sources.clear();
    CHECK(refused(choice, "text panel"));
    CHECK(refused(asked("tree"), "Choose a tool"));
}

TEST_CASE("A choice is the command line's words", "[ask_dialog]") {
    CHECK(command(asked("lens")) == "ask|lens|/models/small|-o|/out/a.ask.h5|--text|The king");
    AskChoice choice = asked("lens");
    choice.texts.sources = {{TextSource::Kind::example, "lantern"},
                            {TextSource::Kind::file, "/a.txt"},
                            {TextSource::Kind::text, "left out", false},
                            {TextSource::Kind::text, "-1 degrees"}};
    choice.texts.length = 12;
    choice.texts.first = TextChoice::First::no;
    choice.options = {{"--target", "next"}, {"--top", "3"}, {"--how", "mean"}};
    choice.answer = "5";  // of another tool
    choice.interventions = "/plan.toml";
    choice.resume = true;
    CHECK(command(choice) ==
          "ask|lens|/models/small|-o|/out/a.ask.h5|--text|A lantern|--file|/a.txt|--text=-1 degrees|--bos|no|--length|"
          "12|--top|3|--interventions|/plan.toml|--resume");
    choice = asked("ablate");
    choice.metric = "loss";
    choice.answer = "5";  // the loss reads none
    choice.position = "3";
    choice.options = {{"--how", "zero"}, {"--importance", "on"}};
    CHECK(command(choice) == "ask|ablate|/models/small|-o|/out/a.ask.h5|--text|The king|--importance");
    choice = asked("patch");
    choice.clean = "The king";
    choice.corrupted = "The queen";
    choice.answer = "5";
    choice.against = "\" the\",6";
    choice.position = "-2";
    choice.options = {{"--sites", "hidden"}, {"--by", "head"}};
    CHECK(command(choice) ==
          "ask|patch|/models/small|-o|/out/a.ask.h5|--clean|The king|--corrupted|The queen|--answer|"
          "5|--against|\" the\",6|--position=-2|--sites|hidden");
}

TEST_CASE("Every option of a tool has one control, or is in the list of those that are left out", "[ask_dialog]") {
    namespace ask = headscope::ask;
    std::set<std::string> listed;  // of the dialog; each once
    for (const AskControl& control : ask_controls()) {
        INFO(control.option);
        CHECK(listed.insert(control.option).second);
        CHECK_NOTHROW(ask::tool_option(control.option));
    }
    for (const auto* names : {&ask_own_controls(), &ask_left_out()})
        for (const char* name : *names) {
            INFO(name);
            CHECK(listed.insert(name).second);
        }
    std::set<std::string> read(ask::common_options().begin(), ask::common_options().end());
    for (const ask::ToolOption& option : ask::tool_options()) {
        INFO(option.name);
        CHECK(read.insert("--" + option.name).second);
        for (const std::string& tool : option.tools) CHECK(find_ask_form(QString::fromStdString(tool)) != nullptr);
    }
    CHECK(listed == read);
    for (const AskToolForm& form : ask_forms()) {
        INFO(form.tool);
        CHECK(form.answer == ask::reads_option(form.tool, ask::tool_option("--answer")));
        CHECK((form.metric != nullptr) == ask::reads_option(form.tool, ask::tool_option("--metric")));
    }
}

TEST_CASE("Token ids, numbers, lenses and outputs of tools are options of the dialog", "[ask_dialog]") {
    AskChoice choice = asked("lens");
    choice.texts.sources.clear();
    CHECK(refused(choice, "token ids"));
    choice.options["--tokens"] = "/ids.json";
    choice.texts.device = "cuda:0";
    CHECK(command(choice) == "ask|lens|/models/small|-o|/out/a.ask.h5|--tokens|/ids.json|--device|cuda:0");
    choice.options["--top"] = "x";
    CHECK(refused(choice, "Likeliest tokens: expected a whole number from 1 to 1000; found x"));
    choice.options["--top"] = "5";
    choice.options["--kind"] = "tuned";
    CHECK(refused(choice, "needs its file"));
    choice.options["--lens-file"] = "/lens";
    CHECK(problem_of(choice, kSources) == "");
    choice.options["--kind"] = "logit";
    CHECK(refused(choice, "choose which"));
    choice = asked("corpus");
    choice.options = {{"--folder", "/texts"}, {"--headvis-tree", "/tree"}};
    choice.texts.length = 64;
    CHECK(command(choice) ==
          "ask|corpus|/models/small|-o|/out/a.ask.h5|--length|64|--folder|/texts|--headvis-tree|/tree");
    choice.options["--tokens"] = "/ids.json";
    CHECK(refused(choice, "either a folder"));
    choice = asked("patch");
    choice.answer = "5";
    choice.against = "6";
    choice.options = {{"--clean-tokens", "/a.json"}, {"--corrupted-tokens", "/b.json"}, {"--sites", "hidden"}};
    CHECK(problem_of(choice, kSources) == "");
    choice = asked("steer");
    choice.options = {{"--positive-tokens", "/a.json"}, {"--negative", "bad"}, {"--save-vector", "/v.gguf"}};
    CHECK(problem_of(choice, kSources) == "");
}

TEST_CASE("Options of single tools become words of the command", "[ask_dialog]") {
    AskChoice choice = asked("steer");
    choice.options = {{"--positive", "good"}, {"--negative", "bad"}, {"--factors", "-1,1"}};
    CHECK(command(choice) ==
          "ask|steer|/models/small|-o|/out/a.ask.h5|--text|The king|--positive|good|--negative|bad|"
          "--factors=-1,1");
    choice = asked("series");
    choice.models = QStringList{"/run/step-1", "/run/step 2"};
    CHECK(command(choice) == "ask|series|/run/step-1|/run/step 2|-o|/out/a.ask.h5|--text|The king");
    choice.models.clear();
    CHECK(ask_words(choice, {}).value(2) == "MODEL");
    choice = asked("circuits");
    choice.texts.length = 5;
    CHECK(command(choice) == "ask|circuits|/models/small|-o|/out/a.ask.h5");
    choice.texts.device = "cuda:1";
    CHECK(command(choice) == "ask|circuits|/models/small|-o|/out/a.ask.h5|--device|cuda:1");
}

TEST_CASE("The dialog shows what the tool reads, and starts its command", "[ask_dialog]") {
    ensure_application();
    AskDialog dialog;
    dialog.set_sources(kSources, "/models/small");
    TextChoice texts;
    texts.sources = {{TextSource::Kind::text, QStringLiteral("The king")}};
    dialog.set_texts(texts, {});
    dialog.set_folder("/made/asks");
    dialog.show();
    const auto shown = [&](const char* name) { return child<QWidget>(dialog, name)->isVisibleTo(&dialog); };
    auto* start = child<QPushButton>(dialog, "ask_dialog_start");
    CHECK(dialog.output().startsWith("/made/asks/small-lens-"));
    CHECK(dialog.output().endsWith(".ask.h5"));
    CHECK(start->isEnabled());
    CHECK(child<QLabel>(dialog, "ask_dialog_texts")->text() == "the text of the text panel");
    texts.chat = true;
    dialog.set_texts(texts, {});
    CHECK(child<QLabel>(dialog, "ask_dialog_texts")->text() == "the text of the text panel, without: chat template");
    CHECK(shown("ask_dialog_target"));
    CHECK_FALSE(shown("ask_dialog_metric"));
    CHECK_FALSE(shown("ask_dialog_clean"));
    CHECK_FALSE(shown("ask_dialog_how"));
    CHECK_FALSE(shown("ask_dialog_headvis_tree"));
    auto* tip = child<QLineEdit>(dialog, "ask_dialog_headvis_tree");
    CHECK(tip->toolTip().startsWith("A new folder"));
    dialog.choose_tool("corpus");
    CHECK(shown("ask_dialog_headvis_tree"));
    CHECK(child<QLineEdit>(dialog, "ask_dialog_field")->text() == "text");
    dialog.choose_tool("patch");
    CHECK(shown("ask_dialog_clean"));
    CHECK(shown("ask_dialog_steps"));
    auto* approximation = child<QComboBox>(dialog, "ask_dialog_approximation");
    CHECK(approximation->currentData().toString().isEmpty());
    CHECK(approximation->findData("attribution,integrated") == 3);
    CHECK_FALSE(shown("ask_dialog_texts"));
    CHECK(shown("ask_dialog_against"));
    CHECK_FALSE(start->isEnabled());
    dialog.choose_tool("ablate");
    CHECK(dialog.choice().metric == "loss");
    CHECK_FALSE(shown("ask_dialog_answer"));
    CHECK(shown("ask_dialog_reference_tokens"));
    CHECK(start->isEnabled());
    auto* metric = child<QComboBox>(dialog, "ask_dialog_metric");
    metric->setCurrentIndex(metric->findData("logit"));
    CHECK(shown("ask_dialog_answer"));
    CHECK_FALSE(shown("ask_dialog_against"));
    CHECK_FALSE(start->isEnabled());
    CHECK(child<QLabel>(dialog, "ask_dialog_message")->text().contains("needs an answer"));
    child<QLineEdit>(dialog, "ask_dialog_answer")->setText("464");
    child<QLineEdit>(dialog, "ask_dialog_output")->setText("/made/mine.ask.h5");
    REQUIRE(start->isEnabled());
    QSignalSpy wanted(&dialog, &TaskDialog::start_wanted);
    start->click();
    REQUIRE(wanted.count() == 1);
    CHECK(wanted.first().at(0).toStringList() == QStringList{"ask", "ablate", "/models/small", "-o",
                                                             "/made/mine.ask.h5", "--text", "The king", "--metric",
                                                             "logit", "--answer", "464"});
    CHECK(wanted.first().at(1).toString() == "/made/mine.ask.h5");
    dialog.choose_tool("lens");
    CHECK(dialog.output() == "/made/mine.ask.h5");  // the user's own name stays
}

TEST_CASE("A series takes checkpoints from disk, a path a line", "[ask_dialog]") {
    ensure_application();
    AskDialog dialog;
    TextChoice texts;
    texts.sources = {{TextSource::Kind::text, QStringLiteral("The king")}};
    dialog.set_texts(texts, {});
    dialog.set_folder("/made/asks");
    dialog.show();
    const auto shown = [&](const char* name) { return child<QWidget>(dialog, name)->isVisibleTo(&dialog); };
    CHECK(shown("ask_dialog_source"));
    CHECK_FALSE(shown("ask_dialog_models"));
    CHECK_FALSE(shown("ask_dialog_models_add"));
    dialog.choose_tool("series");
    CHECK_FALSE(shown("ask_dialog_source"));
    CHECK(shown("ask_dialog_models"));
    CHECK(shown("ask_dialog_models_add"));
    auto* start = child<QPushButton>(dialog, "ask_dialog_start");
    CHECK_FALSE(start->isEnabled());
    child<QPlainTextEdit>(dialog, "ask_dialog_models")->setPlainText(" /runs/a/step-10\n\n/runs/a/step-20/\n");
    CHECK(dialog.choice().models == QStringList{"/runs/a/step-10", "/runs/a/step-20/"});
    CHECK(dialog.output().startsWith("/made/asks/step-10-series-"));
    REQUIRE(start->isEnabled());
    CHECK(dialog.words().mid(0, 4) == QStringList{"ask", "series", "/runs/a/step-10", "/runs/a/step-20/"});
}

TEST_CASE("Fields of the decoder's text are shown and read for encoder-decoders alone", "[ask_dialog]") {
    ensure_application();
    AskDialog dialog;
    TextChoice texts;
    texts.sources = {{TextSource::Kind::text, QStringLiteral("The king")}};
    dialog.set_texts(texts, {});
    dialog.set_folder("/made/asks");
    dialog.show();
    const char* const fields[] = {"ask_dialog_target_text", "ask_dialog_target_tokens",
                                  "ask_dialog_corrupted_target_tokens"};
    const auto shown = [&](const char* name) { return child<QWidget>(dialog, name)->isVisibleTo(&dialog); };
    dialog.choose_tool("patch");
    for (const char* field : fields) CHECK_FALSE(shown(field));  // no checkpoint
    dialog.set_sources({{"/models/t5", "t5", "", true}, {"/models/small", "small", ""}}, "/models/t5");
    for (const char* field : fields) CHECK(shown(field));
    dialog.choose_tool("lens");
    CHECK(shown("ask_dialog_target_text"));
    CHECK_FALSE(shown("ask_dialog_corrupted_target_tokens"));
    child<QLineEdit>(dialog, "ask_dialog_target_text")->setText("Der König");
    CHECK(dialog.problem() == "");
    CHECK(dialog.words().contains("--target-text"));
    child<QComboBox>(dialog, "ask_dialog_source")->setCurrentIndex(1);
    for (const char* field : fields) CHECK_FALSE(shown(field));
    CHECK(dialog.problem() == "");
    CHECK_FALSE(dialog.words().contains("--target-text"));
    child<QComboBox>(dialog, "ask_dialog_source")->setCurrentIndex(0);
    CHECK(dialog.words().contains("--target-text"));
    dialog.choose_tool("circuits");
    CHECK(dialog.problem().contains("t5 is an encoder-decoder"));
    dialog.choose_tool("ablate");
    CHECK(dialog.problem() == "");
    child<QLineEdit>(dialog, "ask_dialog_target_text")->clear();
    CHECK(dialog.problem().contains("the decoder's text"));
    // A corpus of pairs
    dialog.choose_tool("corpus");
    CHECK(dialog.problem().contains("the decoder's field"));
    child<QLineEdit>(dialog, "ask_dialog_json_lines")->setText("/pairs.jsonl");
    CHECK(dialog.problem().contains("the decoder's field"));
    CHECK(shown("ask_dialog_target_field"));
    child<QLineEdit>(dialog, "ask_dialog_target_field")->setText("translation.de");
    CHECK(dialog.problem() == "");
    CHECK(dialog.words().join(QLatin1Char('|')).endsWith("--json-lines|/pairs.jsonl|--target-field|translation.de"));
    child<QLineEdit>(dialog, "ask_dialog_target_text")->setText("Der König");
    CHECK(dialog.problem().contains("clear the other"));
    child<QComboBox>(dialog, "ask_dialog_source")->setCurrentIndex(1);
    CHECK_FALSE(shown("ask_dialog_target_field"));
    CHECK(dialog.problem() == "");
    CHECK_FALSE(dialog.words().contains("--target-field"));
}
