// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/run_shelf.h"

#include <QDir>
#include <algorithm>
#include <utility>

namespace headscope::widgets {

QString status_words(workspace::RunStatus status) {
    using workspace::RunStatus;
    switch (status) {
        case RunStatus::empty:
            return RunShelf::tr("starting");
        case RunStatus::running:
            return RunShelf::tr("running");
        case RunStatus::paused:
            return RunShelf::tr("paused");
        case RunStatus::stopped:
            return RunShelf::tr("stopped");
        case RunStatus::finished:
            return RunShelf::tr("finished");
        case RunStatus::failed:
            return RunShelf::tr("failed");
        case RunStatus::interrupted:
            return RunShelf::tr("interrupted");
    }
    return {};
}

RunShelf::RunShelf(QObject* parent) : QObject(parent), draft_(this), worker_(Worker::Order::newest_first) {}

RunShelf::~RunShelf() = default;

Run* RunShelf::find(int id) {
    const auto place = std::find_if(runs_.begin(), runs_.end(), [id](const Run& run) { return run.id == id; });
    return place == runs_.end() ? nullptr : &*place;
}

const Run* RunShelf::run(int id) const {
    return const_cast<RunShelf*>(this)->find(id);
}

const Run* RunShelf::run_at(const QString& path) const {
    const QString wanted = QDir::cleanPath(path);
    for (const Run& run : runs_)
        if (run.path == wanted) return &run;
    return nullptr;
}

int RunShelf::add(const QString& path, const QString& name) {
    if (const Run* known = run_at(path)) {
        choose(known->id);
        return known->id;
    }
    Run run;
    run.id = ++last_id_;
    run.path = QDir::cleanPath(path);
    run.name = name;
    // The first colour that no open run has.
    while (std::any_of(runs_.begin(), runs_.end(), [&](const Run& one) { return one.colour == run.colour; }))
        ++run.colour;
    runs_.push_back(std::move(run));
    Q_EMIT runs_changed();
    choose(last_id_);
    return last_id_;
}

void RunShelf::remove(int id) {
    if (std::erase_if(runs_, [id](const Run& run) { return run.id == id; }) == 0) return;
    if (moment_.run == id) choose(runs_.empty() ? 0 : runs_.back().id);
    Q_EMIT runs_changed();
}

void RunShelf::choose(int run) {
    if (run == moment_.run) return;
    moment_ = {run, std::nullopt};
    Q_EMIT moment_changed();
}

void RunShelf::choose_step(std::optional<std::int64_t> step) {
    if (step == moment_.step) return;
    moment_.step = step;
    Q_EMIT moment_changed();
}

void RunShelf::choose_head(std::int64_t site, std::int64_t head) {
    if (site == site_ && head == head_) return;
    site_ = site;
    head_ = head;
    Q_EMIT head_changed();
}

void RunShelf::set_shown(int id, bool shown) {
    Run* run = find(id);
    if (!run || run->shown == shown) return;
    run->shown = shown;
    Q_EMIT runs_changed();
}

void RunShelf::take(int id, std::shared_ptr<const workspace::LiveRun> record) {
    Run* run = find(id);
    if (!run || !record) return;
    const bool other = run->record->status() != record->status();
    run->record = std::move(record);
    run->failure.clear();
    Q_EMIT updated(id);
    if (other) Q_EMIT runs_changed();
}

void RunShelf::fail(int id, const QString& failure) {
    Run* run = find(id);
    if (!run || run->failure == failure) return;
    run->failure = failure;
    Q_EMIT updated(id);
}

void RunShelf::set_waiting(int id, const QStringList& waiting) {
    Run* run = find(id);
    if (!run || run->waiting == waiting) return;
    run->waiting = waiting;
    Q_EMIT updated(id);
}

void RunShelf::set_starting(const QString& what) {
    if (what == starting_) return;
    starting_ = what;
    Q_EMIT starting_changed();
}

void RunShelf::set_cost(CostAnswer answer) {
    cost_ = std::move(answer);
    Q_EMIT cost_changed();
}

}  // namespace headscope::widgets
