// SPDX-License-Identifier: GPL-3.0-or-later
// The menu of recent items, names that analyses are given, and partial files that a window left.
#include <QDir>
#include <QFileInfo>
#include <QInputDialog>
#include <QMenu>
#include <algorithm>

#include "app/window/files/leftovers.h"
#include "app/window/main_window.h"
#include "widgets/panels/start_page.h"

namespace headscope::app {
namespace {

constexpr int kMostInMenu = 12;
constexpr int kMostNames = 500;

}  // namespace

void MainWindow::fill_recent_menu() {
    recent_menu_->clear();
    int number = 0;
    for (const Recent& item : recent_) {
        if (number == kMostInMenu) break;
        ++number;
        const QString text = QString(item.name).replace(QLatin1Char('&'), QLatin1String("&&"));
        QAction* entry = recent_menu_->addAction(number < 10 ? QStringLiteral("&%1  %2").arg(number).arg(text) : text,
                                                 this, [this, path = item.path] { open_path(path); });
        entry->setObjectName(QStringLiteral("recent_%1").arg(number));
        entry->setToolTip(item.path + QLatin1Char('\n') + item.detail);
    }
    if (number == 0) recent_menu_->addAction(tr("Nothing was opened yet"))->setEnabled(false);
}

void MainWindow::ask_name(int id) {
    const widgets::Study* study = desk_.study(id);
    if (!study) return;
    auto* question = new QInputDialog(this);
    question->setObjectName(QStringLiteral("rename_dialog"));
    question->setAttribute(Qt::WA_DeleteOnClose);
    question->setWindowTitle(tr("Rename the analysis"));
    question->setLabelText(tr("Name in lists and figures; empty: that of the file, %1").arg(study->file_name()));
    question->setTextValue(study->name());
    connect(question, &QInputDialog::textValueSelected, this, [this, id](const QString& name) {
        widgets::Study* renamed = desk_.study(id);
        if (!renamed) return;
        desk_.rename_study(id, name);
        names_ = given_names();
        remember(*renamed);
    });
    question->open();
}

/// The name that an analysis of this path had before.
void MainWindow::give_name(widgets::Study* study) {
    const QString name = names_[QString::fromStdString(study->path().string())].toString();
    if (!name.isEmpty()) desk_.rename_study(study->id(), name);
}

QJsonObject MainWindow::given_names() const {
    QJsonObject names;
    for (const widgets::Study* study : desk_.studies()) {
        const QString path = QString::fromStdString(study->path().string());
        if (!study->given_name().isEmpty()) names[path] = study->given_name();
    }
    // Of what is open, its present name counts; of the rest, those that the session or the recent items still list.
    QStringList open;
    for (const widgets::Study* study : desk_.studies()) open << QString::fromStdString(study->path().string());
    for (auto name = names_.begin(); name != names_.end() && names.size() < kMostNames; ++name) {
        const bool listed =
            std::any_of(recent_.begin(), recent_.end(), [&](const Recent& item) { return item.path == name.key(); });
        const bool coming = opening_.contain(name.key()) || late_.contain(name.key());
        if (!open.contains(name.key()) && (listed || coming)) names[name.key()] = *name;
    }
    return names;
}

void MainWindow::look_for_leftovers(const QStringList& of_session) {
    looker_.post(this, [this, folder = data_ / "analyses", of_session, send = mailbox_.sender()](const Cancellation&) {
        QStringList found;
        for (const std::filesystem::path& path : find_leftovers(folder))
            if (const QString name = QString::fromStdString(path.string()); !of_session.contains(name)) found << name;
        send([this, found] {
            leftovers_ = found;
            offer_leftovers();
        });
    });
}

void MainWindow::offer_leftovers() {
    for (const widgets::Study* study : desk_.studies())
        leftovers_.removeAll(QString::fromStdString(study->path().string()));
    start_->offer_leftovers(leftovers_);
}

void MainWindow::remove_leftover(const QString& path) {
    leftovers_.removeAll(path);
    offer_leftovers();
    looker_.post(this, [this, path, send = mailbox_.sender()](const Cancellation&) {
        const bool removed = QFile::remove(path);
        send([this, path, removed] {
            removed ? tell(tr("Removed %1").arg(path)) : problem(tr("[%1] expected to remove this file").arg(path));
        });
    });
}

}  // namespace headscope::app
