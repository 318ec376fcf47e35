// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPlainTextEdit>

namespace headscope::widgets {

/// Messages with their time; problems in the accent color. Keeps the last few thousand lines.
class LogPanel : public QPlainTextEdit {
    Q_OBJECT
public:
    explicit LogPanel(QWidget* parent = nullptr);
    void note(const QString& text);
    void problem(const QString& text);
    int problems() const { return problems_; }

Q_SIGNALS:
    void problem_noted(const QString& text);

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void add(const QString& text, bool problem);
    int problems_ = 0;
};

}  // namespace headscope::widgets
