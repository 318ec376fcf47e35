// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A token mixer without tensors: name, options, traits, the papers' cost. One header per mixer in this folder;
// core/mixers computes. Threads: any.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/option.h"

namespace headscope::mixers {

/// Source of a mixer's query and key.
enum class QueryKeySource : std::uint8_t {
    own,           ///< the layer's input
    embedding,     ///< what the first layer read
    random_guide,  ///< a guide stream: noise that goes through the stack as one more sequence
    fixed_guide    ///< the same of fixed tokens
};

/// Table 5-8 of "Deconstructing Attention", or what a later paper says in their letters (core/cost/mixer_cost.h);
/// an empty `time`: the mixer has no such row; an empty `activation`: no paper says one; an empty `decode` or `cache`:
/// encoders alone have the mixer.
struct MixerCostText {
    const char *time = "", *prefill = "", *decode = "", *activation = "", *cache = "";
    const char *precomputed_prefill = "", *precomputed_decode = "";
    const char* parameters = "3 d^2";  ///< without biases and W^O
};

struct MixerType {
    const char* name;              ///< in files
    const char* title = "";        ///< on screen, as its paper writes it
    const char* short_title = "";  ///< in tables and figures; empty: title
    int color = -1;                ///< of the theme's categorical colors; mixers with a state repeat those of others
    const char* summary = "";      ///< one line
    QueryKeySource query_key_source = QueryKeySource::own;
    bool has_matrix = true;        ///< there are weights of each query and key
    bool in_transformers = false;  ///< with its default options, transformers has a class for it
    // Which layers may have it: causal ones, those of an encoder, and decoder layers with cross-attention, which has it
    // too.
    bool in_decoders = true, in_encoders = false, in_cross = false;
    bool in_deconstructing = false;  ///< one of the seven of "Deconstructing Attention"
    std::vector<Option> options{};
    MixerCostText cost{};

    const char* column_title() const { return *short_title == '\0' ? title : short_title; }
    bool reads_guide() const {
        return query_key_source == QueryKeySource::random_guide || query_key_source == QueryKeySource::fixed_guide;
    }
};

/// In the order of `headscope list mixers`.
const std::vector<const MixerType*>& known_types();
const MixerType* find_type(std::string_view name);
std::vector<std::string> known_names();
/// Titles of a mixer; the name itself if it is not in the list.
std::string title_of(std::string_view name);
std::string column_title_of(std::string_view name);
/// True for the mixer of layers that name none (kStandard), which the others are compared with.
bool is_standard(std::string_view name);
/// Names of `layers` standard layers.
std::vector<std::string> standard_layers(std::int64_t layers);
/// Names of the mixers for which `may` is true.
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
