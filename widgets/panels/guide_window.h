// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <QString>
#include <functional>

class QLineEdit;
class QTextBrowser;

namespace headscope::widgets {

/// The user guide, beside the window that it is about.
class GuideWindow : public QDialog {
    Q_OBJECT
public:
    /// `read`: the Markdown text of a page, by its file name; empty: there is no such page.
    explicit GuideWindow(std::function<QString(const QString& page)> read, QWidget* parent = nullptr);

    /// Opens a page at the paragraph that begins with `topic`, else at its top. False: the page has no such paragraph.
    bool show_topic(const QString& page, const QString& topic);
    /// Markdown without comments and pictures: the window itself is there to look at.
    static QString plain(const QString& markdown);

private:
    void open_page(const QString& page);
    void find_again();

    std::function<QString(const QString&)> read_;
    QString page_;
    QTextBrowser* text_;
    QLineEdit* field_;
};

}  // namespace headscope::widgets
