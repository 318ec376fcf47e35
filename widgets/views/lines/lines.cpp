// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/lines/lines.h"

#include <QComboBox>
#include <QJsonArray>
#include <QKeyEvent>
#include <QLabel>
#include <QLocale>
#include <QSlider>
#include <QSpinBox>
#include <QToolButton>
#include <algorithm>
#include <utility>

#include "core/figures/recipe.h"
#include "widgets/desk/presence.h"
#include "widgets/plots/ticks.h"
#include "widgets/text/line_label.h"
#include "widgets/views/lines/head_chips.h"
#include "widgets/views/lines/lines_canvas.h"

namespace headscope::widgets {
namespace {

constexpr std::size_t kFigureHeads = 7;  ///< that a figure has colours for
constexpr std::int64_t kFigureTokens = 64;

}  // namespace

LinesView::LinesView(Desk* desk, QWidget* parent) : View(desk, parent) {
    build();
}

bool LinesView::words() const {
    return units_->currentIndex() == 1;
}

std::shared_ptr<const StudyWords> LinesView::words_of(bool query) const {
    if (!words() || !study()) return nullptr;
    const Site& site = study()->sites().at(static_cast<std::size_t>(selection().site));
    return study()->words(query ? site.query_stream : site.key_stream, selection().one_sequence()).value;
}

std::optional<std::int64_t> LinesView::chosen(bool query) const {
    const auto& piece = query ? selection().query : selection().key;
    const auto words = words_of(query);
    return piece && words ? words->word_of(*piece) : piece;
}

void LinesView::select_units(std::optional<std::int64_t> query, std::optional<std::int64_t> key) {
    const auto piece = [](std::optional<std::int64_t> unit, const std::shared_ptr<const StudyWords>& words) {
        return unit && words ? words->first_piece(*unit) : unit;
    };
    desk().select_tokens(piece(query, words_of(true)), piece(key, words_of(false)));
}

/// Texts of a pair that the shown tokens belong to.
std::vector<std::int32_t> LinesView::regions(std::int64_t begin, std::int64_t end) const {
    const Site& site = study()->sites().at(static_cast<std::size_t>(selection().site));
    auto all = study()->header().regions(selection().one_sequence(), site);
    if (all.empty()) return {};
    const auto words = words_of(true);  // queries and keys are of one text
    if (words) all = words->units.tokens.regions;
    const auto part = all.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    return {part.begin(), part.end()};
}

std::int64_t LinesView::queries() const {
    if (const auto words = words_of(true)) return words->size();
    return std::ssize(study()->query_tokens(selection().one_sequence(), selection().site).ids);
}

std::int64_t LinesView::keys() const {
    if (const auto words = words_of(false)) return words->size();
    return std::ssize(study()->key_tokens(selection().one_sequence(), selection().site).ids);
}

bool LinesView::crossed() const {
    const Site& site = study()->sites().at(static_cast<std::size_t>(selection().site));
    return site.query_stream != site.key_stream;
}

double LinesView::threshold() const {
    return kThresholds[static_cast<std::size_t>(threshold_->value())];
}

std::int64_t LinesView::window_size() const {
    return size_->currentData().toInt();
}

TokenWindow LinesView::window() const {
    TokenWindow window;
    const std::int64_t size = window_size();
    window.q_begin = std::clamp<std::int64_t>(first_, 0, std::max<std::int64_t>(0, queries() - size));
    window.q_end = std::min(queries(), window.q_begin + size);
    window.k_begin = window.q_begin;
    window.k_end = window.q_end;
    if (!crossed()) return window;
    window.k_begin = std::clamp<std::int64_t>(first_key_, 0, std::max<std::int64_t>(0, keys() - size));
    window.k_end = std::min(keys(), window.k_begin + size);
    return window;
}

void LinesView::move_window(std::int64_t first) {
    if (!study()) return;
    const std::int64_t before =
        std::exchange(first_, std::clamp<std::int64_t>(first, 0, std::max<std::int64_t>(0, queries() - window_size())));
    refresh_later();
    if (first_ != before) Q_EMIT state_changed();
}

void LinesView::step(int tokens) {
    if (!study()) return;
    const std::int64_t query = chosen(true).value_or(window().q_begin) + tokens;
    select_units(std::clamp<std::int64_t>(query, 0, std::max<std::int64_t>(0, queries() - 1)), chosen(false));
}

void LinesView::keyPressEvent(QKeyEvent* event) {
    const bool control = (event->modifiers() & ~Qt::KeypadModifier) == Qt::ControlModifier;
    if (control && event->key() == Qt::Key_Left) return step(-1);
    if (control && event->key() == Qt::Key_Right) return step(1);
    View::keyPressEvent(event);
}

void LinesView::show_head(int head, bool shown) {
    if (!shown) {
        heads_.erase(head);
    } else if (!heads_.contains(head)) {
        int colour = 0;
        const auto taken = [&] {
            return std::any_of(heads_.begin(), heads_.end(), [&](const auto& one) { return one.second == colour; });
        };
        while (taken()) ++colour;
        heads_[head] = colour;
    }
    refresh_later();
    Q_EMIT state_changed();
}

void LinesView::show_only(int head) {
    heads_.clear();
    show_head(head, true);
    desk().select_head(selection().site, head);
}

/// The selected head is among those shown; alone, where it was alone before.
void LinesView::follow_head() {
    const int selected = static_cast<int>(selection().head);
    const int count = study()->sites().at(static_cast<std::size_t>(selection().site)).heads;
    std::erase_if(heads_, [count](const auto& one) { return one.first >= count; });
    const bool moved = last_.head != selection().head || last_.study != selection().study;
    if (!heads_.empty() && !moved) return;
    if (heads_.size() <= 1) heads_.clear();
    if (!heads_.contains(selected)) show_head(selected, true);
}

void LinesView::follow_tokens() {
    const std::int64_t size = window_size();
    const TokenWindow now = window();
    const auto follow = [&](std::optional<std::int64_t> token, std::int64_t begin, std::int64_t end,
                            std::int64_t& first) {
        if (token && (*token < begin || *token >= end)) first = std::max<std::int64_t>(0, *token - size / 2);
    };
    if (last_.study != selection().study || last_.sequence != selection().sequence) first_ = first_key_ = 0;
    if (last_.query != selection().query || last_.study != selection().study)
        follow(chosen(true), now.q_begin, now.q_end, first_);
    if (crossed() && last_.key != selection().key) follow(chosen(false), now.k_begin, now.k_end, first_key_);
}

bool LinesView::notice_without_maps() {
    const Site& site = study()->sites().at(static_cast<std::size_t>(selection().site));
    const std::int64_t sequence = selection().one_sequence();
    if (site.has_implicit && !study()->has_maps(selection().site)) {
        show_notice(
            tr("Lines need the implicit matrix"),
            tr("This layer has no softmax. Its implicit matrix, which maps values to outputs, was not recorded."),
            study()->running() ? QString() : tr("Run again with implicit matrices"), [this] {
                if (!study()) return;
                RunRequest wish;
                wish.study = study()->id();
                wish.implicit = true;
                Q_EMIT desk().run_wanted(wish);
            });
    } else if (!site.has_matrix && !site.has_implicit) {
        show_notice(tr("No lines to draw"), tr("This layer mixes tokens without attention weights."));
    } else if (!study()->header().measured(site) && !study()->header().measured_implicit(site)) {
        show_notice(tr("No lines to draw"), tr("This layer was left out of the analysis."));
    } else if (!study()->has_maps(selection().site)) {
        show_notice(tr("Lines need the maps"), tr("This analysis did not record them."), tr("Run again with maps"),
                    [this] {
                        if (!study()) return;
                        RunRequest wish;
                        wish.study = study()->id();
                        wish.maps = true;
                        Q_EMIT desk().run_wanted(wish);
                    });
    } else if (!study()->site_done(sequence, selection().site)) {
        show_notice(study()->running() ? tr("%1 is not computed yet").arg(study()->site_heading(selection().site))
                                       : tr("%1 was not computed").arg(study()->site_heading(selection().site)),
                    study()->running() ? tr("Its lines appear when it is done.") : tr("The run ended early."));
    } else {
        return false;
    }
    return true;
}

void LinesView::refresh() {
    if (notice_without_study()) return;
    if (words()) {
        // Everything counts in words, so they come first.
        const Site& site = study()->sites().at(static_cast<std::size_t>(selection().site));
        for (const std::string& stream : {site.query_stream, site.key_stream})
            if (notice_for(study()->words(stream, selection().one_sequence()))) return;
    }
    follow_head();
    follow_tokens();
    last_ = selection();
    if (notice_without_maps()) return;
    const std::int64_t sequence = selection().one_sequence(), site_index = selection().site;
    const Site& site = study()->sites().at(static_cast<std::size_t>(site_index));
    const auto query_labels = study()->labels(site.query_stream, sequence);
    const auto key_labels = study()->labels(site.key_stream, sequence);
    if (notice_for(query_labels) || notice_for(key_labels)) return;

    LinesCanvas::Content content;
    content.window = window();
    content.all_queries = queries();
    content.all_keys = keys();
    content.threshold = threshold();
    const auto part = [](const std::vector<QString>& all, std::int64_t begin, std::int64_t end) {
        return std::vector<QString>(all.begin() + begin, all.begin() + end);
    };
    const auto query_words = words_of(true), key_words = words_of(false);
    content.queries =
        part(query_words ? query_words->labels : *query_labels, content.window.q_begin, content.window.q_end);
    content.keys = part(key_words ? key_words->labels : *key_labels, content.window.k_begin, content.window.k_end);
    content.query_regions = regions(content.window.q_begin, content.window.q_end);
    content.key_regions = regions(content.window.k_begin, content.window.k_end);
    QString failure;
    for (const auto& [head, colour] : heads_) {
        const auto weights = window_weights(*study(), sequence, site_index, head, content.window, words());
        if (failure.isEmpty()) failure = weights.failure;
        content.heads.push_back({head, desk().theme().categorical(colour), weights.value});
    }
    if (!failure.isEmpty()) return show_failure(failure);
    show_content();
    canvas_->set_theme(desk().theme());
    canvas_->set_content(std::move(content));
    const auto query = chosen(true);
    canvas_->set_chosen(query, chosen(false));
    if (seen_query_ != query && query) canvas_->show_query(*query);
    seen_query_ = query;
    refresh_strip();
    refresh_counts();
}

void LinesView::refresh_strip() {
    const Site& site = study()->sites().at(static_cast<std::size_t>(selection().site));
    std::map<int, QColor> colours;
    for (const auto& [head, colour] : heads_) colours[head] = desk().theme().categorical(colour);
    strip_->set_heads(site.heads, colours, static_cast<int>(selection().head), desk().theme());
    threshold_text_->setText(tr("from %1").arg(number_label(threshold())));
    const TokenWindow shown = window();
    const bool whole = shown.queries() == queries() && shown.keys() == keys();
    window_tools_->setVisible(!whole);
    const QSignalBlocker quiet(first_shown_);
    first_shown_->setRange(0, static_cast<int>(std::max<std::int64_t>(0, queries() - window_size())));
    first_shown_->setSingleStep(std::max(1, static_cast<int>(window_size() / 4)));
    first_shown_->setValue(static_cast<int>(shown.q_begin));
    range_text_->setText(tr("to %1 of %2").arg(shown.q_end - 1).arg(queries()));
    earlier_->setEnabled(shown.q_begin > 0);
    later_->setEnabled(shown.q_end < queries());
}

void LinesView::refresh_counts() {
    if (!study()) return;
    const QLocale locale;
    const auto count = static_cast<qlonglong>(canvas_->lines_drawn());
    QString text = tr("%1 · ").arg(study()->site_heading(selection().site));
    text += count == 1 ? tr("one line") : tr("%1 lines").arg(locale.toString(count));
    if (canvas_->lines_found() > canvas_->lines_drawn())
        text += tr(", the strongest of %1").arg(locale.toString(static_cast<qlonglong>(canvas_->lines_found())));
    text += tr(" of weights from %1").arg(number_label(threshold()));
    if (study()->sites().at(static_cast<std::size_t>(selection().site)).has_implicit)
        text += tr(" · magnitudes of coefficients, as shares of each head's greatest");
    if (heads_.empty()) text = tr("No head is shown: click one above");
    if (words()) text += tr(" · words: rows averaged, columns summed");
    if (study()->sequences() > 1) text += tr(" · sequence %1").arg(selection().one_sequence());
    if (!selection().sequence) text += tr(" (all are chosen; lines show the first)");
    counts_->setText(text);
    const QString pointed = canvas_->pointed_text();
    pointed_->setText(pointed.isEmpty()
                          ? tr("Point at a token to see only its lines · Click chooses it · Ctrl+←/→ moves to the next")
                          : pointed);
    pointed_->setEnabled(!pointed.isEmpty());
    canvas_->setAccessibleDescription(pointed.isEmpty() ? text : pointed);
}

QJsonObject LinesView::state() const {
    QJsonArray heads;
    for (const auto& one : heads_) heads.append(one.first);
    return {{"threshold", threshold()},
            {"tokens", static_cast<int>(window_size())},
            {"first", static_cast<int>(first_)},
            {"units", units_->currentData().toString()},
            {"heads", heads}};
}

void LinesView::restore(const QJsonObject& state) {
    const double least = state.value(QLatin1String("threshold")).toDouble(threshold());
    const auto place = std::lower_bound(kThresholds.begin(), kThresholds.end(), least * 0.999);
    threshold_->setValue(static_cast<int>(place - kThresholds.begin()));
    const int size = size_->findData(state.value(QLatin1String("tokens")).toInt());
    if (size >= 0) size_->setCurrentIndex(size);
    const int units = units_->findData(state.value(QLatin1String("units")).toString());
    if (units >= 0) units_->setCurrentIndex(units);
    first_ = std::max(0, state.value(QLatin1String("first")).toInt(static_cast<int>(first_)));
    const QJsonArray heads = state.value(QLatin1String("heads")).toArray();
    if (heads.isEmpty()) return;
    heads_.clear();
    last_ = selection();
    for (const auto& head : heads)
        if (head.toInt(-1) >= 0) show_head(head.toInt(), true);
}

std::optional<FigureRequest> LinesView::figure() const {
    if (!study() || heads_.empty() || !study()->has_maps(selection().site)) return std::nullopt;
    FigureRequest wish;
    wish.recipe = "lines";
    wish.studies = {study()->id()};
    wish.options.sequence = selection().one_sequence();
    wish.options.layer = study()->sites().at(static_cast<std::size_t>(selection().site)).layer;
    if (heads_.size() == 1) wish.options.head = heads_.begin()->first;
    for (const auto& one : heads_)
        if (heads_.size() > 1 && wish.options.heads.size() < kFigureHeads) wish.options.heads.push_back(one.first);
    if (study()->sites().at(static_cast<std::size_t>(selection().site)).has_implicit) {
        wish.options.heads.clear();  // a figure of coefficients has colours for their signs
        wish.options.head = selection().head;
    }
    wish.options.tower = figures::tower_of(study()->sites(), selection().site);
    wish.options.least = threshold();
    if (words()) wish.options.units = figures::Units::words;
    const TokenWindow shown = window();
    QStringList notes;
    if (heads_.size() > kFigureHeads)
        notes << tr("A figure has colors for %1 heads: it draws the first of the %2 shown.")
                     .arg(kFigureHeads)
                     .arg(heads_.size());
    if (shown.queries() > kFigureTokens || shown.keys() > kFigureTokens)
        notes << tr("A page has room for %1 tokens a side: it draws the first of those shown.").arg(kFigureTokens);
    wish.note = notes.join(QLatin1Char(' '));
    if (queries() <= std::min(window_size(), kFigureTokens) && keys() <= kFigureTokens) return named(wish);
    wish.options.from_query = shown.q_begin;
    wish.options.to_query = std::min(shown.q_end, shown.q_begin + kFigureTokens);
    wish.options.from_key = shown.k_begin;
    wish.options.to_key = std::min(shown.k_end, shown.k_begin + kFigureTokens);
    return named(wish);
}

extern const ViewKind kLines{"lines",
                             "Lines",
                             "Which tokens are linked, for one head or several in colors",
                             [](Desk* desk, QWidget* parent) -> View* { return new LinesView(desk, parent); },
                             ViewGroup::map,
                             with_maps};

}  // namespace headscope::widgets
