// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/file_dialog.h"

#include <QAbstractItemView>
#include <QCompleter>
#include <QEvent>
#include <QLineEdit>
#include <utility>

namespace headscope::widgets {
namespace {

/// The main window: it outlives all dialogs.
QWidget* keeper_of(QWidget* asker) {
    QWidget* keeper = asker->window();
    while (keeper->parentWidget()) keeper = keeper->parentWidget()->window();
    return keeper;
}

/// Hides the list of names below a dialog's line with the dialog. The list comes when the folder has been read, also
/// after Return has closed the dialog, and would then take the window's keys and its first click.
class NamesHider final : public QObject {
public:
    explicit NamesHider(QFileDialog* dialog) : QObject(dialog), dialog_(dialog) {
        const auto* line = dialog->findChild<QLineEdit*>(QStringLiteral("fileNameEdit"));
        if (!line || !line->completer()) return;
        names_ = line->completer()->popup();
        names_->installEventFilter(this);
        connect(dialog, &QDialog::finished, names_, &QWidget::hide);
    }
    bool eventFilter(QObject* object, QEvent* event) override {
        if (event->type() == QEvent::Show && !dialog_->isVisible())
            QMetaObject::invokeMethod(names_, &QWidget::hide, Qt::QueuedConnection);
        return QObject::eventFilter(object, event);
    }

private:
    QFileDialog* dialog_;
    QAbstractItemView* names_ = nullptr;
};

/// The one that asked with this title before, or a new one; null: it is asking now.
QFileDialog* dialog_for(QWidget* asker, const QString& title) {
    QWidget* keeper = keeper_of(asker);
    for (auto* dialog : keeper->findChildren<QFileDialog*>()) {
        if (dialog->windowTitle() != title) continue;
        if (!dialog->isVisible()) return dialog;
        dialog->raise();
        return nullptr;
    }
    auto* dialog = new QFileDialog(keeper, title);
    new NamesHider(dialog);
    // A dialog that is open over another one is that one's child, and must not go with it.
    QObject::connect(
        dialog, &QDialog::finished, keeper,
        [dialog, keeper] {
            if (dialog->parentWidget() != keeper) dialog->setParent(keeper, dialog->windowFlags());
        },
        Qt::QueuedConnection);
    return dialog;
}

}  // namespace

void ask_for_files(QWidget* asker, const FileQuestion& question,
                   std::function<void(const QStringList& paths, const QString& filter)> take) {
    QFileDialog* dialog = dialog_for(asker, question.title);
    if (!dialog) return;
    if (dialog->parentWidget() != asker->window()) dialog->setParent(asker->window(), dialog->windowFlags());
    dialog->setObjectName(question.name);
    const bool writes = question.mode == QFileDialog::AnyFile;
    dialog->setAcceptMode(writes ? QFileDialog::AcceptSave : QFileDialog::AcceptOpen);
    dialog->setFileMode(question.mode);
    dialog->setNameFilters(question.filter.isEmpty() ? QStringList{QObject::tr("All files (*)")}
                                                     : question.filter.split(QStringLiteral(";;")));
    dialog->setDefaultSuffix(question.suffix);
    if (auto* line = dialog->findChild<QLineEdit*>(QStringLiteral("fileNameEdit"))) line->clear();
    if (!question.suggestion.isEmpty()) dialog->selectFile(question.suggestion);
    QObject::disconnect(dialog, &QFileDialog::filesSelected, nullptr, nullptr);
    QObject::connect(dialog, &QFileDialog::filesSelected, asker,
                     [dialog, take = std::move(take)](const QStringList& paths) {
                         if (!paths.isEmpty() && !paths.first().isEmpty()) take(paths, dialog->selectedNameFilter());
                     });
    dialog->open();
}

void ask_for_file(QWidget* asker, const FileQuestion& question, std::function<void(const QString& path)> take) {
    ask_for_files(asker, question,
                  [take = std::move(take)](const QStringList& paths, const QString&) { take(paths.first()); });
}

}  // namespace headscope::widgets
