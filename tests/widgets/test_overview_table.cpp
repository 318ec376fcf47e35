// SPDX-License-Identifier: GPL-3.0-or-later
// The table of heads behind the overview: its model, its order, its colours and numbers.
#include <QAbstractItemModelTester>
#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTableView>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/views/overview/overview.h"
#include "widgets/views/overview/overview_panel.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// 2 layers of 3 heads, two measures; the second head of each layer lacks the second one.
std::shared_ptr<workspace::HeadTable> small_table(double first = 0.5) {
    auto table = std::make_shared<workspace::HeadTable>();
    table->columns = {"sink", "virtual_sink"};
    for (int site = 0; site < 2; ++site)
        for (int head = 0; head < 3; ++head)
            table->rows.push_back({site, site, head, head, std::to_string(site), "Layer " + std::to_string(site)});
    table->values = {first, 1, 0.25, kNone, 0.75, 3, 0.1, -1, 0.9, kNone, 0.3, 2};
    return table;
}

std::vector<int> order(const HeadTableOrder& proxy) {
    std::vector<int> rows;
    for (int row = 0; row < proxy.rowCount(); ++row) rows.push_back(proxy.mapToSource(proxy.index(row, 0)).row());
    return rows;
}

}  // namespace

TEST_CASE("The table of heads is a proper item model, whatever happens to it", "[overview]") {
    ensure_application();
    HeadTableModel model;
    HeadTableOrder proxy(&model);
    const QAbstractItemModelTester of_model(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
    const QAbstractItemModelTester of_proxy(&proxy, QAbstractItemModelTester::FailureReportingMode::Fatal);
    model.set_table(small_table(), {true, true});
    proxy.sort(HeadTableModel::kMeasures, Qt::DescendingOrder);
    proxy.set_shown({true, false, true, true, false, true});
    CHECK(proxy.rowCount() == 4);
    QSignalSpy reset(&model, &QAbstractItemModel::modelReset);
    model.set_table(small_table(0.01), {true, false});
    proxy.sort_again();
    CHECK(reset.count() == 0);
    CHECK(order(proxy) == std::vector<int>{2, 5, 3, 0});
    CHECK(model.index(4, 2).data().toString() == QStringLiteral("…"));
    auto wider = small_table();
    wider->columns = {"sink", "density"};
    model.set_table(wider, {true, true});
    CHECK(reset.count() == 1);
    model.set_table(nullptr, {});
    CHECK(proxy.rowCount() == 0);
}

TEST_CASE("What does not exist is sorted last in both directions", "[overview]") {
    ensure_application();
    HeadTableModel model;
    HeadTableOrder proxy(&model);
    model.set_table(small_table(), {true, true});
    proxy.sort(HeadTableModel::kMeasures + 1, Qt::AscendingOrder);
    CHECK(order(proxy) == std::vector<int>{3, 0, 5, 2, 1, 4});
    proxy.sort(HeadTableModel::kMeasures + 1, Qt::DescendingOrder);
    CHECK(order(proxy) == std::vector<int>{2, 5, 0, 3, 1, 4});
    proxy.sort(-1);
    CHECK(order(proxy) == std::vector<int>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("Header tool tips give definition, source and the name in filters", "[overview]") {
    ensure_application();
    HeadTableModel model;
    model.set_table(small_table(), {true, true});
    const QString tip = model.headerData(2, Qt::Horizontal, Qt::ToolTipRole).toString();
    CHECK(tip.contains("Mean weight on the first key"));
    CHECK(tip.contains("Deconstructing Attention"));
    CHECK(tip.contains("<tt>sink</tt>"));
}

TEST_CASE("The three scales make colours of the same values", "[overview]") {
    const auto table = small_table();
    using figures::Normalise;
    const HeatCells absolute = heat_cells(*table, 0, Normalise::absolute);
    CHECK(absolute.scale.minimum == 0);
    CHECK(absolute.scale.maximum == 0.9);
    CHECK(absolute.fractions[0] == Approx(0.5 / 0.9));
    const HeatCells minmax = heat_cells(*table, 0, Normalise::minmax);
    CHECK(minmax.fractions[3] == 0);
    CHECK(minmax.fractions[4] == 1);
    CHECK(minmax.fractions[0] == Approx((0.5 - 0.1) / 0.8));
    const HeatCells layer = heat_cells(*table, 0, Normalise::layer);
    CHECK(layer.fractions[1] == 0);
    CHECK(layer.fractions[2] == 1);
    CHECK(layer.fractions[0] == Approx(0.5));
    const HeatCells signed_values = heat_cells(*table, 1, Normalise::absolute);
    CHECK(signed_values.scale.map == figures::ColourMap::diverging);
    CHECK(signed_values.scale.minimum == -3);
    CHECK(std::isnan(signed_values.fractions[1]));
}

TEST_CASE("Numbers of a column are written alike", "[overview]") {
    CHECK(number_format(std::vector<double>{0.5, 0.25}).text(0.5) == "0.500");
    CHECK(number_format(std::vector<double>{1234.25, 2}).text(1234.25) == "1234");
    CHECK(number_format(std::vector<double>{12, 3}).text(12) == "12");
    CHECK(number_format(std::vector<double>{0.5, 1e-6}).text(1e-6) == QStringLiteral("10⁻⁶"));
    CHECK(number_format(std::vector<double>{-0.5}).text(-0.5) == QStringLiteral("−0.500"));
    CHECK(number_format(std::vector<double>{}).text(kNone) == QStringLiteral("–"));
}

TEST_CASE("A thousand heads are filled in, sorted and filtered at once", "[overview]") {
    ensure_application();
    auto table = std::make_shared<workspace::HeadTable>();
    for (const auto* name : {"sink", "density", "entropy", "induction", "duplicate", "score_mean", "above_10"})
        table->columns.emplace_back(name);
    for (int row = 0; row < 2048; ++row) {
        const std::string name = std::to_string(row / 32);
        table->rows.push_back({row / 32, row / 32, row % 32, row % 32 / 4, name, "Layer " + name});
        for (std::size_t c = 0; c < table->columns.size(); ++c)
            table->values.push_back(std::fmod((row + 1) * 0.618034 * static_cast<double>(c + 1), 1.0));
    }
    Desk desk;
    TablePanel panel(&desk, nullptr);
    panel.resize(600, 500);
    panel.show();
    const std::vector<bool> done(64, true);
    panel.set_table(table, done);
    panel.table()->sortByColumn(panel.model()->column("induction"), Qt::DescendingOrder);
    QElapsedTimer clock;
    clock.start();
    panel.set_table(std::make_shared<workspace::HeadTable>(*table), done);
    panel.filter()->set_text("sink > 0.5 and density < 0.5");
    panel.grab();
    // Far above what it takes (some 30 ms), far below what work for each pair of rows would.
    CHECK(clock.elapsed() < 15'000);
    CHECK(panel.filter()->count() > 200);
    CHECK(panel.shown_rows().size() == panel.filter()->count());
}
