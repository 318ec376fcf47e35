// SPDX-License-Identifier: GPL-3.0-or-later
// Dialogs for files, which stay for the next question.
#include <QAbstractItemView>
#include <QApplication>
#include <QCompleter>
#include <QDialog>
#include <QLineEdit>
#include <QPointer>
#include <catch2/catch.hpp>

#include "widgets/file_dialog.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope::widgets;

TEST_CASE("A file dialog stays for the next question, and the answer goes to who asked it", "[panels]") {
    ensure_application();
    QWidget window;
    window.show();
    const auto dialogs = [&] { return window.findChildren<QFileDialog*>(); };
    QString first, second, third;
    ask_for_file(&window, {QStringLiteral("Open it")}, [&](const QString& path) { first = path; });
    REQUIRE(dialogs().size() == 1);
    QFileDialog* dialog = dialogs().first();
    CHECK(dialog->isVisible());
    dialog->reject();
    {
        QWidget asker(&window);
        ask_for_file(&asker, {QStringLiteral("Open it")}, [&](const QString& path) { second = path; });
        CHECK(dialogs() == QList<QFileDialog*>{dialog});
        CHECK(dialog->isVisible());
        ask_for_file(&window, {QStringLiteral("Open it")}, [&](const QString& path) { third = path; });  // it asks
        Q_EMIT dialog->filesSelected({QStringLiteral("/a")});
        CHECK(second == "/a");
    }
    Q_EMIT dialog->filesSelected({QStringLiteral("/b")});
    dialog->reject();
    CHECK(second == "/a");
    CHECK(first.isEmpty());
    CHECK(third.isEmpty());

    // Over another dialog it is that one's child, and outlives it all the same.
    FileQuestion save{QStringLiteral("Save it")};
    save.mode = QFileDialog::AnyFile;
    save.suggestion = QStringLiteral("figure.pdf");
    QPointer<QFileDialog> saver;
    {
        QDialog over(&window);
        over.show();
        ask_for_file(&over, save, [&](const QString& path) { third = path; });
        saver = over.findChild<QFileDialog*>();
        REQUIRE(saver);
        CHECK(saver->acceptMode() == QFileDialog::AcceptSave);
        CHECK(saver->selectedFiles().value(0).endsWith("figure.pdf"));
        saver->reject();
        QCoreApplication::processEvents();
    }
    CHECK(saver);
}

TEST_CASE("The list of names goes with its dialog, and does not come after it", "[panels]") {
    ensure_application();
    QWidget window;
    window.show();
    ask_for_file(&window, {QStringLiteral("Open it")}, [](const QString&) {});
    auto* dialog = window.findChild<QFileDialog*>();
    REQUIRE(dialog);
    const auto* line = dialog->findChild<QLineEdit*>(QStringLiteral("fileNameEdit"));
    REQUIRE(line);
    QAbstractItemView* names = line->completer()->popup();
    names->show();
    QApplication::processEvents();
    CHECK(names->isVisible());
    dialog->reject();
    CHECK_FALSE(names->isVisible());
    names->show();
    QApplication::processEvents();
    CHECK_FALSE(names->isVisible());
}
