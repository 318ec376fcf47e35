// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>
#include <QWidget>

#include "widgets/panels/text_choice.h"
#include "widgets/theme.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QListWidget;
class QListWidgetItem;
class QProgressBar;
class QPushButton;
class QSpinBox;
class QToolButton;

namespace headscope::widgets {

class PlainEdit;
class TokenChips;

/// Where a text is typed or chosen, seen as tokens, and run. Knows no model: it asks for previews and runs by signals
/// and is told what came of them.
class TextPanel : public QWidget {
    Q_OBJECT
public:
    explicit TextPanel(QWidget* parent = nullptr);

    void set_models(const std::vector<ModelCard>& models);
    void set_examples(const QStringList& names);
    void set_theme(const Theme& theme);
    void choose_model(int id);
    TextChoice choice() const;
    /// With what is only hidden because no open model reads it: for the session.
    TextChoice kept_choice() const;
    void set_choice(const TextChoice& choice);
    /// Adds a file as a text; it becomes the chosen one.
    void add_file(const QString& path);
    /// Adds a text, or tells that it is too long to be kept (refused).
    void add_text(const QString& text);
    /// Characters of all texts that are typed, pasted or dropped: they are kept with the session. Files may be longer.
    static constexpr qsizetype kLongest = 1 << 21;

    void show_preview(const TokenPreview& preview);
    /// Of a run: 0..1, what is being done, rate and time left in words.
    void show_progress(double share, const QString& what);
    void show_running(bool running);
    void focus_text();
    /// The texts as the list names them, and the one that is shown.
    QStringList labels() const;
    void choose_source(int row);

Q_SIGNALS:
    void preview_wanted(const headscope::widgets::TextChoice& choice);  ///< some time after the last change
    void run_wanted(const headscope::widgets::TextChoice& choice);
    void stop_wanted();
    void open_model_wanted();
    void refused(const QString& message);  ///< a text that was not taken; said in the panel too
    void changed();

private:
    void build();
    QWidget* build_sources();
    QWidget* build_options();
    void show_source();
    void show_tokens(int row);
    void take_tick(QListWidgetItem* item);
    void take_text();
    void take_long(const QString& pasted, qsizetype characters);
    bool refuse(const QString& text);
    void take_source(const TextSource& added);
    void add_source(const TextSource& source);
    void ask_file();
    void remove_source();
    void touch();
    void update_run();
    TextSource* current();
    void list_sources(int row);

    std::vector<ModelCard> models_;
    std::vector<TextSource> sources_;
    QComboBox *model_ = nullptr, *first_ = nullptr, *examples_ = nullptr, *shown_sequence_ = nullptr;
    QListWidget* list_ = nullptr;
    PlainEdit *text_ = nullptr, *pair_ = nullptr;
    QToolButton* pair_shown_ = nullptr;  ///< folds the second text away, which is not used then
    QLineEdit* target_ = nullptr;
    QLabel *target_label_ = nullptr, *cost_ = nullptr, *progress_words_ = nullptr, *problem_ = nullptr,
           *model_note_ = nullptr;
    QSpinBox *length_ = nullptr, *segment_ = nullptr, *memory_ = nullptr;
    QWidget* segments_ = nullptr;  ///< a row that models with a memory have
    QCheckBox *windows_ = nullptr, *chat_ = nullptr, *repeat_ = nullptr, *beyond_ = nullptr;
    QCheckBox *maps_ = nullptr, *states_ = nullptr, *logits_ = nullptr, *experts_ = nullptr, *implicit_ = nullptr;
    TokenChips* chips_ = nullptr;
    QPushButton *run_ = nullptr, *stop_ = nullptr, *remove_ = nullptr;
    QProgressBar* progress_ = nullptr;
    TokenPreview preview_;
    QTimer soon_;
    bool filling_ = true, running_ = false;  ///< filling: what changes is not the user's doing
};

}  // namespace headscope::widgets
