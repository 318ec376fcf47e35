// SPDX-License-Identifier: GPL-3.0-or-later
// Radar, Logits and States: the recipes' figures on the screen, linked to the selection.
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>
#include <catch2/catch.hpp>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_recurrent.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/text/banner.h"
#include "widgets/text/text_area.h"
#include "widgets/views/token_types/type_strip.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

tests::SyntheticAnalysis analysis(bool maps = false, bool states = false) {
    tests::SyntheticAnalysis a;
    a.lengths = {24, 17};
    a.record.maps = maps;
    a.record.states = states;
    return a;
}

struct Shown {
    explicit Shown(const char* kind, const tests::SyntheticAnalysis& a = analysis()) {
        open("first", a);
        view.reset(tests::view_kind(kind).make(&desk, nullptr));
        view->resize(900, 600);
        view->show();
        settle();
    }
    /// A model with a layer of NAtS-L.
    Shown(const char* kind, const tests::RecurrentSample& sample) {
        const auto path = folder / "types.headscope.h5";
        tests::write_recurrent_analysis(path, sample);
        tests::open_study(desk, path);
        view.reset(tests::view_kind(kind).make(&desk, nullptr));
        view->resize(900, 600);
        view->show();
        settle();
    }
    Study* open(const std::string& name, const tests::SyntheticAnalysis& a) {
        const auto path = folder / (name + ".headscope.h5");
        tests::write_synthetic_analysis(path, a);
        return tests::open_study(desk, path);
    }
    void settle() {
        tests::settle(desk);
        QTest::qWait(20);
        tests::settle(desk);
    }
    FigureView* picture() { return view->findChild<FigureView*>(); }
    QComboBox* box(const char* name) { return view->findChild<QComboBox*>(QLatin1String(name)); }
    QString pointed() { return view->findChild<QLabel*>(QStringLiteral("pointed"))->text(); }
    void choose(const char* name, const char* value) {
        box(name)->setCurrentIndex(box(name)->findData(QLatin1String(value)));
        settle();
    }
    void click(QPoint place) {
        QTest::mouseClick(picture()->viewport(), Qt::LeftButton, {}, place);
        settle();
    }

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    std::unique_ptr<View> view;
};

}  // namespace

TEST_CASE("What is laid out late is waited for before a picture is taken", "[view][figures]") {
    ensure_application();
    FigureView picture;
    picture.resize(700, 500);
    picture.show();
    // Long enough to lay out that the next time waits for a pause.
    auto figure = std::make_shared<figures::FigureData>();
    figures::Radar radar;
    radar.spokes = {"a", "b", "c", "d", "e"};
    radar.series.push_back({"one", {0.1, 0.9, 0.4, 0.5, 0.6}, 0, {}});
    for (int i = 0; i < 600; ++i) {
        figures::Panel panel;
        panel.title = std::to_string(i);
        panel.content = radar;
        figure->panels.push_back(std::move(panel));
    }
    figure->columns = 6;
    picture.set_figure(figure);
    Desk desk;
    tests::settle(desk);
    picture.set_theme(make_theme(true));
    CHECK(picture.waits());
    tests::settle(desk);
    CHECK_FALSE(picture.waits());
}

TEST_CASE("Radar: a panel a layer; a click selects it, the selected one is framed", "[views][radar]") {
    Shown shown("radar");
    REQUIRE(shown.picture()->figure());
    CHECK(shown.picture()->figure()->panels.size() == 3);
    shown.click(shown.picture()->panel_rect(2).center());
    CHECK(shown.desk.selection().site == 2);
    const QImage last = shown.picture()->viewport()->grab().toImage();
    shown.desk.select_head(0, 0);
    shown.settle();
    CHECK(shown.picture()->viewport()->grab().toImage() != last);
    const auto wish = shown.view->figure();
    REQUIRE(wish);
    CHECK(wish->recipe == "radar");
    CHECK(wish->options.sequence == 0);
    CHECK(wish->studies == std::vector<int>{shown.desk.studies()[0]->id()});
}

TEST_CASE("Radar: a ticked analysis stands beside the selected one", "[views][radar]") {
    Shown shown("radar");
    CHECK(shown.view->findChildren<QCheckBox*>().isEmpty());
    auto second = analysis();
    second.layers = 2;
    second.model_name = "other";
    Study* other = shown.open("second", second);
    shown.settle();
    auto* tick = shown.view->findChild<QCheckBox*>();
    REQUIRE(tick);
    QTest::mouseClick(tick, Qt::LeftButton, {}, QPoint(8, tick->height() / 2));
    shown.settle();
    CHECK(shown.picture()->figure()->panels.size() == 6);
    CHECK(shown.view->figure()->studies.size() == 2);
    shown.click(shown.picture()->panel_rect(2).center());  // the second layer of the first
    CHECK(shown.desk.selection().site == 1);

    // Back from a session: the tick comes with the analysis.
    const QJsonObject state = shown.view->state();
    const std::unique_ptr<View> again(tests::view_kind("radar").make(&shown.desk, nullptr));
    again->restore(state);
    again->show();
    shown.settle();
    CHECK(again->state() == state);
    CHECK(again->figure()->studies.size() == 2);

    // It lacks the chosen sequence: not drawn, and said.
    auto short_one = analysis();
    short_one.lengths = {9};
    shown.open("third", short_one);
    auto selection = shown.desk.selection();
    selection.sequence = 1;
    shown.desk.select(selection);
    shown.settle();
    const auto boxes = shown.view->findChildren<QCheckBox*>();
    REQUIRE(boxes.size() == 2);
    CHECK(boxes[0]->isEnabled());
    CHECK_FALSE(boxes[1]->isEnabled());
    shown.desk.remove(other->id());
    shown.settle();
    CHECK(shown.view->figure()->studies.size() == 1);
}

TEST_CASE("Of many analyses the newest can be ticked, and what is ticked stays", "[views][radar]") {
    Shown shown("radar");
    shown.open("oldest", analysis());
    shown.settle();
    auto* first = shown.view->findChild<QCheckBox*>();
    REQUIRE(first);
    QTest::mouseClick(first, Qt::LeftButton, {}, QPoint(8, first->height() / 2));
    for (int i = 0; i < 20; ++i) shown.open(QStringLiteral("more-%1").arg(i).toStdString(), analysis());
    shown.settle();
    const auto boxes = shown.view->findChildren<QCheckBox*>();
    REQUIRE(boxes.size() == 17);
    CHECK(boxes[0]->property("name").toString().contains("(oldest)"));
    CHECK(boxes[0]->isChecked());
    CHECK(boxes[1]->property("name").toString().contains("(more-4)"));
    CHECK(boxes[16]->property("name").toString().contains("(more-19)"));
    CHECK(shown.view->figure()->studies.size() == 2);
}

TEST_CASE("Analyses of one model beside each other have different names", "[views][radar]") {
    Shown shown("radar");
    shown.open("llama-kjv-shakespeare-20261123-025301-123", analysis());
    shown.open("llama-kjv-shakespeare-20261123-031502-456", analysis());
    shown.view->resize(760, 480);
    shown.settle();
    const auto boxes = shown.view->findChildren<QCheckBox*>();
    REQUIRE(boxes.size() == 2);
    CHECK(boxes[0]->text() != boxes[1]->text());
    shown.view->resize(1600, 480);
    shown.settle();
    // Files that are named by times alone are numbered.
    CHECK(boxes[0]->text().endsWith("(1)"));
    CHECK(boxes[1]->text().endsWith("(2)"));
}

TEST_CASE("Radar: a tool tip gives the indicators' definitions and sources", "[views][radar]") {
    Shown shown("radar");
    const QString tip = shown.picture()->toolTip();
    for (const char* words : {"<b>HD</b>", "Mean weight on the first key.", "Source: Deconstructing Attention"}) {
        INFO(words);
        CHECK(tip.contains(QLatin1String(words)));
    }
}

TEST_CASE("Radar: all sequences, and one head in place of the mean", "[views][radar]") {
    Shown shown("radar");
    const auto one = *shown.picture()->figure();
    auto selection = shown.desk.selection();
    selection.sequence.reset();
    shown.desk.select(selection);
    shown.settle();
    CHECK(shown.view->figure()->options.all_sequences);
    CHECK(shown.picture()->figure()->notes != one.notes);
    shown.choose("of", "head");
    CHECK(shown.view->figure()->options.head == 0);
    CHECK(shown.picture()->figure()->title.find("head 0") != std::string::npos);
}

TEST_CASE("Logits: a ridge a layer, then a head; a click selects it, outliers are counted in words",
          "[views][logits]") {
    Shown shown("logits");
    const auto rows = [&] {
        return std::get<figures::Ridges>(shown.picture()->figure()->panels[0].content).ridges.size();
    };
    CHECK(rows() == 3);
    shown.click(shown.picture()->row_point(0, 2));
    CHECK(shown.desk.selection().site == 2);
    CHECK(shown.pointed().contains("layer 2"));
    CHECK(shown.pointed().contains("> 1000: 0"));
    shown.choose("by", "heads");
    CHECK(rows() == 4);
    CHECK(shown.view->figure()->options.layer == 2);
    shown.click(shown.picture()->row_point(0, 3));
    CHECK(shown.desk.selection().head == 3);
    CHECK(shown.pointed().contains("head 3"));
    CHECK(shown.picture()->figure()->panels[0].x.scale == figures::ScaleKind::symmetric_log);
    // A pointer over a ridge shows the score there.
    QTest::mouseMove(shown.picture()->viewport(), shown.picture()->row_point(0, 1));
    CHECK(shown.pointed().startsWith("score "));
    CHECK(shown.pointed().contains("head 1"));
}

TEST_CASE("Logits: weights after the softmax need maps, and a run that records them is offered", "[views][logits]") {
    Shown shown("logits");
    shown.choose("stage", "both");
    auto* banner = shown.view->findChild<Banner*>(QStringLiteral("banner"));
    REQUIRE(banner);
    CHECK(banner->text().contains("maps"));
    CHECK(shown.picture()->figure()->panels.size() == 1);
    QSignalSpy wanted(&shown.desk, &Desk::run_wanted);
    QTest::mouseClick(banner->findChild<QPushButton*>(), Qt::LeftButton);
    REQUIRE(wanted.count() == 1);
    CHECK(wanted[0][0].value<RunRequest>().maps);

    Shown with("logits", analysis(true));
    with.choose("stage", "both");
    CHECK(with.picture()->figure()->panels.size() == 2);
    CHECK(with.view->figure()->options.stage == figures::Stage::both);
    CHECK(with.pointed().contains("|"));
}

TEST_CASE("States: offered where they were not recorded", "[views][states]") {
    Shown shown("states");
    auto* action = shown.view->findChild<QPushButton*>(QStringLiteral("notice_action"));
    REQUIRE(action->isVisible());
    QSignalSpy wanted(&shown.desk, &Desk::run_wanted);
    QTest::mouseClick(action, Qt::LeftButton);
    REQUIRE(wanted.count() == 1);
    CHECK(wanted[0][0].value<RunRequest>().states);
    CHECK(wanted[0][0].value<RunRequest>().study == shown.desk.selection().study);
    CHECK_FALSE(shown.view->figure());
}

TEST_CASE("States: norms and variances of four quantities, the sink marked, curves select", "[views][states]") {
    Shown shown("states", analysis(false, true));
    const auto* figure = shown.picture()->figure();
    REQUIRE(figure);
    REQUIRE(figure->panels.size() == 8);
    REQUIRE_FALSE(figure->panels[0].markers.empty());
    CHECK(figure->panels[0].markers[0].label.find("sink") != std::string::npos);
    const auto& curves = std::get<figures::Curves>(figure->panels[2].content).curves;
    REQUIRE(curves.size() == 3);
    CHECK(curves[2].name == "layer 2");
    shown.picture()->verticalScrollBar()->setValue(0);
    // Flat lines at 1, 2 and 3: the last layer's is the highest.
    shown.click(shown.picture()->row_point(2, 2));
    CHECK(shown.desk.selection().site == 2);
    shown.choose("by", "heads");
    CHECK(shown.view->figure()->options.layer == 2);
    shown.choose("by", "head");
    CHECK(shown.view->figure()->options.head == 0);
}

TEST_CASE("A figure on the screen fills the widget, scrolls where it cannot, and follows the theme",
          "[views][figure]") {
    Shown shown("states", analysis(false, true));
    auto* bar = shown.picture()->verticalScrollBar();
    shown.view->resize(900, 1100);
    shown.settle();
    CHECK(bar->maximum() == 0);
    const QRect last = shown.picture()->panel_rect(7);
    CHECK(last.bottom() > shown.picture()->viewport()->height() / 2);
    shown.view->resize(500, 300);
    shown.settle();
    CHECK(bar->maximum() > 0);
    shown.picture()->setFocus();
    QTest::keyClick(shown.picture(), Qt::Key_End);
    CHECK(bar->value() == bar->maximum());
    QTest::keyClick(shown.picture(), Qt::Key_Down);  // a layer, not the scroll bar
    CHECK(bar->value() == bar->maximum());
    CHECK(shown.desk.selection().site == 1);
    const auto corner = [&] { return shown.picture()->viewport()->grab().toImage().pixelColor(1, 1); };
    CHECK(corner().lightness() > 200);
    shown.desk.set_dark(true);
    shown.settle();
    QTest::qWait(300);
    CHECK(corner().lightness() < 60);
}

TEST_CASE("Arrow keys over a figure step through layers and heads", "[views][figure]") {
    Shown shown("logits");
    QTest::keyClick(shown.picture(), Qt::Key_Down);
    QTest::keyClick(shown.picture(), Qt::Key_Right);
    CHECK(shown.desk.selection().site == 1);
    CHECK(shown.desk.selection().head == 1);
}

TEST_CASE("A failure is shown above the controls that led to it", "[views][figure]") {
    Shown shown("logits");
    auto other = analysis();
    other.layers = 1;
    shown.open("other", other);
    shown.desk.select_head(2, 0);
    shown.settle();
    shown.view->findChild<QCheckBox*>()->setChecked(true);
    shown.choose("by", "heads");
    auto* failure = shown.view->findChild<Banner*>(QStringLiteral("failure"));
    CHECK(failure->text().contains("--layer"));
    CHECK(shown.box("by")->isVisible());
    shown.choose("by", "layers");
    CHECK(failure->text().isEmpty());
    CHECK(shown.picture()->figure()->panels.size() == 2);
}

TEST_CASE("Token types: a cell is a head; below are its chunks, over the text", "[views][token_types]") {
    const tests::RecurrentSample sample;
    Shown shown("token_types", sample);
    REQUIRE(shown.picture()->figure());
    const auto& map = std::get<figures::HeatMap>(shown.picture()->figure()->panels.at(0).content);
    REQUIRE(map.columns == 4);
    shown.click(shown.picture()->cell_point(0, 0, 2));
    CHECK(shown.desk.selection().site == tests::kLinearBranch);
    CHECK(shown.desk.selection().head == 2);
    auto* strip = shown.view->findChild<TypeStrip*>(QStringLiteral("types_strip"));
    auto* text = shown.view->findChild<TokenTextArea*>(QStringLiteral("types_text"));
    auto* heading = shown.view->findChild<QLabel*>(QStringLiteral("types_heading"));
    REQUIRE((strip && text && heading));
    // Head h has its first (h + seed) mod 4 chunks softmax: of head 2 all three, of head 1 two.
    CHECK(strip->types() == std::vector<std::int32_t>{0, 0, 0});
    const QImage all = strip->grab().toImage();
    shown.desk.select_head(tests::kLinearBranch, 1);
    shown.settle();
    CHECK(strip->types() == std::vector<std::int32_t>{0, 0, 1});
    CHECK(strip->grab().toImage() != all);
    CHECK(heading->text().contains("2 of 3 chunks of 8 tokens"));
    const Theme theme = shown.desk.theme();
    CHECK(text->strip_colour(15, 0) == type_colour(0, theme));
    CHECK(text->strip_colour(16, 0) == type_colour(1, theme));
    CHECK(text->description(16).contains("chunk 2: linear attention"));
    CHECK(strip->chunk_at({strip->width() - 2, 2}) == 2);
    // Layers without types leave those of the first that has some.
    shown.desk.select_head(tests::kSoftmaxSite, 0);
    shown.settle();
    CHECK(strip->types() == std::vector<std::int32_t>{0, 1, 1});
}

TEST_CASE("Token types: all texts beside each other, chunks of a layer, and models without types",
          "[views][token_types]") {
    const tests::RecurrentSample sample;
    Shown shown("token_types", sample);
    auto selection = shown.desk.selection();
    selection.sequence.reset();
    shown.desk.select(selection);
    shown.settle();
    REQUIRE(shown.view->figure());
    CHECK(shown.view->figure()->options.all_sequences);
    CHECK(shown.picture()->figure()->panels.size() == 2);
    shown.click(shown.picture()->cell_point(1, 0, 3));
    CHECK(shown.desk.selection().head == 3);
    selection.sequence = 0;
    shown.desk.select(selection);
    shown.choose("of", "chunks");
    CHECK(shown.view->figure()->options.layer == 0);
    const auto& map = std::get<figures::HeatMap>(shown.picture()->figure()->panels.at(0).content);
    CHECK(map.rows == 4);
    CHECK(map.columns == 3);
    shown.click(shown.picture()->cell_point(0, 1, 0));
    CHECK(shown.desk.selection().site == tests::kLinearBranch);
    CHECK(shown.desk.selection().head == 1);

    Shown plain("token_types");
    CHECK_FALSE(plain.view->figure());
}

TEST_CASE("Colours of types differ in grey, light and dark", "[views][token_types]") {
    for (const bool dark : {false, true}) {
        const Theme theme = make_theme(dark);
        CHECK(std::abs(qGray(type_colour(0, theme).rgb()) - qGray(type_colour(1, theme).rgb())) > 30);
    }
}
