// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/token_types/token_types.h"

#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>

#include "widgets/desk/presence.h"
#include "widgets/panels/token_weights.h"
#include "widgets/text/text_area.h"
#include "widgets/views/token_types/type_strip.h"

namespace headscope::widgets {
namespace {

/// The rows of an analysis's heat map.
std::vector<std::int64_t> typed_rows(const Study& study) {
    const auto typed = figures::typed_sites(study.header());
    std::vector<std::int64_t> rows = measured_sites(study);
    std::erase_if(rows, [&](std::int64_t s) { return std::find(typed.begin(), typed.end(), s) == typed.end(); });
    return rows;
}

const Site& typed_place(const Study& study, std::int64_t site) {
    return study.sites().at(static_cast<std::size_t>(site));
}

std::optional<MissingData> without_types(const Study& study) {
    if (!typed_rows(study).empty()) return std::nullopt;
    return MissingData{RecipeView::tr("No token types"),
                       RecipeView::tr("NAtS-L layers choose softmax or linear attention for each chunk and head. This "
                                      "analysis has no such layer.")};
}

const RecipePage kTypesPage{
    "token-types",
    {{"of",
      "Content",
      "Show the share of softmax chunks of every head, or the type of each chunk of the selected layer",
      {{"heads", "Softmax fraction"}, {"chunks", "Chunks of the layer"}}}},
    without_types,
    RecipePage::Texts::chosen,
    [](const Study&, const Selection&, const QString&) {
        return RecipeView::tr("Click chooses a head or a token · ↑ ↓ layers · ← → heads");
    }};

}  // namespace

TokenTypesView::TokenTypesView(Desk* desk, QWidget* parent)
    : RecipeView(desk, kTypesPage, parent),
      heading_(new QLabel(content())),
      strip_(new TypeStrip(content())),
      text_(new TokenTextArea(content())) {
    heading_->setObjectName(QStringLiteral("types_heading"));
    heading_->setTextFormat(Qt::PlainText);
    heading_->setWordWrap(true);
    strip_->setObjectName(QStringLiteral("types_strip"));
    strip_->setAccessibleName(tr("Types of the text's chunks"));
    strip_->setToolTip(tr("Types of the text's chunks at the selected head. Click shows a chunk in the text"));
    text_->setObjectName(QStringLiteral("types_text"));
    text_->setAccessibleName(tr("Text, underlined by the types of its chunks"));
    text_->set_description([this](std::int64_t token) { return describe(token); });
    auto* column = static_cast<QVBoxLayout*>(content()->layout());
    int at = column->indexOf(picture()) + 1;
    column->insertWidget(at++, heading_);
    column->insertWidget(at++, strip_);
    column->insertWidget(at, text_, 1);
    connect(strip_, &TypeStrip::chosen, this, [this](qint64 chunk) {
        if (study()) text_->show_token(chunk * study()->header().type_chunk);
    });
    connect(text_, &TokenTextArea::clicked, this, [this](qint64 token) {
        if (study()) this->desk().select_tokens(token, selection().key);
    });
}

bool TokenTypesView::of_chunks() const {
    return choice() == QLatin1String("chunks");
}

/// True if all texts of all analyses are shown, if the figure can take them; else the first of each.
bool TokenTypesView::beside() const {
    if (selection().sequence) return false;
    std::int64_t texts = 0;
    for (const Study* one : shown_studies()) texts += one->sequences();
    return texts <= figures::kMostTypedTexts;
}

figures::FigureOptions TokenTypesView::options() const {
    figures::FigureOptions options = RecipeView::options();
    options.all_sequences = beside();
    if (!options.all_sequences) options.sequence = selection().one_sequence();
    if (const auto shown = shown_head(); of_chunks() && shown) options.layer = typed_place(*study(), shown->site).layer;
    return options;
}

bool TokenTypesView::can_join(const Study& other) const {
    if (!RecipeView::can_join(other)) return false;
    const auto rows = typed_rows(other);
    const auto shown = shown_head();
    if (!of_chunks() || !shown) return !rows.empty();
    const std::int32_t layer = typed_place(*study(), shown->site).layer;
    return std::any_of(rows.begin(), rows.end(),
                       [&](std::int64_t site) { return typed_place(other, site).layer == layer; });
}

std::optional<figures::TypedHead> TokenTypesView::shown_head() const {
    if (!study() || study()->sites().empty()) return std::nullopt;
    if (const auto own = figures::typed_head(study()->header(), selection().site, selection().head)) return own;
    const auto rows = typed_rows(*study());
    if (rows.empty()) return std::nullopt;
    return figures::TypedHead{rows.front(),
                              std::min<std::int64_t>(selection().head, typed_place(*study(), rows.front()).heads - 1)};
}

std::pair<std::int64_t, std::int64_t> TokenTypesView::marked() const {
    const auto shown = shown_head();
    return shown ? std::pair(shown->site, shown->head) : RecipeView::marked();
}

void TokenTypesView::refresh() {
    RecipeView::refresh();
    if (study() && !typed_rows(*study()).empty()) refresh_types();
}

void TokenTypesView::refresh_types() {
    const auto shown = shown_head();
    const std::int64_t sequence = selection().one_sequence(), chunk = study()->header().type_chunk;
    strip_->set_theme(desk().theme());
    text_->set_theme(desk().theme());
    types_.clear();
    if (!shown) return;
    const QString head = tr("%1, head %2").arg(study()->site_heading(shown->site)).arg(shown->head);
    if (!study()->site_done(sequence, shown->site)) {
        strip_->set_types({}, -1);
        text_->set_strip(1, {});
        return heading_->setText(study()->running() ? tr("%1: not computed yet").arg(head)
                                                    : tr("%1: not computed, the run ended early").arg(head));
    }
    const Site& place = typed_place(*study(), shown->site);
    const auto found = study()->token_types(sequence, shown->site);
    const auto text = shown_text(*study(), place.query_stream, sequence);
    const QString failure = found.failure.isEmpty() ? text.failure : found.failure;
    if (!found || !text) return heading_->setText(failure.isEmpty() ? tr("Reading…") : failure);
    const auto tokens = std::ssize(study()->query_tokens(sequence, shown->site).ids);
    types_ = figures::types_of_tokens(*found, shown->head, chunk, tokens);
    text_->set_text(text.value);
    std::vector<QColor> cells;
    for (const std::int32_t type : types_) cells.push_back(type < 0 ? QColor() : type_colour(type, desk().theme()));
    text_->set_strip(1, std::move(cells));
    const auto query = selection().query;
    text_->set_outlined(query && *query < tokens ? query : std::nullopt);
    std::vector<std::int32_t> chunks;
    for (std::int64_t i = 0; i < tokens; i += chunk) chunks.push_back(types_[static_cast<std::size_t>(i)]);
    const auto softmax = std::count(chunks.begin(), chunks.end(), 0);
    QString heading = tr("%1: %2 of %3 chunks of %4 tokens use softmax attention (S), the others linear (L)")
                          .arg(head)
                          .arg(softmax)
                          .arg(chunks.size())
                          .arg(chunk);
    if (study()->sequences() > 1) heading += tr(" · sequence %1").arg(sequence);
    heading_->setText(heading);
    strip_->set_types(std::move(chunks), query && *query < tokens ? *query / chunk : -1);
}

std::optional<FigureRequest> TokenTypesView::figure() const {
    auto wish = RecipeView::figure();
    if (wish && shown_head())
        wish->note = tr("The figure leaves the text out. With --layer and --head it draws the text.");
    return wish;
}

QString TokenTypesView::describe(std::int64_t token) const {
    const auto shown = shown_head();
    if (!shown || token < 0 || token >= std::ssize(types_)) return {};
    const auto& tokens = study()->query_tokens(selection().one_sequence(), shown->site);
    const std::int32_t type = types_[static_cast<std::size_t>(token)];
    return tr("‘%1’ · token %2 · chunk %3: %4")
        .arg(token_label(tokens, token, 60), QString::number(token),
             QString::number(token / study()->header().type_chunk),
             type == 0   ? tr("softmax attention")
             : type == 1 ? tr("linear attention")
                         : tr("no type"));
}

extern const ViewKind kTokenTypes{
    "token_types",
    "Token types",
    "Which parts of a text NAtS-L's heads give to softmax attention",
    [](Desk* desk, QWidget* parent) -> View* { return new TokenTypesView(desk, parent); },
    ViewGroup::text,
    [](const Desk& desk) { return filled_if(desk.current() && !typed_rows(*desk.current()).empty()); }};

}  // namespace headscope::widgets
