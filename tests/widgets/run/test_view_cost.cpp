// SPDX-License-Identifier: GPL-3.0-or-later
// Costs of mixers by the papers' formulas and as measured.
#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTableWidget>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "core/cost/cost_table.h"
#include "tests/widgets/child.h"
#include "tests/widgets/run/run_page.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::child;
using Page = tests::RunPage;

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
