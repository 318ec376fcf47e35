// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>

#include "widgets/desk/run_shelf.h"
#include "widgets/desk/view.h"

class QCheckBox;
class QLabel;
class QPushButton;
class QSplitter;

namespace headscope::widgets {

class Banner;
class Facts;
class JobEditor;
class JobForm;

/// A job as form and as text side by side, what it will take, and Start.
class TrainView : public View {
    Q_OBJECT
public:
    TrainView(Desk* desk, QWidget* parent);
    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;

protected:
    void refresh() override;

private:
    QWidget* make_bar();
    QWidget* make_fork();
    void show_fork();
    void show_summary();

    JobDraft& draft_;
    JobForm* form_;
    JobEditor* editor_;
    Facts* facts_;
    Banner* banner_;
    QSplitter* splitter_;
    QPushButton *start_, *measure_;
    QWidget* fork_;
    QLabel* fork_words_;
    QCheckBox* fork_optimizer_;
    Theme shown_theme_;
    bool themed_ = false;
};

}  // namespace headscope::widgets
