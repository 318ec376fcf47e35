// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>
#include <QWidget>
#include <utility>
#include <vector>

#include "widgets/panels/start_icons.h"

class QCommandLinkButton;
class QHBoxLayout;
class QLabel;
class QListWidget;
class QPushButton;

namespace headscope::widgets {

/// Something that was open before.
struct RecentItem {
    enum class Kind { model, analysis, run, evaluation, ask };
    Kind kind = Kind::model;
    QString path, name, detail;  ///< detail: "gpt2, 12 layers", "3 sequences, today 12:40"
    bool missing = false;        ///< the file is not there any more
    bool silent = false;         ///< its disk has not answered yet
    QImage thumbnail;            ///< may be null
};

/// Shown before anything is open: entries to open, recent items, and next steps.
class StartPage : public QWidget {
    Q_OBJECT
public:
    explicit StartPage(QWidget* parent = nullptr);
    void set_recent(std::vector<RecentItem> items);
    /// A session that was not closed, or the last one; empty text: none.
    void offer_session(const QString& text);
    /// Partial files of analyses that did not end: they can be opened or removed.
    void offer_leftovers(const QStringList& paths);
    /// Runs whose process died: their folders, which can be opened and resumed.
    void offer_runs(const QStringList& folders);

Q_SIGNALS:
    void open_model_wanted();
    void open_analysis_wanted();
    void sample_wanted();
    void training_wanted();
    void session_wanted();
    void session_declined();
    void path_wanted(const QString& path);
    void removal_wanted(const QString& path);  ///< of such a partial file
    void forget_wanted(const QString& path);

protected:
    void changeEvent(QEvent* event) override;

private:
    QWidget* build_links();
    QWidget* build_recent();
    QWidget* build_offer();
    void draw_links();
    void list_recent();
    QHBoxLayout* add_offer(QWidget* box, const QString& text, const QString& tip);

    std::vector<RecentItem> items_;
    std::vector<std::pair<QCommandLinkButton*, StartIcon>> links_;
    QListWidget* recent_;
    QLabel* nothing_;  ///< where the list will be
    QWidget *offer_, *runs_, *leftovers_;
    QLabel* offer_text_;
    QLabel* recent_title_;
};

}  // namespace headscope::widgets
