// SPDX-License-Identifier: GPL-3.0-or-later
// The user guide, which is part of the program.
#include <QFile>

#include "app/window/main_window.h"
#include "widgets/panels/guide_window.h"

namespace headscope::app {
namespace {

QString page_of_guide(const QString& name) {
    QFile file(QStringLiteral(":/guide/") + name);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

}  // namespace

void MainWindow::show_guide() {
    if (!guide_) guide_ = new widgets::GuideWindow(&page_of_guide, this);
    QString topic;
    for (const widgets::ViewKind* kind : widgets::view_kinds())
        if (front_name() == QLatin1String(kind->name)) topic = tr(kind->title);
    guide_->show();
    guide_->show_topic(QStringLiteral("user-guide.md"), topic);
    guide_->raise();
    guide_->activateWindow();
}

}  // namespace headscope::app
