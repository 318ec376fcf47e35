// SPDX-License-Identifier: GPL-3.0-or-later
// Runs, their timeline and costs.
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QSlider>
#include <QSpinBox>
#include <QTableWidget>
#include <QTest>
#include <QToolButton>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/widgets/child.h"
#include "tests/widgets/desk_fixture.h"
#include "tests/widgets/run_fixture.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/training/curve_plot.h"
#include "widgets/training/run_bar.h"
#include "widgets/training/thumbnail_wall.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

using tests::child;

struct Page {
    explicit Page(const char* name, int runs = 1) {
        desk.runs().draft().set_choices(tests::made_choices());
        desk.runs().draft().set_estimate(tests::made_estimate({"mlp", "standard"}));
        for (int i = 0; i < runs; ++i) {
            tests::MadeRun made;
            made.seed = static_cast<unsigned>(i + 1);
            desk.runs().take(desk.runs().add(QStringLiteral("/runs/%1").arg(i), QStringLiteral("run %1").arg(i)),
                             tests::made_run(made));
        }
        view.reset(tests::view_kind(name).make(&desk, nullptr));
        view->resize(1000, 600);
        view->show();
        settle();
    }
    void settle() { tests::settle(desk.runs()); }

    bool application = (ensure_application(), true);
    Desk desk;
    std::unique_ptr<View> view;
};

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

TEST_CASE("The scrubber goes through the probes, and shows radars and maps of its step", "[timeline]") {
    Page page("timeline");
    auto* scrubber = child<QSlider>(*page.view, "timeline_scrubber");
    CHECK(scrubber->maximum() == 19);
    CHECK(scrubber->value() == 19);
    auto* radars = child<FigureView>(*page.view, "timeline_radars");
    REQUIRE(radars->figure());
    CHECK(radars->figure()->panels.size() == 4);
    const auto value = [&] {
        return std::get<figures::Radar>(radars->figure()->panels[3].content).series[0].values[0];
    };
    const double last = value();
    scrubber->setValue(0);
    page.settle();
    CHECK(page.desk.runs().moment().step == 20);
    CHECK(child<QLabel>(*page.view, "timeline_step")->text() == "step 20");
    CHECK(value() > last);  // entropy falls
    // Nothing but the first snapshot is near.
    QSignalSpy analyse(&page.desk.runs(), &RunShelf::analyse_wanted);
    child<QPushButton>(*page.view, "timeline_analyse")->click();
    REQUIRE(analyse.count() == 1);
    CHECK(analyse[0][1].toString() == "step-000100");
    page.view->setFocus();
    QTest::keyClick(page.view.get(), Qt::Key_Right);
    CHECK(page.desk.runs().moment().step == 40);
}

TEST_CASE("A head chosen in the maps is chosen everywhere", "[timeline]") {
    Page page("timeline");
    auto* wall = child<ThumbnailWall>(*page.view, "thumbnail_wall");
    wall->setFocus();
    QTest::keyClick(wall, Qt::Key_Down);
    page.settle();
    QTest::keyClick(wall, Qt::Key_Right);
    CHECK(page.desk.runs().site() == 1);
    CHECK(page.desk.runs().head() == 1);
    auto* of = child<QComboBox>(*page.view, "timeline_of");
    of->setCurrentIndex(of->findData(QStringLiteral("heads")));
    page.settle();
    auto* plot = child<CurvePlot>(*page.view, "timeline_plot");
    plot->set_cursor(200);
    REQUIRE(plot->readings().size() == 4);
    CHECK(plot->readings().front().startsWith(QStringLiteral("head 0")));
    const auto wish = page.view->figure();
    REQUIRE(wish);
    CHECK(wish->recipe == "timeline");
    CHECK(wish->options.indicator == "entropy");
    CHECK(wish->paths == QStringList{QStringLiteral("/runs/0")});
    const QJsonObject state = page.view->state();
    Page other("timeline");
    other.view->restore(state);
    other.settle();
    CHECK(child<QComboBox>(*other.view, "timeline_of")->currentData().toString() == "heads");
}

TEST_CASE("A run without probes leaves the way to the other runs", "[timeline]") {
    Page page("timeline", 1);
    tests::MadeRun none;
    none.probe_every = 0;
    page.desk.runs().take(page.desk.runs().add(QStringLiteral("/runs/none"), QStringLiteral("none")),
                          tests::made_run(none));
    page.settle();
    auto* runs = child<QComboBox>(*page.view, "timeline_run");
    CHECK(runs->isVisible());
    CHECK_FALSE(child<CurvePlot>(*page.view, "timeline_plot")->isVisible());
    CHECK(child<QWidget>(*page.view, "banner")->isVisible());
    Q_EMIT runs->activated(0);
    page.settle();
    CHECK(child<CurvePlot>(*page.view, "timeline_plot")->isVisible());
    CHECK_FALSE(child<QWidget>(*page.view, "banner")->isVisible());
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

TEST_CASE("A curve without values has no axes, and short ranges have ticks that differ", "[curve]") {
    ensure_application();
    CurvePlot plot;
    plot.resize(300, 160);
    plot.set_x({}, figures::ScaleKind::linear, [](double x) { return QString::number(std::llround(x)); });
    plot.set_y({}, figures::ScaleKind::logarithmic);
    plot.set_y_least(0);
    plot.grab();
    CHECK(plot.y_ticks().empty());
    CHECK(plot.x_ticks().empty());
    // One step, and a fifth of a decade.
    const auto points = std::make_shared<const CurvePlot::Points>(CurvePlot::Points{{0, 1}, {5.1, 6.2}});
    plot.set_y_least(std::nullopt);
    plot.set_lines({{QStringLiteral("norm"), Qt::black, CurvePlot::Look::line, points, 0}});
    plot.grab();
    CHECK(plot.y_ticks().size() >= 2);
    REQUIRE(plot.x_ticks().size() == 2);
    CHECK(plot.x_ticks()[0].second == "0");
    CHECK(plot.x_ticks()[1].second == "1");
}

TEST_CASE("A logarithmic curve shows what it can of a range that begins at nothing", "[curve]") {
    ensure_application();
    CurvePlot plot;
    plot.resize(400, 200);
    auto points = std::make_shared<CurvePlot::Points>();
    for (int i = 0; i < 300; ++i) {
        points->x.push_back(i);
        points->y.push_back(1 + i % 7);
    }
    CurvePlot::Line line;
    line.name = QStringLiteral("loss");
    line.points = points;
    plot.set_lines({line});
    plot.set_x(QStringLiteral("step"), figures::ScaleKind::logarithmic);
    using Range = CurvePlot::Range;
    const QImage whole = plot.grab().toImage();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const Range& range : {Range{0, 299}, Range{-5, 299}, Range{-3, 0}, Range{7, 7}, Range{nan, nan}, Range{1, nan},
                               Range{9, 3}, Range{1, std::numeric_limits<double>::infinity()}}) {
        CAPTURE(range.first, range.second);
        plot.set_range(range);
        CHECK(plot.grab().toImage() == whole);
        CHECK(plot.x_to_pixel(1) == Approx(plot.plot_area().left()));
    }
    plot.set_range(Range{0, 30});
    plot.grab();
    CHECK(plot.x_to_pixel(1) == Approx(plot.plot_area().left()));
    CHECK(plot.x_to_pixel(30) == Approx(plot.plot_area().left() + plot.plot_area().width()));
    // Nothing but the step that has no place, then one point alone.
    points = std::make_shared<CurvePlot::Points>();
    for (const double x : {0.0, 0.25}) {
        points->x.push_back(x);
        points->y.push_back(1);
        line.points = std::make_shared<CurvePlot::Points>(*points);
        plot.set_lines({line});
        plot.grab();
        CHECK(std::isfinite(plot.x_to_pixel(0.25)));
    }
}

TEST_CASE("A low plot has two values at its axis", "[curve]") {
    ensure_application();
    CurvePlot plot;
    plot.resize(300, 96);
    plot.set_title(QStringLiteral("Loss"));
    for (const auto& [low, high] : {std::pair{2.1e8, 2.5e8}, std::pair{3.1, 7.0}, std::pair{0.0, 4.1e-4}}) {
        const auto points = std::make_shared<const CurvePlot::Points>(CurvePlot::Points{{0, 1}, {low, high}});
        plot.set_lines({{QStringLiteral("a"), Qt::black, CurvePlot::Look::line, points, 0}});
        plot.grab();
        CHECK(plot.y_ticks().size() >= 2);
    }
}

TEST_CASE("Costs are the paper's at any sizes, and what was measured stands beside them", "[cost]") {
    Page page("cost", 0);
    auto* table = child<QTableWidget>(*page.view, "cost_table");
    REQUIRE(table->rowCount() == 9);  // the paper's seven, and two with maps that are kept from before
    cost::CostSetting setting;
    setting.hidden = 128;
    setting.heads = 4;
    setting.bytes = 4;
    CHECK(table->item(0, 0)->text() == "Standard");
    CHECK(table->item(0, 2)->toolTip().contains(QStringLiteral("4 B L")));
    CHECK(table->item(0, 3)->text() == QStringLiteral("–"));
    CHECK(table->isColumnHidden(3));  // until something is measured
    QSignalSpy wanted(&page.desk.runs(), &RunShelf::cost_wanted);
    child<QPushButton>(*page.view, "cost_measure")->click();
    CHECK(wanted.count() == 1);
    auto measured = std::make_shared<cost::CostTable>(cost::paper_table(setting, {2048}));
    for (auto& row : measured->rows) {
        cost::MeasuredMixer here;
        here.mixer = row.mixer;
        here.prefill_flops = 2 * row.paper.prefill;
        here.cache_bytes = row.paper.cache;
        row.measured = here;
    }
    page.desk.runs().set_cost({{}, measured, QStringLiteral("Measured."), false});
    page.settle();
    CHECK(table->item(0, 3)->text() != QStringLiteral("–"));
    CHECK(table->item(0, 3)->toolTip().contains(QStringLiteral("2 times")));
    CHECK_FALSE(table->isColumnHidden(3));
    for (int row = 0; row < table->rowCount(); ++row) {
        INFO(table->item(row, 0)->text().toStdString());
        CHECK(table->visualItemRect(table->item(row, 0)).width() >
              table->fontMetrics().horizontalAdvance(table->item(row, 0)->text()) + table->iconSize().width());
    }
    auto* show = child<QComboBox>(*page.view, "cost_show");
    show->setCurrentIndex(1);
    page.settle();
    CHECK(table->item(0, 2)->text().contains(QStringLiteral("L²")));
    // Other sizes than those that were measured.
    auto* sizes = child<QComboBox>(*page.view, "cost_sizes");
    sizes->setCurrentIndex(1);
    page.settle();
    CHECK(table->item(0, 3)->text() == QStringLiteral("–"));
    REQUIRE(page.view->figure());
    CHECK(page.view->figure()->paths == QStringList{QStringLiteral("nano-100k")});
}

TEST_CASE("Costs are those of the paper's mixers and of open models, or of all", "[cost]") {
    Page page("cost", 0);
    CHECK(page.view->figure()->options.mixers.empty());
    page.desk.runs().draft().set_estimate(tests::made_estimate({"natsl", "gated_deltanet", "standard"}));
    page.settle();
    const std::vector<std::string> open{"standard",   "mlp",          "approximate",   "non_approximate",
                                        "rnd_emb_qk", "fixed_seq_qk", "static_emb_qk", "gated_deltanet",
                                        "natsl"};
    CHECK(page.view->figure()->options.mixers == open);
    auto* table = child<QTableWidget>(*page.view, "cost_table");
    CHECK(table->rowCount() == 11);
    auto* mixers = child<QComboBox>(*page.view, "cost_mixers");
    mixers->setCurrentIndex(1);
    page.settle();
    CHECK(table->rowCount() == 32);
    CHECK(page.view->figure()->options.mixers == std::vector<std::string>{"all"});
    child<QSpinBox>(*page.view, "cost_batch")->setValue(4);
    child<QComboBox>(*page.view, "cost_bytes")->setCurrentIndex(1);
    page.settle();
    CHECK(page.view->figure()->options.batch == 4);
    CHECK_FALSE(page.view->figure()->options.bytes);  // as the paper prints
    Page other("cost", 0);
    other.view->restore(page.view->state());
    other.settle();
    CHECK(child<QTableWidget>(*other.view, "cost_table")->rowCount() == 32);
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

TEST_CASE("The figure of a timeline has the moment that is shown", "[timeline]") {
    Page page("timeline");
    page.desk.runs().choose_step(60);
    page.settle();
    REQUIRE(page.view->figure());
    CHECK(page.view->figure()->options.step == 60);
    page.desk.runs().choose_step(200);
    page.settle();
    CHECK(page.view->figure()->options.step == 200);
}

TEST_CASE("Costs have how time grows, maps computed before, and tensor-parallel machines", "[cost]") {
    Page page("cost", 0);
    auto* table = child<QTableWidget>(*page.view, "cost_table");
    CHECK(table->horizontalHeaderItem(1)->text() == "Time");
    CHECK(table->item(0, 1)->toolTip() == QStringLiteral("O(B L² d + B L d²)"));
    int rnd = 0;
    while (rnd < table->rowCount() && table->item(rnd, 0)->text() != "RndEmbQK") ++rnd;
    REQUIRE(rnd + 1 < table->rowCount());
    CHECK(table->item(rnd + 1, 2)->toolTip() == QStringLiteral("2 L² d + 2 B L d²"));
    CHECK(table->item(rnd + 1, 4)->toolTip() == QStringLiteral("2 B L d + 2 d²"));
    CHECK(table->item(rnd + 1, 6)->text().isEmpty());
    CHECK(table->item(rnd + 1, 2)->text() != table->item(rnd, 2)->text());
    // Its curve is the mixer's, from either of its rows.
    table->setCurrentCell(rnd + 1, 0);
    CHECK(table->item(rnd + 1, 0)->data(Qt::UserRole) == table->item(rnd, 0)->data(Qt::UserRole));
    const auto activation = [&] { return table->item(0, 6)->text(); };
    const QString one = activation(), decode = table->item(0, 4)->text();
    child<QSpinBox>(*page.view, "cost_parallel")->setValue(8);
    page.settle();
    CHECK(activation() != one);
    CHECK(table->item(0, 4)->text() == decode);
    CHECK(page.view->figure()->options.tensor_parallel == 8);
    Page other("cost", 0);
    other.view->restore(page.view->state());
    CHECK(child<QSpinBox>(*other.view, "cost_parallel")->value() == 8);
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

TEST_CASE("A spike and a gap are seen in a curve of a million steps", "[curve]") {
    ensure_application();
    CurvePlot plot;
    plot.resize(600, 300);
    plot.set_theme(make_theme(false));
    plot.set_x({}, figures::ScaleKind::linear, [](double x) { return QString::number(std::llround(x)); });
    plot.set_y({}, figures::ScaleKind::linear);
    constexpr std::size_t kSteps = 1'000'000, kSpike = 618'034;
    CurvePlot::Points points;
    for (std::size_t i = 0; i < kSteps; ++i) {
        points.x.push_back(static_cast<double>(i));
        points.y.push_back(i == kSpike ? 100.0 : i > 200'000 && i < 300'000 ? std::nan("") : std::sin(i * 0.7));
    }
    plot.set_lines({{QStringLiteral("loss"), Qt::red, CurvePlot::Look::line,
                     std::make_shared<const CurvePlot::Points>(std::move(points)), 0}});
    const QImage picture = plot.grab().toImage();
    const auto red_in = [&](double step, int top, int bottom) {
        const int x = static_cast<int>(plot.x_to_pixel(step));
        for (int y = top; y < bottom; ++y)
            for (const int beside : {-1, 0, 1}) {
                const QColor at = picture.pixelColor(x + beside, y);
                if (at.red() > 180 && at.green() < 120 && at.blue() < 120) return true;
            }
        return false;
    };
    const QRect area = plot.plot_area();
    const int middle = area.center().y();
    CHECK(red_in(kSpike, area.top(), middle));
    CHECK_FALSE(red_in(500'000, area.top(), middle));
    CHECK(red_in(500'000, middle, area.bottom() + 1));
    CHECK_FALSE(red_in(250'000, area.top(), area.bottom() + 1));
}
