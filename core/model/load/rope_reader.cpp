// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/base/error.h"
#include "core/model/load/config_reader.h"

namespace headscope::model {
namespace {

constexpr std::array<std::string_view, 7> kKinds{"default",  "linear", "dynamic",     "yarn",
                                                 "longrope", "llama3", "proportional"};

/// The text that the model was trained on before its positions were stretched.
std::int64_t original_length(const ConfigReader& reader, const ConfigReader* scaling, std::int64_t max_positions,
                             const RopeDefaults& defaults) {
    const std::string key = "original_max_position_embeddings";
    if (defaults.original_positions > 0) return reader.size(key, defaults.original_positions);
    // Phi-3 and relatives have it next to the rope object, and transformers prefers that place over one inside.
    if (reader.has(key) && defaults.layer_type.empty()) return reader.size(key);
    return scaling ? scaling->size(key, max_positions) : max_positions;
}

void read_longrope_factors(RopeConfig& rope, const ConfigReader& scaling, std::int64_t rotated) {
    const auto read = [&](const std::string& key) {
        std::vector<double> factors = scaling.numbers(key);
        const bool positive = std::all_of(factors.begin(), factors.end(), [](double f) { return f > 0; });
        if (static_cast<std::int64_t>(factors.size()) != rotated / 2 || !positive) {
            scaling.refuse(
                key, "a list of " + std::to_string(rotated / 2) + " positive numbers, half the rotated part of a head");
        }
        return factors;
    };
    rope.short_factor = read("short_factor");
    rope.long_factor = read("long_factor");
}

/// A null that stands there is false to transformers.
bool truncates(const ConfigReader& scaling) {
    return !scaling.is_null("truncate") && scaling.boolean("truncate", true);
}

void read_scaling(RopeConfig& rope, const ConfigReader& scaling, std::int64_t max_positions, std::int64_t rotated) {
    const bool stretched = rope.type == "yarn" || rope.type == "longrope";
    const double implied = static_cast<double>(max_positions) / static_cast<double>(rope.original_positions);
    const bool needs_factor = rope.type == "linear" || rope.type == "dynamic" || rope.type == "llama3";
    if (needs_factor && !scaling.has("factor")) scaling.refuse("factor", "a number above 0");
    rope.factor = scaling.positive("factor", stretched ? implied : 1.0);

    if (rope.type == "llama3") {
        rope.low_frequency_factor = scaling.positive("low_freq_factor", 1.0);
        rope.high_frequency_factor = scaling.positive("high_freq_factor", 4.0);
        if (rope.high_frequency_factor == rope.low_frequency_factor) {
            scaling.refuse("high_freq_factor", "another number than low_freq_factor");
        }
    }
    if (stretched) rope.attention_factor = scaling.optional_number("attention_factor");
    if (rope.type == "yarn") {
        const auto beta = [&](const std::string& key, double otherwise) {
            return scaling.number(key, 0) == 0 ? otherwise : scaling.positive(key, otherwise);
        };
        rope.beta_fast = beta("beta_fast", 32.0);
        rope.beta_slow = beta("beta_slow", 1.0);
        rope.mscale = scaling.optional_number("mscale");
        rope.mscale_all_dim = scaling.optional_number("mscale_all_dim");
        rope.truncate = truncates(scaling);
    }
    if (rope.type == "longrope") {
        if (!rope.attention_factor && rope.factor > 1 && rope.original_positions < 2) {
            scaling.refuse("original_max_position_embeddings", "at least 2");
        }
        read_longrope_factors(rope, scaling, rotated);
    }
}

}  // namespace

RopeConfig read_rope(const ConfigReader& reader, std::int64_t max_positions, std::int64_t head_size,
                     const RopeDefaults& defaults) {
    // An empty object is as none to transformers.
    const bool said = reader.has("rope_scaling") && !reader.is_empty_object("rope_scaling");
    const std::string place = said || !reader.has("rope_parameters") ? "rope_scaling" : "rope_parameters";
    std::optional<ConfigReader> scaling = reader.object(place);
    bool truncate = true;
    if (!defaults.layer_type.empty() && said && reader.has("rope_parameters"))
        reader.unsupported("rope_scaling", "none beside rope_parameters");
    if (scaling && !scaling->has("rope_type") && !scaling->has("type") &&
        (scaling->has_object("full_attention") || scaling->has_object("sliding_attention"))) {
        if (defaults.layer_type.empty()) reader.unsupported(place, "one set of rotary parameters for all layers");
        truncate = truncates(*scaling);
        scaling = scaling->object(defaults.layer_type);
    } else if (scaling && !defaults.layer_type.empty() && place == "rope_parameters") {
        reader.unsupported(place, "a set of rotary parameters for each kind of layer");
    } else if (scaling && !defaults.layer_type.empty()) {
        if (!scaling->has("rope_type") && scaling->has("type"))
            scaling->unsupported("type", "rope_type, which is what transformers reads for this family");
        if (!defaults.scaled) scaling.reset();
    }
    const ConfigReader& inner = scaling ? *scaling : reader;

    RopeConfig rope;
    rope.theta = defaults.theta_key.empty() ? defaults.theta : reader.positive(defaults.theta_key, defaults.theta);
    rope.partial = reader.positive(defaults.partial_key, defaults.partial);
    if (scaling) {
        rope.theta = scaling->positive("rope_theta", rope.theta);
        rope.partial = scaling->positive("partial_rotary_factor", rope.partial);
    }
    if (rope.partial > 1) inner.refuse("partial_rotary_factor", "a number above 0 and at most 1");
    if (scaling) rope.type = scaling->text("rope_type", scaling->text("type", "default"));
    if (rope.type == "su") rope.type = "longrope";  // Phi-3's first name for it
    if (std::find(kKinds.begin(), kKinds.end(), rope.type) == kKinds.end()) {
        inner.unsupported(scaling->has("rope_type") ? "rope_type" : "type",
                          "default, linear, dynamic, yarn, longrope, llama3 or proportional");
    }
    rope.original_positions = original_length(reader, scaling ? &*scaling : nullptr, max_positions, defaults);

    const auto rotated = static_cast<std::int64_t>(static_cast<double>(head_size) * rope.partial);
    const std::int64_t whole = rope.type == "proportional" ? head_size : rotated;
    if (whole < 2 || whole % 2 != 0 || (rope.type == "dynamic" && whole < 4)) {
        throw Error(ErrorCode::mismatch, reader.where("head_dim"),
                    "expected an even number of rotated dimensions for rotary positions (4 or more for dynamic ones)",
                    "found " + std::to_string(whole) + " of " + std::to_string(head_size));
    }
    if (rope.type == "yarn" && rope.theta == 1) inner.refuse("rope_theta", "a number above 0 other than 1");
    if (scaling) read_scaling(rope, *scaling, max_positions, rotated);
    // transformers reads this one beside several sets, in none of them.
    if (!defaults.layer_type.empty()) rope.truncate = truncate;
    return rope;
}

}  // namespace headscope::model
