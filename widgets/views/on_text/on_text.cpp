// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/on_text/on_text.h"

#include <QComboBox>
#include <QKeyEvent>
#include <QLabel>
#include <QSplitter>
#include <QToolButton>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/figures/map_values.h"
#include "core/figures/recipe.h"
#include "core/figures/token_types.h"
#include "widgets/desk/presence.h"
#include "widgets/panels/expert_cells.h"
#include "widgets/plots/ticks.h"
#include "widgets/text/banner.h"
#include "widgets/text/colour_key.h"
#include "widgets/text/line_label.h"
#include "widgets/text/share_out.h"
#include "widgets/text/text_area.h"
#include "widgets/text/token_table.h"

namespace headscope::widgets {
namespace {

constexpr std::size_t kListed = 25;
constexpr int kNarrowText = 760;   ///< pixels: below, the list stands under the text
constexpr double kDecades = 1e-4;  ///< a logarithmic scale's lower end against its upper one

}  // namespace

OnTextView::OnTextView(Desk* desk, QWidget* parent) : View(desk, parent) {
    build();
}

TextColouring OnTextView::colouring() const {
    return static_cast<TextColouring>(colouring_->currentIndex());
}

HeadScope OnTextView::scope() const {
    return static_cast<HeadScope>(scope_->currentIndex());
}

std::string OnTextView::query_stream() const {
    return study()->sites().at(static_cast<std::size_t>(selection().site)).query_stream;
}

std::string OnTextView::key_stream() const {
    return study()->sites().at(static_cast<std::size_t>(selection().site)).key_stream;
}

figures::MapValues OnTextView::kind() const {
    using figures::MapValues;
    if (colouring() == TextColouring::mass || implicit()) return MapValues::weights;
    if (words() || what_->currentIndex() == 0) return MapValues::weights;
    if (what_->currentIndex() == 2) return MapValues::rollout;
    return scope() == HeadScope::head ? MapValues::norms : MapValues::layer_norms;
}

/// The selected layer is recurrent, and it is what is shown: coefficients with signs.
bool OnTextView::implicit() const {
    return colouring() != TextColouring::mass && scope() != HeadScope::all &&
           study()->sites().at(static_cast<std::size_t>(selection().site)).has_implicit;
}

bool OnTextView::crossed() const {
    return query_stream() != key_stream();
}

/// The coloured text: of the keys that a query looks at, of the queries that look at a key.
bool OnTextView::text_is_keys() const {
    return colouring() != TextColouring::column;
}

/// The token whose row or column is shown: the last query and the first key when none is chosen yet.
std::int64_t OnTextView::chosen() const {
    const std::string stream = colouring() == TextColouring::row ? query_stream() : key_stream();
    const std::int64_t last = std::max<std::int64_t>(0, std::ssize(tokens(stream).ids) - 1);
    if (colouring() == TextColouring::row) return std::min(shown_unit(selection().query, stream).value_or(last), last);
    return std::min(shown_unit(selection().key, stream).value_or(0), last);
}

bool OnTextView::words() const {
    return units_->currentIndex() == 1;
}

const store::SequenceTokens& OnTextView::tokens(const std::string& stream) const {
    const std::int64_t sequence = selection().one_sequence();
    // The study keeps words as long as they are asked for; refresh() waits for them.
    if (const auto found = words() ? study()->words(stream, sequence) : Reply<StudyWords>()) {
        (stream == query_stream() ? query_words_ : key_words_) = found.value;
        return found->units.tokens;
    }
    return study()->tokens(stream, sequence);
}

std::optional<std::int64_t> OnTextView::shown_unit(std::optional<std::int64_t> token, const std::string& stream) const {
    if (!token || !words()) return token;
    const auto found = study()->words(stream, selection().one_sequence());
    return found ? found->word_of(*token) : token;
}

void OnTextView::choose(std::int64_t token, bool in_keys) {
    if (words() && study()) {
        const auto found = study()->words(in_keys ? key_stream() : query_stream(), selection().one_sequence());
        if (found) token = found->first_piece(token);
    }
    if (in_keys)
        desk().select_tokens(selection().query, token);
    else
        desk().select_tokens(token, selection().key);
}

void OnTextView::step(int tokens) {
    if (!study()) return;
    const std::string stream = colouring() == TextColouring::row ? query_stream() : key_stream();
    const std::int64_t last = std::ssize(this->tokens(stream).ids) - 1;
    const std::int64_t next = std::max<std::int64_t>(0, chosen() + tokens);
    choose(words() ? std::min(next, last) : next, colouring() != TextColouring::row);
}

void OnTextView::keyPressEvent(QKeyEvent* event) {
    const bool control = (event->modifiers() & ~Qt::KeypadModifier) == Qt::ControlModifier;
    if (control && event->key() == Qt::Key_Left) return step(-1);
    if (control && event->key() == Qt::Key_Right) return step(1);
    View::keyPressEvent(event);
}

void OnTextView::refresh() {
    if (notice_without_study()) return;
    if (!refresh_texts()) return;
    show_content();
    // Once the splitter has its size.
    if (!std::exchange(arranged_, true)) share_out(split_, split_->orientation() == Qt::Vertical ? 0.6 : 0.75);
    refresh_strip();
    refresh_colours();
}

/// Under the tokens: the experts that took them, of the tokens that the layer's queries are of, and below these the
/// types of NAtS-L's chunks. Words of several tokens have none of their own.
void OnTextView::refresh_strip() {
    const auto& header = study()->header();
    const std::int64_t sequence = selection().one_sequence();
    experts_.reset();
    types_.clear();
    const auto typed = figures::typed_head(header, selection().site, selection().head);
    experts_shown_->setVisible(has_experts(header));
    types_shown_->setVisible(!figures::typed_sites(header).empty());
    const bool own = (!crossed() || !text_is_keys()) && !words();
    const bool experts = own && header.record.experts && experts_shown_->isChecked();
    const bool types = own && typed && types_shown_->isChecked();
    const std::int64_t tokens = std::ssize(text_->text()->tokens);
    const Theme& theme = desk().theme();
    std::vector<QColor> cells;
    const int rows = experts ? static_cast<int>(header.experts_per_token) : 0;
    if (experts) {
        const Site& site = study()->sites().at(static_cast<std::size_t>(selection().site));
        experts_ = study()->experts(sequence, site.layer).value;
        if (experts_) cells = expert_cells(*experts_, tokens, header.experts, theme);
    }
    if (!types) return text_->set_strip(rows, std::move(cells));
    if (study()->site_done(sequence, typed->site))
        if (const auto found = study()->token_types(sequence, typed->site))
            types_ = figures::types_of_tokens(*found, typed->head, header.type_chunk, tokens);
    std::vector<QColor> all;
    for (std::size_t token = 0; token < static_cast<std::size_t>(tokens); ++token) {
        for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
            const std::size_t at = token * static_cast<std::size_t>(rows) + row;
            all.push_back(at < cells.size() ? cells[at] : QColor());
        }
        const bool some = token < types_.size() && types_[token] >= 0;
        all.push_back(some ? type_colour(types_[token], theme) : QColor());
    }
    text_->set_strip(rows + 1, std::move(all));
}

bool OnTextView::refresh_texts() {
    const std::int64_t sequence = selection().one_sequence();
    const std::string own = text_is_keys() ? key_stream() : query_stream();
    for (const std::string& stream : {query_stream(), key_stream()})
        if (words() && notice_for(study()->words(stream, sequence))) return false;
    const auto text = shown_text(*study(), own, sequence, words());
    if (notice_for(text)) return false;
    if (text_->text() != text.value) values_.clear();
    text_->set_text(text.value);
    text_->set_theme(desk().theme());
    other_panel_->setVisible(crossed());
    if (!crossed()) return true;
    const auto other = shown_text(*study(), text_is_keys() ? query_stream() : key_stream(), sequence, words());
    if (!other) return true;
    other_->set_text(other.value);
    other_->set_theme(desk().theme());
    other_title_->setText(text_is_keys() ? tr("The queries' text: choose a token here")
                                         : tr("The keys' text: choose a token here"));
    other_->setAccessibleName(other_title_->text());
    return true;
}

figures::ColourScale OnTextView::colour_scale() const {
    figures::ColourScale scale;
    scale.label =
        colouring() == TextColouring::mass ? tr("attention received").toStdString() : figures::values_label(kind());
    if (range_->currentIndex() == 0 || figures::of_norms(kind())) {
        float most = 0;
        for (const float value : values_)
            if (value > most) most = value;
        if (most > 0) scale.maximum = most;
    }
    const QString kind = scale_->currentData().toString();
    if (implicit()) {
        scale.label = figures::values_label(figures::MapValues::implicit);
        scale.map = figures::ColourMap::diverging;
        for (const float value : values_)
            if (range_->currentIndex() == 0 && !std::isnan(value))
                scale.maximum =
                    std::max(scale.maximum == 1 ? 0.0 : scale.maximum, std::abs(static_cast<double>(value)));
        if (!(scale.maximum > 0)) scale.maximum = 1;
        scale.minimum = -scale.maximum;
        if (kind == QLatin1String("sqrt")) scale.scale = figures::ScaleKind::square_root;
        if (kind == QLatin1String("log")) scale.scale = figures::ScaleKind::symmetric_log;
        return scale;
    }
    if (kind == QLatin1String("sqrt")) scale.scale = figures::ScaleKind::square_root;
    if (kind == QLatin1String("log")) {
        scale.scale = figures::ScaleKind::logarithmic;
        scale.minimum = scale.maximum * kDecades;
    }
    if (colouring() != TextColouring::mass && this->kind() == figures::MapValues::weights)
        figures::set_zero_apart(scale, values_);
    return scale;
}

void OnTextView::refresh_colours() {
    const TextRequest wish{selection().one_sequence(),
                           selection().site,
                           selection().head,
                           colouring(),
                           scope(),
                           chosen(),
                           kind(),
                           words()};
    TextValues found = weights_.get(*study(), wish);
    refresh_banner(found);
    if (!found.values.empty() || !found.pending) {
        values_ = std::move(found.values);
        values_.resize(values_.empty() ? 0 : text_->text()->tokens.size(), std::numeric_limits<float>::quiet_NaN());
    }
    shown_wish_ = wish;
    const figures::ColourScale scale = colour_scale();
    text_->set_values(values_, scale);
    key_->set_scale(scale, desk().theme());
    key_->setEnabled(!values_.empty());
    const bool row = colouring() == TextColouring::row, mass = colouring() == TextColouring::mass;
    const auto chosen_query = shown_unit(selection().query, query_stream());
    const auto chosen_key = shown_unit(selection().key, key_stream());
    const auto query = row ? std::optional(wish.token) : chosen_query;
    const auto key = row || mass ? chosen_key : std::optional(wish.token);
    TokenTextArea* const queries = crossed() && text_is_keys() ? other_ : text_;
    TokenTextArea* const keys = crossed() && !text_is_keys() ? other_ : text_;
    for (TokenTextArea* area : {text_, other_}) {
        area->set_outlined(area == queries ? query : std::nullopt);
        area->set_underlined(area == keys ? key : std::nullopt);
    }
    const auto place = row ? chosen_query : chosen_key;
    if (place) (row ? queries : keys)->show_token(*place);
    refresh_heading(found);
    refresh_list();
}

void OnTextView::refresh_banner(const TextValues& values) {
    const Site& site = study()->sites().at(static_cast<std::size_t>(selection().site));
    if (figures::of_norms(kind()) && study()->has_maps() && !study()->header().record.norms) {
        return banner_->set(tr("Norms were not recorded."), tr("Run again with norms"), [this] {
            if (!study()) return;
            RunRequest wish;
            wish.study = study()->id();
            wish.maps = wish.norms = true;
            Q_EMIT desk().run_wanted(wish);
        });
    }
    if (!values.failure.isEmpty()) return banner_->set(values.failure);
    if (site.has_implicit && scope() != HeadScope::all) {
        if (colouring() == TextColouring::mass)
            return banner_->set(
                tr("A recurrent layer has signed coefficients, so there is no mean weight per key. Choose a token to "
                   "see what it looks at."));
        if (values.without_maps)
            return banner_->set(tr("This layer has no softmax; its implicit matrix was not recorded."),
                                study()->running() ? QString() : tr("Run again with implicit matrices"), [this] {
                                    if (!study()) return;
                                    RunRequest wish;
                                    wish.study = study()->id();
                                    wish.implicit = true;
                                    Q_EMIT desk().run_wanted(wish);
                                });
    } else if (scope() != HeadScope::all && !site.has_matrix) {
        return banner_->set(tr("This layer mixes tokens without attention weights."));
    }
    if (scope() != HeadScope::all && !study()->header().measured(site) && !study()->header().measured_implicit(site))
        return banner_->set(tr("This layer was left out of the analysis."));
    if (values.without_maps)
        return banner_->set(
            tr("What a token looks at needs maps, which were not recorded. “Attention received” works without them."),
            tr("Run again with maps"), [this] {
                if (!study()) return;
                RunRequest wish;
                wish.study = study()->id();
                wish.maps = true;
                Q_EMIT desk().run_wanted(wish);
            });
    if (values.sites == 0 && !values.pending)
        return banner_->set(study()->running() ? tr("This layer is not computed yet.")
                                               : tr("This layer was not computed: the run ended early."));
    if (experts_shown_->isChecked() && has_experts(study()->header()) && !study()->header().record.experts)
        return banner_->set(tr("Experts were not recorded."),
                            study()->running() ? QString() : tr("Run again with experts"), [this] {
                                if (!study()) return;
                                RunRequest wish;
                                wish.study = study()->id();
                                wish.experts = true;
                                Q_EMIT desk().run_wanted(wish);
                            });
    banner_->set({});
}

void OnTextView::refresh_heading(const TextValues& values) {
    const std::int64_t sequence = selection().one_sequence(), token = shown_wish_.token;
    const auto& tokens = this->tokens(colouring() == TextColouring::row ? query_stream() : key_stream());
    const QString name = (words() ? tr("‘%1’ (word %2)") : tr("‘%1’ (token %2)"))
                             .arg(token_label(tokens, token), QString::number(token));
    QString text = colouring() == TextColouring::row      ? tr("What %1 looks at").arg(name)
                   : colouring() == TextColouring::column ? tr("Who looks at %1").arg(name)
                                                          : tr("Attention that each token receives");
    const QString layer = study()->site_title(selection().site);
    const auto computed = kind();
    what_->setEnabled(colouring() != TextColouring::mass && !words() && !implicit());  // these have weights alone
    range_->setEnabled(!figures::of_norms(computed));
    if (computed == figures::MapValues::rollout)
        text += scope() == HeadScope::all ? tr(" · rollout through all layers")
                                          : tr(" · rollout through the layers up to %1").arg(layer);
    else if (computed == figures::MapValues::layer_norms)
        text += tr(" · norms of %1, all heads together").arg(layer);
    else if (computed == figures::MapValues::norms)
        text += tr(" · norms of %1, head %2").arg(layer).arg(selection().head);
    else if (scope() == HeadScope::head)
        text += tr(" · %1, head %2").arg(layer).arg(selection().head);
    else if (scope() == HeadScope::layer)
        text += tr(" · %1, mean of its heads").arg(layer);
    else
        text += values.sites < values.of_sites
                    ? tr(" · mean of all heads of %1 of %2 layers").arg(values.sites).arg(values.of_sites)
                    : tr(" · mean of all heads of %1 layers").arg(values.of_sites);
    if (experts_) {
        const bool some = std::any_of(experts_->index.data.begin(), experts_->index.data.end(),
                                      [](double index) { return index >= 0; });
        const std::int32_t number = study()->sites().at(static_cast<std::size_t>(selection().site)).layer;
        text += (some ? tr(" · below: experts of layer %1") : tr(" · layer %1 has no experts")).arg(number);
    }
    if (!types_.empty()) text += tr(" · underlined: softmax dark, linear attention light");
    if (study()->sequences() > 1) text += tr(" · sequence %1").arg(sequence);
    if (!selection().sequence) text += tr(" (all are chosen; a text shows the first)");
    if (words()) text += tr(" · words: rows averaged, columns summed");
    if (values.pending) text += tr(" · reading…");
    heading_->setText(text);
    refresh_pointed(-1);
}

void OnTextView::refresh_list() {
    const auto& tokens = this->tokens(text_is_keys() ? key_stream() : query_stream());
    std::vector<TokenTableModel::Row> rows;
    double listed = 0, all = 0;
    for (const float value : values_)
        if (!std::isnan(value)) all += value;
    for (const std::int64_t place : largest(values_, kListed)) {
        const double value = values_[static_cast<std::size_t>(place)];
        if (value <= 0) break;
        listed += value;
        rows.push_back({token_label(tokens, place), place, value, false});
    }
    const QString what = colouring() == TextColouring::row      ? tr("Looks at most")
                         : colouring() == TextColouring::column ? tr("Looked at most by")
                                                                : tr("Most looked at");
    const bool sums = text_is_keys() && all > 0 && !rows.empty() && !implicit();
    const auto count = static_cast<int>(rows.size());
    list_title_->setText(sums ? tr("%1 · these %2 hold %3 %").arg(what).arg(count).arg(100 * listed / all, 0, 'f', 0)
                              : what);
    list_->set_theme(desk().theme());
    list_->model_of_tokens().set_titles(tr("Token"), tr("Position"),
                                        colouring() == TextColouring::mass      ? tr("Mean weight")
                                        : implicit()                            ? tr("Coefficient")
                                        : kind() == figures::MapValues::rollout ? tr("Rollout")
                                        : figures::of_norms(kind())             ? tr("Norm")
                                                                                : tr("Weight"));
    list_->model_of_tokens().set_rows(std::move(rows));
}

QString OnTextView::describe(std::int64_t token) const {
    if (!study() || token < 0) return {};
    const auto& tokens = this->tokens(text_is_keys() ? key_stream() : query_stream());
    if (token >= std::ssize(tokens.ids)) return {};
    QString text = tr("‘%1’ · word %2").arg(token_label(tokens, token, 60), QString::number(token));
    if (!words())
        text = tr("‘%1’ · token %2 · id %3")
                   .arg(token_label(tokens, token, 60), QString::number(token),
                        QString::number(tokens.ids[static_cast<std::size_t>(token)]));
    const QString taken = experts_ ? expert_words(*experts_, token) : QString();
    QString below = taken.isEmpty() ? QString() : QLatin1Char('\n') + taken;
    if (token < std::ssize(types_) && types_[static_cast<std::size_t>(token)] >= 0)
        below += types_[static_cast<std::size_t>(token)] == 0 ? tr("\nchunk of softmax attention")
                                                              : tr("\nchunk of linear attention");
    if (token >= std::ssize(values_)) return text + below;
    const float value = values_[static_cast<std::size_t>(token)];
    if (std::isnan(value)) return text + tr("\nhidden by the mask") + below;
    const QString what =
        colouring() == TextColouring::mass
            ? tr("mean weight")
            : QString::fromStdString(figures::values_word(implicit() ? figures::MapValues::implicit : kind()));
    return text + QStringLiteral("\n%1 %2").arg(what, number_label(static_cast<double>(value))) + below;
}

void OnTextView::refresh_pointed(std::int64_t token) {
    const QString hint =
        tr("Click chooses a token · Shift+click chooses the other of the pair · Ctrl+←/→ moves to the next");
    pointed_->setText(token < 0 ? hint : describe(token).replace(QLatin1Char('\n'), QStringLiteral(" · ")));
    pointed_->setEnabled(token >= 0);
}

void OnTextView::resizeEvent(QResizeEvent* event) {
    View::resizeEvent(event);
    const auto wanted = width() < kNarrowText ? Qt::Vertical : Qt::Horizontal;
    if (split_->orientation() == wanted) return;
    split_->setOrientation(wanted);
    arranged_ = false;
    refresh_later();
}

extern const ViewKind kOnText{"on_text",
                              "On text",
                              "What a token looks at, and who looks at it, on the text itself",
                              [](Desk* desk, QWidget* parent) -> View* { return new OnTextView(desk, parent); },
                              ViewGroup::text,
                              with_sites};

}  // namespace headscope::widgets
