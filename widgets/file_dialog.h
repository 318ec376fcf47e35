// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFileDialog>
#include <QString>
#include <QStringList>
#include <functional>

namespace headscope::widgets {

/// Settings of a file dialog.
struct FileQuestion {
    QString title;
    QString filter{};  ///< as QFileDialog takes it: "Jobs (*.toml);;All files (*)"; empty: all
    QFileDialog::FileMode mode = QFileDialog::ExistingFile;  ///< AnyFile: a file to write
    QString suggestion{};                                    ///< a name, for a file to write
    QString suffix{};                                        ///< of a file to write that is given none
    QString name = QStringLiteral("file_dialog");            ///< of the dialog, for tests
};

/// Asks in a dialog that holds up nothing; `take` gets what was chosen (one path or more) and the filter that was, and
/// is forgotten with `asker`. The dialog stays for the next question with the same title: Qt's own one watches its
/// folder, and to end a watch the system takes up to 0.2 s of the window's thread (inotify's close).
void ask_for_files(QWidget* asker, const FileQuestion& question,
                   std::function<void(const QStringList& paths, const QString& filter)> take);

/// The same where one path is wanted.
void ask_for_file(QWidget* asker, const FileQuestion& question, std::function<void(const QString& path)> take);

}  // namespace headscope::widgets
