// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/map/map.h"

#include <QJsonArray>
#include <QLabel>
#include <QPushButton>
#include <algorithm>
#include <utility>

#include "core/figures/head_weights.h"
#include "core/figures/recipe.h"
#include "core/maps/rank_source.h"
#include "widgets/desk/presence.h"
#include "widgets/plots/chart/upright_scale.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/plots/map/map_profiles.h"
#include "widgets/views/map/map_bar.h"
#include "widgets/views/map/map_words.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
MapView::MapView(Desk* desk, QWidget* parent) : View(desk, parent), sources_(&desk->tiles()), probe_(desk) {
    make_widgets();
    connect_widgets();
    make_commands();
    show_colours();
    show_words();
}

void MapView::refresh() {
    const bool noticed = std::exchange(noticed_, true);
    if (notice_without_study()) return;
    Study& study = *this->study();
    if (study.sites().empty()) return show_notice(tr("This model has no attention heads"));
    const std::int64_t sequence = selection().one_sequence(), site = selection().site;
    if (!study.site_done(sequence, site)) {
        return show_notice(tr("%1 is not computed yet").arg(study.site_heading(site)),
                           study.running() ? tr("Its maps appear here when it is done.")
                                           : tr("The run ended early. Run the analysis again to compute it."));
    }
    const Site& about = study.sites()[static_cast<std::size_t>(site)];
    if (about.has_implicit && !study.has_maps(site)) {
        return show_notice(tr("The implicit matrix of %1 was not recorded").arg(study.site_title(site)),
                           tr("This layer has no softmax. Its implicit matrix, which maps values to outputs, is "
                              "recorded on request (--record implicit)."),
                           study.running() ? QString() : tr("Run again with implicit matrices"), [this] {
                               if (!this->study()) return;
                               RunRequest wish;
                               wish.study = this->study()->id();
                               wish.implicit = true;
                               Q_EMIT desk().run_wanted(wish);
                           });
    }
    if (!about.has_matrix && !about.has_implicit) {
        if (study.mixer(site) == "fnet") {
            return show_notice(
                tr("No matrix in %1").arg(study.site_title(site)),
                tr("FNet's Fourier transforms mix tokens and features together, so there is no matrix over tokens."));
        }
        return show_notice(tr("No token mixing in %1").arg(study.site_title(site)),
                           tr("This layer processes each token by itself, so there is no matrix."));
    }
    noticed_ = noticed;
    const auto next = ask();
    if (!next) return;
    show_content();
    noticed_ = false;
    if (!(*next == shown_)) show_map(*next);
    show_strip();
    show_theme();
    show_tokens();
}

void MapView::show_map(const Shown& next) {
    const Shown before = std::exchange(shown_, next);
    const Study& study = *this->study();
    const Site& site = study.sites()[static_cast<std::size_t>(next.site)];
    MapContent content;
    content.queries = next.queries;
    content.keys = next.keys;
    const bool words = next.look.words;
    content.trained_positions = words ? 0 : study.header().max_positions;  // positions are pieces
    if (const auto regions = next.sequence ? study.header().regions(*next.sequence, site) : std::span<const int>();
        !regions.empty()) {
        content.query_regions =
            words ? next.query_words->units.tokens.regions : std::vector<std::int32_t>(regions.begin(), regions.end());
        content.key_regions = content.query_regions;
    }
    content.key_types = key_types(next);
    if (next.query_labels) content.query_labels = *next.query_labels;
    if (next.key_labels) content.key_labels = *next.key_labels;
    if (next.map) {
        const MapKind kind = next.look.ranks()    ? MapKind::ranks
                             : next.look.logits() ? MapKind::logits
                                                  : MapKind::weights;
        content.map = sources_.id(next.map, kind);
    }
    // Thumbnails are of weights.
    if (next.thumbnail && next.thumbnail->shape.size() == 3 && !next.look.logits() && !next.look.computed()) {
        // Shorter sequences leave the ends of theirs empty.
        const auto& shape = next.thumbnail->shape;
        content.thumbnail_rows = std::min(shape[1], next.queries);
        content.thumbnail_columns = std::min(shape[2], next.keys);
        for (std::int64_t r = 0; r < content.thumbnail_rows; ++r) {
            const auto row = next.thumbnail->data.begin() + (next.head * shape[1] + r) * shape[2];
            content.thumbnail.insert(content.thumbnail.end(), row, row + content.thumbnail_columns);
        }
        if (site.causal && site.is_self())
            hide_future(content.thumbnail, content.thumbnail_rows, content.thumbnail_columns, next.queries, next.keys);
        if (next.look.ranks())
            content.thumbnail = maps::row_ranks(content.thumbnail, content.thumbnail_rows, content.thumbnail_columns);
    }
    const bool cross = site.query_stream != site.key_stream;
    const auto axis_label = [cross](const QString& name, const std::string& stream) {
        return cross ? QStringLiteral("%1 (%2)").arg(name, QString::fromStdString(stream)) : name;
    };
    plot_->yAxis->setLabel(axis_label(words ? tr("query word") : tr("query"), site.query_stream));
    plot_->xAxis->setLabel(axis_label(words ? tr("key word") : tr("key"), site.key_stream));
    const bool other_size = before.queries != next.queries || before.keys != next.keys;
    show_colours();
    plot_->set_content(std::move(content));
    if (wanted_cells_ && wanted_cells_->q_end <= next.queries && wanted_cells_->k_end <= next.keys) {
        plot_->show_cells(*wanted_cells_);
        // Show the earlier cells again, whether or not the chosen cell is among them.
        query_ = chosen().query;
        key_ = chosen().key;
    }
    wanted_cells_.reset();
    if (other_size) pointed_.reset();
    QString title = figures::of_layer(next.look.values)
                        ? tr("%1, all heads").arg(study.site_heading(next.site))
                        : tr("%1, head %2").arg(study.site_heading(next.site)).arg(next.head);
    if (!next.sequence)
        title += tr(", mean over %1 sequences").arg(next.map->sequences());
    else if (study.sequences() > 1)
        title += tr(", sequence %1").arg(*next.sequence);
    if (words) title += tr(", words");
    bar_->set_title(title);
    bar_->set_maps(study.has_maps(next.site));
    profiles_->set_shown(study.has_maps(next.site) && show_profiles_);
    if (before.map != next.map) take_region();
    probe();
}

void MapView::show_strip() {
    QStringList words;
    const bool no_maps = !study()->has_maps(shown_.site);
    if (no_maps) {
        const auto& shape = shown_.thumbnail ? shown_.thumbnail->shape : std::vector<std::int64_t>{};
        words += shape.size() == 3 && (shape[1] < shown_.queries || shape[2] < shown_.keys)
                     ? tr("No maps were recorded: this is a thumbnail of %1 × %2 blocks.").arg(shape[1]).arg(shape[2])
                     : tr("No maps were recorded: this is a thumbnail.");
    }
    words += replaced_;
    words += sequences_words();
    words += regions_words();
    if (shown_.types)
        words += tr("Below the map the types of the keys' chunks: S softmax, L linear attention of later chunks.");
    words.removeAll(QString());
    const bool implicit = shown_.look.values == figures::MapValues::implicit;
    if (implicit && look_.values != figures::MapValues::weights)
        words.prepend(tr("This layer has no weights: its implicit matrix is shown."));
    strip_text_->setText(words.join(QLatin1Char(' ')));
    const bool no_norms =
        !implicit && figures::of_norms(look_.values) && !look_.words && !study()->header().record.norms;
    strip_action_->setText(no_norms ? tr("Run again with norms") : tr("Run again with maps"));
    strip_action_->setVisible(no_maps || no_norms);
    strip_->setVisible(!words.isEmpty());
}

QString MapView::sequences_words() const {
    if (selection().sequence || study()->sequences() < 2) return {};
    if (shown_.look.computed() && shown_.sequence) return tr("Norms and rollout show one sequence: this is the first.");
    if (shown_.sequence) return tr("A thumbnail shows one sequence: this is the first.");
    const auto& all = study()->header().sequences;
    const auto [least, most] = std::minmax_element(
        all.begin(), all.end(), [](const auto& a, const auto& b) { return a.ids.size() < b.ids.size(); });
    if (least->ids.size() == most->ids.size()) return {};
    return tr("The sequences have %1 to %2 tokens: each pair's mean is over the sequences that contain it.")
        .arg(least->ids.size())
        .arg(most->ids.size());
}

QString MapView::regions_words() const {
    Study& study = *this->study();
    if (!shown_.sequence ||
        study.header().regions(*shown_.sequence, study.sites()[static_cast<std::size_t>(shown_.site)]).empty())
        return {};
    const auto heads = study.heads(shown_.sequence);
    if (!heads) return {};
    for (std::size_t row = 0; row < heads->rows.size(); ++row) {
        if (heads->rows[row].site != shown_.site || heads->rows[row].head != shown_.head) continue;
        QStringList means;
        for (const auto& [name, said] : {std::pair("a_to_a", "A→A"), std::pair("a_to_b", "A→B"),
                                         std::pair("b_to_a", "B→A"), std::pair("b_to_b", "B→B")}) {
            if (const auto column = heads->column(name))
                means +=
                    QStringLiteral("%1 %2").arg(QString::fromUtf8(said)).arg(heads->value(row, *column), 0, 'g', 3);
        }
        return tr("Mean weight of a pair's texts: %1.").arg(means.join(QStringLiteral(" · ")));
    }
    return {};
}

Selection MapView::chosen() const {
    Selection units = shown_.sequence ? selection() : desk().selection();
    if (units.query && shown_.query_words) units.query = shown_.query_words->word_of(*units.query);
    if (units.key && shown_.key_words) units.key = shown_.key_words->word_of(*units.key);
    return units;
}

void MapView::select_units(std::optional<std::int64_t> query, std::optional<std::int64_t> key) {
    if (query && shown_.query_words) query = shown_.query_words->first_piece(*query);
    if (key && shown_.key_words) key = shown_.key_words->first_piece(*key);
    desk().select_tokens(query, key);
}

const store::SequenceTokens& MapView::shown_tokens(bool query) const {
    // Tokens of the shown map, which may be of the previous analysis while the next one is read.
    static const store::SequenceTokens none;
    const Study* study = desk().study(shown_.study);
    if (!study || !shown_.sequence) return none;
    if (const auto& words = query ? shown_.query_words : shown_.key_words) return words->units.tokens;
    return query ? study->query_tokens(*shown_.sequence, shown_.site)
                 : study->key_tokens(*shown_.sequence, shown_.site);
}

void MapView::show_colours() {
    const std::int64_t length = std::max(shown_.queries, shown_.keys);
    figures::ColourScale scale = shown_.look.colours(length, shown_.largest);
    scale.zero_apart = shown_.zeros;
    plot_->set_colours(scale, shown_.look.pooling);
    scale_->set_look(scale, theme_);
    profiles_->set_look(shown_.look.curve_colours(length, shown_.largest), theme_);
}

void MapView::show_theme() {
    const Theme& theme = desk().theme();
    if (theme.dark == theme_.dark && theme.sequential_map == theme_.sequential_map &&
        theme.diverging_map == theme_.diverging_map)
        return;
    theme_ = theme;
    plot_->set_theme(theme);
    show_colours();
}

void MapView::show_tokens() {
    // A mean over the sequences that are done may be shorter than what is chosen elsewhere.
    const auto within = [](std::optional<std::int64_t> token, std::int64_t count) {
        return token && *token < count ? token : std::nullopt;
    };
    const auto query = within(chosen().query, shown_.queries), key = within(chosen().key, shown_.keys);
    plot_->set_chosen(query, key);
    if (query != query_ || key != key_) plot_->reveal(query, key);
    query_ = query;
    key_ = key;
    probe();
}

void MapView::probe() {
    MapTarget target;
    target.map = shown_.map;
    target.query = pointed_ ? std::optional(pointed_->first) : query_;
    target.key = pointed_ ? std::optional(pointed_->second) : key_;
    if (nothing_named() && shown_.queries > 0 && shown_.keys > 0) {
        target.query = shown_.queries - 1;
        target.key = 0;
    }
    target.curves = profiles_->shown() || look_.ranks();
    probe_.look(target);
}

void MapView::show_words() {
    const MapReading& reading = probe_.reading();
    const auto* queries = shown_.query_labels.get();
    const auto* keys = shown_.key_labels.get();
    const bool none = nothing_named();
    QString words = none ? QString() : cell_words(reading, queries, keys);
    if (words.isEmpty()) words = tr("Point at the map to read a cell · Click chooses it · Shift+drag chooses a region");
    cell_text_->setText(words);
    cell_text_->setToolTip(words);
    if (!profiles_->shown()) return;
    const bool logits = shown_.look.logits();
    const auto curve = [&](const Profile& profile) { return logits ? profile.scores : profile.weights; };
    const auto& at = reading.target;
    profiles_->set_curves({curve(reading.row),
                           !at.query ? QString()
                                     : (none ? tr("row of the last query, %1: none is chosen") : tr("row of query %1"))
                                           .arg(token_name(*at.query, queries))},
                          {curve(reading.column), at.key ? tr("key %1").arg(token_name(*at.key, keys)) : QString()});
}

void MapView::take_region() {
    corner_.reset();
    const auto& region = plot_->region();
    region_line_->setVisible(region.has_value());
    probe_.measure(region ? shown_.map : nullptr, region);
}

void MapView::show_region_words() {
    const auto& region = plot_->region();
    if (!region) return;
    const QString words = region_words(*region, probe_.mass());
    region_text_->setText(words);
    region_text_->setToolTip(words);
}

void MapView::clear_region() {
    plot_->set_region(std::nullopt);
    take_region();
}

void MapView::set_look(const MapLook& look) {
    bar_->set_look(look);
    if (look == look_) return;
    look_ = look;
    refresh_later();
    Q_EMIT state_changed();
}

void MapView::set_profiles(bool shown) {
    bar_->set_profiles(shown);
    if (shown == show_profiles_) return;
    show_profiles_ = shown;
    if (shown_.study != 0 && study()) profiles_->set_shown(study()->has_maps(shown_.site) && shown);
    probe();
    Q_EMIT state_changed();
}

bool MapView::jump(const QString& text, bool query) {
    if (!study() || shown_.study != study()->id()) return false;
    const auto& tokens = shown_tokens(query);
    const auto& labels = query ? shown_.query_labels : shown_.key_labels;
    const auto now = query ? chosen().query : chosen().key;
    const auto found =
        find_token(text, now.value_or(-1), tokens.pieces, labels.get(), query ? shown_.queries : shown_.keys);
    if (!found) {
        const QString words = shown_.sequence ? tr("No token holds “%1”").arg(text)
                                              : tr("A mean over sequences has no tokens: enter a position");
        if (!text.isEmpty()) Q_EMIT desk().told(words);
        return false;
    }
    if (query)
        select_units(found, chosen().key);
    else
        select_units(chosen().query, found);
    return true;
}

QJsonObject MapView::state() const {
    QJsonObject state = look_.state();
    state[QLatin1String("profiles")] = show_profiles_;
    const maps::Cells cells = wanted_cells_.value_or(plot_->shown());
    const bool whole = cells.queries() == shown_.queries && cells.keys() == shown_.keys;
    if (wanted_cells_ || (shown_.study != 0 && !whole)) {
        state[QLatin1String("cells")] =
            QJsonArray{static_cast<double>(cells.q_begin), static_cast<double>(cells.q_end),
                       static_cast<double>(cells.k_begin), static_cast<double>(cells.k_end)};
    }
    return state;
}

void MapView::restore(const QJsonObject& state) {
    MapLook look = look_;
    look.restore(state);
    set_look(look);
    if (state[QLatin1String("profiles")].isBool()) set_profiles(state[QLatin1String("profiles")].toBool());
    const QJsonArray array = state[QLatin1String("cells")].toArray();
    if (array.size() != 4) {
        wanted_cells_.reset();
        if (shown_.study != 0) plot_->show_all();
        return;
    }
    const auto number = [&array](int i) { return static_cast<std::int64_t>(array[i].toDouble(-1)); };
    const maps::Cells cells{number(0), number(1), number(2), number(3)};
    if (cells.q_begin < 0 || cells.k_begin < 0 || cells.queries() <= 0 || cells.keys() <= 0) return;
    if (shown_.study == 0)
        wanted_cells_ = cells;
    else if (cells.q_end <= shown_.queries && cells.k_end <= shown_.keys)
        plot_->show_cells(cells);
}

std::optional<FigureRequest> MapView::figure() const {
    const Study* study = this->study();
    if (!study || shown_.study != study->id()) return std::nullopt;
    FigureRequest wish;
    wish.studies = {study->id()};
    wish.options.layer = study->sites()[static_cast<std::size_t>(shown_.site)].layer;
    wish.options.sequence = shown_.sequence;
    wish.options.all_sequences = !shown_.sequence;
    if (!study->has_maps(shown_.site)) {
        wish.recipe = "thumbnails";
        wish.options.head = shown_.head;
        wish.options.statistic = look_.pooling == figures::Pooling::mean ? "mean" : "maximum";
        return named(wish);
    }
    wish.recipe = "attention";
    wish.options.head = shown_.head;
    wish.options.tower = figures::tower_of(study->sites(), shown_.site);
    // By the length of the whole map: a part of it keeps its colors.
    wish.options.scale = shown_.look.scale_for(std::max(shown_.queries, shown_.keys));
    wish.options.pooling = look_.pooling;
    if (shown_.look.words)
        wish.options.units = figures::Units::words;
    else if (look_.logits() && shown_.look.values != figures::MapValues::implicit)
        wish.options.values = figures::MapValues::logits;
    // The recipe chooses the values of a recurrent layer.
    if (shown_.look.computed() && shown_.look.values != figures::MapValues::implicit)
        wish.options.values = shown_.look.values;
    if (figures::of_layer(wish.options.values)) wish.options.head.reset();
    const maps::Cells cells = plot_->shown();
    if (cells.queries() < shown_.queries) {
        wish.options.from_query = cells.q_begin;
        wish.options.to_query = cells.q_end;
    }
    if (cells.keys() < shown_.keys) {
        wish.options.from_key = cells.k_begin;
        wish.options.to_key = cells.k_end;
    }
    if (profiles_->shown()) wish.note = tr("Row and column beside the map are left out.");
    return named(wish);
}

const ViewKind kMap{"map",
                    "Map",
                    "What one head looks at: its map, pair by pair, of any length.",
                    [](Desk* desk, QWidget* parent) -> View* { return new MapView(desk, parent); },
                    ViewGroup::map,
                    with_weights};

}  // namespace headscope::widgets
