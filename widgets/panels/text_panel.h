// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>
#include <QWidget>

#include "widgets/device_box.h"
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
class QScrollArea;
class QSpinBox;
class QToolButton;
class QVBoxLayout;

namespace headscope::widgets {

class PlainEdit;
class TokenChips;

/// Edits or chooses texts, shows their tokens, and runs them. Knows no model: requests previews and runs by signals.
/// Its controls keep their places while previews, models and progress arrive.
class TextPanel : public QWidget {
    Q_OBJECT
public:
    explicit TextPanel(QWidget* parent = nullptr);

    void set_models(const std::vector<ModelCard>& models);
    void set_examples(const std::vector<TextExample>& examples);
    const std::vector<TextExample>& examples() const { return bundled_; }
    /// GPUs of the machine; without any there is no choice of a device.
    void set_devices(const std::vector<DeviceCard>& devices);
    void set_theme(const Theme& theme);
    void choose_model(int id);
    /// The same for the user: another model than before begins with the length that suits it.
    void begin_with_model(int id);
    TextChoice choice() const;
    /// With choices that are hidden because no open model has them: for the session.
    TextChoice kept_choice() const;
    void set_choice(const TextChoice& choice);
    const InterventionText& interventions() const { return interventions_; }
    /// Edits that apply to every run from here on.
    void set_interventions(const InterventionText& interventions);
    /// Adds a file as a text; it becomes the chosen one.
    void add_file(const QString& path) { take_source({TextSource::Kind::file, path}); }
    /// Adds a text; emits refused() where all texts would be too long to keep.
    void add_text(const QString& text);
    /// Characters of all texts that are typed, pasted or dropped: they are kept with the session. Files may be longer.
    static constexpr qsizetype kLongest = 1 << 21;

    void show_preview(const TokenPreview& preview);
    /// Progress of a run: 0..1; `what` holds the step, rate and time left in words.
    void show_progress(double share, const QString& what);
    void show_running(bool running);
    /// To the button Run where a text is ready, else to the editor.
    void focus_next_step();
    void focus_text();
    /// The texts as the list names them, and the one that is shown.
    QStringList labels() const;
    void choose_source(int row);

Q_SIGNALS:
    void preview_wanted(const headscope::widgets::TextChoice& choice);  ///< some time after the last change
    void run_wanted(const headscope::widgets::TextChoice& choice);
    void stop_wanted();
    void open_model_wanted();
    void interventions_wanted();           ///< to be edited
    void refused(const QString& message);  ///< a text that was not taken; said in the panel too
    void changed();

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void build();
    QWidget* build_sources();
    QWidget* build_options();
    void build_notes(QVBoxLayout* below);
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
    void update_length();
    void show_interventions(const InterventionText& interventions);
    const ModelCard* card() const;
    /// The text behind a source that can be edited; null: a file, or too long.
    const QString* editable(const TextSource& source) const;
    TextSource* current();
    void list_sources(int row);

    InterventionText interventions_;
    std::vector<ModelCard> models_;
    std::vector<TextSource> sources_;
    std::vector<TextExample> bundled_;
    QComboBox *model_ = nullptr, *first_ = nullptr, *examples_ = nullptr, *shown_sequence_ = nullptr;
    QListWidget* list_ = nullptr;
    PlainEdit *text_ = nullptr, *pair_ = nullptr;
    QToolButton* interventions_shown_ = nullptr;
    QToolButton* pair_shown_ = nullptr;  ///< folds the second text away, which is not used then
    QLineEdit* target_ = nullptr;
    QLabel *target_label_ = nullptr, *cost_ = nullptr, *progress_words_ = nullptr, *problem_ = nullptr,
           *model_note_ = nullptr;
    QSpinBox *length_ = nullptr, *segment_ = nullptr, *memory_ = nullptr;
    QWidget* segments_ = nullptr;  ///< a row that models with a memory have
    QCheckBox *windows_ = nullptr, *chat_ = nullptr, *repeat_ = nullptr, *beyond_ = nullptr;
    QCheckBox *maps_ = nullptr, *states_ = nullptr, *logits_ = nullptr, *experts_ = nullptr, *implicit_ = nullptr;
    DeviceBox* device_ = nullptr;
    QLabel* device_label_ = nullptr;
    TokenChips* chips_ = nullptr;
    QPushButton *run_ = nullptr, *stop_ = nullptr, *remove_ = nullptr;
    QProgressBar* progress_ = nullptr;
    QScrollArea* notes_ = nullptr;  ///< of a fixed height: problem, cost, or the progress of a run
    TokenPreview preview_;
    Theme theme_;
    QTimer soon_;
    int length_of_ = 0;                      ///< the model that the length was chosen for; 0: none yet
    bool filling_ = true, running_ = false;  ///< filling: changes are not the user's
    bool focus_run_ = false;                 ///< Run gets the focus once it can be pressed
};

}  // namespace headscope::widgets
