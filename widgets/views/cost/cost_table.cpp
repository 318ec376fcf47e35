// SPDX-License-Identifier: GPL-3.0-or-later
// The table of costs.
#include <QComboBox>
#include <QHeaderView>
#include <QTableWidget>
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "widgets/fitted_columns.h"
#include "widgets/training/mixer_style.h"
#include "widgets/views/cost/cost.h"
#include "widgets/views/cost/cost_quantities.h"

namespace headscope::widgets {

void CostView::show_table() {
    const bool formulas = show_->currentData().toString() == QLatin1String("formulas");
    const Table table{setting(), formulas, desk().theme().dark, shown_mixers(), shelf_.cost().table};
    if (table == shown_) return;
    shown_ = table;
    int rows = static_cast<int>(table.mixers.size());
    for (const std::string& mixer : table.mixers) rows += cost::mixer_cost(mixer).precomputed_prefill ? 1 : 0;
    table_->setRowCount(rows);
    for (int column = 0; column < table_->columnCount(); ++column)
        table_->horizontalHeaderItem(column)->setTextAlignment(
            (column == 0 || (formulas && (column == 1 || column % 2 == 0)) ? Qt::AlignLeft : Qt::AlignRight) |
            Qt::AlignVCenter);
    table_->horizontalHeaderItem(1)->setToolTip(tr("How it grows, up to a constant"));
    const bool any = measured_somewhere();
    for (int column = kCostColumns + 1; column < table_->columnCount(); column += 2) columns_->set_wanted(column, any);
    int row = 0;
    for (const std::string& mixer : table.mixers) {
        const cost::MixerCost& one = cost::mixer_cost(mixer);
        show_row(row++, one, false);
        if (one.precomputed_prefill) show_row(row++, one, true);
    }
    std::set<int> stretched;
    for (int column = 1; column < table_->columnCount() && !formulas; ++column) stretched.insert(column);
    columns_->set_stretched(std::move(stretched));
    columns_->fit();
}

/// `precomputed`: the entries of a mixer whose maps are there already.
void CostView::show_row(int row, const cost::MixerCost& one, bool precomputed) {
    const bool formulas = show_->currentData().toString() == QLatin1String("formulas");
    const cost::CostSetting now = setting();
    const cost::CostNumbers paper = cost::evaluate(one, now);
    const cost::CostRow* here = precomputed ? nullptr : measured(one.mixer, now.length);
    const auto place = std::find_if(cost::mixer_costs().begin(), cost::mixer_costs().end(),
                                    [&](const auto& other) { return other.mixer == one.mixer; });
    const QString label = QString::fromStdString(one.title);
    auto* name = precomputed ? new QTableWidgetItem(swatch(Qt::transparent), tr("maps computed before"))
                             : new QTableWidgetItem(swatch(mixer_color(desk().theme(), one.mixer)), label);
    name->setData(Qt::UserRole, static_cast<int>(place - cost::mixer_costs().begin()));
    if (precomputed)
        name->setToolTip(tr("%1 depends on no text: with its maps kept from before (Appendix F)").arg(label));
    table_->setItem(row, 0, name);
    const auto set = [&](int column, double value, const QString& formula, bool bytes) {
        auto* cell = new QTableWidgetItem(formulas ? formula : cost_words(value, bytes));
        cell->setToolTip(formulas ? formula + QLatin1Char('\n') + cost_words(value, bytes) : formula);
        cell->setTextAlignment((formulas ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
        table_->setItem(row, column, cell);
    };
    const auto empty = [&](int column) { table_->setItem(row, column, new QTableWidgetItem); };
    if (precomputed)
        empty(1);
    else
        set(1, paper.time, tr("O(%1)").arg(QString::fromStdString(one.time.pretty())), false);
    int column = kCostColumns;
    for (const CostQuantity& quantity : kCostQuantities) {
        double value = paper.*quantity.paper;
        const cost::Formula* formula = &(one.*quantity.formula);
        if (precomputed) {
            const bool prefill = quantity.paper == &cost::CostNumbers::prefill;
            const bool decode = quantity.paper == &cost::CostNumbers::decode;
            if (!prefill && !decode) {
                empty(column++);
                empty(column++);
                continue;
            }
            value = (prefill ? paper.precomputed_prefill : paper.precomputed_decode).value_or(std::nan(""));
            formula = prefill ? &*one.precomputed_prefill : &*one.precomputed_decode;
        }
        set(column++, value, QString::fromStdString(formula->pretty()), quantity.bytes);
        const bool like = comparable(quantity.bytes, quantity.paper == &cost::CostNumbers::activation);
        const double measured_value = here && like ? *here->measured.*quantity.measured : std::nan("");
        auto* beside = new QTableWidgetItem(precomputed ? QString() : cost_words(measured_value, quantity.bytes));
        beside->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
        if (std::isfinite(measured_value) && value > 0)
            beside->setToolTip(tr("%1 times the paper's").arg(measured_value / value, 0, 'g', 3));
        else
            beside->setForeground(desk().theme().muted);
        if (here && !like) beside->setToolTip(tr("Measured with 4 bytes a number, on one machine"));
        table_->setItem(row, column++, beside);
    }
}

}  // namespace headscope::widgets
