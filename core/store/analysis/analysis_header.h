// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/site.h"

namespace headscope::store {

/// Experts of a layer: their numbers are stored in 16 bits.
inline constexpr std::int64_t most_experts = 1 << 15;

/// One analysed sequence, as /tokens stores it.
struct SequenceTokens {
    std::vector<std::int32_t> ids;
    std::vector<std::string> pieces;                   ///< surface forms
    std::vector<std::array<std::int64_t, 2>> offsets;  ///< bytes in `text`
    std::string text;                                  ///< of a pair A, a line feed and B
    /// For a pair: token types, and the region of each token (0 inserted, 1 A, 2 B). For one text with a type other
    /// than 0: its types; they are not stored. Else empty.
    std::vector<std::int32_t> types{}, regions{};
    /// For a model that hashes words, else empty: the bits of each token's word in hexadecimal, or nothing.
    std::vector<std::string> hashes{};
    /// In texts of `headscope ask`: what the decoder of an encoder-decoder reads with them; null: the model has none.
    std::shared_ptr<const SequenceTokens> target{};

    /// The tokens whose successors a head for the vocabulary predicts.
    const SequenceTokens& predicted() const { return target ? *target : *this; }
};

/// Records beyond indicators, histograms, thumbnails, column mass and loss, which are always kept.
struct RecordLevels {
    bool maps = false, attention = false, states = false, logits = false, implicit = false;
    bool experts = false, norms = false, branches = false;
};

/// Stored type of queries and keys in /maps. float16 is read but no longer written: netCDF-C corrupts its heap on it.
enum class MapType { float32, int16, float16 };
std::string map_type_name(MapType type);

/// Everything about an analysis that is known before the first layer ran: fixes every dataset's shape, so that all of
/// them are allocated when the file is created and a killed job leaves a file that opens.
struct AnalysisHeader {
    std::string program_version, created;  ///< created: ISO 8601, UTC
    std::string model_name, model_type, model_sha256;
    std::string config_json;    ///< as stored, with every choice filled in
    std::string settings_json;  ///< the request: record, dtype, kernels, windows, ...
    std::uint64_t seed = 0;
    std::vector<std::string> mixers;  ///< per layer
    std::vector<Site> sites;
    std::vector<SequenceTokens> sequences;
    /// Further token sequences by name, one of each per entry of `sequences`: what Site::query_stream and key_stream
    /// name when it is not "tokens".
    std::map<std::string, std::vector<SequenceTokens>> streams;
    std::set<int> measured_layers;  ///< empty: all; maps and attention exist for these only
    RecordLevels record;
    std::vector<std::int64_t> local_distances{0, 1, 2, 3};
    std::int64_t hidden_boundaries = 0;   ///< layers + 1, for /states/hidden_*; 0: none
    std::int64_t vocabulary = 0;          ///< for /output/logits
    std::int64_t classes = 0;             ///< for /output/class_logits; 0: there are none
    std::int64_t max_positions = 0;       ///< 0: no limit; marked in figures when a sequence passes it
    std::int64_t histogram_row_step = 0;  ///< 0: by the longest sequence, see row_step()
    MapType map_type = MapType::float32;
    bool thumbnails_float16 = false;  ///< as files of version 1 have them; nothing writes such any more
    std::int64_t type_chunk = 0;      ///< tokens per chunk of /token_types; 0: none
    /// /parameters: W and the first distance of distance_bias (0: none), and which others exist.
    std::int64_t bias_window = 0, bias_first = 0;
    bool has_slopes = false, has_offsets = false;
    std::int64_t head_embedding_size = 0;  ///< numbers of each embedding in /parameters/head_embedding; 0: none
    std::int64_t experts = 0, experts_per_token = 0;  ///< of a layer that has some, for /experts

    /// Sets the fields on /parameters from the sites.
    void take_parameters();
    std::int64_t longest() const;  ///< tokens of the longest sequence of any stream
    bool pairs() const;            ///< some sequence is a pair
    bool hashed() const;           ///< the model hashes words
    std::int32_t most_heads() const;
    std::int64_t row_step() const;                   ///< of the histograms: 1 up to 1024 tokens, else 8
    bool measured(const Site& site) const;           ///< it has a matrix, and its layer is measured
    bool measured_implicit(const Site& site) const;  ///< likewise of an implicit matrix
    bool has_implicit() const;                       ///< some site has an implicit matrix
    /// True if a token's output at the site is weighted against another branch (NAtS-L's softmax branch).
    bool weighed(const Site& site) const;
    /// Tokens that the site's queries and keys have in sequence s. Throws Error (internal) for a stream that is absent.
    std::int64_t queries(std::int64_t s, const Site& site) const;
    /// The tokens that /output is about: what the decoder reads, where there is one beside an encoder.
    const std::vector<SequenceTokens>& output_sequences() const;
    std::int64_t keys(std::int64_t s, const Site& site) const;
    /// The regions of sequence s as queries and keys of the site; empty where it is no pair, or reads another stream.
    std::span<const std::int32_t> regions(std::int64_t s, const Site& site) const;
};

}  // namespace headscope::store
