// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/corpus/headvis_tree.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <c10/core/InferenceMode.h>
#include <nlohmann/json.hpp>

#include "core/analysis/dense_rows.h"
#include "core/ask/corpus/corpus_tables.h"
#include "core/ask/readers.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/io/output_folder.h"
#include "core/base/json/json.h"
#include "core/model/model.h"
#include "core/store/hdf5/utf8.h"

namespace headscope::ask::corpus {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Sparse weights of all heads that are written after one pass over the texts.
constexpr double kSparseBytes = 256e6;

/// A head of the tree: sites with weights of one layer are counted on.
struct TreeHead {
    std::int64_t layer, head, site, own;
    std::size_t cell;  ///< site * most heads + own
};

std::vector<TreeHead> tree_heads(const store::AskRecord& record) {
    std::vector<TreeHead> heads;
    std::map<std::int64_t, std::int64_t> next;
    const std::int64_t most = record.size_of("/head");
    for (std::int64_t s = 0; s < std::ssize(record.sites); ++s) {
        const Site& site = record.sites[static_cast<std::size_t>(s)];
        if (!site.has_matrix) continue;
        for (std::int64_t h = 0; h < site.heads; ++h)
            heads.push_back({site.layer, next[site.layer]++, s, h, static_cast<std::size_t>(s * most + h)});
    }
    return heads;
}

/// With 4 decimals; null where there is none.
json rounded_number(double value) {
    return std::isfinite(value) ? json(std::round(value * 1e4) / 1e4) : json();
}

/// Weights of a text at query * length + key.
struct SparseWeights {
    std::vector<std::int64_t> places;
    std::vector<float> values;

    /// The largest of a row of keys 0 to query, in the order of the keys.
    void add_row(std::span<const float> row, std::int64_t length) {
        std::vector<std::size_t> keys;
        for (std::size_t j = 0; j < row.size(); ++j)
            if (row[j] >= kTreeThreshold) keys.push_back(j);
        const auto larger = [&](std::size_t a, std::size_t b) {
            return row[a] > row[b] || (row[a] == row[b] && a < b);
        };
        if (keys.size() > kTreeKeys) {
            std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(kTreeKeys), keys.end(), larger);
            keys.resize(kTreeKeys);
            std::sort(keys.begin(), keys.end());
        }
        for (const std::size_t j : keys) {
            places.push_back((std::ssize(row) - 1) * length + static_cast<std::int64_t>(j));
            values.push_back(row[j]);
        }
    }
};

class TreeWriter {
public:
    TreeWriter(model::Model& model, const store::AskRecord& record, model::Editor* editor, fs::path folder)
        : model_(model),
          record_(record),
          editor_(editor),
          folder_(std::move(folder)),
          heads_(tree_heads(record)),
          slots_(record.size_of("/slot")) {
        for (const store::SequenceTokens& text : record.sequences)
            for (std::size_t i = 0; i < text.ids.size() && i < text.pieces.size(); ++i)
                words_.emplace(text.ids[i], text.pieces[i]);
        for (const auto& [id, word] : record.words) words_[id] = word;
    }

    void run(Progress& progress, const Cancellation& cancellation) {
        fs::create_directory(folder_ / "heads");
        fs::create_directory(folder_ / "attributions");
        put("config.json", config());
        put("scatter_data.json", scatter());
        // HeadVis's page runs without a server by these two.
        put("server_config.json", json::object());
        put("attributions/manifest.json", json::object());
        std::size_t longest = 1;
        for (const store::SequenceTokens& text : record_.sequences) longest = std::max(longest, text.ids.size());
        const double bytes = static_cast<double>(slots_) * static_cast<double>(longest * kTreeKeys) *
                             static_cast<double>(sizeof(std::int64_t) + sizeof(float));
        const auto together = static_cast<std::size_t>(std::max(1.0, kSparseBytes / bytes));
        for (std::size_t begin = 0; begin < heads_.size(); begin += together)
            write_heads(std::span(heads_).subspan(begin, std::min(together, heads_.size() - begin)), progress,
                        cancellation);
    }

private:
    void put(const std::string& name, const json& document) {
        write_whole_file(folder_ / name, document.dump(-1, ' ', false, json::error_handler_t::replace) + "\n", "tree");
    }

    double number(const std::string& table, std::size_t cell, std::int64_t size = 1, std::int64_t place = 0) const {
        return record_.table(corpus_path(table))
            .values[cell * static_cast<std::size_t>(size) + static_cast<std::size_t>(place)];
    }
    double kept(const char* table, const TreeHead& head, std::int64_t slot) const {
        return number(table, head.cell, slots_, slot);
    }

    json config() const {
        json heads = json::array(), metrics = json::array(), descriptions = json::object();
        std::int64_t most = 0;
        for (const TreeHead& one : heads_) {
            heads.push_back({one.layer, one.head});
            most = std::max(most, one.head + 1);
        }
        for (const HeadMeasure& one : head_measures()) {
            if (std::string(one.name) == "maximum_mean") continue;  // a statistic of each head
            metrics.push_back(one.name);
            descriptions[one.name] = std::string(one.label) + (*one.unit ? std::string(", ") + one.unit : "");
        }
        const std::vector<double>& counts = record_.table("/corpus/progress").values;
        const auto named = [](const char* key, const char* label) { return json{{"key", key}, {"label", label}}; };
        const auto shown = [](const char* label) { return json{{"label", label}, {"format", "default"}}; };
        return {{"model_name", record_.model_name},
                {"heads", std::move(heads)},
                {"n_layers", record_.mixers.size()},
                {"n_heads", most},
                {"n_intervals", record_.size_of("/interval")},
                {"metrics", std::move(metrics)},
                {"metric_descriptions", std::move(descriptions)},
                {"head_data_pattern", "L{layer}H{head}.json"},
                {"has_umap", false},
                {"umap_heads", json::array()},
                {"custom_plots",
                 {named("qk_distance_histogram", "Distance of query and key"),
                  named("histogram", "Largest weights of texts")}},
                {"custom_tables",
                 {named("top_query_tokens", "Tokens of queries"), named("top_key_tokens", "Tokens of keys")}},
                {"statistics_display",
                 {{"n_samples", shown("Texts kept")}, {"mean_max_activation", shown("Mean of the largest weights")}}},
                {"pipeline_config",
                 {{"program", "headscope"},
                  {"n_sequences", static_cast<std::int64_t>(counts[kTexts])},
                  {"n_tokens", static_cast<std::int64_t>(counts[kTokens])},
                  {"sparse_topk_per_row", kTreeKeys},
                  {"sparse_threshold", rounded_number(kTreeThreshold)}}}};
    }

    json scatter() const {
        json rows = json::array();
        for (const TreeHead& one : heads_) {
            json row{{"layer", one.layer}, {"head", one.head}};
            for (const HeadMeasure& measure : head_measures())
                if (std::string(measure.name) != "maximum_mean")
                    row[measure.name] = rounded_number(number(measure.name, one.cell));
            rows.push_back(std::move(row));
        }
        return rows;
    }

    void write_heads(std::span<const TreeHead> heads, Progress& progress, const Cancellation& cancellation) {
        std::map<std::size_t, SparseWeights> weights;            // by cell * slots + slot
        std::map<std::int64_t, std::vector<std::size_t>> shown;  // of each text, those that show it
        std::set<std::size_t> cells;
        for (const TreeHead& one : heads) {
            cells.insert(one.cell);
            for (std::int64_t slot = 0; slot < slots_; ++slot)
                if (const double text = kept("kept_sequence", one, slot); text >= 0)
                    shown[static_cast<std::int64_t>(text)].push_back(one.cell * static_cast<std::size_t>(slots_) +
                                                                     static_cast<std::size_t>(slot));
        }
        std::size_t done = 0;
        for (const auto& [text, places] : shown) {
            progress.advance(static_cast<double>(done++), static_cast<double>(shown.size()), "HeadVis's tree");
            for (const std::size_t place : places) weights.try_emplace(place);
            read_weights(text, places, weights, cancellation);
        }
        for (const TreeHead& one : heads)
            put("heads/L" + std::to_string(one.layer) + "H" + std::to_string(one.head) + ".json",
                head_document(one, weights));
    }

    /// Weights of a text for the heads that keep it.
    void read_weights(std::int64_t text, const std::vector<std::size_t>& places,
                      std::map<std::size_t, SparseWeights>& weights, const Cancellation& cancellation) {
        cancellation.check();
        const std::vector<std::int32_t>& ids = record_.sequences[static_cast<std::size_t>(text)].ids;
        const std::size_t length = ids.size();
        const auto most = static_cast<std::size_t>(record_.size_of("/head"));
        std::map<std::size_t, SparseWeights*> by_cell;
        for (const std::size_t place : places) by_cell[place / static_cast<std::size_t>(slots_)] = &weights.at(place);
        SiteReader reader(model_.sites(), weights_request(ids), [&](const model::AttentionRecord& site) {
            const std::size_t first = static_cast<std::size_t>(site.site.value) * most;
            const auto begin = by_cell.lower_bound(first);
            if (begin == by_cell.end() || begin->first >= first + most) return;
            analysis::for_dense_rows(
                site, 0, cancellation, [&](std::int64_t h, std::int64_t row, std::span<const float> block) {
                    const auto own = by_cell.find(first + static_cast<std::size_t>(h));
                    if (own == by_cell.end()) return;
                    for (std::size_t r = 0; r * length < block.size(); ++r)
                        own->second->add_row(block.subspan(r * length, static_cast<std::size_t>(row) + r + 1),
                                             static_cast<std::int64_t>(length));
                });
        });
        read_run(model_, ids, reader, nullptr, editor_, cancellation);
    }

    json head_document(const TreeHead& head, const std::map<std::size_t, SparseWeights>& weights) const {
        json sequences = json::array();
        const std::int64_t intervals = record_.size_of("/interval");
        std::int64_t longest = 0;
        for (std::int64_t slot = 0; slot < slots_; ++slot) {
            const double place = kept("kept_sequence", head, slot);
            if (!(place >= 0)) continue;
            const store::SequenceTokens& text = record_.sequences[static_cast<std::size_t>(place)];
            longest = std::max(longest, std::ssize(text.ids));
            const SparseWeights& own =
                weights.at(head.cell * static_cast<std::size_t>(slots_) + static_cast<std::size_t>(slot));
            json values = json::array();
            for (const float one : own.values) values.push_back(rounded_number(one));
            sequences.push_back({{"sequence_id", static_cast<std::int64_t>(kept("kept", head, slot))},
                                 {"interval", std::min(slot / kKeptByChance + 1, intervals)},
                                 {"tokens", readable(text.pieces)},
                                 {"attention_indices", own.places},
                                 {"attention_values", std::move(values)},
                                 {"seq_len", text.ids.size()},
                                 {"max_activation", rounded_number(kept("kept_maximum", head, slot))}});
        }
        const std::size_t samples = sequences.size();
        return {{"sequences", std::move(sequences)},
                {"qk_distance_histogram", distances(head, longest)},
                {"top_query_tokens", top_tokens(head, "query_token", "query_mass")},
                {"top_key_tokens", top_tokens(head, "key_token", "key_mass")},
                {"histogram", maxima(head)},
                {"statistics",
                 {{"n_samples", samples}, {"mean_max_activation", rounded_number(number("maximum_mean", head.cell))}}}};
    }

    /// Edges as HeadVis has them, 0 to 4096; longer texts add the last cell, up to their length.
    json distances(const TreeHead& head, std::int64_t longest) const {
        const std::int64_t bins = record_.size_of("/distance"), last = bin_begin(static_cast<std::size_t>(bins - 1));
        json edges = json::array(), values = json::array();
        for (std::int64_t bin = 0; bin < bins; ++bin) {
            edges.push_back(bin_begin(static_cast<std::size_t>(bin)));
            if (bin + 1 < bins || longest > last)
                values.push_back(rounded_number(number("distance_histogram", head.cell, bins, bin)));
        }
        if (longest > last) edges.push_back(longest);
        return {{"bin_edges", std::move(edges)}, {"bin_values", std::move(values)}};
    }

    json maxima(const TreeHead& head) const {
        const std::int64_t cells = record_.size_of("/histogram_cell");
        json edges = json::array(), values = json::array();
        for (std::int64_t cell = 0; cell <= cells; ++cell)
            edges.push_back(rounded_number(static_cast<double>(cell) / static_cast<double>(cells)));
        for (std::int64_t cell = 0; cell < cells; ++cell)
            values.push_back(static_cast<std::int64_t>(number("maximum_histogram", head.cell, cells, cell)));
        return {{"bin_edges", std::move(edges)}, {"bin_values", std::move(values)}};
    }

    static std::vector<std::string> readable(std::vector<std::string> pieces) {
        for (std::string& piece : pieces) piece = store::readable_utf8(piece);
        return pieces;
    }

    json top_tokens(const TreeHead& head, const char* tokens, const char* masses) const {
        const std::int64_t most = record_.size_of("/top_token");
        json rows = json::array();
        for (std::int64_t i = 0; i < most; ++i) {
            const double id = number(tokens, head.cell, most, i);
            if (!(id >= 0)) break;
            const auto word = words_.find(static_cast<std::int64_t>(id));
            rows.push_back({{"token", word != words_.end() ? store::readable_utf8(word->second)
                                                           : "#" + std::to_string(static_cast<std::int64_t>(id))},
                            {"weight", rounded_number(number(masses, head.cell, most, i))}});
        }
        return rows;
    }

    model::Model& model_;
    const store::AskRecord& record_;
    model::Editor* editor_;
    fs::path folder_;
    std::vector<TreeHead> heads_;
    std::int64_t slots_;
    std::map<std::int64_t, std::string> words_;  ///< by id
};

}  // namespace

void write_headvis_tree(model::Model& model, const store::AskRecord& record, model::Editor* editor,
                        const fs::path& folder, std::span<const fs::path> inputs, Progress& progress,
                        const Cancellation& cancellation) {
    const c10::InferenceMode inference;
    if (!record.complete)
        throw Error(ErrorCode::internal, "HeadVis's tree", "expected a finished record", "found a partial one");
    OutputFolder output(folder, inputs, "tree");
    TreeWriter(model, record, editor, output.partial_path()).run(progress, cancellation);
    output.publish();
}

}  // namespace headscope::ask::corpus
