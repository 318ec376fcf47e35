// SPDX-License-Identifier: GPL-3.0-or-later
// Panels of the window: the text and its tokens, figures as forms, commands by name, undo.
#include <QAction>
#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "core/base/process/worker.h"
#include "core/figures/options/figure_arguments.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/widgets/child.h"
#include "widgets/desk/history.h"
#include "widgets/panels/command_palette.h"
#include "widgets/panels/figure_form.h"
#include "widgets/panels/figure_maker.h"
#include "widgets/panels/start_page.h"
#include "widgets/panels/text_panel.h"
#include "widgets/panels/token_chips.h"
#include "widgets/plain_edit.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

ModelCard card(int id, bool head = true) {
    ModelCard made;
    made.id = id;
    made.name = QStringLiteral("model %1").arg(id);
    made.family = QStringLiteral("llama");
    made.layers = 4;
    made.heads = 8;
    made.max_positions = 1024;
    made.tokenizer = true;
    made.head = head;
    return made;
}

TokenPreview preview(std::size_t tokens) {
    TokenPreview made;
    made.sequences.resize(1);
    made.sequences[0].tokens = static_cast<std::int64_t>(tokens);
    for (std::size_t i = 0; i < tokens; ++i)
        made.sequences[0].chips.push_back({QStringLiteral("token%1").arg(i % 97), QString::number(i), i == 0, false});
    made.first_token = QStringLiteral("added by the tokenizer");
    return made;
}

using tests::child;

struct Panel {
    bool application = (ensure_application(), true);
    TextPanel panel;
};

}  // namespace

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

TEST_CASE("Texts about a run fit a panel of its usual width", "[panels][text]") {
    Panel p;
    p.panel.resize(300, 600);
    p.panel.show();
    p.panel.show_running(true);
    p.panel.show_progress(0.4, QStringLiteral("batch 12 of 34, layer 11 of 24, 82.7 tokens/s, 12:34 min left"));
    QApplication::processEvents();
    auto* words = child<QLabel>(p.panel, "text_progress_words");
    REQUIRE(words->isVisible());
    CHECK(words->text().contains("82.7 tokens/s"));
    CHECK(words->height() >= words->heightForWidth(words->width()));
    p.panel.show_running(false);
    CHECK_FALSE(words->isVisible());
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

TEST_CASE("A file's box does not look like an editor", "[panels][text]") {
    Panel p;
    auto* text = child<QPlainTextEdit>(p.panel, "text_edit");
    const int frame = text->frameShape();
    p.panel.add_file(QStringLiteral("/a/b.txt"));
    CHECK(text->isReadOnly());
    CHECK(text->frameShape() == QFrame::NoFrame);
    CHECK(text->palette().color(QPalette::Base) == p.panel.palette().color(QPalette::Window));
    child<QPushButton>(p.panel, "text_remove")->click();
    CHECK_FALSE(text->isReadOnly());
    CHECK(text->frameShape() == frame);
    CHECK(text->palette().color(QPalette::Base) == p.panel.palette().color(QPalette::Base));
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

TEST_CASE("Controls keep their places while models, tokens, problems and progress arrive", "[panels][text]") {
    Panel p;
    for (const QSize size : {QSize(300, 760), QSize(240, 420)}) {
        p.panel.set_models({});
        p.panel.show_preview({});
        p.panel.resize(size);
        p.panel.show();
        QApplication::processEvents();
        const auto places = [&] {
            QApplication::processEvents();
            std::map<QString, QRect> all;
            for (const char* name :
                 {"text_model", "text_open_model", "text_add", "text_examples", "text_edit", "text_first",
                  "text_length", "text_windows", "text_repeat", "text_beyond", "text_maps", "text_logits",
                  "text_sequence", "text_chips", "text_run", "text_stop"}) {
                const auto* one = child<QWidget>(p.panel, name);
                all[QLatin1String(name)] = QRect(one->mapTo(&p.panel, QPoint()), one->size());
            }
            return all;
        };
        const auto before = places();
        const auto stay = [&](const char* what) {
            for (const auto& [name, place] : places()) {
                INFO(what << ": " << name.toStdString());
                CHECK(place == before.at(name));
            }
        };
        p.panel.set_models({card(1)});
        stay("a model");
        p.panel.show_preview(preview(5));
        stay("tokens");
        TokenPreview many = preview(70000);
        many.uncut = 90000;
        many.beyond = true;
        p.panel.show_preview(many);
        stay("many tokens");
        TokenPreview bad;
        bad.failure = QStringLiteral("[text] expected UTF-8; found something else. ").repeated(8);
        p.panel.show_preview(bad);
        stay("a problem");
        p.panel.show_preview(preview(5));
        p.panel.show_running(true);
        p.panel.show_progress(0.4, QStringLiteral("batch 12 of 34, layer 11 of 24, 82.7 tokens/s, 12:34 min left"));
        stay("a run");
        p.panel.show_running(false);
        stay("its end");
        ModelCard other = card(2);
        other.chat_template = other.experts = other.recurrent = other.encoder_decoder = true;
        p.panel.set_models({other});
        for (const char* name : {"text_model", "text_edit", "text_first", "text_length", "text_logits", "text_run"})
            CHECK(places().at(QLatin1String(name)).topLeft() == before.at(QLatin1String(name)).topLeft());
    }
}

TEST_CASE("The next step has the focus: the editor, or Run once a text is ready", "[panels][text]") {
    Panel p;
    p.panel.show();
    p.panel.activateWindow();
    p.panel.set_models({card(1)});
    auto* text = child<QPlainTextEdit>(p.panel, "text_edit");
    auto* run = child<QPushButton>(p.panel, "text_run");
    p.panel.focus_next_step();
    CHECK(p.panel.focusWidget() == text);
    p.panel.add_text(QStringLiteral("typed"));
    p.panel.focus_next_step();
    CHECK(p.panel.focusWidget() == text);  // its tokens are not there yet
    p.panel.show_preview(preview(3));
    if (QTest::qWaitForWindowActive(&p.panel, 500)) CHECK(p.panel.focusWidget() == run);
    QSignalSpy wanted(&p.panel, &TextPanel::run_wanted);
    run->setFocus();
    QTest::keyClick(run, Qt::Key_Return);
    CHECK(wanted.count() == 1);
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

TEST_CASE("32 000 chips are laid out in slices", "[panels][chips]") {
    ensure_application();
    TokenChips chips;
    chips.resize(400, 200);
    chips.show();
    chips.set_chips(preview(32000).sequences[0].chips);
    CHECK(chips.laid_out() < 32000);
    CHECK(QTest::qWaitFor([&] { return chips.laid_out() == 32000; }, 20000));
    CHECK(chips.chip_at({4, 4}) == 0);
    CHECK(chips.chip_at({4, -4000}) == -1);
}

TEST_CASE("A figure's form says what the command line says", "[panels][form]") {
    ensure_application();
    FigureForm form;
    figures::FigureRequest request;
    request.recipe = "attention";
    request.options.layer = 2;
    request.options.head = 1;
    request.style.width_mm = 85;
    form.set_request(request);
    CHECK(form.request() == request);
    child<QComboBox>(form, "export_theme")->setCurrentText(QStringLiteral("dark"));
    Q_EMIT child<QComboBox>(form, "export_theme")->activated(child<QComboBox>(form, "export_theme")->currentIndex());
    CHECK(form.request().style.dark);
    CHECK(form.request().options.layer == 2);
    auto* width = child<QLineEdit>(form, "export_width");
    CHECK(width->text() == "85");
    QTest::keyClicks(width, QStringLiteral("x"));
    CHECK_FALSE(form.problem().isEmpty());
    CHECK(form.request().style.width_mm == 85);
    QTest::keyClick(width, Qt::Key_Backspace);
    CHECK(form.problem().isEmpty());
    const auto words = figures::figure_arguments(form.request(), {"a.h5"}, "o.pdf");
    CHECK(std::find(words.begin(), words.end(), "--theme") != words.end());
}

TEST_CASE("A page that differs from the window shows a note, and one click changes it", "[panels][form]") {
    ensure_application();
    FigureForm form;
    figures::FigureRequest request;
    request.recipe = "attention";
    form.set_request(request);
    auto* same = child<QToolButton>(form, "export_as_window");
    CHECK(same->parentWidget()->isHidden());
    form.set_dark_window(true);
    CHECK_FALSE(same->parentWidget()->isHidden());
    CHECK(child<QLabel>(form, "export_page_note")->text().contains(QStringLiteral("as papers are")));
    QSignalSpy changed(&form, &FigureForm::changed);
    same->click();
    CHECK(changed.count() == 1);
    CHECK(form.request().style.dark);
    CHECK(child<QComboBox>(form, "export_theme")->currentText() == "dark");
    CHECK(same->parentWidget()->isHidden());
}

TEST_CASE("The palette finds a command by its words in any order", "[panels][palette]") {
    ensure_application();
    CHECK(CommandPalette::score(QStringLiteral("Export a figure"), QStringLiteral("figure exp")) > 0);
    CHECK(CommandPalette::score(QStringLiteral("Export a figure"), QStringLiteral("figure undo")) < 0);
    CHECK(CommandPalette::score(QStringLiteral("Run"), QStringLiteral("ru")) >
          CommandPalette::score(QStringLiteral("Redo the run"), QStringLiteral("ru")));
    QAction first(QStringLiteral("&Dark")), second(QStringLiteral("Light"));
    QSignalSpy done(&first, &QAction::triggered);
    CommandPalette palette({&second, &first});
    auto* field = child<QLineEdit>(palette, "palette_field");
    QTest::keyClicks(field, QStringLiteral("dark"));
    QTest::keyClick(field, Qt::Key_Return);
    QApplication::processEvents();
    CHECK(done.count() == 1);
}

TEST_CASE("In a low window the text panel scrolls, and nothing of it is squeezed", "[panels][text]") {
    Panel box;
    box.panel.set_models({card(1)});
    box.panel.show_preview(preview(2000));
    TokenPreview wrong = preview(2000);
    wrong.failure = QStringLiteral(
        "[length] expected at most 1024 tokens, the model's positions; found 2000. Shorten "
        "it by Length, cut it into windows, or tick Beyond trained positions.");
    box.panel.show_preview(wrong);
    box.panel.resize(300, 430);
    box.panel.show();
    for (int i = 0; i < 5; ++i) QApplication::processEvents();
    for (const char* name : {"text_length", "text_first", "text_model", "text_repeat", "text_maps"}) {
        const auto* control = child<QWidget>(box.panel, name);
        INFO(name);
        CHECK(control->height() >= control->minimumSizeHint().height());
    }
    const auto* run = child<QPushButton>(box.panel, "text_run");
    CHECK(box.panel.rect().contains(QRect(run->mapTo(&box.panel, QPoint()), run->size())));
    // With room for all of it there is no bar.
    box.panel.resize(300, 900);
    for (int i = 0; i < 5; ++i) QApplication::processEvents();
    const auto* scroll = box.panel.findChild<QScrollArea*>();
    REQUIRE(scroll);
    CHECK_FALSE(scroll->verticalScrollBar()->isVisible());
}

TEST_CASE("What is recent fits the list, however long its path", "[panels][start]") {
    ensure_application();
    StartPage page;
    page.resize(800, 500);
    page.show();
    auto* list = child<QListWidget>(page, "start_recent");
    CHECK_FALSE(list->isVisible());  // a place to drop things is there instead
    RecentItem gone;
    gone.path = QStringLiteral("/a/") + QString(300, QLatin1Char('b'));
    gone.name = QStringLiteral("gone");
    gone.missing = true;
    page.set_recent({gone});
    QApplication::processEvents();
    CHECK(list->isVisible());
    CHECK(list->visualItemRect(list->item(0)).width() <= list->viewport()->width());
}

TEST_CASE("Recent items that are gone are marked and do not open", "[panels][start]") {
    ensure_application();
    StartPage page;
    RecentItem here, gone;
    here.path = QStringLiteral("/here");
    here.name = QStringLiteral("here");
    gone.path = QStringLiteral("/gone");
    gone.name = QStringLiteral("gone");
    gone.missing = true;
    page.set_recent({here, gone});
    auto* list = child<QListWidget>(page, "start_recent");
    REQUIRE(list->count() == 2);
    CHECK(list->item(1)->text().contains(QStringLiteral("missing")));
    QSignalSpy opened(&page, &StartPage::path_wanted);
    Q_EMIT list->itemActivated(list->item(1));
    CHECK(opened.count() == 0);
    Q_EMIT list->itemActivated(list->item(0));
    CHECK(opened.count() == 1);
}

TEST_CASE("Undo goes back a step a pause, redo forward, a change cuts what was ahead", "[panels][history]") {
    ensure_application();
    int value = 0;
    History history(
        [&] {
            return QJsonObject{{"value", value}};
        },
        [&](const QJsonObject& state) { value = state["value"].toInt(); });
    history.begin();
    const auto change = [&](int to) {
        value = to;
        history.note();
    };
    change(1);
    change(2);  // one step: nothing rested in between
    REQUIRE(QTest::qWaitFor([&] { return history.can_undo(); }, 20'000));
    change(3);
    history.undo();  // what has not rested is remembered first
    CHECK(value == 2);
    history.undo();
    CHECK(value == 0);
    CHECK_FALSE(history.can_undo());
    history.redo();
    CHECK(value == 2);
    change(9);
    REQUIRE(QTest::qWaitFor([&] { return !history.can_redo(); }, 20'000));
    history.undo();
    CHECK(value == 2);
}

TEST_CASE("A figure that is being written is written though the window ends, a preview is not made", "[panels]") {
    ensure_application();
    const test::TemporaryFolder folder;
    // Stands for the program: makes the last file of its arguments once a ".go" file exists.
    const auto program = test::write_file(folder / "program", R"(#!/bin/sh
for last; do :; done
while [ ! -e "$0.go" ]; do [ -e "$0" ] || exit 1; sleep 0.02; done
echo made >> "$0.made"
echo figure > "$last.part" && mv "$last.part" "$last"
)");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const auto output = folder / "figure.pdf";
    figures::FigureRequest request;
    request.recipe = "indicators";
    Worker reader;
    {
        FigureMaker maker(program.string(), &reader);
        maker.write(request, {"a.headscope.h5"}, QString::fromStdString(output.string()));
        maker.preview(request, {"a.headscope.h5"});
        maker.copy(request, {"a.headscope.h5"}, QStringLiteral("svg"));
    }
    CHECK_FALSE(std::filesystem::exists(output));
    test::write_file(folder / "program.go", "");
    REQUIRE(QTest::qWaitFor([&] { return std::filesystem::exists(output); }, 30'000));
    QTest::qWait(100);  // for others, if there were any
    CHECK(test::read_file(folder / "program.made") == "made\n");
}
