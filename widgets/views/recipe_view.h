// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <optional>
#include <set>
#include <string>

#include "widgets/desk/view.h"
#include "widgets/plots/figure/figure_view.h"

class QCheckBox;
class QComboBox;
class QLabel;

namespace headscope::widgets {

class Banner;
class FlowLayout;

/// A combo box above the figure; the first value is the default. Saved with the view by name.
struct RecipeChoice {
    struct Value {
        const char* name;
        const char* text;
        /// Null: leaves the options as they are.
        void (*set)(figures::FigureOptions& options, const Study& study, const Selection& selection) = nullptr;
    };
    const char *name, *label, *tip;
    std::vector<Value> values;
};

/// A notice in place of the figure. With an action: a run that records what is missing.
struct MissingData {
    QString title, text;
    QString action{};
    RunRequest run{};
};

/// A row of the table of views that show one recipe (recipe_pages.cpp).
struct RecipePage {
    const char* recipe;
    std::vector<RecipeChoice> choices{};
    /// Words for a thing that an analysis lacks for this recipe; null: it lacks nothing.
    std::optional<MissingData> (*missing)(const Study& study) = nullptr;
    enum class Texts { chosen, first, none };  ///< none: the same figure for every text
    Texts texts = Texts::chosen;
    /// The line below the figure while the pointer is elsewhere; `choice`: the first one's value. Null: the usual keys.
    QString (*words)(const Study& study, const Selection& selection, const QString& choice) = nullptr;
    QString (*tool_tip)() = nullptr;
};

/// A recipe's figure of the selected analysis, beside others that are ticked, on the whole width; a line about the
/// pointer or the selection. During a run the figure is made again a few times a second at most. A click selects what
/// was clicked, by its figures::Subject.
class RecipeView : public View {
    Q_OBJECT
public:
    /// `page` outlives the view.
    RecipeView(Desk* desk, const RecipePage& page, QWidget* parent);
    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

protected:
    void refresh() override;
    void resizeEvent(QResizeEvent* event) override;

    /// The value of a choice of the page.
    QString choice(std::size_t index = 0) const;

    /// The recipe's options for what is selected.
    virtual figures::FigureOptions options() const;
    /// Another analysis has what the recipe needs.
    virtual bool can_join(const Study& study) const;
    /// Site and head of the selected analysis that the figure marks.
    virtual std::pair<std::int64_t, std::int64_t> marked() const;
    /// About the selection, while the pointer is elsewhere.
    virtual QString words(const figures::FigureData& figure) const;

    /// The selected analysis and the ticked ones, in the order in which the recipe gets them.
    std::vector<Study*> shown_studies() const;
    FigureView* picture() const { return picture_; }
    Banner* banner() const { return banner_; }

private:
    void add_choice(const RecipeChoice& choice);
    std::vector<Study*> others() const;
    Reply<figures::FigureData> ask();
    void fill_boxes();
    void name_boxes();
    void show_words();
    void mark_selected();
    void clicked(const figures::Subject& subject);

    const RecipePage& page_;
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
    std::optional<FigureRequest> last_;  ///< what was asked for
    bool current_ = false;               ///< the picture is of what is selected
};

/// Sites of an analysis that were measured: those that recipes draw without --layer, in their order.
std::vector<std::int64_t> measured_sites(const Study& study);

/// ViewKind::make of a view that a page describes.
template <const RecipePage& page>
View* make_recipe_view(Desk* desk, QWidget* parent) {
    return new RecipeView(desk, page, parent);
}

}  // namespace headscope::widgets
