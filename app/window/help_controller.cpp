// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/help_controller.h"

#include <QFile>
#include <QMessageBox>

#include "app/version.h"
#include "app/window/pages_controller.h"
#include "widgets/panels/command_palette.h"
#include "widgets/panels/guide_window.h"

namespace headscope::app {
namespace {

QString page_of_guide(const QString& name) {
    QFile file(QStringLiteral(":/guide/") + name);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

}  // namespace

HelpController::HelpController(Context& context, const PagesController& pages) : context_(context), pages_(pages) {
    Actions& actions = context_.actions;
    actions.add("commands", tr("&Commands…"), QKeySequence(tr("Ctrl+K")), tr("Every action by name"),
                [this] { show_commands(); });
    actions.add("guide", tr("&User guide"), QKeySequence::HelpContents,
                tr("At the place that is about the view in front"), [this] { show_guide(); });
    actions.add("keys", tr("&Keys"), QKeySequence(Qt::Key_Question), tr("All keys"), [this] { show_keys(); });
    actions.add("about", tr("&About Headscope"), {}, tr("Version and license"), [this] { show_version(); });
}

void HelpController::show_guide() {
    if (!guide_) guide_ = new widgets::GuideWindow(&page_of_guide, context_.window);
    QString topic;
    for (const widgets::ViewKind* kind : widgets::view_kinds())
        if (pages_.front_name() == QLatin1String(kind->name)) topic = tr(kind->title);
    guide_->show();
    guide_->show_topic(QStringLiteral("user-guide.md"), topic);
    guide_->raise();
    guide_->activateWindow();
}

void HelpController::show_commands() {
    auto* palette = new widgets::CommandPalette(context_.actions.placed() + pages_.view_commands(), context_.window);
    palette->setAttribute(Qt::WA_DeleteOnClose);
    palette->open();
}

void HelpController::show_keys() {
    std::vector<std::pair<QString, QList<QAction*>>> of_views;
    for (const widgets::ViewKind* kind : widgets::view_kinds())
        of_views.emplace_back(tr(kind->title), pages_.views().at(QLatin1String(kind->name))->all_commands());
    widgets::show_shortcuts(context_.actions.placed(), of_views, context_.window);
}

void HelpController::show_version() {
    auto* box = new QMessageBox(
        QMessageBox::NoIcon, tr("About Headscope"),
        tr("Headscope %1\n\nA workbench for looking inside attention.\nGPL-3.0-or-later.").arg(QLatin1String(kVersion)),
        QMessageBox::Close, context_.window);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
}

}  // namespace headscope::app
