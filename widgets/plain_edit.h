// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPlainTextEdit>

namespace headscope::widgets {

/// An editor of plain text that takes no more than a number of characters from the clipboard: a text is laid out by
/// the window's thread, a paragraph at once, and a megabyte in one paragraph holds it for more than half a second.
class PlainEdit : public QPlainTextEdit {
    Q_OBJECT
public:
    /// Characters (UTF-16) that can be typed and laid out without a wait that is felt.
    static constexpr int kMost = 1 << 16;

    explicit PlainEdit(QWidget* parent = nullptr, int most = kMost) : QPlainTextEdit(parent), most_(most) {}
    int most() const { return most_; }

Q_SIGNALS:
    /// Pasted text was too long and was refused; the text would have had `characters`.
    void too_long(const QString& pasted, qsizetype characters);

protected:
    void insertFromMimeData(const QMimeData* source) override;

private:
    int most_;
};

/// "2000000 characters", for messages on texts that are too long.
QString characters_in_words(qsizetype count);

}  // namespace headscope::widgets
