// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/run.h"

#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "widgets/desk/presence.h"
#include "widgets/text/banner.h"
#include "widgets/training/run_bar.h"
#include "widgets/training/run_plots.h"
#include "widgets/training/run_texts.h"

namespace headscope::widgets {

RunView::RunView(Desk* desk, QWidget* parent)
    : View(desk, parent, Of::training),
      shelf_(desk->runs()),
      bar_(new RunBar(&shelf_, content())),
      banner_(new Banner(content())),
      plots_(new RunPlots(&shelf_, content())),
      texts_(new RunTexts(&shelf_, content())),
      splitter_(new QSplitter(Qt::Vertical, content())) {
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 4);
    column->setSpacing(6);
    column->addWidget(bar_);
    column->addWidget(banner_);
    column->addWidget(splitter_, 1);
    splitter_->setObjectName(QStringLiteral("run_splitter"));
    splitter_->addWidget(plots_);
    splitter_->addWidget(texts_);
    splitter_->setStretchFactor(0, 3);
    splitter_->setStretchFactor(1, 1);
    splitter_->setSizes({420, 150});
    connect(&shelf_, &RunShelf::runs_changed, this, &RunView::refresh_later);
    connect(&shelf_, &RunShelf::updated, this, &RunView::refresh_later);
    connect(&shelf_, &RunShelf::moment_changed, this, &RunView::refresh_later);
    connect(&shelf_, &RunShelf::starting_changed, this, &RunView::refresh_later);
    connect(plots_, &RunPlots::state_changed, this, [this] { Q_EMIT state_changed(); });
}

void RunView::refresh() {
    if (shelf_.runs().empty()) {
        show_notice(tr("No run is open"),
                    tr("Describe a job and start it, or drop the folder of a run onto this window."),
                    tr("New training"), [this] { Q_EMIT desk().view_wanted(QStringLiteral("train")); });
        return;
    }
    show_content();
    bar_->refresh(desk().theme());
    const Run* run = shelf_.current();
    QString note, action;
    std::function<void()> act;
    if (run && !run->failure.isEmpty()) {
        note = run->failure;
    } else if (run && run->status() == workspace::RunStatus::interrupted) {
        note = tr("This run was interrupted: its process is gone. Resuming repeats the steps since its last snapshot.");
        action = tr("Resume");
        act = [this, id = run->id] { Q_EMIT shelf_.resume_wanted(id); };
    } else if (run && run->status() == workspace::RunStatus::failed) {
        note = QString::fromStdString(run->record->state_text);
    }
    banner_->set(note, action, act);
    plots_->set_theme(desk().theme());
    plots_->refresh();
    texts_->refresh(desk().theme());
}

QJsonObject RunView::state() const {
    return plots_->state();
}

void RunView::restore(const QJsonObject& state) {
    plots_->restore(state);
}

std::optional<FigureRequest> RunView::figure() const {
    FigureRequest wish{"loss", {}, {}};
    for (const Run& run : shelf_.runs())
        if (run.shown && run.record->steps.size() > 0) wish.paths.push_back(run.path);
    if (wish.paths.isEmpty()) return std::nullopt;
    const workspace::RunCurveOptions shown = plots_->options();
    using workspace::RunAxis;
    wish.options.against = shown.axis == RunAxis::step     ? figures::Against::step
                           : shown.axis == RunAxis::tokens ? figures::Against::tokens
                                                           : figures::Against::time;
    // A mean of n steps lags as far behind as one that weights the mean before by (n - 1) / (n + 1).
    wish.options.smooth = std::llround((1 + shown.smoothing) / (1 - shown.smoothing));
    wish.options.perplexity = shown.perplexity;
    wish.options.log_loss = plots_->logarithmic();
    if (shown.range) {
        wish.options.from_x = std::max(0.0, shown.range->first);
        wish.options.to_x = std::max(0.0, shown.range->second);
    }
    wish.note = tr("The figure draws the loss. Learning rate, gradient norm, speed and memory are left out.");
    return wish;
}

extern const ViewKind kRun{"run",
                           "Runs",
                           "How runs go: loss, speed, memory, samples, and their controls",
                           [](Desk* desk, QWidget* parent) -> View* { return new RunView(desk, parent); },
                           ViewGroup::runs,
                           with_runs};

}  // namespace headscope::widgets
