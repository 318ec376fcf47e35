// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <memory>

#include "tests/widgets/desk_fixture.h"
#include "tests/widgets/run_fixture.h"
#include "widgets/plots/figure/offscreen.h"

namespace headscope::tests {

/// A view of runs on made-up ones.
struct RunPage {
    explicit RunPage(const char* name, int runs = 1) {
        desk.runs().draft().set_choices(made_choices());
        desk.runs().draft().set_estimate(made_estimate({"mlp", "standard"}));
        for (int i = 0; i < runs; ++i) {
            MadeRun made;
            made.seed = static_cast<unsigned>(i + 1);
            desk.runs().take(desk.runs().add(QStringLiteral("/runs/%1").arg(i), QStringLiteral("run %1").arg(i)),
                             made_run(made));
        }
        view.reset(view_kind(name).make(&desk, nullptr));
        view->resize(1000, 600);
        view->show();
        settle();
    }
    void settle() { tests::settle(desk.runs()); }

    bool application = (widgets::ensure_application(), true);
    widgets::Desk desk;
    std::unique_ptr<widgets::View> view;
};

}  // namespace headscope::tests
