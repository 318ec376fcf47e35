// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/evaluation_shelf.h"

#include <QDir>
#include <algorithm>

#include "core/base/error.h"
#include "core/store/evaluation/evaluation_file.h"

namespace headscope::widgets {
namespace {

/// "a", "a, b", "a and 3 more".
QString few_names(const QStringList& names) {
    if (names.size() <= 2) return names.join(QStringLiteral(", "));
    return EvaluationShelf::tr("%1 and %2 more").arg(names.front()).arg(names.size() - 1);
}

/// The models and their tasks; the file's name where it holds none.
QString evaluation_name(const QString& path, const store::Evaluation& record) {
    constexpr std::size_t kLongest = 60;
    QStringList models, tasks;
    for (const auto& model : record.models) {
        const QString name = QString::fromStdString(escaped(model.name, kLongest));
        if (!models.contains(name)) models << name;
    }
    for (const auto& result : record.results) {
        const QString task = QString::fromStdString(escaped(result.task, kLongest));
        if (!tasks.contains(task)) tasks << task;
    }
    if (models.isEmpty()) return path.section(QLatin1Char('/'), -1);
    return tasks.isEmpty() ? few_names(models) : EvaluationShelf::tr("%1: %2").arg(few_names(models), few_names(tasks));
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
    const QString name = evaluation_name(clean, *record);
    QString unique = name;
    const auto taken = [&](const OpenEvaluation& one) { return one.name == unique; };
    for (int number = 2; std::any_of(all_.begin(), all_.end(), taken); ++number)
        unique = QStringLiteral("%1 #%2").arg(name).arg(number);
    all_.push_back({++last_id_, clean, unique, true, std::move(record)});
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
