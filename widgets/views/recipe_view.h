// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <optional>
#include <set>
#include <string>

#include "widgets/desk/view.h"
#include "widgets/plots/figure_view.h"

class QCheckBox;
class QComboBox;
class QLabel;

namespace headscope::widgets {

class Banner;
class FlowLayout;

/// What the views of a figure recipe share: the recipe's figure of the selected analysis, beside others that are
/// ticked, on the whole width; a line that says what the pointer or the selection is about. While a run goes on the
/// figure is made anew a few times a second at most.
class RecipeView : public View {
    Q_OBJECT
public:
    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureWish> figure() const override;

protected:
    RecipeView(Desk* desk, const char* recipe, QWidget* parent);
    void refresh() override;
    void resizeEvent(QResizeEvent* event) override;

    /// A choice in the row above the figure; what is not chosen by `name` is the first one. Saved with the view.
    QComboBox* add_choice(const char* name, const QString& label, const QString& tip,
                          const std::vector<std::pair<const char*, QString>>& choices);
    QString choice(const QComboBox* box) const;

    /// The recipe's options for what is selected; the base gives the sequence.
    virtual figures::FigureOptions options() const;
    /// Something is missing altogether: shows a notice and returns true.
    virtual bool missing() { return false; }
    /// Another analysis has what the recipe needs.
    virtual bool can_join(const Study& study) const;
    /// What is selected, in the figure that is shown.
    virtual std::vector<FigureView::Mark> marks(const figures::FigureData& figure) const = 0;
    virtual void clicked(int panel, int row, int column) = 0;
    /// About the selection, while the pointer is elsewhere.
    virtual QString words(const figures::FigureData& figure) const;

    /// The selected analysis and the ticked ones, in the order in which the recipe gets them.
    std::vector<Study*> shown_studies() const;
    FigureView* picture() const { return picture_; }
    Banner* banner() const { return banner_; }

private:
    std::vector<Study*> others() const;
    Reply<figures::FigureData> ask();
    void fill_boxes();
    void name_boxes();
    void show_words();

    const char* recipe_;
    FlowLayout* tools_;
    QWidget* with_;
    QLabel* with_label_;
    Banner *banner_, *failure_;
    FigureView* picture_;
    QLabel* pointed_;
    std::vector<QComboBox*> choices_;
    std::vector<QCheckBox*> boxes_;
    std::set<int> ticked_;
    std::set<QString> wanted_;  ///< paths that a session ticked and that are not open yet
    QTimer again_;
    QElapsedTimer asked_;
    std::optional<FigureWish> last_;  ///< what was asked for
    bool current_ = false;            ///< the picture is of what is selected
};

/// Sites of an analysis that were measured: those that recipes draw without --layer, in their order.
std::vector<std::int64_t> measured_sites(const Study& study);
/// The one of those with that name (Study::site_name()), as recipes label a row.
std::optional<std::int64_t> measured_site(const Study& study, const std::string& name);
/// The same of the layer of `site`: those with --layer.
std::vector<std::int64_t> sites_of_layer(const Study& study, std::int64_t site);

}  // namespace headscope::widgets
