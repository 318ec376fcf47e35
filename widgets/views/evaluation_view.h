// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <memory>
#include <vector>

#include "widgets/desk/view.h"
#include "widgets/training/evaluation_maker.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QPushButton;
class QSplitter;

namespace headscope::widgets {

class Banner;
class EvaluationShelf;
class FigureView;
class NumberTable;

/// Base of the views of evaluations: a recipe's figure of the open evaluation files, with a choice of files, task,
/// metric and length, the values under the pointer, and its numbers as a table.
class EvaluationView : public View {
    Q_OBJECT
public:
    /// `lengths`: the recipe draws one length of several.
    EvaluationView(Desk* desk, const char* recipe, bool lengths, QWidget* parent);
    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

protected:
    void refresh() override;
    void resizeEvent(QResizeEvent* event) override;
    /// Updates the view's other parts; null: nothing is shown.
    virtual void show_made(const MadeEvaluation* made) { Q_UNUSED(made); }
    /// Adds the view's own choices to those of task, metric and length.
    virtual void choose(figures::FigureOptions& options) const { Q_UNUSED(options); }
    /// Name of the default metric.
    virtual QString first_metric() const { return tr("First metric"); }
    virtual QString usual_length() const { return tr("Length of training"); }

    QWidget* bar() const { return bar_; }  ///< the row of choices
    QSplitter* splitter() const { return splitter_; }
    NumberTable* numbers() const { return numbers_; }
    void set_shares(const QList<int>& shares);  ///< of the splitter's parts

private:
    void build();
    QWidget* make_bar();
    void fill_boxes();
    void fill_choices();
    void show_nothing();
    void show_evaluating();
    void draw();
    void say(const QString& text);
    EvaluationShelf& shelf() const;
    bool can_evaluate() const;

    const char* recipe_;
    const bool lengths_;
    EvaluationMaker* maker_;
    QComboBox *task_ = nullptr, *metric_ = nullptr, *length_ = nullptr;
    QPushButton *evaluate_ = nullptr, *plan_ = nullptr;
    QLabel* progress_ = nullptr;
    QWidget *bar_ = nullptr, *files_ = nullptr;
    std::vector<QCheckBox*> boxes_;
    Banner* failure_ = nullptr;
    FigureView* picture_ = nullptr;
    QLabel* pointed_ = nullptr;
    NumberTable* numbers_ = nullptr;
    QSplitter* splitter_ = nullptr;
    std::string wanted_task_, wanted_metric_;
    std::optional<std::int64_t> wanted_length_;
    QList<int> shares_{690, 310};
    bool filling_ = false;
};

}  // namespace headscope::widgets
