// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <functional>

class QLabel;

namespace headscope::widgets {

class PlainEdit;

/// Asks for a short text in its place, without a box: hidden until it asks. Enter takes it (with Ctrl where it may have
/// several lines), Escape lets it be.
class InlineEdit : public QWidget {
    Q_OBJECT
public:
    /// Gets the text; what it returns is what is wrong with it: empty, nothing is.
    using Take = std::function<QString(const QString& text)>;

    explicit InlineEdit(QWidget* parent = nullptr);
    void ask(const QString& question, const QString& text, bool lines, Take take);
    void accept();
    void give_up();

protected:
    bool eventFilter(QObject* object, QEvent* event) override;

private:
    QLabel *question_, *wrong_;
    PlainEdit* edit_;
    Take take_;
    bool lines_ = false;
};

}  // namespace headscope::widgets
