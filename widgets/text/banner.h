// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <functional>

class QLabel;
class QPushButton;

namespace headscope::widgets {

/// A line above what it is about: what is missing there and, perhaps, a button that gets it.
class Banner : public QFrame {
    Q_OBJECT
public:
    explicit Banner(QWidget* parent = nullptr);
    /// Empty text: hidden.
    void set(const QString& text, const QString& action = {}, std::function<void()> act = {});
    QString text() const;

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    QLabel* text_;
    QPushButton* action_;
    std::function<void()> act_;
};

}  // namespace headscope::widgets
