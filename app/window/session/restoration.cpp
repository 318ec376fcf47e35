// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/session/restoration.h"

#include <QDir>
#include <QFileInfo>
#include <algorithm>
#include <utility>

namespace headscope::app {
namespace {

bool has(const QStringList& paths, const QString& path) {
    return std::any_of(paths.begin(), paths.end(), [&](const QString& one) { return is_same_path(one, path); });
}

}  // namespace

bool is_same_path(const QString& one, const QString& other) {
    return QDir::cleanPath(QFileInfo(one).absoluteFilePath()) == QDir::cleanPath(QFileInfo(other).absoluteFilePath());
}

bool Restoration::Paths::contain(const QString& path) const {
    return has(models, path) || has(analyses, path) || has(runs, path);
}

bool Restoration::Paths::remove(const QString& path) {
    qsizetype removed = 0;
    for (QStringList* list : {&models, &analyses, &runs})
        removed += list->removeIf([&](const QString& one) { return is_same_path(one, path); });
    return removed > 0;
}

Restoration::Paths& Restoration::Paths::operator+=(const Paths& other) {
    models += other.models;
    analyses += other.analyses;
    runs += other.runs;
    return *this;
}

bool Restoration::brought_back(const QString& path) const {
    return !has(requested_, path) && expects(path);
}

void Restoration::request(const QString& path) {
    touched_ = true;
    if (brought_back(path)) requested_ << path;
}

bool Restoration::postpone(const QString& path) {
    if (!active_ || !requested_.contains(path)) return false;
    postponed_ << path;
    return true;
}

void Restoration::settle(const QString& path) {
    opening_.remove(path);
    const bool late = late_.remove(path);
    Q_EMIT settled(path, late);
}

void Restoration::begin(const Paths& paths) {
    active_ = true;
    touched_ = false;
    opening_ += paths;
}

void Restoration::forget_requests() {
    requested_.removeIf([this](const QString& path) { return !late_.contain(path); });
}

void Restoration::forget_request(const QString& path) {
    requested_.removeIf([&](const QString& one) { return is_same_path(one, path); });
}

QStringList Restoration::take_postponed() {
    return std::exchange(postponed_, {});
}

void Restoration::make_late() {
    late_ += std::exchange(opening_, {});
}

}  // namespace headscope::app
