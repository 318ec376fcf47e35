// SPDX-License-Identifier: GPL-3.0-or-later
// The text panel: models, texts, settings and tokens of a run.
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QJsonObject>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QToolButton>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/widgets/child.h"
#include "tests/widgets/panels/text_panel_fixture.h"
#include "widgets/panels/text_choice.h"
#include "widgets/panels/text_panel.h"
#include "widgets/plain_edit.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::card, tests::child, tests::preview;
using Panel = tests::ShownTextPanel;

TEST_CASE("Run waits for a model and a text that has tokens", "[panels][text]") {
    Panel p;
    auto* run = child<QPushButton>(p.panel, "text_run");
    CHECK_FALSE(run->isEnabled());
    p.panel.set_models({card(3)});
    CHECK_FALSE(run->isEnabled());
    p.panel.show_preview(preview(5));
    CHECK(run->isEnabled());
    QSignalSpy wanted(&p.panel, &TextPanel::run_wanted);
    run->click();
    REQUIRE(wanted.count() == 1);
    p.panel.show_running(true);
    CHECK_FALSE(run->isEnabled());
    CHECK(child<QPushButton>(p.panel, "text_stop")->isEnabled());
}

TEST_CASE("Tokens are asked for a moment after typing, once", "[panels][text]") {
    Panel p;
    p.panel.set_models({card(1)});
    QSignalSpy asked(&p.panel, &TextPanel::preview_wanted);
    auto* text = child<QPlainTextEdit>(p.panel, "text_edit");
    for (const char* letter : {"a", "ab", "abc"}) text->setPlainText(QLatin1String(letter));
    CHECK(asked.wait(2000));
    CHECK(asked.count() == 1);
    const TextChoice choice = p.panel.choice();
    REQUIRE(choice.sources.size() == 1);
    CHECK(choice.sources[0].value == "abc");
    CHECK(choice.model == 1);
}

TEST_CASE("A choice goes through JSON and the panel unchanged", "[panels][text]") {
    Panel p;
    p.panel.set_models({card(1)});
    p.panel.set_examples({{QStringLiteral("lantern"), QStringLiteral("A lamp.")}});
    TextChoice choice;
    choice.model = 1;
    choice.sources = {{TextSource::Kind::text, QStringLiteral("one\ntwo")},
                      {TextSource::Kind::file, QStringLiteral("/a/b.txt"), false},
                      {TextSource::Kind::example, QStringLiteral("lantern")}};
    choice.pair = QStringLiteral("three");
    choice.first = TextChoice::First::no;
    choice.length = 128;
    choice.windows = true;
    choice.repeat_token = true;
    choice.beyond_positions = true;
    choice.states = true;
    choice.maps = false;
    TextChoice read = text_choice_from(to_json(choice));
    read.model = 1;
    CHECK(read == choice);
    p.panel.set_choice(choice);
    CHECK(p.panel.choice() == choice);
    // Folded away, the second text is kept and not used.
    child<QToolButton>(p.panel, "text_pair_shown")->setChecked(false);
    CHECK(p.panel.choice().pair.isEmpty());
    CHECK(p.panel.kept_choice().pair == "three");
    CHECK(text_choice_from(QJsonObject{{"sources", 7}, {"length", "x"}}) == TextChoice{});
}

TEST_CASE("GPUs are listed with name and free memory, and those without kernels cannot be chosen", "[panels][text]") {
    Panel p;
    auto* box = child<QComboBox>(p.panel, "text_device");
    CHECK(box->isHidden());
    TextChoice choice;
    choice.device = QStringLiteral("cuda:1");
    p.panel.set_choice(choice);
    CHECK(p.panel.choice().device == "cuda:1");  // of a session, before the GPUs are known
    CHECK(text_choice_from(to_json(choice)).device == "cuda:1");
    const QString none = QStringLiteral("no libheadscope_gpu_cuda.so");
    p.panel.set_devices({{QStringLiteral("cuda:0"), QStringLiteral("A card"), 70.3e9, none},
                         {QStringLiteral("cuda:1"), QStringLiteral("B card"), -1, {}}});
    CHECK_FALSE(box->isHidden());
    REQUIRE(box->count() == 3);
    CHECK(box->itemText(1) == "cuda:0 A card, 70.3 GB free");
    CHECK(box->itemText(2) == "cuda:1 B card");
    CHECK(box->itemData(1, Qt::ToolTipRole).toString() == "Found " + none);
    CHECK(p.panel.choice().device == "cuda:1");
    choice.device = QStringLiteral("cuda:0");
    p.panel.set_choice(choice);
    CHECK(p.panel.choice().device == "cpu");
    p.panel.set_devices({});
    CHECK(box->isHidden());
    CHECK(box->count() == 1);
    CHECK(p.panel.choice().device == "cpu");
}

TEST_CASE("Segments and memory are asked for where a model has one", "[panels][text]") {
    Panel p;
    ModelCard with = card(2);
    with.memory = true;
    p.panel.set_models({card(1), with});
    TextChoice choice;
    choice.model = 2;
    choice.segment = 64;
    choice.memory = 0;
    p.panel.set_choice(choice);
    child<QComboBox>(p.panel, "text_model")->setCurrentIndex(1);
    CHECK(p.panel.choice().segment == 64);
    CHECK(p.panel.choice().memory == 0);
    CHECK(text_choice_from(to_json(choice)).segment == 64);
    child<QComboBox>(p.panel, "text_model")->setCurrentIndex(0);
    CHECK(p.panel.choice().segment == 0);
    CHECK(p.panel.choice().memory == -1);
    CHECK(p.panel.kept_choice().segment == 64);
}

TEST_CASE("What only an encoder-decoder reads is kept for the session while none is open", "[panels][text]") {
    Panel p;
    TextChoice choice;
    choice.target = QStringLiteral("Bonjour");
    choice.chat = true;
    p.panel.set_choice(choice);
    CHECK(p.panel.choice().target.isEmpty());
    CHECK_FALSE(p.panel.choice().chat);
    CHECK(p.panel.kept_choice().target == "Bonjour");
    CHECK(p.panel.kept_choice().chat);
}

TEST_CASE("Texts have names for lists, and one is chosen by its place", "[panels][text]") {
    Panel p;
    CHECK(p.panel.labels().isEmpty());
    TextChoice choice;
    choice.sources = {{TextSource::Kind::text, QStringLiteral("one  line")},
                      {TextSource::Kind::file, QStringLiteral("/a/b.txt")}};
    p.panel.set_choice(choice);
    CHECK(p.panel.labels() == QStringList{QStringLiteral("one line"), QStringLiteral("File b.txt")});
    p.panel.choose_source(1);
    CHECK(child<QPlainTextEdit>(p.panel, "text_edit")->isReadOnly());
    p.panel.choose_source(7);
    CHECK(child<QPlainTextEdit>(p.panel, "text_edit")->isReadOnly());
}

TEST_CASE("An example is edited like any text, and stays an example until it is", "[panels][text]") {
    Panel p;
    TextChoice choice;
    choice.sources = {{TextSource::Kind::example, QStringLiteral("lantern")}};
    p.panel.set_choice(choice);  // before the examples are read
    auto* text = child<QPlainTextEdit>(p.panel, "text_edit");
    CHECK(text->isReadOnly());
    p.panel.set_examples({{QStringLiteral("lantern"), QStringLiteral("A lamp.")}, {QStringLiteral("code"), QString()}});
    CHECK_FALSE(text->isReadOnly());
    CHECK(text->toPlainText() == "A lamp.");
    CHECK(p.panel.choice().sources == choice.sources);
    CHECK(p.panel.labels() == QStringList{QStringLiteral("Example lantern")});
    text->setPlainText(QStringLiteral("A lamp. Lit."));
    CHECK(p.panel.choice().sources ==
          std::vector<TextSource>{{TextSource::Kind::text, QStringLiteral("A lamp. Lit.")}});
    // One that is chosen takes the place of an empty text, and comes after any other.
    auto* examples = child<QComboBox>(p.panel, "text_examples");
    Q_EMIT examples->activated(1);
    REQUIRE(p.panel.choice().sources.size() == 2);
    CHECK(p.panel.choice().sources[1] == choice.sources[0]);
    p.panel.set_choice({});
    Q_EMIT examples->activated(1);
    CHECK(p.panel.choice().sources == choice.sources);
}

TEST_CASE("Another model begins with the length that suits it", "[panels][text]") {
    Panel p;
    p.panel.set_models({card(1), card(2)});
    auto* length = child<QSpinBox>(p.panel, "text_length");
    length->setValue(64);
    p.panel.begin_with_model(1);
    CHECK(p.panel.choice().length == 64);  // the same model
    p.panel.begin_with_model(2);
    CHECK(p.panel.choice().length == 0);
    CHECK(length->text() == "all");
    length->setValue(32);
    p.panel.set_models({card(2), card(3)});  // another opens: the chosen one stays
    CHECK(p.panel.choice().model == 2);
    CHECK(p.panel.choice().length == 32);
    // The field says what the model reads of a text that is longer than its positions.
    length->setValue(0);
    TokenPreview cut = preview(1024);
    cut.uncut = 1300;
    p.panel.show_preview(cut);
    CHECK(length->text() == "1024 of 1300");
    CHECK(child<QLabel>(p.panel, "text_cost")->text().contains("1024 of 1300 tokens"));
    p.panel.show_preview(preview(12));
    CHECK(length->text() == "all");
    // A session's length is its model's.
    TextChoice kept;
    kept.model = 3;
    kept.length = 128;
    p.panel.set_choice(kept);
    p.panel.choose_model(3);
    CHECK(p.panel.choice().length == 128);
}

TEST_CASE("A pasted text too long to be edited is kept whole and shown by its beginning", "[panels][text]") {
    Panel p;
    auto* text = child<QPlainTextEdit>(p.panel, "text_edit");
    const auto paste = [&](const QString& pasted) {
        QGuiApplication::clipboard()->setText(pasted);
        text->paste();
    };
    const QString novel = QStringLiteral("It was a dark night. ").repeated(2 * PlainEdit::kMost / 20);
    paste(novel);
    CHECK(p.panel.choice().sources == std::vector<TextSource>{{TextSource::Kind::text, novel}});
    CHECK(text->isReadOnly());
    CHECK(text->toPlainText().size() < 4000);
    CHECK(text->toPlainText().contains("It was a dark night."));
    CHECK(text->toPlainText().contains(characters_in_words(novel.size())));

    // Beside a text that is there: as a text of its own, and the typed one is left as it was.
    TextChoice choice;
    choice.sources = {{TextSource::Kind::text, QStringLiteral("typed")}};
    p.panel.set_choice(choice);
    paste(novel);
    REQUIRE(p.panel.choice().sources.size() == 2);
    CHECK(p.panel.choice().sources[0].value == "typed");
    CHECK(p.panel.choice().sources[1].value == novel);
    p.panel.choose_source(0);
    CHECK(text->toPlainText() == "typed");
    CHECK_FALSE(text->isReadOnly());

    // Over all of it: instead of it, and what was typed can be ticked again.
    text->selectAll();
    paste(novel);
    REQUIRE(p.panel.choice().sources.size() == 3);
    CHECK(p.panel.choice().sources[0] == TextSource{TextSource::Kind::text, QStringLiteral("typed"), false});
    CHECK(p.panel.choice().sources[2] == TextSource{TextSource::Kind::text, novel, true});
}

TEST_CASE("A text beyond what a session keeps is refused in its place, and nothing else is lost", "[panels][text]") {
    Panel p;
    p.panel.add_text(QStringLiteral("typed"));
    CHECK(p.panel.choice().sources == std::vector<TextSource>{{TextSource::Kind::text, QStringLiteral("typed")}});
    QSignalSpy refused(&p.panel, &TextPanel::refused);
    p.panel.add_text(QString(TextPanel::kLongest - 4, QLatin1Char('x')));  // too much with the five that are there
    CHECK(p.panel.choice().sources == std::vector<TextSource>{{TextSource::Kind::text, QStringLiteral("typed")}});
    auto* problem = child<QLabel>(p.panel, "text_problem");
    CHECK_FALSE(problem->isHidden());
    CHECK(problem->text().contains(QString::number(TextPanel::kLongest + 1)));
    CHECK(refused.count() == 1);
    p.panel.add_text(QString(TextPanel::kLongest - 5, QLatin1Char('x')));
    CHECK(p.panel.choice().sources.size() == 2);
}

TEST_CASE("A model without a head records no logits", "[panels][text]") {
    Panel p;
    p.panel.set_models({card(1, false)});
    child<QCheckBox>(p.panel, "text_logits")->setChecked(true);
    CHECK_FALSE(p.panel.choice().logits);
}

TEST_CASE("The panel shows a text's error", "[panels][text]") {
    Panel p;
    p.panel.set_models({card(1)});
    TokenPreview bad;
    bad.failure = QStringLiteral("[text] expected UTF-8; found byte 3");
    p.panel.show_preview(bad);
    CHECK(child<QLabel>(p.panel, "text_problem")->text() == bad.failure);
    CHECK_FALSE(child<QPushButton>(p.panel, "text_run")->isEnabled());
}

TEST_CASE("A text that the model refuses cannot be run, and Run has the reason", "[panels][text]") {
    Panel p;
    p.panel.set_models({card(1)});
    TokenPreview refused = preview(5);
    refused.failure = QStringLiteral("[memory] expected 40 GB; found 2 GB free");
    p.panel.show_preview(refused);
    auto* run = child<QPushButton>(p.panel, "text_run");
    CHECK_FALSE(run->isEnabled());
    CHECK(run->toolTip() == refused.failure);
    p.panel.show_running(true);
    p.panel.show_running(false);
    CHECK_FALSE(run->isEnabled());
    p.panel.show_preview(preview(5));
    CHECK(run->isEnabled());
    CHECK(run->toolTip() != refused.failure);
}
