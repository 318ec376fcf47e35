// SPDX-License-Identifier: GPL-3.0-or-later
// Step by step: tokens, candidates and heads of a generation, and the keys that move it.
#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSlider>
#include <QSpinBox>
#include <QTableWidget>
#include <QTest>
#include <catch2/catch.hpp>

#include "tests/core/figures/sample_asks.h"
#include "tests/widgets/ask/made_steps.h"
#include "tests/widgets/child.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/text/banner.h"
#include "widgets/views/stepper/step_figure.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::child;

namespace {

struct StepperShown {
    explicit StepperShown(int steps = 0) : source(steps) {
        desk.set_stepper(&source);
        view.reset(tests::view_kind("stepper").make(&desk, nullptr));
        view->resize(1000, 600);
        view->show();
        settle();
    }
    ~StepperShown() {
        view.reset();
        desk.set_stepper(nullptr);
    }
    void settle() {
        tests::settle(desk);
        QTest::qWait(10);
        tests::settle(desk);
    }
    void press(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
        QTest::keyClick(view.get(), static_cast<Qt::Key>(key), modifiers);
        settle();
    }
    void click(const char* name) {
        child<QPushButton>(*view, name)->click();
        settle();
    }
    QListWidget& tokens() { return *child<QListWidget>(*view, "step_tokens"); }
    QTableWidget& candidates() { return *child<QTableWidget>(*view, "step_candidates"); }
    FigureView& heads() { return *child<FigureView>(*view, "step_heads"); }
    void open_vectors() {
        desk.asks().take(QStringLiteral("/made/steer.ask.h5"),
                         std::make_shared<const store::AskRecord>(test::sample_ask("steer")));
        settle();
    }
    QSlider& slider() { return *child<QSlider>(*view, "step_steer_slider"); }
    QDoubleSpinBox& factor() { return *child<QDoubleSpinBox>(*view, "step_steer_factor"); }
    int shade(int token) { return tokens().item(token)->background().color().alpha(); }

    bool application = (ensure_application(), true);
    tests::MadeSteps source;
    Desk desk;
    std::unique_ptr<View> view;
};

/// The same steps after a prompt of an encoder and three words of a decoder with self- and cross-attention: the encoder
/// has no rows.
std::shared_ptr<const ShownGeneration> made_answer(const ShownGeneration& text) {
    auto answer = std::make_shared<ShownGeneration>(text);
    for (const std::int64_t id : {4, 5, 6}) answer->target.push_back(tests::made_word(id));
    Site encoder, self, cross;
    encoder.stack = "encoder";
    self.stack = cross.stack = "decoder";
    self.layer = cross.layer = 1;
    cross.kind = "cross";
    answer->sites = {encoder, self, cross};
    for (Site& site : answer->sites) site.heads = tests::kMadeHeads;
    for (auto& step : answer->steps) {
        auto made = std::make_shared<ShownStep>(*step);
        made->rows.insert(made->rows.begin(), StepRow());
        for (auto& measure : made->measures)
            measure.insert(measure.begin(), static_cast<std::size_t>(tests::kMadeHeads), std::nan(""));
        step = made;
    }
    return answer;
}

}  // namespace

TEST_CASE("Start takes the prompt and its settings, and the first token's candidates are listed", "[stepper]") {
    StepperShown shown;
    CHECK_FALSE(child<QPushButton>(*shown.view, "step_step")->isEnabled());
    CHECK_FALSE(child<QPushButton>(*shown.view, "step_save")->isEnabled());
    child<QLineEdit>(*shown.view, "step_prompt")->setText(QStringLiteral("In the beginning"));
    child<QSpinBox>(*shown.view, "step_top")->setValue(3);
    child<QDoubleSpinBox>(*shown.view, "step_temperature")->setValue(0.5);
    child<QSpinBox>(*shown.view, "step_seed")->setValue(4);
    child<QCheckBox>(*shown.view, "step_maps")->setChecked(false);
    QTest::keyClick(child<QLineEdit>(*shown.view, "step_prompt"), Qt::Key_Return);
    shown.settle();
    CHECK(shown.source.requests == QStringList{QStringLiteral("begin In the beginning")});
    CHECK(shown.source.given.top == 3);
    CHECK(shown.source.given.temperature == 0.5);
    CHECK(shown.source.given.seed == 4);
    CHECK_FALSE(shown.source.given.maps);
    REQUIRE(shown.tokens().count() == 4);
    CHECK(shown.tokens().item(2)->text() == QStringLiteral("␣beginning"));
    CHECK(shown.tokens().currentRow() == 3);
    REQUIRE(shown.candidates().rowCount() == 3);
    CHECK(shown.candidates().item(0, 0)->text() == QStringLiteral("␣was"));
    CHECK(shown.candidates().item(0, 0)->font().bold());
    CHECK_FALSE(shown.candidates().item(1, 0)->font().bold());
    CHECK(shown.candidates().item(0, 2)->text() == QStringLiteral("50.0 %"));
}

TEST_CASE("Keys step, go back, run and stop", "[stepper]") {
    StepperShown shown(1);
    shown.press(Qt::Key_F8);
    CHECK(shown.tokens().count() == 5);
    CHECK(shown.tokens().currentRow() == 4);
    child<QSpinBox>(*shown.view, "step_count")->setValue(3);
    shown.press(Qt::Key_F8, Qt::ControlModifier);
    CHECK(shown.tokens().count() == 8);
    shown.press(Qt::Key_F8, Qt::ShiftModifier);
    CHECK(shown.tokens().count() == 7);
    shown.press(Qt::Key_Escape);  // nothing runs
    CHECK(shown.source.requests ==
          QStringList{QStringLiteral("step 1"), QStringLiteral("step 3"), QStringLiteral("keep 4")});
    shown.source.slow = true;
    Q_EMIT shown.source.changed();
    shown.settle();
    CHECK(child<QLabel>(*shown.view, "step_words")->text() == QStringLiteral("Generating…"));
    CHECK_FALSE(child<QPushButton>(*shown.view, "step_begin")->isEnabled());
    shown.press(Qt::Key_F8);  // waits for nothing, and asks for nothing
    shown.press(Qt::Key_Escape);
    CHECK(shown.source.requests.size() == 4);
    CHECK(shown.source.requests.back() == QStringLiteral("stop"));
    CHECK(child<QPushButton>(*shown.view, "step_step")->isEnabled());
}

TEST_CASE("A candidate or a typed token takes the place of the chosen one", "[stepper]") {
    StepperShown shown(4);
    shown.tokens().setCurrentRow(4);  // step 1
    shown.settle();
    REQUIRE(shown.candidates().rowCount() == 3);
    shown.candidates().setFocus();
    shown.candidates().setCurrentCell(2, 0);
    QTest::keyClick(&shown.candidates(), Qt::Key_Return);
    shown.settle();
    CHECK(shown.source.requests.back() == QStringLiteral("replace 1 6"));
    REQUIRE(shown.tokens().count() == 5);
    CHECK(shown.tokens().currentRow() == 4);
    CHECK(shown.tokens().item(4)->font().underline());
    CHECK_FALSE(shown.tokens().item(3)->font().underline());

    auto* typed = child<QLineEdit>(*shown.view, "step_replacement");
    for (const auto& [text, token] : {std::pair("17", "17"), std::pair(" king", "\" king\""),
                                      std::pair("\"17\"", "\"17\""), std::pair("king", "\"king\"")}) {
        typed->setText(QLatin1String(text));
        QTest::keyClick(typed, Qt::Key_Return);
        shown.settle();
        CHECK(shown.source.requests.back() == QStringLiteral("replace 1 ") + QLatin1String(token));
    }
    shown.tokens().setCurrentRow(1);  // of the prompt: nothing to replace
    shown.settle();
    CHECK(shown.candidates().rowCount() == 0);
    CHECK_FALSE(child<QPushButton>(*shown.view, "step_replace")->isEnabled());
    CHECK(shown.heads().figure() == nullptr);
}

TEST_CASE("The heat map shows the chosen token's rows by layer and head", "[stepper]") {
    StepperShown shown(3);
    for (const auto& [measure, index] :
         {std::pair(0, std::size_t{0}), std::pair(1, std::size_t{1}), std::pair(2, std::size_t{2})}) {
        child<QComboBox>(*shown.view, "step_measure")->setCurrentIndex(measure);
        shown.settle();
        REQUIRE(shown.heads().figure());
        const auto* map = std::get_if<figures::HeatMap>(&shown.heads().figure()->panels.front().content);
        REQUIRE(map);
        CHECK(map->rows == tests::kMadeSites);
        CHECK(map->columns == tests::kMadeHeads);
        const auto& wanted = shown.source.shown->steps[2]->measures[index];
        REQUIRE(map->values.size() == wanted.size());
        for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(map->values[i] == static_cast<float>(wanted[i]));
    }
    QTest::mouseClick(shown.heads().viewport(), Qt::LeftButton, Qt::NoModifier, shown.heads().cell_point(0, 1, 2));
    shown.settle();
    CHECK(child<QComboBox>(*shown.view, "step_site")->currentIndex() == 1);
    CHECK(child<QSpinBox>(*shown.view, "step_head")->value() == 2);
    CHECK_FALSE(shown.heads().marks().empty());
}

TEST_CASE("Tokens are shaded by their probability, or by the row of the chosen head", "[stepper]") {
    StepperShown shown(2);
    CHECK(shown.shade(0) == 0);
    CHECK(shown.shade(3) == 75);  // half as likely as certain: half of the strongest shade
    CHECK(shown.shade(4) == 60);
    child<QCheckBox>(*shown.view, "step_row")->setChecked(true);
    shown.settle();
    const std::vector<float> weights = step_weights(*shown.source.shown, 1, 0, 0);
    REQUIRE(weights.size() == 4);
    for (int i = 0; i < 4; ++i) CHECK(shown.shade(i) == std::lround(150 * weights[static_cast<std::size_t>(i)]));
    CHECK(shown.shade(4) == 0);  // the row ends before the token that it led to
    CHECK(step_weights(*shown.source.shown, 1, 5, 0).empty());
    CHECK(step_weights(*shown.source.shown, 1, 0, 3).empty());
}

TEST_CASE("The list has both texts of an encoder-decoder, and a row shades the one that its keys are of", "[stepper]") {
    StepperShown shown(2);
    const auto answer = made_answer(*shown.source.shown);
    shown.source.take(answer);
    shown.settle();
    REQUIRE(shown.tokens().count() == 8);  // three words each, and two steps
    CHECK(shown.tokens().item(0)->toolTip() == QStringLiteral("Encoder, token 0, id 0"));
    CHECK(shown.tokens().item(3)->toolTip() == QStringLiteral("Decoder, token 0, id 4"));
    CHECK(shown.tokens().item(3)->text() == tests::made_word(4).text);
    CHECK(shown.tokens().item(3)->font().italic());
    CHECK_FALSE(shown.tokens().item(2)->font().italic());
    CHECK(shown.tokens().item(6)->toolTip().startsWith(QLatin1String("Step 0, id 3")));
    CHECK(child<QLabel>(*shown.view, "step_words")->text() ==
          QStringLiteral("3 tokens for the encoder, 3 for the decoder, 2 generated"));

    auto* site = child<QComboBox>(*shown.view, "step_site");
    REQUIRE(site->count() == 3);
    CHECK(site->itemText(0) == QStringLiteral("Layer encoder 0"));
    CHECK(site->itemText(1) == QStringLiteral("Layer decoder 1 self"));
    CHECK(site->itemText(2) == QStringLiteral("Layer decoder 1 cross"));
    CHECK(site->currentIndex() == 1);  // the encoder has no rows
    REQUIRE(shown.heads().figure());
    const auto& rows = shown.heads().figure()->panels.front().y.ticks;
    REQUIRE(rows.size() == 3);
    CHECK(rows[2].label == "decoder 1 cross");

    shown.tokens().setCurrentRow(6);  // step 0
    shown.settle();
    CHECK(shown.candidates().rowCount() == 3);
    CHECK(shown.shade(5) == 0);
    CHECK(shown.shade(6) == 75);
    child<QCheckBox>(*shown.view, "step_row")->setChecked(true);
    for (const auto& [index, begin] : {std::pair(1, 3), std::pair(2, 0)}) {
        INFO("site " << index);
        site->setCurrentIndex(index);
        shown.settle();
        const std::vector<float> weights = step_weights(*answer, 0, index, 0);
        REQUIRE(weights.size() == 3);
        for (int i = 0; i < 8; ++i) {
            const bool in_row = i >= begin && i < begin + 3;
            CHECK(shown.shade(i) == (in_row ? std::lround(150 * weights[static_cast<std::size_t>(i - begin)]) : 0));
        }
    }
    site->setCurrentIndex(0);
    shown.settle();
    CHECK(child<QLabel>(*shown.view, "step_words")->text().endsWith(QLatin1String("; this head has no row")));

    const auto next = std::make_shared<ShownGeneration>(*answer);
    next->target.pop_back();
    shown.source.take(next);
    shown.settle();
    CHECK(shown.tokens().count() == 7);
}

TEST_CASE("With a steer file a slider shows the chosen token's candidates with and without the vector", "[stepper]") {
    StepperShown shown(3);
    CHECK_FALSE(shown.slider().isVisible());
    CHECK(shown.candidates().isColumnHidden(3));
    shown.open_vectors();
    CHECK(shown.slider().isVisible());
    CHECK(child<QComboBox>(*shown.view, "step_steer_layer")->count() == 5);  // every layer, and four
    CHECK(shown.source.requests.isEmpty());

    QTest::keyClick(&shown.slider(), Qt::Key_Right);  // a fortieth of the file's largest factor, 2
    shown.settle();
    CHECK(shown.factor().value() == Approx(0.05));
    CHECK(shown.source.requests == QStringList{QStringLiteral("steer 2 -1 0.05")});
    CHECK_FALSE(shown.candidates().isColumnHidden(3));
    REQUIRE(shown.candidates().rowCount() == 4);
    CHECK(shown.candidates().item(0, 2)->text() == QStringLiteral("70.0 %"));
    CHECK(shown.candidates().item(0, 3)->text() == QStringLiteral("35.0 %"));
    CHECK(shown.candidates().item(3, 0)->text() == QStringLiteral("In"));
    CHECK(shown.candidates().item(3, 2)->text() == QStringLiteral("0.0 %"));
    CHECK(shown.candidates().item(3, 3)->text() == QStringLiteral("50.0 %"));
    CHECK(child<QLabel>(*shown.view, "step_words")->text().contains(QLatin1String("every layer steered by 0.05")));

    child<QComboBox>(*shown.view, "step_steer_layer")->setCurrentIndex(2);
    shown.settle();
    CHECK(shown.source.requests.back() == QStringLiteral("steer 2 1 0.05"));
    shown.factor().setValue(-9);  // beyond the slider
    shown.settle();
    CHECK(shown.slider().value() == shown.slider().minimum());
    CHECK(shown.source.requests.back() == QStringLiteral("steer 2 1 -9"));

    shown.factor().setValue(0);
    shown.settle();
    CHECK(shown.source.requests.size() == 3);
    CHECK(shown.candidates().isColumnHidden(3));
    CHECK(shown.candidates().rowCount() == 3);
}

TEST_CASE("A dragged slider steers at its release, another token is steered at once, and a busy source later",
          "[stepper]") {
    StepperShown shown(3);
    shown.open_vectors();
    shown.slider().setSliderDown(true);
    for (const int value : {5, 10, 20}) shown.slider().setValue(value);
    shown.settle();
    CHECK(shown.factor().value() == 1);
    CHECK(shown.source.requests.isEmpty());
    shown.slider().setSliderDown(false);
    shown.settle();
    CHECK(shown.source.requests == QStringList{QStringLiteral("steer 2 -1 1")});

    shown.tokens().setCurrentRow(3);  // step 0
    shown.settle();
    CHECK(shown.source.requests.back() == QStringLiteral("steer 0 -1 1"));
    CHECK(shown.tokens().currentRow() == 3);
    CHECK_FALSE(shown.candidates().isColumnHidden(3));
    shown.tokens().setCurrentRow(1);  // of the prompt
    shown.settle();
    CHECK(shown.source.requests.size() == 2);

    shown.tokens().setCurrentRow(4);
    shown.settle();
    REQUIRE(shown.source.requests.size() == 3);
    shown.source.slow = true;
    shown.slider().setValue(40);
    shown.settle();
    CHECK(shown.source.requests.size() == 3);
    CHECK(shown.candidates().isColumnHidden(3));  // the last numbers are of another factor
    shown.source.slow = false;
    Q_EMIT shown.source.changed();
    shown.settle();
    CHECK(shown.source.requests.back() == QStringLiteral("steer 1 -1 2"));

    shown.desk.asks().remove(shown.desk.asks().all().front().id);
    shown.settle();
    CHECK_FALSE(shown.slider().isVisible());
    CHECK(shown.candidates().isColumnHidden(3));
}

TEST_CASE("Without a model there is a notice; refused work shows why, and a text that ended offers no step",
          "[stepper]") {
    StepperShown shown(2);
    Q_EMIT shown.source.failed(QStringLiteral("[replacement] expected strings of one token"));
    shown.settle();
    CHECK(child<Banner>(*shown.view, "failure")->text().contains(QLatin1String("one token")));
    auto ended = std::make_shared<ShownGeneration>(*shown.source.shown);
    ended->ended = true;
    shown.source.take(ended);
    shown.settle();
    CHECK_FALSE(child<QPushButton>(*shown.view, "step_step")->isEnabled());
    CHECK(child<QPushButton>(*shown.view, "step_back")->isEnabled());
    CHECK(child<QLabel>(*shown.view, "step_words")->text().contains(QLatin1String("has ended")));
    shown.source.shown = nullptr;
    shown.source.name.clear();
    Q_EMIT shown.source.models_changed();
    shown.settle();
    CHECK_FALSE(shown.tokens().isVisible());
}

TEST_CASE("Choices of the view come back with the session", "[stepper]") {
    StepperShown shown(2), other(2);
    child<QLineEdit>(*shown.view, "step_prompt")->setText(QStringLiteral("a text"));
    child<QSpinBox>(*shown.view, "step_count")->setValue(7);
    child<QComboBox>(*shown.view, "step_measure")->setCurrentIndex(2);
    child<QCheckBox>(*shown.view, "step_row")->setChecked(true);
    other.view->restore(shown.view->state());
    CHECK(other.view->state() == shown.view->state());
    other.view->restore({{"top", QStringLiteral("many")}, {"measure", 99}});
    CHECK(other.view->state() == shown.view->state());
}
