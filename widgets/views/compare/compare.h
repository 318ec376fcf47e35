// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "widgets/desk/view.h"
#include "widgets/views/compare/compare_bar.h"

class QLabel;
class QStackedWidget;

namespace headscope::widgets {

class CompareHeads;
class CompareMaps;
class CompareText;

/// The selection (left) beside something else (right): another analysis, or the same one with another sequence, layer
/// or head; as maps with their difference, as all heads, as texts.
class CompareView : public View {
    Q_OBJECT
public:
    CompareView(Desk* desk, QWidget* parent);

    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

    CompareMode mode() const { return mode_; }
    void set_mode(CompareMode mode);
    const CompareChoice& choice() const { return choice_; }
    void set_choice(const CompareChoice& choice);
    void swap();

    CompareMaps* maps() const { return maps_; }
    CompareHeads* heads() const { return heads_; }
    CompareText* text() const { return text_; }

protected:
    void refresh() override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    std::optional<FigureRequest> text_figure(const CompareSides& now) const;
    std::optional<FigureRequest> heads_figure(const CompareSides& now) const;
    std::optional<FigureRequest> maps_figure(const CompareSides& now) const;
    void make_commands();
    void make_note();
    /// True if both sides are equal: shows a note with possible actions.
    bool note_for(const CompareSides& sides);
    std::optional<CompareSides> sides() const;

    CompareChoice choice_;
    CompareMode mode_ = CompareMode::maps;
    QString wanted_path_;  ///< of the other study, restored before it was open
    CompareBar* bar_;
    QStackedWidget* pages_;
    CompareMaps* maps_;
    CompareHeads* heads_;
    CompareText* text_;
    QWidget* note_;
    QLabel *note_title_, *note_text_;
};

}  // namespace headscope::widgets
