// SPDX-License-Identifier: GPL-3.0-or-later
// The choices that a session keeps, and the figure of the shown text.
#include "widgets/views/on_text/on_text.h"

#include <QComboBox>
#include <QToolButton>

#include "core/figures/recipe.h"
#include "core/figures/token_types.h"

namespace headscope::widgets {

QJsonObject OnTextView::state() const {
    return {{"colouring", colouring_->currentData().toString()},
            {"scope", scope_->currentData().toString()},
            {"what", what_->currentData().toString()},
            {"scale", scale_->currentData().toString()},
            {"range", range_->currentData().toString()},
            {"units", units_->currentData().toString()},
            {"list", list_shown_->isChecked()},
            {"experts", experts_shown_->isChecked()},
            {"types", types_shown_->isChecked()}};
}

void OnTextView::restore(const QJsonObject& state) {
    const auto take = [&](QComboBox* box, const char* name) {
        const int index = box->findData(state.value(QLatin1String(name)).toString());
        if (index >= 0) box->setCurrentIndex(index);
    };
    take(colouring_, "colouring");
    take(scope_, "scope");
    take(what_, "what");
    take(scale_, "scale");
    take(range_, "range");
    take(units_, "units");
    list_shown_->setChecked(state.value(QLatin1String("list")).toBool(list_shown_->isChecked()));
    experts_shown_->setChecked(state.value(QLatin1String("experts")).toBool(experts_shown_->isChecked()));
    types_shown_->setChecked(state.value(QLatin1String("types")).toBool(types_shown_->isChecked()));
}

std::optional<FigureRequest> OnTextView::figure() const {
    if (!study() || (values_.empty() && types_.empty())) return std::nullopt;
    FigureRequest wish;
    wish.studies = {study()->id()};
    wish.options.sequence = selection().one_sequence();
    if (values_.empty()) {  // of a linear branch there are types alone
        const auto typed = figures::typed_head(study()->header(), selection().site, selection().head);
        wish.recipe = "token-types";
        wish.options.layer = study()->sites().at(static_cast<std::size_t>(typed->site)).layer;
        wish.options.head = typed->head;
        return named(wish);
    }
    const Site& site = study()->sites().at(static_cast<std::size_t>(selection().site));
    wish.options.values = kind();
    // Norms of all heads are of one layer.
    if (scope() != HeadScope::all || figures::of_norms(kind())) wish.options.layer = site.layer;
    if (scope() == HeadScope::head && !figures::of_layer(kind())) wish.options.head = selection().head;
    wish.options.tower = figures::tower_of(study()->sites(), selection().site);
    const QString how = scale_->currentData().toString();
    wish.options.scale = how == QLatin1String("log")      ? figures::CellScale::logarithmic
                         : how == QLatin1String("linear") ? figures::CellScale::linear
                                                          : figures::CellScale::square_root;
    if (words()) wish.options.units = figures::Units::words;
    if (range_->currentIndex() != 0 && !figures::of_norms(kind())) wish.options.range = figures::ColourRange::one;
    wish.recipe = "text";
    if (colouring() == TextColouring::row)
        wish.options.query = chosen();
    else if (colouring() == TextColouring::column)
        wish.options.key = chosen();
    else
        wish.options.colour = figures::TextColour::mass;
    if (experts_) wish.note = tr("The figure leaves the experts out; the figure “experts” shows their load.");
    if (!types_.empty()) wish.note = tr("The figure leaves the types out; the figure “token-types” shows them.");
    return named(wish);
}

}  // namespace headscope::widgets
