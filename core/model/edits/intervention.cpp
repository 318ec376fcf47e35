// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/edits/intervention.h"

#include <algorithm>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "core/base/edit_names.h"
#include "core/base/error.h"
#include "core/model/config.h"

namespace headscope::model {
namespace {

static_assert(kPointNames.size() == kPoints && kActionNames.size() == kActions);

using Flags = std::vector<std::uint8_t>;

/// Rows of a piece of a text: which of them the text has.
std::int64_t real_rows(const std::vector<std::int64_t>* lengths, std::int64_t b, std::int64_t first,
                       std::int64_t rows) {
    return lengths == nullptr || first > 0 ? rows : (*lengths)[static_cast<std::size_t>(b)];
}

bool in_ranges(const std::vector<PositionRange>& ranges, std::int64_t position, std::int64_t end) {
    if (ranges.empty()) return true;
    return std::any_of(ranges.begin(), ranges.end(), [&](const PositionRange& range) {
        const std::int64_t first = range.first < 0 ? end + range.first : range.first;
        const std::int64_t last = range.last < 0 ? end + range.last : range.last;
        return position >= first && position <= last;
    });
}

/// True if a text of one of these lengths has one of the positions, or if the list means all.
bool some_text_has(const std::vector<PositionRange>& ranges, std::span<const std::int64_t> lengths) {
    return ranges.empty() || std::any_of(lengths.begin(), lengths.end(), [&](std::int64_t length) {
               return std::any_of(ranges.begin(), ranges.end(), [length](const PositionRange& range) {
                   const std::int64_t first = range.first < 0 ? length + range.first : range.first;
                   const std::int64_t last = range.last < 0 ? length + range.last : range.last;
                   return std::max<std::int64_t>(first, 0) <= std::min(last, length - 1);
               });
           });
}

at::Tensor bools(const Flags& flags, at::IntArrayRef shape) {
    return at::tensor(flags, at::kByte).to(at::kBool).view(shape);
}

/// [B, rows] bool: real positions in the ranges.
at::Tensor chosen_rows(const std::vector<PositionRange>& ranges, const std::vector<std::int64_t>* lengths,
                       std::int64_t first, std::int64_t batch, std::int64_t rows) {
    Flags flags(static_cast<std::size_t>(batch * rows));
    for (std::int64_t b = 0; b < batch; ++b) {
        const std::int64_t real = real_rows(lengths, b, first, rows);
        for (std::int64_t i = 0; i < real; ++i)
            flags[static_cast<std::size_t>(b * rows + i)] = in_ranges(ranges, first + i, first + real);
    }
    return bools(flags, {batch, rows});
}

at::Tensor chosen_heads(const std::vector<std::int64_t>& heads, std::int64_t count) {
    Flags flags(static_cast<std::size_t>(count), heads.empty() ? 1 : 0);
    for (const std::int64_t head : heads) {
        if (head >= count)
            throw Error(ErrorCode::limit, "intervention", "expected a head below " + std::to_string(count),
                        "found " + std::to_string(head));
        flags[static_cast<std::size_t>(head)] = 1;
    }
    return bools(flags, {1, count, 1, 1});
}

/// Mean over the real rows of each text: [B, heads, 1, size] or [B, 1, d].
at::Tensor mean_of_rows(const at::Tensor& value, const EditPlace& place) {
    const bool heads = has_heads(place.key.point);
    const std::int64_t axis = heads ? 2 : 1, batch = value.size(0), rows = value.size(axis);
    at::Tensor real = chosen_rows({}, place.lengths, place.first_position, batch, rows).to(at::kDouble);
    real = heads ? real.view({batch, 1, rows, 1}) : real.view({batch, rows, 1});
    return ((value.to(at::kDouble) * real).sum(axis, true) / real.sum(axis, true)).to(value.scalar_type());
}

struct Stored {
    at::Tensor value;  ///< of the rows of an edited value, with all its axes
    at::Tensor there;  ///< bool, rows that were stored; undefined: all rows take the same
};

Stored rows_of(const at::Tensor& stored, const EditPlace& place, const at::Tensor& like, std::int64_t shift) {
    const bool heads = has_heads(place.key.point);
    const std::int64_t axes = heads ? 4 : 3, axis = axes - 2, rows = like.size(axis);
    at::Tensor full = stored.to(like.scalar_type());
    if (heads && full.dim() == 2 && !is_matrix(place.key.point)) full = full.unsqueeze(1);  // [heads, size]
    while (full.dim() < axes) full = full.unsqueeze(0);
    if (!is_matrix(place.key.point) && stored.dim() < axis + 1) return {full, {}};
    const at::Tensor wanted = at::arange(rows, at::kLong) + (place.first_position + shift);
    const at::Tensor there = wanted.ge(0).logical_and(wanted.lt(full.size(axis)));
    full = full.index_select(axis, wanted.clamp(0, full.size(axis) - 1));
    if (is_matrix(place.key.point)) {
        const std::int64_t end = place.first_key + like.size(3);
        if (full.size(3) < end)
            throw Error(ErrorCode::mismatch, std::string(name(place.key.point)),
                        "expected values for " + std::to_string(end) + " keys",
                        "found " + std::to_string(full.size(3)));
        full = full.narrow(3, place.first_key, like.size(3));
    }
    return {full, heads ? there.view({1, 1, rows, 1}) : there.view({1, rows, 1})};
}

const std::string& mixer_at(std::int64_t layer, const ModelConfig& config) {
    const std::int64_t before = config.encoder ? config.encoder->layers : 0;
    const auto& mixers = layer < before ? config.encoder->mixers : config.mixers;
    return mixers.at(static_cast<std::size_t>(layer < before ? layer : layer - before));
}

const ModelConfig& tower_at(std::int64_t layer, const ModelConfig& config) {
    return config.encoder && layer < config.encoder->layers ? *config.encoder : config;
}

bool site_has(Point point, const Site& site, const std::string& mixer) {
    if (is_matrix(point)) return site.has_matrix;
    // The difference of two maps has outputs alone, and they come of the maps' own values.
    if (site.branch == "difference" && point != Point::head_output) return false;
    if (site.has_matrix || site.has_implicit) return true;
    return mixer == "mamba2" || mixer == "titans" || mixer == "ttt_linear";
}

bool layer_has(Point point, std::int64_t layer, const ModelConfig& config) {
    const ModelConfig& tower = tower_at(layer, config);
    const bool feeds =
        tower.has_feed_forward(config.encoder && &tower == &config ? layer - config.encoder->layers : layer);
    const bool mixes = mixer_at(layer, config) != kNoMixer;
    switch (point) {
        case Point::residual_before:
        case Point::hidden:
            return true;
        case Point::mixer_output:
        case Point::attention_output:
            return mixes;
        case Point::feed_forward_output:
            return feeds;
        case Point::residual_middle:
            return feeds && mixes && !tower.parallel_residual;
        case Point::feed_forward_input:
            return feeds && !tower.parallel_residual && tower.pre_norm;
        default:
            return false;
    }
}

bool is_end(Point point) {
    return point == Point::embedding || point == Point::final_norm;
}

/// Sites of the layer that bear the point's name in it; a site's layer points are those of its first or cross site.
std::vector<PointKey> in_layer(Point point, std::int64_t layer, const ModelConfig& config,
                               const std::vector<Site>& sites) {
    std::vector<PointKey> found;
    if (!is_of_site(point)) {
        if (layer_has(point, layer, config)) found.push_back({point, layer, -1});
        return found;
    }
    const bool of_heads = has_heads(point);
    for (std::size_t i = 0; i < sites.size(); ++i) {
        if (sites[i].layer != layer) continue;
        if (of_heads ? site_has(point, sites[i], mixer_at(layer, config))
                     : layer_has(point, layer, config) && (found.empty() || sites[i].is_cross()))
            found.push_back({point, layer, static_cast<std::int64_t>(i)});
    }
    return found;
}

[[noreturn]] void refuse(std::size_t number, const std::string& expected, const std::string& found) {
    throw Error(ErrorCode::usage, "intervention " + std::to_string(number + 1), "expected " + expected,
                "found " + found);
}

std::string missing(std::int64_t layer, const ModelConfig& config, Point point) {
    return "layer " + std::to_string(layer) + " (" + mixer_at(layer, config) + ") has no " + std::string(name(point));
}

void check_action(const Intervention& one, std::size_t number) {
    const std::string point(name(one.point)), action(name(one.action));
    if ((one.action == Action::forbid) && one.point != Point::scores) refuse(number, "forbid at scores", point);
    if ((one.action == Action::uniform) && one.point != Point::pattern) refuse(number, "uniform at pattern", point);
    if (one.action == Action::reference && is_matrix(one.point))
        refuse(number, "reference at a value whose positions do not depend on the text", point);
    if (one.action == Action::mean && one.point == Point::scores)
        refuse(number, "mean at pattern or another point", "scores, where hidden keys have none");
    if (!one.heads.empty() && !has_heads(one.point)) refuse(number, "no heads at " + point, "some");
    if (!one.attention.empty() && !is_of_site(one.point)) refuse(number, "no attention at " + point, one.attention);
    if (is_end(one.point) && !one.layers.empty()) refuse(number, "no layer at " + point, "some");
    const bool needs = one.action == Action::add || one.action == Action::set || one.action == Action::run ||
                       one.action == Action::reference;
    if (needs && one.values.empty() && !one.value.defined()) refuse(number, "values to " + action, "none");
}

bool negative(const std::vector<PositionRange>& ranges) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [](const PositionRange& range) { return range.first < 0 || range.last < 0; });
}

at::Tensor edges(const Intervention& one, const EditPlace& place, const at::Tensor& scores) {
    const std::int64_t batch = scores.size(0), rows = scores.size(2), keys = scores.size(3);
    const at::Tensor from = chosen_rows(one.queries, place.lengths, place.first_position, batch, rows);
    const at::Tensor to = chosen_rows(one.keys, place.key_lengths, place.first_key, batch, keys);
    return from.view({batch, 1, rows, 1})
        .logical_and(to.view({batch, 1, 1, keys}))
        .logical_and(chosen_heads(one.heads, scores.size(1)));
}

at::Tensor uniform_rows(const at::Tensor& visible, const at::Tensor& like) {
    const at::Tensor seen = visible.to(like.scalar_type());
    return (seen / seen.sum(3, true).clamp_min(1)).expand_as(like);
}

/// `before`: ahead of all edits of the point; `now`: after those of earlier interventions.
at::Tensor applied(const Intervention& one, const EditPlace& place, const at::Tensor& before, const at::Tensor& now) {
    if (one.action == Action::forbid)
        return now.masked_fill(edges(one, place, now), -std::numeric_limits<double>::infinity());
    const bool heads = has_heads(place.key.point);
    const std::int64_t batch = now.size(0), rows = now.size(heads ? 2 : 1);
    at::Tensor mask = chosen_rows(one.positions, place.lengths, place.first_position, batch, rows);
    mask = heads ? mask.view({batch, 1, rows, 1}).logical_and(chosen_heads(one.heads, now.size(1)))
                 : mask.view({batch, rows, 1});
    at::Tensor made;
    switch (one.action) {
        case Action::zero:
            made = at::zeros_like(now);
            break;
        case Action::mean:
            made = mean_of_rows(before, place);
            break;
        case Action::uniform:
            made = uniform_rows(place.visible, now);
            break;
        default: {
            const auto own = one.values.find(place.key);
            const at::Tensor& stored = own != one.values.end() ? own->second : one.value;
            if (!stored.defined()) return now;
            const Stored found = rows_of(stored, place, now, one.shift);
            made = one.action == Action::add ? now + found.value * one.factor : found.value;
            if (found.there.defined()) mask = mask.logical_and(found.there);
        }
    }
    // Hidden keys have no score to replace.
    if (place.key.point == Point::scores) mask = mask.logical_and(place.visible);
    return at::where(mask, made, now);
}

}  // namespace

std::string_view name(Point point) {
    return kPointNames.at(static_cast<std::size_t>(point));
}

std::string_view name(Action action) {
    return kActionNames.at(static_cast<std::size_t>(action));
}

bool has_heads(Point point) {
    return point >= Point::query && point <= Point::head_output;
}

bool is_of_site(Point point) {
    return point >= Point::query && point <= Point::attention_output;
}

std::int64_t heads_at(const PointKey& key, const std::vector<Site>& sites) {
    if (!has_heads(key.point)) return 0;
    const Site& site = sites.at(static_cast<std::size_t>(key.site));
    if (key.point == Point::key) return site.key_value_heads;
    // A recurrent site has a value for each head, and fewer queries and keys.
    if (key.point == Point::value) return site.has_matrix ? site.key_value_heads : site.heads;
    return key.point == Point::query && !site.has_matrix ? site.key_value_heads : site.heads;
}

std::vector<PointKey> places_of(Point point, const ModelConfig& config, const std::vector<Site>& sites) {
    if (is_end(point)) return {{point, -1, -1}};
    std::vector<PointKey> all;
    for (std::int64_t layer = 0; layer < config.all_layers(); ++layer)
        for (const PointKey& key : in_layer(point, layer, config, sites)) all.push_back(key);
    return all;
}

std::vector<PointKey> places_of(const Intervention& one, const ModelConfig& config, const std::vector<Site>& sites,
                                std::size_t number) {
    check_action(one, number);
    const std::string place = "intervention " + std::to_string(number + 1);
    std::vector<PointKey> found;
    const auto add = [&](const PointKey& key) {
        if (!one.attention.empty()) {
            const Site& site = sites.at(static_cast<std::size_t>(key.site));
            if ((site.branch.empty() ? site.kind : site.branch) != one.attention) return;
        }
        const std::int64_t heads = heads_at(key, sites);
        for (const std::int64_t head : one.heads) {
            if (head >= 0 && head < heads) continue;
            refuse(number, "a head of layer " + std::to_string(key.layer) + " from 0 to " + std::to_string(heads - 1),
                   std::to_string(head));
        }
        found.push_back(key);
    };
    if (one.layers.empty()) {
        for (const PointKey& key : places_of(one.point, config, sites)) add(key);
    }
    for (const std::int64_t layer : one.layers) {
        if (layer < 0 || layer >= config.all_layers())
            refuse(number, "a layer from 0 to " + std::to_string(config.all_layers() - 1), std::to_string(layer));
        const std::size_t before = found.size();
        for (const PointKey& key : in_layer(one.point, layer, config, sites)) add(key);
        if (found.size() > before) continue;
        if (!one.attention.empty() && !in_layer(one.point, layer, config, sites).empty())
            refuse(number, "an attention of layer " + std::to_string(layer), one.attention);
        throw Error(ErrorCode::usage, place, missing(layer, config, one.point), "leave it out");
    }
    if (found.empty())
        throw Error(ErrorCode::usage, place, "no layer has " + std::string(name(one.point)), "it would change nothing");
    return found;
}

bool edits_matrices(std::span<const Intervention> list) {
    return std::any_of(list.begin(), list.end(), [](const Intervention& one) { return is_matrix(one.point); });
}

void check_positions(std::span<const Intervention> list, std::span<const std::int64_t> lengths) {
    if (lengths.empty()) return;
    const std::string longest = std::to_string(*std::max_element(lengths.begin(), lengths.end()));
    for (std::size_t n = 0; n < list.size(); ++n) {
        const auto check = [&](const char* key, const std::vector<PositionRange>& ranges) {
            if (some_text_has(ranges, lengths)) return;
            const PositionRange& one = ranges.front();
            refuse(n, std::string(key) + " of a text, of which the longest has " + longest + " tokens",
                   std::to_string(one.first) + (one.last == one.first ? "" : "-" + std::to_string(one.last)));
        };
        check("positions", list[n].positions);
        check("queries", list[n].queries);
        check("keys", list[n].keys);
    }
}

Interventions::Interventions(std::vector<Intervention> list, const ModelConfig& config, const std::vector<Site>& sites)
    : config_(&config), list_(std::move(list)) {
    for (std::size_t n = 0; n < list_.size(); ++n)
        for (const PointKey& key : places_of(list_[n], config, sites, n)) by_place_[key].push_back(n);
}

void Interventions::begin(const Start& start) {
    start_ = start;
    reached_.clear();
    if (!start.cached) return;
    for (std::size_t n = 0; n < list_.size(); ++n) {
        const Intervention& one = list_[n];
        if (one.action == Action::mean)
            refuse(n, "another action where a text comes in pieces", "mean, which needs all of it");
        if (negative(one.positions) || negative(one.queries) || negative(one.keys))
            refuse(n, "positions from 0 where a text comes in pieces", "negative ones, which count from its end");
    }
}

at::Tensor Interventions::edit(const EditPlace& place, const at::Tensor& value) {
    reached_.insert(place.key);
    at::Tensor now = value;
    for (const std::size_t n : by_place_.at(place.key)) now = applied(list_[n], place, value, now);
    return now;
}

void Interventions::end() {
    if (start_.continues) return;
    for (const auto& [key, list] : by_place_) {
        if (reached_.contains(key)) continue;
        if (start_.skipped && start_.skipped->contains(static_cast<int>(key.layer))) continue;
        throw Error(ErrorCode::unsupported, "intervention " + std::to_string(list.front() + 1),
                    missing(key.layer, *config_, key.point), "leave the layer out");
    }
}

at::Tensor PointRecorder::edit(const EditPlace& place, const at::Tensor& value) {
    values[place.key] = value.detach().clone();
    return value;
}

void EditorChain::begin(const Start& start) {
    for (Editor* editor : editors_) editor->begin(start);
}

bool EditorChain::edits(const PointKey& key) const {
    return std::any_of(editors_.begin(), editors_.end(), [&](const Editor* editor) { return editor->edits(key); });
}

at::Tensor EditorChain::edit(const EditPlace& place, const at::Tensor& value) {
    at::Tensor now = value;
    for (Editor* editor : editors_)
        if (editor->edits(place.key)) now = editor->edit(place, now);
    return now;
}

at::Tensor EditorChain::stored_heads(const PointKey& key) const {
    for (const Editor* editor : editors_)
        if (const at::Tensor heads = editor->stored_heads(key); heads.defined()) return heads;
    return {};
}

std::vector<std::int64_t> EditorChain::changed_heads(const PointKey& key) const {
    const Editor* only = nullptr;
    for (const Editor* editor : editors_) {
        if (!editor->edits(key)) continue;
        if (only) return {};
        only = editor;
    }
    return only ? only->changed_heads(key) : std::vector<std::int64_t>();
}

void EditorChain::end() {
    for (Editor* editor : editors_) editor->end();
}

}  // namespace headscope::model
