// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// An overview of a synthetic analysis.

#include <QLabel>
#include <QLineEdit>
#include <QTableView>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/views/overview/overview.h"
#include "widgets/views/overview/overview_grid.h"
#include "widgets/views/overview/overview_panel.h"

namespace headscope::tests {

struct ShownOverview {
    explicit ShownOverview(const SyntheticAnalysis& a = {}) {
        write_synthetic_analysis(folder / "a.headscope.h5", a);
        study = open_study(desk, folder / "a.headscope.h5");
        view.resize(1000, 600);
        view.show();
        settle(desk);
    }
    QPoint cell(std::int64_t row, std::int64_t head) const { return view.grid()->cell(row, head).center(); }
    QString label(const char* name) const { return view.findChild<QLabel*>(QLatin1String(name))->text(); }
    QTableView* table() const { return view.panel()->table(); }
    QLineEdit* filter() const { return view.panel()->filter()->line(); }
    std::size_t current() const {
        const auto rows = view.panel()->selected_rows();
        return rows.size() == 1 ? rows.front() : 999;
    }

    bool application = (widgets::ensure_application(), true);
    test::TemporaryFolder folder;
    widgets::Desk desk;
    widgets::Study* study = nullptr;
    widgets::Overview view{&desk, nullptr};
};

}  // namespace headscope::tests
