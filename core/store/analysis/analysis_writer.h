// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/store/analysis/analysis_header.h"
#include "kernels/score_rule.h"
#include "kernels/statistics.h"

namespace headscope::kernels {
struct ImplicitStatistics;  // kernels/recurrent.h
}

namespace headscope::store {

/// Writes NAME.headscope.h5 (docs/file-formats.md). Works on "NAME.headscope.h5.partial" beside it until
/// publish() (the name is OutputFile's). All datasets are allocated and the file flushed at construction; each write_*
/// flushes when it is done, so whatever was written when the process dies can be read. AnalysisFile may read the
/// partial file all the while, in this process or another. Threads: any, one at a time for each writer; one call at a
/// time in the process reaches HDF5 (hdf5_lock.h).
class AnalysisWriter {
public:
    /// Refuses outputs that are neither absent nor regular files, folders that cannot be written, and any of `inputs`.
    AnalysisWriter(std::filesystem::path path, const AnalysisHeader& header,
                   std::span<const std::filesystem::path> inputs = {});
    /// Not published: removes the partial file, unless keep_partial() was called.
    ~AnalysisWriter();

    /// Sequence `s`'s values at a site, from batch row `b` of the statistics.
    /// Marks the site as done (/sites/done): write its map, attention and states before.
    void write_site(std::int64_t s, std::int64_t site, const kernels::Statistics& statistics, std::int64_t b);

    /// For a pair: means [heads, 3, 3] from region to region (region_indicators()); NaN: none.
    void write_region_means(std::int64_t s, std::int64_t site, std::span<const double> means);

    /// Row-major float32 blocks. q: [H, Lq, dk], k: [G, Lk, dk], row_constant: [H, Lq]. With MapType::int16 q and k are
    /// rounded and the row constants computed again from what was rounded.
    void write_map(std::int64_t s, std::int64_t site, std::span<const float> q, std::span<const float> k,
                   std::span<const float> row_constant, const kernels::ScoreRule& rule, std::int64_t b);
    /// [Lk, H, H]: inner products of what heads give for a key at weight 1.
    void write_value_products(std::int64_t s, std::int64_t site, std::span<const float> products);
    /// Rows [first, first + n) of one head's dense weights.
    void write_attention_rows(std::int64_t s, std::int64_t site, std::int64_t head, std::int64_t first,
                              std::span<const float> rows, std::int64_t keys);
    /// which: "q_norm", "k_variance", ...; values [heads, length].
    void write_state(std::int64_t s, std::int64_t site, const std::string& which, std::span<const float> values,
                     std::int64_t heads);
    /// which: "hidden_norm" or "hidden_variance"; boundary 0..layers; values [length].
    void write_hidden_state(std::int64_t s, std::int64_t boundary, const std::string& which,
                            std::span<const float> values);
    /// Experts of a sequence's tokens in a layer, [length, experts_per_token], each token's in order of weight.
    void write_experts(std::int64_t s, std::int64_t layer, std::span<const std::int16_t> index,
                       std::span<const float> weight);
    void write_loss(std::int64_t s, std::span<const float> loss);
    /// Rows [first_row, ...) of the logits, each of the vocabulary's size.
    void write_logits(std::int64_t s, std::int64_t first_row, std::span<const float> rows);
    /// Those of the text's classes [classes].
    void write_class_logits(std::int64_t s, std::span<const float> logits);

    /// For mixers with token types: types [heads, chunks]; fraction [heads] is the share of softmax chunks.
    void write_token_types(std::int64_t s, std::int64_t site, std::span<const std::int8_t> types,
                           std::span<const double> fraction, std::int64_t heads);
    /// offset [heads], slope [heads], distance_bias [heads, W] from the header's bias_first on: each as the file has
    /// room for it, or empty.
    void write_parameters(std::int64_t site, std::span<const float> offset, std::span<const float> slope,
                          std::span<const float> distance_bias);
    /// Embeddings of queries, keys and values [3, heads, the header's head_embedding_size].
    void write_head_embeddings(std::int64_t site, std::span<const float> embeddings);
    /// Factors of each branch's output, at the softmax branch's site: [heads, length, 2], linear first.
    void write_branch_weights(std::int64_t s, std::int64_t site, std::span<const float> weights);
    /// As write_site, of a site with an implicit matrix, whose type and matrix are written before.
    void write_implicit_site(std::int64_t s, std::int64_t site, const kernels::ImplicitStatistics& statistics,
                             std::int64_t b);
    /// The implicit matrix [heads, L, L] and how far it times the values is from what the layer computed.
    /// Thumbnails of it are written too: block means, and the coefficient of greatest magnitude.
    void write_implicit(std::int64_t s, std::int64_t site, std::span<const float> matrix, double deviation);

    /// Values of the run that should be finite numbers and are not, one sentence each, as /problems. Call once, after
    /// everything else; without problems nothing is written.
    void write_problems(const std::vector<std::string>& problems);

    /// Marks the file complete, closes it, reopens and checks it, syncs, renames it to its name, syncs the folder.
    void publish();
    const std::filesystem::path& partial_path() const;
    /// The partial file stays when the writer goes unpublished.
    void keep_partial();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headscope::store
