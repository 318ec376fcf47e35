// SPDX-License-Identifier: GPL-3.0-or-later
// A run and its controls, curves and texts.
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QSlider>
#include <QTableWidget>
#include <QTest>
#include <QToolButton>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "tests/widgets/child.h"
#include "tests/widgets/run/run_page.h"
#include "widgets/training/curve_plot.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::child;
using Page = tests::RunPage;

namespace {

void change(Page& page, int run, training::RunState state, bool written) {
    auto next = std::make_shared<workspace::LiveRun>(*page.desk.runs().run(run)->record);
    next->add({2e9, training::StateChanged{state, 400, {}}});
    next->written = written;
    page.desk.runs().take(run, next);
    page.settle();
}

}  // namespace

TEST_CASE("Without a run there is a way to one", "[run]") {
    for (const char* name : {"run", "timeline"}) {
        Page page(name, 0);
        QSignalSpy wanted(&page.desk, &Desk::view_wanted);
        child<QPushButton>(*page.view, "notice_action")->click();
        REQUIRE(wanted.count() == 1);
        CHECK(wanted[0][0].toString() == "train");
    }
}

TEST_CASE("Controls ask for what the run can do now", "[run]") {
    Page page("run");
    QSignalSpy asked(&page.desk.runs(), &RunShelf::control_wanted);
    child<QPushButton>(*page.view, "run_pause")->click();
    child<QPushButton>(*page.view, "run_snapshot")->click();
    REQUIRE(asked.count() == 2);
    CHECK(asked[0][1].toString() == "pause");
    CHECK(asked[1][1].toString() == "snapshot");
    CHECK_FALSE(child<QPushButton>(*page.view, "run_resume")->isVisible());

    change(page, 1, training::RunState::paused, true);
    CHECK(child<QLabel>(*page.view, "run_state")->text().startsWith(QStringLiteral("paused")));
    child<QPushButton>(*page.view, "run_resume")->click();
    REQUIRE(asked.count() == 3);
    CHECK(asked[2][1].toString() == "resume");

    // Its process is gone: another one has to begin.
    QSignalSpy again(&page.desk.runs(), &RunShelf::resume_wanted);
    change(page, 1, training::RunState::running, false);
    CHECK(child<QLabel>(*page.view, "run_state")->text().startsWith(QStringLiteral("interrupted")));
    CHECK_FALSE(child<QPushButton>(*page.view, "run_stop")->isEnabled());
    child<QPushButton>(*page.view, "run_resume")->click();
    CHECK(again.count() == 1);
    CHECK(asked.count() == 3);

    change(page, 1, training::RunState::finished, false);
    CHECK_FALSE(child<QPushButton>(*page.view, "run_resume")->isVisible());
    CHECK(child<QPushButton>(*page.view, "run_fork")->isEnabled());
}

TEST_CASE("The rate is given when the slider is let go, about the peak that holds", "[run]") {
    Page page("run");
    QSignalSpy asked(&page.desk.runs(), &RunShelf::control_wanted);
    auto* slider = child<QSlider>(*page.view, "run_rate_slider");
    CHECK(slider->value() == 0);
    CHECK(child<QLabel>(*page.view, "run_rate_words")->text().contains(QStringLiteral("2·10⁻⁴")));  // it was changed
    slider->setSliderDown(true);
    slider->setSliderPosition(100);
    CHECK(asked.count() == 0);
    slider->setSliderDown(false);
    REQUIRE(asked.count() == 1);
    CHECK(asked[0][1].toString() == "learning_rate");
    CHECK(asked[0][2].toString().toDouble() == Approx(2e-3));
}

TEST_CASE("What was asked is shown until the journal answers", "[run]") {
    Page page("run");
    page.desk.runs().set_waiting(1, {QStringLiteral("evaluate")});
    page.settle();
    CHECK(child<QLabel>(*page.view, "run_state")->text().contains(QStringLiteral("evaluate")));
    page.desk.runs().set_waiting(1, {});
    page.settle();
    CHECK_FALSE(child<QLabel>(*page.view, "run_state")->text().contains(QStringLiteral("evaluate")));
}

TEST_CASE("Runs are overlaid, and one is left out by its box", "[run]") {
    Page page("run", 3);
    auto* loss = child<CurvePlot>(*page.view, "run_loss");
    loss->set_cursor(200);
    CHECK(loss->readings().size() == 6);  // training and validation of each
    child<QCheckBox>(*page.view, "run_shown_0")->setChecked(false);
    page.settle();
    loss->set_cursor(201);
    CHECK(loss->readings().size() == 4);
    child<QToolButton>(*page.view, "run_chip_1")->click();
    CHECK(page.desk.runs().current()->name == "run 1");
    const auto wish = page.view->figure();
    REQUIRE(wish);
    CHECK(wish->recipe == "loss");
    CHECK(wish->paths == QStringList{QStringLiteral("/runs/1"), QStringLiteral("/runs/2")});
}

TEST_CASE("Shares of right answers have a plot where a run has them", "[run]") {
    Page page("run");
    auto* plot = child<CurvePlot>(*page.view, "run_accuracy");
    CHECK_FALSE(plot->isVisible());
    auto next = std::make_shared<workspace::LiveRun>(*page.desk.runs().run(1)->record);
    training::Step step;
    step.step = next->steps.step.back() + 1;
    step.tokens = next->steps.tokens.back() + 1;
    step.seconds = next->steps.seconds.back() + 1;
    step.accuracy = 0.5;
    next->add({2e9, step});
    page.desk.runs().take(1, std::move(next));
    page.settle();
    CHECK(plot->isVisible());
    plot->set_cursor(static_cast<double>(step.step));
    REQUIRE_FALSE(plot->readings().empty());
    CHECK(plot->readings().front().contains(QStringLiteral("50 %")));
}

TEST_CASE("Losses are shown as perplexities if that is asked for", "[run]") {
    Page page("run");
    auto* loss = child<CurvePlot>(*page.view, "run_loss");
    loss->set_cursor(400);
    const auto before = loss->readings();
    auto* box = child<QCheckBox>(*page.view, "run_perplexity");
    box->setChecked(true);
    page.settle();
    loss->set_cursor(399);
    loss->set_cursor(400);
    const auto after = loss->readings();
    REQUIRE(after.size() == before.size());
    REQUIRE_FALSE(after.empty());
    const auto number = [](const QString& reading) { return reading.section(QStringLiteral("  "), -1).toDouble(); };
    for (qsizetype i = 0; i < after.size(); ++i) {
        CHECK(number(before[i]) > 0);
        CHECK(number(after[i]) == Approx(std::exp(number(before[i]))).epsilon(2e-3));
    }
    box->setChecked(false);
}

TEST_CASE("A cursor reads all plots, and they zoom together", "[run]") {
    Page page("run");
    auto* loss = child<CurvePlot>(*page.view, "run_loss");
    auto* rate = child<CurvePlot>(*page.view, "run_rate");
    loss->setFocus();
    QTest::keyClick(loss, Qt::Key_Left);
    REQUIRE(loss->cursor());
    CHECK(rate->cursor() == loss->cursor());
    CHECK_FALSE(loss->accessibleDescription().isEmpty());
    QTest::keyClick(loss, Qt::Key_Plus);
    REQUIRE(loss->range());
    CHECK(rate->range() == loss->range());
    CHECK(loss->range()->second <= 400);
    QTest::keyClick(loss, Qt::Key_0);
    CHECK_FALSE(rate->range());
    QTest::mouseMove(loss, loss->plot_area().center());
    CHECK(loss->x_to_pixel(loss->pixel_to_x(123)) == Approx(123));
}

TEST_CASE("Samples, log, snapshots and job are in words", "[run]") {
    Page page("run");
    CHECK(child<QPlainTextEdit>(*page.view, "run_samples")->toPlainText().contains(QStringLiteral("step 400")));
    CHECK(child<QPlainTextEdit>(*page.view, "run_log_text")
              ->toPlainText()
              .contains(QStringLiteral("something to be read")));
    CHECK(child<QPlainTextEdit>(*page.view, "run_job")->toPlainText().contains(QStringLiteral("corpus")));
    auto* snapshots = child<QTableWidget>(*page.view, "run_snapshots");
    REQUIRE(snapshots->rowCount() == 4);
    CHECK(snapshots->item(0, 0)->text() == "400");
    QSignalSpy analyse(&page.desk.runs(), &RunShelf::analyse_wanted);
    qobject_cast<QPushButton*>(snapshots->cellWidget(1, 3))->click();
    REQUIRE(analyse.count() == 1);
    CHECK(analyse[0][1].toString() == "step-000300");
    // Lines that come later are added.
    auto next = std::make_shared<workspace::LiveRun>(*page.desk.runs().current()->record);
    next->add({2e9, training::Log{training::LogLevel::note, 401, "one more"}});
    next->add({2e9, training::SampleText{401, "It", " came to pass"}});
    page.desk.runs().take(1, next);
    page.settle();
    CHECK(child<QPlainTextEdit>(*page.view, "run_log_text")->toPlainText().count(QStringLiteral("something")) == 1);
    CHECK(child<QPlainTextEdit>(*page.view, "run_log_text")->toPlainText().endsWith(QStringLiteral("one more")));
    CHECK(child<QPlainTextEdit>(*page.view, "run_samples")->toPlainText().endsWith(QStringLiteral("It came to pass")));
}

TEST_CASE("Of endless texts the begin is shown, and of endlessly many the last", "[run]") {
    Page page("run", 2);
    auto next = std::make_shared<workspace::LiveRun>(*page.desk.runs().run(2)->record);
    for (std::int64_t i = 0; i < 1000; ++i)
        next->add({2e9, training::SampleText{401 + i, "number " + std::to_string(i), " went on"}});
    next->add({2e9, training::SampleText{1500, "It", std::string(1'000'000, 'x')}});
    next->add({2e9, training::Log{training::LogLevel::note, 1500, std::string(1'000'000, 'y')}});
    child<QToolButton>(*page.view, "run_chip_0")->click();
    page.settle();
    page.desk.runs().take(2, next);
    child<QToolButton>(*page.view, "run_chip_1")->click();
    page.settle();
    REQUIRE(page.desk.runs().current()->id == 2);
    const QString log = child<QPlainTextEdit>(*page.view, "run_log_text")->toPlainText(),
                  samples = child<QPlainTextEdit>(*page.view, "run_samples")->toPlainText();
    for (const QString& text : {log, samples}) {
        CHECK(text.endsWith(QStringLiteral(" bytes more")));
        CHECK(text.size() < 50'000);
    }
    CHECK(samples.startsWith(QStringLiteral("… ")));
    CHECK(samples.contains(QStringLiteral("number 999")));
    CHECK_FALSE(samples.contains(QStringLiteral("number 600")));
}

TEST_CASE("Texts that come one by one take the place of the first ones", "[run]") {
    Page page("run");
    auto* edit = child<QPlainTextEdit>(*page.view, "run_samples");
    auto run = std::make_shared<workspace::LiveRun>(*page.desk.runs().run(1)->record);
    std::int64_t number = 0;
    for (int round = 0; round < 40; ++round) {
        run = std::make_shared<workspace::LiveRun>(*run);
        for (int i = 0; i < 25; ++i, ++number)
            run->add({2e9, training::SampleText{401 + number, "number " + std::to_string(number), "."}});
        page.desk.runs().take(1, run);
        page.settle();
        const QString text = edit->toPlainText();
        REQUIRE(text.endsWith(QStringLiteral("number %1.").arg(number - 1)));
        REQUIRE(text.count(QStringLiteral("step ")) <= 350);
        REQUIRE(text.count(QStringLiteral("number %1.").arg(number - 1)) == 1);
        REQUIRE(text.startsWith(QStringLiteral("… ")) == (text.count(QStringLiteral("number 0.")) == 0));
    }
    CHECK(edit->toPlainText().contains(QStringLiteral("number 700.")));
    CHECK_FALSE(edit->toPlainText().contains(QStringLiteral("number 600.")));
}

TEST_CASE("Buttons stay where they are while the words about the run change", "[run]") {
    Page page("run");
    auto* stop = child<QPushButton>(*page.view, "run_stop");
    const QPoint before = stop->mapTo(page.view.get(), QPoint());
    page.desk.runs().set_waiting(1, {QStringLiteral("evaluate"), QStringLiteral("snapshot")});
    page.settle();
    CHECK(stop->mapTo(page.view.get(), QPoint()) == before);
    page.desk.runs().set_waiting(1, {});
    change(page, 1, training::RunState::paused, true);
    CHECK(stop->mapTo(page.view.get(), QPoint()) == before);
}

TEST_CASE("The figure of runs has their axis, smoothing, scale and the part that is shown", "[run]") {
    Page page("run", 2);
    const auto usual = page.view->figure();
    REQUIRE(usual);
    CHECK(usual->options.smooth == 19);  // as far behind as weights of 0.9
    CHECK_FALSE(usual->note.isEmpty());
    const auto differs = [&](const char* what) {
        INFO(what);
        page.settle();
        CHECK_FALSE(page.view->figure()->options == usual->options);
    };
    auto* axis = child<QComboBox>(*page.view, "run_axis");
    axis->setCurrentIndex(1);
    differs("tokens");
    CHECK(page.view->figure()->options.against == figures::Against::tokens);
    axis->setCurrentIndex(0);
    child<QCheckBox>(*page.view, "run_log")->setChecked(true);
    differs("log");
    CHECK(page.view->figure()->options.log_loss);
    child<QCheckBox>(*page.view, "run_log")->setChecked(false);
    child<QCheckBox>(*page.view, "run_perplexity")->setChecked(true);
    differs("perplexity");
    child<QCheckBox>(*page.view, "run_perplexity")->setChecked(false);
    auto* loss = child<CurvePlot>(*page.view, "run_loss");
    loss->set_range(CurvePlot::Range{100, 200});
    Q_EMIT loss->range_changed();
    differs("range");
    CHECK(page.view->figure()->options.from_x == 100);
    CHECK(page.view->figure()->options.to_x == 200);
}

TEST_CASE("Every control of the training views has a name", "[run]") {
    for (const char* name : {"train", "layout", "run", "timeline", "cost"}) {
        Page page(name, 2);
        for (const QWidget* widget : page.view->findChildren<QWidget*>()) {
            const bool control = qobject_cast<const QAbstractButton*>(widget) ||
                                 qobject_cast<const QComboBox*>(widget) || qobject_cast<const QSlider*>(widget) ||
                                 qobject_cast<const CurvePlot*>(widget);
            const bool internal = widget->objectName().startsWith(QStringLiteral("qt_")) ||
                                  QString::fromLatin1(widget->parentWidget()->metaObject()->className())
                                      .contains(QStringLiteral("TabBar")) ||
                                  qobject_cast<const QTableWidget*>(widget->parentWidget()) ||
                                  qobject_cast<const QLineEdit*>(widget->parentWidget());
            if (!control || internal || !widget->isVisible()) continue;
            INFO(name << ": " << widget->metaObject()->className() << " " << widget->objectName().toStdString());
            CHECK_FALSE(widget->accessibleName().isEmpty());
        }
    }
}
