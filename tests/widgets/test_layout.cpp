// SPDX-License-Identifier: GPL-3.0-or-later
#include <QFontMetricsF>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/cost/cost_table.h"
#include "core/figures/make_figure.h"
#include "tests/core/figures/sample_records.h"
#include "tests/core/figures/sample_tensors.h"
#include "tests/widgets/sample_figures.h"
#include "widgets/fonts.h"
#include "widgets/plots/axis_layout.h"
#include "widgets/plots/chart/line_plottables.h"
#include "widgets/plots/chart/text_table.h"
#include "widgets/plots/figure/figure_layout.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

/// The box that a text's letters really fill.
QRectF inked(const PlacedText& text) {
    const double width = text_width(text.font, text.text);
    const QRectF& r = text.rect;
    if (text.turned) {
        double bottom = r.bottom();
        if (text.alignment & Qt::AlignHCenter) bottom -= (r.height() - width) / 2;
        if (text.alignment & Qt::AlignRight) bottom -= r.height() - width;
        return {r.left(), bottom - width, r.width(), width};
    }
    double left = r.left();
    if (text.alignment & Qt::AlignHCenter) left += (r.width() - width) / 2;
    if (text.alignment & Qt::AlignRight) left += r.width() - width;
    return {left, r.top(), width, r.height()};
}

/// Figures of made-up runs, evaluations and costs: panels of several kinds, rows with words, a table below.
std::vector<figures::FigureData> record_figures() {
    figures::FigureInputs runs, run, evaluations, long_texts, tasks, models;
    for (const auto& [name, layers] : {std::pair("first", 3), std::pair("a run with a long name", 12)})
        runs.runs.push_back(test::shared(test::sample_record(name, 200, layers)));
    run.runs = {runs.runs[1]};
    evaluations.evaluations.push_back(std::make_shared<const store::Evaluation>(test::sample_evaluation()));
    long_texts.evaluations.push_back(std::make_shared<const store::Evaluation>(test::sample_long_evaluation()));
    tasks.evaluations.push_back(std::make_shared<const store::Evaluation>(test::sample_task_evaluation()));
    cost::CostTable table = cost::paper_table({}, {64, 256, 1024, 4096});
    for (auto& row : table.rows) row.measured = cost::MeasuredMixer{row.mixer, 1e9, 1e6, 2e6, 3e5};
    models.models.push_back({"500M", 1024, std::make_shared<const cost::CostTable>(table)});
    figures::FigureOptions at_step;
    at_step.step = 100;
    return {figures::make_figure("loss", runs, {}),
            figures::make_figure("timeline", runs, {}),
            figures::make_figure("timeline", run, at_step),
            figures::make_figure("context-perplexity", evaluations, {}),
            figures::make_figure("ablation", evaluations, {}),
            figures::make_figure("scaling", evaluations, {}),
            figures::make_figure("position-perplexity", long_texts, {}),
            figures::make_figure("ruler", long_texts, {}),
            figures::make_figure("tasks", tasks, {}),
            figures::make_figure("latency", long_texts, {}),
            figures::make_figure("cost", models, {}),
            figures::make_figure("tensors", test::sample_tensors(), {})};
}

std::vector<figures::FigureData> all_figures() {
    using namespace tests;
    std::vector<figures::FigureData> all{sample_heat_map(12, true),
                                         sample_heat_map(40, true),
                                         sample_heat_map(4000, false),
                                         sample_radars(4),
                                         sample_radars(48),
                                         sample_ridges(4),
                                         sample_ridges(24),
                                         sample_ridges(48),
                                         sample_curves(),
                                         sample_mosaic(4, 8, false),
                                         sample_mosaic(48, 64, false),
                                         sample_mosaic(2, 4, true),
                                         sample_mosaic(2, 64, false),
                                         sample_multiples(14),
                                         sample_text(1),
                                         sample_text(300),
                                         sample_links(12, 1),
                                         sample_links(64, 3),
                                         sample_labelled_curves()};
    for (auto& figure : record_figures()) all.push_back(std::move(figure));
    return all;
}

}  // namespace

TEST_CASE("No text is cut off, overlaps another or lies on a plot", "[widgets][layout]") {
    ensure_application();
    const auto figures = all_figures();
    for (std::size_t f = 0; f < figures.size(); ++f) {
        for (const double width : {85.0, 180.0}) {
            FigureStyle style;
            style.width_mm = width;
            const FigureLayout layout = make_layout(figures[f], style);
            INFO("figure " << f << " at " << width << " mm");
            REQUIRE(layout.panels.size() == figures[f].panels.size());
            const QRectF page(QPointF(0, 0), layout.size);
            std::vector<QRectF> boxes;
            for (const auto& text : layout.texts) {
                const QRectF box = inked(text);
                INFO(text.text.toStdString());
                CHECK(page.contains(box));
                // A line's box has room above and below its letters.
                const double spare = text_height(text.font) * 0.2;
                const QRectF core =
                    text.turned ? box.adjusted(spare, 2, -spare, -2) : box.adjusted(2, spare, -2, -spare);
                bool clear = true;
                for (const auto& other : boxes) clear = clear && !core.intersects(other);
                CHECK(clear);
                for (const auto& panel : layout.panels) {
                    if (!panel.spoke_labels) CHECK(!core.intersects(panel.plot.adjusted(1, 1, -1, -1)));
                }
                boxes.push_back(core);
            }
            for (const auto& panel : layout.panels) {
                CHECK(page.contains(panel.plot));
                CHECK(panel.plot.width() > units(4));
                for (const auto& other : layout.panels) {
                    if (&other != &panel) CHECK(!panel.plot.intersects(other.plot));
                }
            }
        }
    }
}

TEST_CASE("A table is as wide as the figure above it, or its columns stand together", "[widgets][layout]") {
    ensure_application();
    const auto width_of = [](const figures::TextTable& table, double left, double right) {
        std::vector<PlacedText> texts;
        place_text_table(texts, table, left, right, 0, 8);
        double least = right, most = left;
        for (const PlacedText& text : texts) {
            least = std::min(least, text.rect.left());
            most = std::max(most, text.rect.right());
        }
        CHECK(least == Approx(left));
        return most - left;
    };
    const figures::TextTable costs{{"2048 tokens", "prefill", "decode", "activations", "cache"},
                                   {{"Standard", "1.23 T", "4.5 G", "123 MB", "7 MB"}}};
    CHECK(width_of(costs, 10, 10 + units(170)) == Approx(units(170)));
    CHECK(width_of(costs, 10, 10 + units(80)) == Approx(units(80)));
    const figures::TextTable two{{"model", "loss"}, {{"a", "1.2"}}};
    CHECK(width_of(two, 10, 10 + units(170)) < units(60));
}

TEST_CASE("An axis has two values wherever there is room for them", "[widgets][layout]") {
    ensure_application();
    figures::Panel panel;
    for (const auto& [low, high] : {std::pair{2.6, 8.6}, {4.1, 11.3}, {0.31, 0.74}, {12.0, 49.0}}) {
        INFO(low << " to " << high);
        figures::Curve curve;
        curve.x = {0, 1};
        curve.y = {low, high};
        panel.content = figures::Curves{{curve}, {}};
        CHECK(place_axis(panel, axis_limits(panel, false), false, 120, 7, 0).ticks.size() >= 2);
    }
}

TEST_CASE("An axis whose range has no end still has a place for what is finite", "[widgets][layout]") {
    ensure_application();
    figures::Curve curve;
    curve.x = {0, 1};
    curve.y = {2, 3};
    figures::Panel panel;
    panel.content = figures::Curves{{curve}, {}};
    panel.y.range = std::pair(0.0, std::numeric_limits<double>::infinity());
    const auto limits = axis_limits(panel, false);
    CHECK(std::isfinite(limits.low));
    CHECK(std::isfinite(limits.high));
    CHECK(limits.low < limits.high);
}

TEST_CASE("Tokens are drawn where all of them fit, positions where not", "[widgets][layout]") {
    ensure_application();
    FigureStyle style;
    CHECK(make_layout(tests::sample_heat_map(40, true), style).panels[0].x.tokens);
    const auto many = make_layout(tests::sample_heat_map(300, true), style);
    CHECK(!many.panels[0].x.tokens);
    REQUIRE(many.panels[0].x.ticks.size() > 2);
    CHECK(many.panels[0].x.ticks[1].second.toInt() > 0);
}

TEST_CASE("Characters without a glyph are named, others are kept", "[widgets][fonts]") {
    ensure_application();
    CHECK(printable("plain, äöü, ≤") == QString("plain, äöü, ≤"));
    // Unassigned in every Unicode so far.
    CHECK(printable("a\xF3\xA0\x84\x80z").contains("U+E0100") == false);
    CHECK(printable("x\xF0\x9F\xBF\xBDy") == QString("x‹U+1FFFD›y"));
}

TEST_CASE("Segments are cut to a rectangle", "[widgets][clip]") {
    const QRectF area(0, 0, 10, 10);
    QPointF a(-5, 5), b(15, 5);
    REQUIRE(clip_segment(area, a, b));
    CHECK(a == QPointF(0, 5));
    CHECK(b == QPointF(10, 5));
    a = QPointF(-5, -5);
    b = QPointF(-1, 20);
    CHECK(!clip_segment(area, a, b));
    a = QPointF(2, 3);
    b = QPointF(4, 5);
    REQUIRE(clip_segment(area, a, b));
    CHECK(a == QPointF(2, 3));
}
