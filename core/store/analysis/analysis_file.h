// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/store/analysis/analysis_header.h"
#include "kernels/attention.h"

namespace headscope::store {

/// An array of values with its shape, row-major; NaN where something does not exist.
struct Values {
    std::vector<std::int64_t> shape;
    std::vector<double> data;
};

/// Reads analysis files, complete or partial, ours or from elsewhere: checks format, shapes and types of everything it
/// reads; refuses external links, external storage, virtual datasets and filters other than the built-in ones.
/// Lazy: opening reads the header only. Every refusal is one Error with the file and dataset.
///
/// A partial file may be opened while an AnalysisWriter of this process (or of another) works on it: what is read is
/// what the file holds now, sites become done one by one, and the object goes on reading the file when it is published
/// and renamed. Beyond what site_done() vouches for, values may be those of fill, or half of either.
/// Threads: any, one at a time for each object; one call at a time in the process reaches HDF5 (hdf5_lock.h).
class AnalysisFile {
public:
    static std::shared_ptr<AnalysisFile> open(const std::filesystem::path& path);
    ~AnalysisFile();

    const std::filesystem::path& path() const;  ///< what it was opened by
    const AnalysisHeader& header() const;
    /// The same for who outlives the file: of ten thousand texts it takes 100 MB.
    std::shared_ptr<const AnalysisHeader> shared_header() const;
    /// As of opening it, or of the last read after it was published: asks the file nothing.
    bool complete() const;
    bool site_done(std::int64_t s, std::int64_t site) const;
    /// All (sequence, site) of which that holds.
    std::set<std::pair<std::int64_t, std::int64_t>> done_sites() const;

    std::vector<std::string> indicators() const;
    Values indicator(const std::string& name) const;  ///< [S, n, H], head_diversity [S, n], local_focus [S, n, H, 4]
    Values column_mass(std::int64_t s, std::int64_t site) const;  ///< [H, L]
    std::vector<double> histogram_edges() const;
    Values histogram(std::int64_t s, std::int64_t site) const;  ///< [H, B]
    std::int64_t histogram_row_step() const;
    Values score_statistic(
        const std::string& which) const;  ///< minimum, maximum, mean, variance: [S, n, H]; above: [S, n, H, 3]
    Values thumbnail(const std::string& which, std::int64_t s, std::int64_t site) const;  ///< mean, maximum: [H, T, T]
    Values loss(std::int64_t s) const;                                                    ///< [L]
    /// [L, vocabulary] rows [first, first + count); empty when logits were not recorded.
    std::optional<Values> logits(std::int64_t s, std::int64_t first, std::int64_t count) const;
    std::optional<Values> class_logits(std::int64_t s) const;  ///< [classes]; empty when there are none
    /// which: q_norm, ..., v_variance: [H, L]; hidden_norm, hidden_variance: [L], `site` being the boundary 0..layers.
    /// Empty when states were not recorded.
    std::optional<Values> state(const std::string& which, std::int64_t s, std::int64_t site) const;
    /// Which experts the tokens of a layer went through, in order of weight, and with which weight: both [L, k]; -1 and
    /// NaN where there is none. Empty when experts were not recorded.
    struct Experts {
        Values index, weight;
    };
    std::optional<Experts> experts(std::int64_t s, std::int64_t layer) const;
    /// Recorded dense weights of queries [first, first + count) of one head, [count, keys]; empty when not recorded.
    std::optional<Values> attention_rows(std::int64_t s, std::int64_t site, std::int64_t head, std::int64_t first,
                                         std::int64_t count) const;
    /// [Lk, H, H], what NormMap (core/maps/norm_map.h) is made of; NaN: this attention has none. Empty: not recorded.
    std::optional<Values> value_products(std::int64_t s, std::int64_t site) const;
    /// Values of the run that are NaN or infinite and should be numbers, one sentence each.
    std::vector<std::string> problems() const;

    std::optional<Values> token_types(std::int64_t s, std::int64_t site) const;  ///< [H, chunks]; -1: none
    /// [H, L, 2], what each branch's output of a token is multiplied by, linear first; NaN: none. Empty: not recorded.
    std::optional<Values> branch_weights(std::int64_t s, std::int64_t site) const;
    /// Recorded rows [first_query, end_query) x [first_key, end_key) of one head's implicit matrix; empty: not
    /// recorded.
    std::optional<std::vector<float>> implicit(std::int64_t s, std::int64_t site, std::int64_t head,
                                               std::array<std::int64_t, 2> queries,
                                               std::array<std::int64_t, 2> keys) const;
    /// True if it exists and is complete.
    bool has_implicit(std::int64_t s, std::int64_t site) const;
    /// The largest magnitude of A v - o at the site; NaN: not compared.
    double implicit_deviation(std::int64_t s, std::int64_t site) const;
    /// Terms that the model adds to scores and weights: offset [n, H], slope [n, H], distance_bias [n, H, W]. Empty if
    /// no site has one; NaN for a site without one or not measured yet.
    std::optional<Values> parameters(const std::string& which) const;

    /// Everything to recompute any tile of one site's maps; empty when maps were not recorded.
    struct Map {
        std::vector<float> query, key, row_constant;  ///< [H, Lq, dk], [G, Lk, dk], [H, Lq]
        std::int64_t heads = 0, key_value_heads = 0, queries = 0, keys = 0, key_size = 0;
        kernels::ScoreRule rule;
        /// A view for kernels::attention_weights; valid while the Map lives.
        kernels::AttentionInput input() const;
    };
    std::optional<Map> map(std::int64_t s, std::int64_t site) const;
    /// The same of one head alone, and no more is read: one query head, its key head, the rule cut to it.
    /// Throws usage for a head that the site has not.
    std::optional<Map> map_of_head(std::int64_t s, std::int64_t site, std::int64_t head) const;

    /// Opens every dataset that a file of this header has and checks its type, shape and storage; reads no values.
    void check() const;

private:
    struct Impl;
    std::optional<Map> read_map(std::int64_t s, std::int64_t site, std::optional<std::int64_t> head) const;
    explicit AnalysisFile(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace headscope::store
