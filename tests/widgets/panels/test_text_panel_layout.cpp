// SPDX-License-Identifier: GPL-3.0-or-later
// The text panel's controls: their sizes and places, the focus, chips of long texts.
#include <QApplication>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>
#include <catch2/catch.hpp>
#include <map>

#include "tests/widgets/child.h"
#include "tests/widgets/panels/text_panel_fixture.h"
#include "widgets/desk/palette.h"
#include "widgets/panels/text_panel.h"
#include "widgets/panels/token_chips.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/theme.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::card, tests::child, tests::preview;
using Panel = tests::ShownTextPanel;

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

TEST_CASE("A file's box does not look like an editor", "[panels][text]") {
    Panel p;
    auto* text = child<QPlainTextEdit>(p.panel, "text_edit");
    const int frame = text->frameShape();
    p.panel.add_file(QStringLiteral("/a/b.txt"));
    CHECK(text->isReadOnly());
    CHECK(text->frameShape() == QFrame::NoFrame);
    for (const bool dark : {true, false}) {  // the application's palette is that of neither
        const Theme theme = make_theme(dark);
        p.panel.set_theme(theme);
        CHECK(text->palette().color(QPalette::Base) == make_palette(theme).color(QPalette::Window));
        CHECK(text->palette().color(QPalette::Text) == theme.muted);
    }
    child<QPushButton>(p.panel, "text_remove")->click();
    CHECK_FALSE(text->isReadOnly());
    CHECK(text->frameShape() == frame);
    CHECK(text->palette().color(QPalette::Base) == p.panel.palette().color(QPalette::Base));
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
