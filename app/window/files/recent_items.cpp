// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/files/recent_items.h"

#include <QMenu>
#include <algorithm>
#include <chrono>
#include <thread>

#include "app/window/files/copy_file.h"
#include "app/window/files/model_place.h"
#include "widgets/training/facts.h"

namespace headscope::app {
namespace {

constexpr int kMostInMenu = 12;
constexpr std::chrono::milliseconds kRecentPatience{200};

widgets::RecentItem shown_item(const Recent& item) {
    using Kind = widgets::RecentItem::Kind;
    widgets::RecentItem shown;
    shown.kind = item.kind == QLatin1String("model")        ? Kind::model
                 : item.kind == QLatin1String("run")        ? Kind::run
                 : item.kind == QLatin1String("evaluation") ? Kind::evaluation
                 : item.kind == QLatin1String("ask")        ? Kind::ask
                                                            : Kind::analysis;
    shown.path = item.path;
    shown.name = item.name;
    shown.detail = item.detail;
    shown.thumbnail = QImage::fromData(item.thumbnail, "PNG");
    return shown;
}

}  // namespace

RecentItems::RecentItems(Context& context) : context_(context), menu_(new QMenu(tr("Open &recent"), context.window)) {
    menu_->setObjectName(QStringLiteral("recent_menu"));
    menu_->setToolTipsVisible(true);
    connect(menu_, &QMenu::aboutToShow, this, &RecentItems::fill_menu);
    connect(context_.start, &widgets::StartPage::path_wanted, this, &RecentItems::chosen);
    connect(context_.start, &widgets::StartPage::forget_wanted, this, &RecentItems::forget);
    connect(&context_.desk, &widgets::Desk::theme_changed, this, &RecentItems::show);
    show();
}

void RecentItems::set(const std::vector<Recent>& items) {
    items_ = items;
    show();
}

bool RecentItems::contain(const QString& path) const {
    return std::any_of(items_.begin(), items_.end(), [&](const Recent& item) { return item.path == path; });
}

void RecentItems::remember(const widgets::Study& study) {
    remember({QString::fromStdString(study.path().string()),
              study.name(),
              tr("%1, %2").arg(study.model_name(), widgets::sequences_words(study.sequences())),
              QStringLiteral("analysis"),
              {}});
}

void RecentItems::remember(const Recent& item) {
    Recent kept = item;
    for (const Recent& old : items_)
        if (old.path == item.path && kept.thumbnail.isEmpty()) kept.thumbnail = old.thumbnail;
    std::erase_if(items_, [&](const Recent& old) { return old.path == item.path; });
    items_.insert(items_.begin(), kept);
    if (items_.size() > kMostRecent) items_.resize(kMostRecent);
    show();
    Q_EMIT context_.changed();
}

void RecentItems::forget(const QString& path) {
    std::erase_if(items_, [&](const Recent& item) { return item.path == path; });
    show();
    Q_EMIT context_.changed();
}

void RecentItems::picture(widgets::Study* study) {
    if (!study->complete()) return;
    const bool dark = context_.desk.theme().dark;
    const auto picture = study->ask<QByteArray>("recent", -3, -3, [dark](const auto& file) {
        return std::make_shared<const QByteArray>(recent_picture(file, dark));
    });
    if (!picture) return;
    const QString path = QString::fromStdString(study->path().string());
    for (Recent& item : items_) {
        if (item.path != path || !item.thumbnail.isEmpty()) continue;
        item.thumbnail = *picture;
        show();
        Q_EMIT context_.changed();
    }
}

/// A worker queries whether the items still exist: a disk may sleep, a network may be gone. The list does not wait for
/// it. Two hundred files that are dropped at once make one list.
void RecentItems::show() {
    worker_.cancel(this);
    worker_.post(this, [this, items = items_, send = mailbox_.sender()](const Cancellation& stop) {
        std::vector<widgets::RecentItem> shown;
        QStringList paths;
        for (const Recent& item : items) {
            shown.push_back(shown_item(item));
            paths << ModelPlace::of(item.path).path;
        }
        using State = PathStates::State;
        for (bool first = true; !stop.requested(); first = false) {
            if (!first) std::this_thread::sleep_for(kRecentPatience);
            const auto states = states_.ask(paths, kRecentPatience);
            paths.clear();
            bool changed = first;
            for (widgets::RecentItem& item : shown) {
                const auto state = states.find(ModelPlace::of(item.path).path);
                if (state == states.end()) continue;
                changed = changed || state->second != State::silent;
                item.missing = state->second == State::missing;
                item.silent = state->second == State::silent;
                if (item.silent) paths << ModelPlace::of(item.path).path;
            }
            if (changed && !stop.requested()) send([this, shown] { context_.start->set_recent(shown); });
            if (paths.isEmpty()) break;
        }
    });
}

void RecentItems::fill_menu() {
    menu_->clear();
    int number = 0;
    for (const Recent& item : items_) {
        if (number == kMostInMenu) break;
        ++number;
        const QString text = QString(item.name).replace(QLatin1Char('&'), QLatin1String("&&"));
        QAction* entry = menu_->addAction(number < 10 ? QStringLiteral("&%1  %2").arg(number).arg(text) : text, this,
                                          [this, path = item.path] { Q_EMIT chosen(path); });
        entry->setObjectName(QStringLiteral("recent_%1").arg(number));
        entry->setToolTip(item.path + QLatin1Char('\n') + item.detail);
    }
    if (number == 0) menu_->addAction(tr("Nothing was opened yet"))->setEnabled(false);
}

}  // namespace headscope::app
