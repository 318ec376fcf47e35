// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>
#include <memory>

#include "widgets/desk/view.h"
#include "widgets/views/stepper/step_source.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QListWidget;
class QPushButton;
class QSpinBox;
class QSplitter;
class QTableWidget;

namespace headscope::figures {
struct Subject;
}

namespace headscope::widgets {

class Banner;
class FigureView;
class SteerBar;

/// A continuation token by token: step, go back, take another token, and look at the heads' rows of each.
class StepperView : public View {
    Q_OBJECT
public:
    StepperView(Desk* desk, QWidget* parent);

    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;

protected:
    void refresh() override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void build();
    QWidget* build_settings();
    QWidget* build_steps();
    QWidget* build_details(QWidget* parent);
    void build_commands();
    void connect_controls();
    void join();  ///< the desk has another source

    void begin();
    void replace_typed();
    void replace_by(const QString& token);
    void ask_where_to_save();
    void head_clicked(const figures::Subject& subject);
    void set_head(std::int64_t site, std::int64_t head);
    void steer();

    std::shared_ptr<const ShownGeneration> shown() const;
    int chosen_step() const;  ///< of the chosen token; -1: one of the prompt, or none
    /// Candidates of the chosen token by the bar's vector; null until they are computed.
    std::shared_ptr<const ShownSteering> steering() const;
    void fill_tokens();
    void add_given(const std::vector<StepWord>& words, const QString& reader, bool italic);
    void fill_sites();
    void show_chosen();
    void show_candidates();
    void shade_tokens();
    void enable_controls();
    void show_words();

    QLineEdit *prompt_ = nullptr, *replacement_ = nullptr;
    QSpinBox *top_ = nullptr, *seed_ = nullptr, *count_ = nullptr, *head_ = nullptr;
    QDoubleSpinBox* temperature_ = nullptr;
    QCheckBox *maps_ = nullptr, *row_ = nullptr;
    QPushButton *begin_ = nullptr, *step_ = nullptr, *run_ = nullptr, *back_ = nullptr, *stop_ = nullptr,
                *save_ = nullptr, *replace_ = nullptr;
    Banner* failure_ = nullptr;
    QSplitter* split_ = nullptr;
    QListWidget* tokens_ = nullptr;
    QTableWidget* candidates_ = nullptr;
    QComboBox *measure_ = nullptr, *site_ = nullptr;
    SteerBar* steer_ = nullptr;
    FigureView* picture_ = nullptr;
    QLabel* words_ = nullptr;

    QPointer<StepSource> source_;
    std::shared_ptr<const ShownGeneration> filled_;  ///< in the list of tokens
    std::weak_ptr<const ShownStep> drawn_;           ///< in the heat map
    int drawn_measure_ = -1;
    std::weak_ptr<const ShownStep> steered_;  ///< of the last request
    StepVector steered_by_;                   ///< likewise
};

}  // namespace headscope::widgets
