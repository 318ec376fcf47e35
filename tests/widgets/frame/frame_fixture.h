// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A desk with everything that views of both pages show, and a page of views on it.

#include <QApplication>
#include <catch2/catch.hpp>
#include <memory>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/figures/sample_asks.h"
#include "tests/core/figures/sample_records.h"
#include "tests/core/store/synthetic_heads.h"
#include "tests/core/store/synthetic_lazy.h"
#include "tests/core/store/synthetic_recurrent.h"
#include "tests/widgets/ask/made_steps.h"
#include "tests/widgets/desk_fixture.h"
#include "tests/widgets/made_tensors.h"
#include "tests/widgets/run_fixture.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/desk/style.h"
#include "widgets/frame/view_area.h"
#include "widgets/plots/figure/offscreen.h"

namespace headscope::tests {

struct Frame {
    Frame() {
        QApplication::setStyle(new widgets::Style);
        desk.runs().draft().set_choices(made_choices());
        desk.runs().draft().set_estimate(made_estimate({"approximate", "standard", "mlp", "standard"}));
    }
    /// An analysis as of a plain decoder.
    widgets::Study* open_plain(bool states = false) {
        SyntheticAnalysis plain;
        plain.record.maps = true;
        plain.record.states = states;
        const auto path = folder / (states ? "states.headscope.h5" : "plain.headscope.h5");
        write_synthetic_analysis(path, plain);
        return choose(open_study(desk, path));
    }
    /// NAtS-L: two branches, implicit matrices, types of chunks.
    widgets::Study* open_recurrent() {
        write_recurrent_analysis(folder / "recurrent.headscope.h5");
        return choose(open_study(desk, folder / "recurrent.headscope.h5"));
    }
    widgets::Study* open_lazy() {
        LazySample lazy;
        lazy.analysis.record.maps = lazy.analysis.record.states = true;
        write_lazy_analysis(folder / "lazy.headscope.h5", lazy);
        return choose(open_study(desk, folder / "lazy.headscope.h5"));
    }
    widgets::Study* open_heads() {
        write_head_embeddings_analysis(folder / "heads.headscope.h5");
        return choose(open_study(desk, folder / "heads.headscope.h5"));
    }
    void open_run() {
        desk.runs().take(desk.runs().add(QStringLiteral("/made/run"), QStringLiteral("hybrid, even layers standard")),
                         made_run());
    }
    void open_evaluations() {
        const auto take = [this](const char* path, const store::Evaluation& record) {
            desk.evaluations().take(QLatin1String(path), std::make_shared<const store::Evaluation>(record));
        };
        take("/made/scores.evaluation.h5", test::sample_evaluation());
        take("/made/long.evaluation.h5", test::sample_long_evaluation());
        take("/made/tasks.evaluation.h5", test::sample_task_evaluation());
    }
    void open_asks() {
        for (const char* tool : {"lens", "patch", "ablate", "attribution", "sinks", "corpus", "cache", "series",
                                 "knockout", "steer", "kinds", "circuits", "generate"})
            desk.asks().take(QStringLiteral("/made/%1.ask.h5").arg(QLatin1String(tool)),
                             std::make_shared<const store::AskRecord>(test::sample_ask(tool)));
    }
    widgets::Study* choose(widgets::Study* study) {
        desk.select_study(study->id());
        return study;
    }
    widgets::ViewArea& page(widgets::ViewKind::Area area, QSize size = {1000, 600}) {
        shown = std::make_unique<widgets::ViewArea>(&desk, area);
        shown->resize(size);
        shown->show();
        settle(desk);
        settle(desk.runs());
        return *shown;
    }

    bool application = (widgets::ensure_application(), true);
    test::TemporaryFolder folder;
    AnsweringTensors tensors;  // it outlives the desk's pointer to it
    MadeSteps steps{6};        // likewise
    widgets::Desk desk;
    std::unique_ptr<widgets::ViewArea> shown;
};

}  // namespace headscope::tests
