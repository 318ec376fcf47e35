// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Reading config.json with every value checked for kind and range. Errors name the key, what was expected and what the
// file says: headscope::Error(mismatch) with `where` = "config.json: key".

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/json/json.h"
#include "core/model/config.h"

namespace headscope::model {

/// A view of one JSON object; the object must outlive it. A key whose value is null counts as absent.
class ConfigReader {
public:
    ConfigReader(const nlohmann::json& object, std::string where);

    bool has(const std::string& key) const;
    bool is_null(const std::string& key) const;       ///< there, and null: what some keys of transformers mean "off" by
    std::int64_t size(const std::string& key) const;  ///< required, 1 .. 2^31 - 1
    std::int64_t size(const std::string& key, std::int64_t otherwise) const;
    std::int64_t count(const std::string& key, std::int64_t otherwise) const;  ///< may be 0
    double number(const std::string& key, double otherwise) const;             ///< finite
    double positive(const std::string& key, double otherwise) const;           ///< finite and > 0
    std::optional<double> optional_number(const std::string& key) const;
    bool boolean(const std::string& key, bool otherwise) const;
    std::string text(const std::string& key, const std::string& otherwise) const;
    /// [least, most], most perhaps infinite (core/base/json/json.h has how that is written).
    std::optional<std::pair<double, double>> range(const std::string& key) const;
    std::vector<double> numbers(const std::string& key) const;     ///< absent: empty
    std::vector<std::string> texts(const std::string& key) const;  ///< absent: empty
    std::vector<bool> booleans(const std::string& key) const;      ///< absent: empty
    std::optional<ConfigReader> object(const std::string& key) const;
    std::vector<ConfigReader> objects(const std::string& key) const;  ///< an object, or a list of them; absent: empty
    std::optional<JsonView> view(const std::string& key) const;       ///< for readers below the model
    bool has_object(const std::string& key) const;
    bool has_text(const std::string& key) const;
    bool is_empty_object(const std::string& key) const;
    void expect_keys(const std::vector<std::string>& known) const;  ///< refuses any other key

    std::string where(const std::string& key) const;  ///< for Errors about a value that was read here
    [[noreturn]] void refuse(const std::string& key, const std::string& expected) const;       ///< mismatch
    [[noreturn]] void unsupported(const std::string& key, const std::string& expected) const;  ///< well formed, unknown

private:
    const nlohmann::json* find(const std::string& key) const;
    std::string found(const std::string& key) const;

    const nlohmann::json* object_;
    std::string where_;
};

/// hidden_act and the like, by transformers' names.
Activation read_activation(const ConfigReader& reader, const std::string& key, const std::string& otherwise);
/// One by its name, which was read under `key`.
Activation activation_named(const std::string& name, const ConfigReader& reader, const std::string& key);

/// "mixers" of a whole native configuration. Unknown mixers and options are refused, with what is known.
mixers::MixerOptions read_mixer_options(const ConfigReader& reader);
/// Every option of those of `mixers` that have any, written out (of `standard`, where one is not its default); an empty
/// object when none has.
nlohmann::json mixer_options_json(const mixers::MixerOptions& options, const std::vector<std::string>& mixers);

/// A family's names of the two numbers next to rope_scaling, and their defaults.
struct RopeDefaults {
    std::string layer_type;  ///< which one's numbers, where there are several sets by layer_types
    bool scaled = true;      ///< whether rope_scaling, which knows no sets, is for this one too
    /// Trained positions before stretching: read next to rope_scaling alone, else this (Phi-3). 0: in it, too.
    std::int64_t original_positions = 0;
    std::string theta_key = "rope_theta";  ///< empty: no such key
    std::string partial_key = "partial_rotary_factor";
    double theta = 10000.0;
    double partial = 1.0;
};

/// Both generations: rope_parameters, and rope_scaling with rope_theta and partial_rotary_factor beside it.
/// `max_positions` and `head_size` are what the model has: kinds that take their length from it read it there.
RopeConfig read_rope(const ConfigReader& reader, std::int64_t max_positions, std::int64_t head_size,
                     const RopeDefaults& defaults = {});

}  // namespace headscope::model
