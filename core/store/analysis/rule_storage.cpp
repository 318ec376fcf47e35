// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/analysis/rule_storage.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/store/analysis/scale_storage.h"
#include "kernels/normaliser.h"

namespace headscope::store {
namespace {

using hdf5::Type;
using kernels::ScoreRule;

constexpr float none = std::numeric_limits<float>::quiet_NaN();
/// A table over more distances than any text has tokens is no table.
constexpr std::int64_t largest_table = std::int64_t{1} << 24U;
/// Positions and distances beyond this cannot come from a text; sums of two stay far from overflow.
constexpr std::int64_t largest_position = std::int64_t{1} << 40U;

struct Number {
    const char* name;
    double ScoreRule::*member;
};
constexpr Number numbers[] = {{"scale", &ScoreRule::scale}, {"soft_cap", &ScoreRule::soft_cap}};

struct Integer {
    const char* name;
    std::int64_t ScoreRule::*member;
    bool may_lack = false;  ///< a file may: it is then what a rule begins with
};
constexpr Integer integers[] = {
    {"query_offset", &ScoreRule::query_offset},
    {"window_left", &ScoreRule::window_left},
    {"window_right", &ScoreRule::window_right},
    {"first_keys", &ScoreRule::first_keys},
    {"bias_origin", &ScoreRule::bias_origin},
    // Older files have none of these:
    {"window_segment", &ScoreRule::window_segment, true},
    {"far_distance", &ScoreRule::far_distance, true},
    {"near_begin", &ScoreRule::near_begin, true},
};

struct PerHead {
    const char* name;
    std::vector<float> ScoreRule::*member;
    bool always = true;  ///< false: older files lack it
};
constexpr PerHead per_head[] = {
    {"slopes", &ScoreRule::slopes}, {"sink_logits", &ScoreRule::sink_logits}, {"offsets", &ScoreRule::offsets, false}};

/// Lengths of the one batch row; -1 where the rule has none.
struct Length {
    const char* name;
    std::vector<std::int64_t> ScoreRule::*member;
};
constexpr Length lengths[] = {{"query_length", &ScoreRule::query_length},
                              {"key_begin", &ScoreRule::key_begin},
                              {"key_length", &ScoreRule::key_length}};

std::string text(kernels::Normaliser normaliser) {
    return kernels::normaliser_name(normaliser);
}
std::string text(kernels::BeyondTable beyond) {
    return beyond == kernels::BeyondTable::zero ? "zero" : "clamp";
}

std::string text(kernels::OffsetForm form) {
    return form == kernels::OffsetForm::constant ? "constant" : "per_length";
}

/// Visibility of the query's own block.
std::string inside_chunk(const ScoreRule& rule) {
    return rule.blocks.own ? "both" : "linear";
}

/// A dataset [head, columns] that only some models have; its second dimension gets a scale of its own.
void write_table(hid_t group, const char* name, Type type, std::int64_t heads, std::int64_t columns, const void* values,
                 const ScaleSpec& scale, const std::string& long_name, const std::string& where) {
    const ScaleSpec head{std::string(name) + "_head", heads, "query head", {}, {}};
    const hdf5::Handle scales[] = {create_scale(group, head, where), create_scale(group, scale, where)};
    const DatasetSpec spec{name, type, {head.path, scale.path}, {heads, columns}, "", long_name, Fill::none, 0};
    const hdf5::Handle table = create_dataset(group, spec, where);
    for (std::size_t i = 0; i < 2; ++i) attach_scale(table, scales[i], i, where);
    hdf5::write_block(table, type, {0, 0}, {heads, columns}, values, where);
}

Error refusal(const std::string& where, const std::string& expected, const std::string& found) {
    return {ErrorCode::format, where, expected, found};
}

}  // namespace

ScoreRule rule_of_row(const ScoreRule& rule, std::int64_t b, std::int64_t heads) {
    ScoreRule row = rule;
    const auto index = static_cast<std::size_t>(b);
    for (const Length& length : lengths) {
        auto& values = row.*length.member;
        if (!values.empty()) values = {values.at(index)};
    }
    if (rule.blocks.block_size > 0) {
        const auto size = static_cast<std::ptrdiff_t>(heads * rule.blocks.blocks);
        const auto first = rule.blocks.visible.begin() + b * size;
        row.blocks.visible.assign(first, first + size);
    }
    return row;
}

void create_rule(hid_t group, std::int64_t heads, const std::string& where) {
    const ScoreRule neutral;
    for (const Number& n : numbers)
        hdf5::write_attribute(group, n.name, Type::float64, &(neutral.*n.member), 1, true, where);
    for (const Integer& n : integers)
        hdf5::write_attribute(group, n.name, Type::int64, &(neutral.*n.member), 1, true, where);
    for (const Length& n : lengths) {
        const std::int64_t all = -1;
        hdf5::write_attribute(group, n.name, Type::int64, &all, 1, true, where);
    }
    const std::vector<float> absent(static_cast<std::size_t>(heads), none);
    for (const PerHead& n : per_head) {
        hdf5::write_attribute(group, n.name, Type::float32, absent.data(), absent.size(), false, where);
    }
    const std::int32_t causal = 1;
    const std::int64_t block_size = 0;
    hdf5::write_attribute(group, "causal", Type::int32, &causal, 1, true, where);
    hdf5::write_attribute(group, "block_size", Type::int64, &block_size, 1, true, where);
    hdf5::write_attribute(group, "inside_chunk", inside_chunk(neutral), where, rule_text_room);
    hdf5::write_attribute(group, "normaliser", text(neutral.normaliser), where, rule_text_room);
    hdf5::write_attribute(group, "beyond_table", text(neutral.beyond_table), where, rule_text_room);
    hdf5::write_attribute(group, "offset_form", text(neutral.offset_form), where, rule_text_room);
}

void write_rule(hid_t group, const ScoreRule& rule, std::int64_t heads, const std::string& where) {
    for (const Number& n : numbers)
        hdf5::overwrite_attribute(group, n.name, Type::float64, &(rule.*n.member), 1, where);
    for (const Integer& n : integers)
        hdf5::overwrite_attribute(group, n.name, Type::int64, &(rule.*n.member), 1, where);
    for (const Length& n : lengths) {
        const auto& values = rule.*n.member;
        const std::int64_t value = values.empty() ? -1 : values.front();
        hdf5::overwrite_attribute(group, n.name, Type::int64, &value, 1, where);
    }
    for (const PerHead& n : per_head) {
        const auto& values = rule.*n.member;
        if (values.empty()) continue;
        hdf5::overwrite_attribute(group, n.name, Type::float32, values.data(), values.size(), where);
    }
    const std::int32_t causal = rule.causal ? 1 : 0;
    hdf5::overwrite_attribute(group, "causal", Type::int32, &causal, 1, where);
    hdf5::overwrite_attribute(group, "block_size", Type::int64, &rule.blocks.block_size, 1, where);
    hdf5::overwrite_attribute(group, "inside_chunk", inside_chunk(rule), rule_text_room, where);
    hdf5::overwrite_attribute(group, "normaliser", text(rule.normaliser), rule_text_room, where);
    hdf5::overwrite_attribute(group, "beyond_table", text(rule.beyond_table), rule_text_room, where);
    hdf5::overwrite_attribute(group, "offset_form", text(rule.offset_form), rule_text_room, where);

    if (!rule.distance_bias.empty()) {
        ScaleSpec scale{"relative_position", rule.bias_length, "key position - query position", {}, "token"};
        for (std::int64_t i = 0; i < rule.bias_length; ++i)
            scale.values.push_back(static_cast<double>(i - rule.bias_origin));
        write_table(group, "distance_bias", Type::float32, heads, rule.bias_length, rule.distance_bias.data(), scale,
                    "what a score gets for its relative position", where);
    }
    if (rule.blocks.block_size > 0) {
        const ScaleSpec scale{"block", rule.blocks.blocks, "block of keys", {}, {}};
        write_table(group, "block_visible", Type::int8, heads, rule.blocks.blocks, rule.blocks.visible.data(), scale,
                    "1: later queries see the keys of this block", where);
    }
}

ScoreRule read_rule(hid_t file, const std::string& path, std::int64_t heads, std::uint64_t file_bytes,
                    const std::string& where) {
    const hdf5::Handle group = hdf5::open_group(file, path, where);
    const std::string at = where + ", " + path;
    ScoreRule rule;
    for (const Number& n : numbers) {
        hdf5::read_attribute(group, n.name, Type::float64, &(rule.*n.member), 1, at);
        if (!std::isfinite(rule.*n.member)) throw refusal(at, std::string("expected a finite ") + n.name, "found none");
    }
    const auto position = [&](const char* name) {
        std::int64_t value = 0;
        hdf5::read_attribute(group, name, Type::int64, &value, 1, at);
        if (value < -largest_position || value > largest_position) {
            throw refusal(at, std::string("expected a possible ") + name, "found " + std::to_string(value));
        }
        return value;
    };
    for (const Integer& n : integers) {
        if (!n.may_lack || H5Aexists(group, n.name) > 0) rule.*n.member = position(n.name);
    }
    if (rule.window_segment < 1)
        throw refusal(at, "expected a window_segment of 1 or more", "found " + std::to_string(rule.window_segment));
    for (const Length& n : lengths) {
        const std::int64_t value = position(n.name);
        if (value >= 0) rule.*n.member = {value};
    }
    for (const PerHead& n : per_head) {
        if (!n.always && H5Aexists(group, n.name) <= 0) continue;
        std::vector<float> values(static_cast<std::size_t>(heads));
        hdf5::read_attribute(group, n.name, Type::float32, values.data(), values.size(), at);
        const auto absent = std::count_if(values.begin(), values.end(), [](float value) { return std::isnan(value); });
        if (absent != 0 && absent != heads)
            throw refusal(at, std::string("expected all or no ") + n.name, "found some");
        if (absent == 0) rule.*n.member = std::move(values);
    }
    std::int32_t causal = 0;
    hdf5::read_attribute(group, "causal", Type::int32, &causal, 1, at);
    rule.causal = causal != 0;
    rule.blocks.block_size = position("block_size");
    if (H5Aexists(group, "inside_chunk") > 0) {  // older files have none: own blocks are seen
        const std::string inside = hdf5::read_text_attribute(group, "inside_chunk", at);
        rule.blocks.own = inside != "linear";
        if (rule.blocks.own && inside != "both")
            throw refusal(at, "expected inside_chunk both or linear", "found " + escaped(inside));
    }

    const std::string normaliser = hdf5::read_text_attribute(group, "normaliser", at);
    const auto known = kernels::find_normaliser(normaliser);
    if (!known) {
        throw Error(ErrorCode::unsupported, at, "expected a normaliser of " + kernels::normaliser_list(),
                    "found " + escaped(normaliser));
    }
    rule.normaliser = *known;
    const std::string beyond = hdf5::read_text_attribute(group, "beyond_table", at);
    if (beyond == text(kernels::BeyondTable::zero))
        rule.beyond_table = kernels::BeyondTable::zero;
    else if (beyond != text(kernels::BeyondTable::clamp))
        throw refusal(at, "expected beyond_table zero or clamp", "found " + escaped(beyond));

    if (H5Aexists(group, "offset_form") > 0) {
        const std::string form = hdf5::read_text_attribute(group, "offset_form", at);
        if (form == text(kernels::OffsetForm::constant))
            rule.offset_form = kernels::OffsetForm::constant;
        else if (form != text(kernels::OffsetForm::per_length))
            throw refusal(at, "expected offset_form per_length or constant", "found " + escaped(form));
    }

    const auto table = [&](const char* name, Type type) {
        auto opened = hdf5::open_dataset(file, path + "/" + name, type, 2, file_bytes, where);
        if (opened.shape[0] != heads || opened.shape[1] < 1 || opened.shape[1] > largest_table) {
            throw refusal(at, std::string("expected ") + name + " of " + std::to_string(heads) + " heads",
                          "found " + hdf5::shape_text(opened.shape));
        }
        return opened;
    };
    if (hdf5::exists(file, path + "/distance_bias")) {
        const auto opened = table("distance_bias", Type::float32);
        rule.bias_length = opened.shape[1];
        if (rule.bias_origin < 0 || rule.bias_origin >= rule.bias_length) {
            throw refusal(at, "expected bias_origin within the table", "found " + std::to_string(rule.bias_origin));
        }
        rule.distance_bias.resize(static_cast<std::size_t>(heads * rule.bias_length));
        hdf5::read_block(opened.id, Type::float32, {0, 0}, opened.shape, rule.distance_bias.data(), at);
    }
    if (rule.blocks.block_size < 0) throw refusal(at, "expected a block_size of 0 or more", "found less");
    if (rule.blocks.block_size > 0) {
        const auto opened = table("block_visible", Type::int8);
        rule.blocks.blocks = opened.shape[1];
        rule.blocks.visible.resize(static_cast<std::size_t>(heads * rule.blocks.blocks));
        hdf5::read_block(opened.id, Type::int8, {0, 0}, opened.shape, rule.blocks.visible.data(), at);
    }
    return rule;
}

}  // namespace headscope::store
