// SPDX-License-Identifier: GPL-3.0-or-later
// The maps of a comparison: content, colors, links between the sides. Widgets: maps_page_widgets.cpp.
#include "widgets/views/compare/maps_page.h"

#include <QComboBox>
#include <QLabel>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "widgets/plots/chart/upright_scale.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/plots/ticks.h"
#include "widgets/text/banner.h"
#include "widgets/views/compare/link_marks.h"
#include "widgets/views/map/map_words.h"

namespace headscope::widgets {
namespace {

constexpr int kMapsRest = 400;   ///< ms after which what is shown counts as chosen
constexpr double kEqual = 1e-6;  ///< weights are float32 sums: below, two maps are the same; logits: of the largest

figures::ColourScale signed_scale(double reach, bool linear) {
    figures::ColourScale scale;
    scale.map = figures::ColourMap::diverging;
    scale.scale = linear ? figures::ScaleKind::linear : figures::ScaleKind::square_root;
    scale.minimum = -reach;
    scale.maximum = reach;
    scale.label = std::string("difference (greatest magnitude") + (linear ? ")" : ", square root)");
    return scale;
}

QString signed_number(double value) {
    return (value > 0 ? QStringLiteral("+") : QString()) + number_label(QString::number(value, 'g', 4).toDouble());
}

}  // namespace

CompareMaps::CompareMaps(Desk* desk, QWidget* parent)
    : QWidget(parent),
      desk_(desk),
      sources_(&desk->tiles()),
      differences_(&desk->tiles()),
      left_probe_(desk),
      right_probe_(desk),
      theme_(desk->theme()) {
    make_widgets();
    rest_.setSingleShot(true);
    rest_.setInterval(kMapsRest);
    connect(&rest_, &QTimer::timeout, this, &CompareMaps::state_changed);
    connect(&differences_, &DifferenceSource::measured, this, [this] {
        show_colours();
        show_message();
    });
    connect(desk, &Desk::study_gone, this, [this] {
        if (!shown_.sides.open(*desk_)) shown_ = {};
    });
    for (MapProbe* probe : {&left_probe_, &right_probe_}) {
        connect(probe, &MapProbe::read, this, &CompareMaps::show_words);
        connect(probe, &MapProbe::failed, desk, &Desk::failed);
    }
}

void CompareMaps::show_sides(const CompareSides& sides) {
    Shown next;
    next.sides = sides;
    pending_ = false;
    const auto take = [this](const auto& reply) {
        pending_ = pending_ || reply.pending;
        return reply.value;
    };
    const std::array both{sides.left, sides.right};
    const bool logits = look_.logits() && !sides.left.place().has_implicit && !sides.right.place().has_implicit;
    for (std::size_t i = 0; i < 2; ++i) {
        const CompareSide& side = both[i];
        const std::int64_t s = side.one_sequence();
        next.queries[i] = take(side.study->labels(side.place().query_stream, s));
        next.keys[i] = take(side.study->labels(side.place().key_stream, s));
        if (!side.done()) continue;
        next.thumbnails[i] = take(side.study->thumbnails("maximum", s, side.site));
        if (side.study->has_maps(side.site)) {
            auto& map = i == 0 ? next.difference.left : next.difference.right;
            map = take(side.study->weights_map(s, side.site, side.head));
            if (map && !std::isnan(map->most())) next.coefficients[i] = static_cast<double>(map->most());
        }
        next.zeros |= !logits && has_zeros(*side.study, s, side.site, side.head);
        if (!logits) continue;
        if (const auto largest = take(largest_logit(*side.study, s, side.site, side.head)))
            next.largest = std::max(next.largest, *largest);
    }
    next.difference.logits = logits;
    next.difference.queries = take(links_.queries(sides));
    next.difference.keys = take(links_.keys(sides));
    show_theme();
    if (!(next == shown_)) {
        if (!(next.sides == shown_.sides)) pointed_.reset();
        shown_ = std::move(next);
        show_maps();
    }
    show_chosen();
    show_message();
}

CompareMaps::Thumbnail CompareMaps::thumbnail_of(Which which) const {
    const auto& values = shown_.thumbnails[which];
    const CompareSide& side = which == left ? shown_.sides.left : shown_.sides.right;
    if (!values || values->shape.size() != 3 || side.head >= values->shape[0]) return {};
    // Shorter sequences leave the ends of theirs empty.
    const auto& shape = values->shape;
    Thumbnail thumbnail;
    thumbnail.rows = std::min(shape[1], std::ssize(side.queries().ids));
    thumbnail.columns = std::min(shape[2], std::ssize(side.keys().ids));
    for (std::int64_t r = 0; r < thumbnail.rows; ++r) {
        const auto row = values->data.begin() + (side.head * shape[1] + r) * shape[2];
        thumbnail.values.insert(thumbnail.values.end(), row, row + thumbnail.columns);
    }
    return thumbnail;
}

MapContent CompareMaps::content(Which which) {
    MapContent content;
    const CompareSide& side = which == right ? shown_.sides.right : shown_.sides.left;
    const std::size_t own = which == right ? right : left;
    content.queries = std::ssize(side.queries().ids);
    content.keys = std::ssize(side.keys().ids);
    content.trained_positions = side.study->header().max_positions;
    if (shown_.queries[own]) content.query_labels = *shown_.queries[own];
    if (shown_.keys[own]) content.key_labels = *shown_.keys[own];
    if (which == difference) {
        content.map = differences_.show(shown_.difference);
    } else if (const auto& map = own == left ? shown_.difference.left : shown_.difference.right) {
        content.map = sources_.id(map, shown_.difference.logits ? MapKind::logits : MapKind::weights);
    }
    // Thumbnails are of weights.
    if (shown_.difference.logits || !shown_.thumbnails[own] || shown_.thumbnails[own]->shape.size() != 3)
        return content;
    Thumbnail thumbnail = thumbnail_of(static_cast<Which>(own));
    content.thumbnail = std::move(thumbnail.values);
    if (which == difference) {
        // Blocks stand for the same tokens only where the texts are the same.
        const auto other = thumbnail_of(right);
        const bool same = shown_.difference.queries && shown_.difference.keys &&
                          shown_.difference.queries->identical() && shown_.difference.keys->identical() &&
                          other.rows == thumbnail.rows && other.columns == thumbnail.columns;
        for (std::size_t i = 0; same && i < content.thumbnail.size(); ++i)
            content.thumbnail[i] = other.values[i] - content.thumbnail[i];
        if (!same) content.thumbnail.clear();
    }
    if (content.thumbnail.empty()) return content;
    content.thumbnail_rows = thumbnail.rows;
    content.thumbnail_columns = thumbnail.columns;
    if (side.place().causal && side.place().is_self())
        hide_future(content.thumbnail, content.thumbnail_rows, content.thumbnail_columns, content.queries,
                    content.keys);
    return content;
}

void CompareMaps::show_maps() {
    const auto& [of_left, of_right, queries, keys, of_logits] = shown_.difference;
    show_colours();
    linking_ = true;  // a map of another size shows all of itself; the left one leads
    for (const Which which : {left, right, difference}) {
        plots_[which]->set_content(content(which));
        const bool on_right = which == right;
        marks_[which]->set_partners(queries ? &(on_right ? queries->pairs.to_a : queries->pairs.to_b) : nullptr,
                                    keys ? &(on_right ? keys->pairs.to_a : keys->pairs.to_b) : nullptr);
    }
    linking_ = false;
    show_colours();  // the difference may be known already
    show_titles();
    const auto& cells = plots_[left]->content();
    if (wanted_cells_ && wanted_cells_->q_end <= cells.queries && wanted_cells_->k_end <= cells.keys)
        plots_[left]->show_cells(*wanted_cells_);
    wanted_cells_.reset();
    link_from(left);
    probe();
}

double CompareMaps::equal_below() const {
    return kEqual * std::max({1.0, shown_.largest, shown_.coefficients[left], shown_.coefficients[right]});
}

bool CompareMaps::implicit(Which which) const {
    const CompareSide& side = which == right ? shown_.sides.right : shown_.sides.left;
    return side.study != nullptr && side.place().has_implicit;
}

MapLook CompareMaps::look_of(Which which) const {
    MapLook look = look_;
    look.values = implicit(which)            ? MapLook::Values::implicit
                  : shown_.difference.logits ? MapLook::Values::logits
                                             : MapLook::Values::weights;
    return look;
}

figures::CellScale CompareMaps::scale() const {
    const auto of_left = look_of(left).scale_for(longest());
    return of_left == look_of(right).scale_for(longest()) ? of_left : look_.scale;
}

/// Two implicit matrices share a scale, as two maps of weights do.
figures::ColourScale CompareMaps::colours_of(Which which) const {
    const MapLook look = look_of(which);
    if (!implicit(which)) {
        figures::ColourScale colours = look.colours(longest(), shown_.largest);
        colours.zero_apart = shown_.zeros && !look.ranks();
        return colours;
    }
    const auto& ends = shown_.coefficients;
    return look.colours(longest(), implicit(left) == implicit(right) ? std::max(ends[left], ends[right]) : ends[which]);
}

std::int64_t CompareMaps::longest() const {
    std::int64_t longest = 0;
    for (const Which which : {left, right})
        longest = std::max({longest, plots_[which]->content().queries, plots_[which]->content().keys});
    return longest;
}

void CompareMaps::show_colours() {
    const float largest = differences_.largest().value_or(std::numeric_limits<float>::quiet_NaN());
    reach_ = static_cast<double>(largest) > equal_below() ? static_cast<double>(largest) : 1.0;
    const figures::ColourScale change = signed_scale(reach_, linear_difference());
    for (const Which which : {left, right}) plots_[which]->set_colours(colours_of(which), figures::Pooling::maximum);
    plots_[difference]->set_colours(change, figures::Pooling::maximum);
    weights_->set_look(colours_of(right), theme_);
    signed_->set_look(change, theme_);
}

void CompareMaps::show_theme() {
    const Theme& theme = desk_->theme();
    if (theme.dark == theme_.dark && theme.sequential_map == theme_.sequential_map &&
        theme.diverging_map == theme_.diverging_map)
        return;
    theme_ = theme;
    for (const Which which : {left, right, difference}) {
        marks_[which]->set_theme(theme);
        plots_[which]->set_theme(theme);
    }
    show_colours();
}

QString CompareMaps::missing(const CompareSide& side) const {
    if (!side.place().has_matrix && !side.place().has_implicit)
        return tr("%1: this layer mixes tokens without attention weights.").arg(side.name(false));
    if (!side.done())
        return (side.study->running() ? tr("%1: %2 is not computed yet; it appears when the run has passed it.")
                                      : tr("%1: %2 was not computed: the run ended before it."))
            .arg(side.name(false), side.study->site_title(side.site));
    if (!side.study->has_maps(side.site) && side.place().has_implicit)
        return tr("%1: implicit matrices were not recorded (--record implicit).").arg(side.name(false));
    if (!side.study->has_maps(side.site))
        return tr("%1: no maps were recorded, a thumbnail is shown and nothing exact is subtracted.")
            .arg(side.name(false));
    return {};
}

void CompareMaps::show_message() {
    const CompareSides& sides = shown_.sides;
    if (!sides.left.study) return;
    QStringList lines;
    const CompareSide* without = nullptr;
    for (const CompareSide* side : {&sides.left, &sides.right}) {
        const QString line = missing(*side);
        if (!line.isEmpty() && !lines.contains(line)) lines += line;
        const bool any = side->place().has_matrix || side->place().has_implicit;
        if (any && side->done() && !side->study->has_maps(side->site)) without = side;
    }
    const auto& [of_left, of_right, queries, keys, of_logits] = shown_.difference;
    if (queries && keys) {
        const QString words = link_words(*queries, *keys);
        if (!words.isEmpty()) lines += words;
    }
    if (const QString replaced = replaced_layers(*sides.left.study, *sides.right.study); !replaced.isEmpty())
        lines += replaced;
    for (const CompareSide* side : {&sides.left, &sides.right})
        if (!side->sequence && side->study->sequences() > 1) {
            lines += tr("All sequences are chosen: maps show sequence 0.");
            break;
        }
    if (implicit(left) != implicit(right))
        lines +=
            tr("Weights and signed coefficients are subtracted: the colors of each map are its own, and the "
               "scale between is the right one's.");
    if (look_.logits() && (implicit(left) || implicit(right)))
        lines += tr("A recurrent layer has coefficients, no scores.");
    const auto largest = differences_.largest();
    if (largest && std::isnan(*largest) && queries && queries->any() && keys->any())
        lines += tr("No pair is allowed by both masks.");
    if (largest && static_cast<double>(*largest) <= equal_below()) lines += tr("The maps are equal.");
    if (without)
        banner_->set(lines.join(QLatin1Char('\n')),
                     without->place().has_implicit ? tr("Run again with implicit matrices") : tr("Run again with maps"),
                     [this, id = without->study->id(), implicit = without->place().has_implicit] {
                         RunRequest wish;
                         wish.study = id;
                         (implicit ? wish.implicit : wish.maps) = true;
                         Q_EMIT desk_->run_wanted(wish);
                     });
    else
        banner_->set(lines.join(QLatin1Char('\n')));
}

void CompareMaps::link_from(Which which) {
    if (linking_) return;
    linking_ = true;
    const auto& [of_left, of_right, queries, keys, of_logits] = shown_.difference;
    const bool linked = queries && keys && queries->any() && keys->any();
    const QCPRange x = plots_[which]->xAxis->range(), y = plots_[which]->yAxis->range();
    const auto set = [this](Which to, std::pair<double, double> across, std::pair<double, double> down) {
        plots_[to]->xAxis->setRange(across.first, across.second);
        plots_[to]->yAxis->setRange(down.first, down.second);
    };
    const std::pair across(x.lower, x.upper), down(y.lower, y.upper);
    if (which != right) {
        set(which == left ? difference : left, across, down);
        if (linked) set(right, keys->range_on_right(x.lower, x.upper), queries->range_on_right(y.lower, y.upper));
    } else if (linked) {
        const auto to_across = keys->range_on_left(x.lower, x.upper),
                   to_down = queries->range_on_left(y.lower, y.upper);
        set(left, to_across, to_down);
        set(difference, to_across, to_down);
    }
    linking_ = false;
    rest_.start();
}

CompareMaps::Place CompareMaps::place(Which which, std::optional<std::int64_t> query,
                                      std::optional<std::int64_t> key) const {
    const auto& [of_left, of_right, queries, keys, of_logits] = shown_.difference;
    Place place;
    if (which == right) {
        place.right_query = query;
        place.right_key = key;
        if (queries) place.left_query = queries->to_left(query);
        if (keys) place.left_key = keys->to_left(key);
    } else {
        place.left_query = query;
        place.left_key = key;
        if (queries) place.right_query = queries->to_right(query);
        if (keys) place.right_key = keys->to_right(key);
    }
    return place;
}

void CompareMaps::point(Which which, qint64 query, qint64 key) {
    pointed_.reset();
    if (query >= 0) pointed_ = place(which, query, key);
    const Place at = pointed_.value_or(Place{});
    for (const Which other : {left, right, difference}) {
        const bool own = other == which;  // draws its own crosshair
        if (own)
            marks_[other]->set_cursor({}, {});
        else if (other == right)
            marks_[other]->set_cursor(at.right_query, at.right_key);
        else
            marks_[other]->set_cursor(at.left_query, at.left_key);
    }
    probe();
}

void CompareMaps::choose(Which which, qint64 query, qint64 key) {
    chosen_ = place(which, query, key);
    const auto [own_query, own_key] = chosen_.of(selected_side());
    if (!own_query || !own_key)
        Q_EMIT desk_->told(selected_side() == left ? tr("This pair of the right has no partner on the left")
                                                   : tr("This pair of the left has no partner on the right"));
    desk_->select_tokens(own_query, own_key);
    show_chosen();
}

void CompareMaps::show_chosen() {
    const Selection& selected = desk_->selection_in_one();
    // Keep the other side's choice while its partners are the selected tokens.
    const Which own = selected_side();
    const auto other = chosen_.of(own == left ? right : left);
    const bool kept = (other.first || other.second) && chosen_.of(own) == std::pair(selected.query, selected.key);
    const Place before = std::exchange(chosen_, kept ? chosen_ : place(own, selected.query, selected.key));
    plots_[left]->set_chosen(chosen_.left_query, chosen_.left_key);
    plots_[difference]->set_chosen(chosen_.left_query, chosen_.left_key);
    plots_[right]->set_chosen(chosen_.right_query, chosen_.right_key);
    if (!(before == chosen_)) plots_[left]->reveal(chosen_.left_query, chosen_.left_key);
    probe();
}

void CompareMaps::probe() {
    const Place at = pointed_.value_or(chosen_);
    left_probe_.look({shown_.difference.left, at.left_query, at.left_key, false});
    right_probe_.look({shown_.difference.right, at.right_query, at.right_key, false});
    show_words();
}

void CompareMaps::show_words() {
    const Place at = pointed_.value_or(chosen_);
    const bool on_left = at.left_query && at.left_key, on_right = at.right_query && at.right_key;
    QString text = tr("Point at a map to read a pair on both sides; a click chooses it.");
    const auto pair = [&](bool of_left) {
        const std::size_t own = of_left ? left : right;
        return tr("query %1 → key %2")
            .arg(token_name(*(of_left ? at.left_query : at.right_query), shown_.queries[own].get()),
                 token_name(*(of_left ? at.left_key : at.right_key), shown_.keys[own].get()));
    };
    const bool logits = shown_.difference.logits;
    const auto read_value = [logits](const MapProbe& probe, std::optional<std::int64_t> query,
                                     std::optional<std::int64_t> key) {
        const MapReading& reading = probe.reading();
        const bool read = reading.target.map && reading.target.query == query && reading.target.key == key;
        return read ? static_cast<double>(logits ? reading.pair.logit : reading.pair.weight)
                    : std::numeric_limits<double>::quiet_NaN();
    };
    const auto number = [](double value) {
        return std::isnan(value) ? tr("none") : number_label(QString::number(value, 'g', 4).toDouble());
    };
    if (on_left || on_right) {
        const double a = on_left ? read_value(left_probe_, at.left_query, at.left_key) : std::nan("");
        const double b = on_right ? read_value(right_probe_, at.right_query, at.right_key) : std::nan("");
        const QString first = on_left ? pair(true) : QString(), second = on_right ? pair(false) : QString();
        QStringList parts;
        if (on_left && on_right && first == second) {
            parts << tr("%1: left %2").arg(first, number(a)) << tr("right %1").arg(number(b));
        } else {
            parts << (on_left ? tr("Left %1: %2").arg(first, number(a)) : tr("no partner on the left"));
            parts << (on_right ? tr("right %1: %2").arg(second, number(b)) : tr("no partner on the right"));
        }
        if (!std::isnan(a) && !std::isnan(b)) parts << tr("difference %1").arg(signed_number(b - a));
        text = parts.join(QStringLiteral(" · "));
        text[0] = text[0].toUpper();
    }
    words_->setText(text);
    words_->setToolTip(text);
}

}  // namespace headscope::widgets
