// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>

#include "widgets/desk/job_draft.h"
#include "widgets/plain_edit.h"
#include "widgets/theme.h"

class QLabel;

namespace headscope::widgets {

class TomlColours;

/// A job's text, to be read and typed: sections, values and comments in colours, the line with what is wrong marked,
/// and what is wrong said below. What is typed becomes the draft a moment later.
class JobEditor : public QWidget {
    Q_OBJECT
public:
    explicit JobEditor(JobDraft* draft, QWidget* parent = nullptr);
    void set_theme(const Theme& theme);
    /// Marks the line that sets this key.
    void show_key(const QString& key);
    PlainEdit* text() const { return text_; }

private:
    void follow();
    void take();
    void mark();

    JobDraft* draft_;
    PlainEdit* text_;
    QLabel* problem_;
    TomlColours* colours_;
    Theme theme_;
    QTimer soon_;
    bool following_ = false;
    QString key_;
};

}  // namespace headscope::widgets
