// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/evaluation_shelf.h"

#include <QDir>
#include <algorithm>

#include "core/store/evaluation_file.h"

namespace headscope::widgets {
namespace {

QString name_of(const QString& path) {
    QString name = path.section(QLatin1Char('/'), -1);
    for (const QLatin1String ending : {QLatin1String(".h5"), QLatin1String(".hdf5"), QLatin1String(".evaluation")})
        if (name.size() > ending.size() && name.endsWith(ending)) name.chop(ending.size());
    return name;
}

}  // namespace

int EvaluationShelf::take(const QString& path, std::shared_ptr<const store::Evaluation> record) {
    const QString clean = QDir::cleanPath(path);
    for (OpenEvaluation& one : all_) {
        if (one.path != clean) continue;
        one.record = std::move(record);
        const int id = one.id;
        Q_EMIT changed();
        return id;
    }
    all_.push_back({++last_id_, clean, name_of(clean), true, std::move(record)});
    const int id = last_id_;
    Q_EMIT changed();
    return id;
}

void EvaluationShelf::remove(int id) {
    if (std::erase_if(all_, [id](const OpenEvaluation& one) { return one.id == id; }) > 0) Q_EMIT changed();
}

const OpenEvaluation* EvaluationShelf::at(const QString& path) const {
    const QString clean = QDir::cleanPath(path);
    for (const OpenEvaluation& one : all_)
        if (one.path == clean) return &one;
    return nullptr;
}

const OpenEvaluation* EvaluationShelf::find(int id) const {
    for (const OpenEvaluation& one : all_)
        if (one.id == id) return &one;
    return nullptr;
}

void EvaluationShelf::set_shown(int id, bool shown) {
    for (OpenEvaluation& one : all_) {
        if (one.id != id || one.shown == shown) continue;
        one.shown = shown;
        Q_EMIT changed();
        return;
    }
}

QStringList EvaluationShelf::shown_paths() const {
    QStringList paths;
    for (const OpenEvaluation& one : all_)
        if (one.shown) paths << one.path;
    return paths;
}

void EvaluationShelf::set_evaluating(const QString& what) {
    if (what == evaluating_) return;
    evaluating_ = what;
    progress_.clear();
    Q_EMIT evaluating_changed();
}

void EvaluationShelf::set_progress(const QString& words) {
    if (words == progress_ || evaluating_.isEmpty()) return;
    progress_ = words;
    Q_EMIT progressed();
}

QString EvaluationShelf::evaluating_words() const {
    return progress_.isEmpty() ? evaluating_ : evaluating_ + QLatin1Char('\n') + progress_;
}

QString EvaluationShelf::about(const store::Evaluation& record) {
    const auto models = record.models.size(), results = record.results.size();
    const QString first = models == 1 ? tr("1 model") : tr("%1 models").arg(models);
    return results == 1 ? tr("%1, 1 result").arg(first) : tr("%1, %2 results").arg(first).arg(results);
}

}  // namespace headscope::widgets
