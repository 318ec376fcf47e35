// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A token mixer without tensors: name, options, traits, the papers' cost. One header per mixer in this folder;
// core/mixers computes. Threads: any.

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headscope::mixers {

/// Source of a mixer's query and key.
enum class QueryKeySource : std::uint8_t {
    own,           ///< the layer's input
    embedding,     ///< what the first layer read
    random_guide,  ///< a guide stream: noise that goes through the stack as one more sequence
    fixed_guide    ///< the same of fixed tokens
};

using OptionValue = std::variant<bool, std::int64_t, double, std::string>;

/// One option of "mixers" in a native configuration. The default's type is the option's.
struct MixerOption {
    const char* key;
    OptionValue standard;                ///< default
    std::vector<std::string> choices{};  ///< of a text option
    double least = std::numeric_limits<double>::lowest(), most = std::numeric_limits<double>::max();  ///< of a number
};

/// Table 5-8 of "Deconstructing Attention", or what a later paper says in their letters (core/cost/mixer_cost.h);
/// an empty `time`: the mixer has no such row; an empty `activation`: no paper says one; an empty `decode` or `cache`:
/// encoders alone have the mixer.
struct MixerCostText {
    const char* label = "";  ///< as the paper calls it
    const char *time = "", *prefill = "", *decode = "", *activation = "", *cache = "";
    const char *precomputed_prefill = "", *precomputed_decode = "";
    const char* parameters = "3 d^2";  ///< without biases and W^O
};

struct MixerType {
    const char* name;     ///< in files
    const char* summary;  ///< a line for people
    QueryKeySource query_key_source = QueryKeySource::own;
    bool has_matrix = true;        ///< there are weights of each query and key
    bool in_transformers = false;  ///< with its default options, transformers has a class for it
    // Which layers may have it: causal ones, those of an encoder, and decoder layers with cross-attention, which has it
    // too.
    bool in_decoders = true, in_encoders = false, in_cross = false;
    std::vector<MixerOption> options{};
    MixerCostText cost{};

    bool reads_guide() const {
        return query_key_source == QueryKeySource::random_guide || query_key_source == QueryKeySource::fixed_guide;
    }
};

/// In the order of `headscope list mixers`.
const std::vector<const MixerType*>& known_types();
const MixerType* find_type(std::string_view name);
std::vector<std::string> known_names();
/// The names of those that `may` says yes to.
std::vector<std::string> names_where(const std::function<bool(const MixerType&)>& may);

// Shared by several cost rows.
inline constexpr const char* kQuadratic = "B L^2 d + B L d^2";
inline constexpr const char* kLinear = "B L d^2";
inline constexpr const char* kProjections = "6 B L d^2";
inline constexpr const char* kProjectionsOfOne = "6 B d^2";
inline constexpr const char* kMatrices = "4 B L^2 d + 6 B L d^2";
inline constexpr const char* kMatricesOfOne = "6 B d^2 + 4 B L d";
inline constexpr const char* kKept = "(8 B L d + 2 B L^2 h) / t";
inline constexpr const char* kKeysValues = "4 B L d";
inline constexpr const char* kState = "B L d^2 + B L n k v";  ///< of mixers that keep one

}  // namespace headscope::mixers
