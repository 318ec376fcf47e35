// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace headscope {

/// One attention of a model: what is measured, stored and drawn. In a plain decoder or encoder, layer l is site l; an
/// encoder-decoder lists the encoder's layers first, then each decoder layer's self- and cross-attention; a layer with
/// two branches is two sites. Mirrors /sites of an analysis file.
struct Site {
    std::int32_t layer = 0;
    std::string stack = "text";  ///< text, encoder, decoder
    std::string kind = "self";   ///< self, cross
    std::string branch;          ///< empty, softmax, linear, difference
    std::int32_t heads = 0;
    std::int32_t key_value_heads = 0;
    std::int32_t key_size = 0;    ///< per head
    std::int32_t value_size = 0;  ///< per head
    bool causal = true;
    bool has_matrix = true;       ///< false: a layer without token mixing weights; its values are NaN
    bool has_implicit = false;    ///< of a recurrent one: its outputs are a signed matrix times its values
    std::int32_t type_chunk = 0;  ///< of NAtS-L's linear branch: tokens of a chunk that has a type; 0: none
    /// Terms added to a score by distance, query - key: a table from distance bias_first on, or a slope per head. Then:
    /// weights have an offset per head; heads differ by an embedding. None: 0 and false.
    std::int32_t bias_first = 0, bias_length = 0;
    bool has_slopes = false, has_offsets = false, has_head_embeddings = false;
    std::string query_stream = "tokens";
    std::string key_stream = "tokens";

    bool is_self() const { return kind == "self"; }
    bool is_cross() const { return kind == "cross"; }
};

}  // namespace headscope
