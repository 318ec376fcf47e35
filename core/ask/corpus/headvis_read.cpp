// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/ask/answers.h"
#include "core/ask/corpus/corpus_tables.h"
#include "core/ask/corpus/headvis_tree.h"
#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/base/process/os_error.h"

namespace headscope::ask::corpus {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kLargestTreeFile = 256U << 20U;
constexpr std::int64_t kMostTreeLayers = 1 << 12, kMostTreeHeads = 1 << 12;
constexpr double kMostTreeGrid = 1 << 16;   // heads of all layers, if each had as many as the largest
constexpr double kMostTreeCells = 1 << 22;  // of a table
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kTreeRounding = 2e-4;  // of two numbers with 4 decimals

using HeadName = std::pair<std::int64_t, std::int64_t>;  // layer, head

/// A text that a head keeps.
struct TreeText {
    std::int64_t sequence = 0, document = 0, query = -1, key = -1;
    double maximum = kNone;
};

/// Counts or weights in cells.
struct TreeHistogram {
    std::vector<double> edges, values;
};

struct TreeFile {
    std::vector<TreeText> texts;
    TreeHistogram distances, maxima;
    std::vector<std::pair<std::int32_t, double>> queries, keys;
    double mean_maximum = kNone;
};

double number_or_none(const JsonView& object, const std::string& key) {
    return object.number_or(key, kNone);
}

/// Names of measures become paths of tables.
bool is_plain_name(const std::string& name) {
    return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

class TreeReader {
public:
    explicit TreeReader(fs::path folder) : folder_(std::move(folder)) {}

    store::AskRecord run() {
        record_.tool = "corpus";
        record_.complete = true;
        read_config();
        for (const HeadName& name : heads_) files_[name] = read_head(name);
        add_tables();
        fill();
        read_scatter();
        return std::move(record_);
    }

private:
    json document(const std::string& name) const {
        return read_json_file(folder_ / name, kLargestTreeFile, "part of HeadVis's tree");
    }
    std::string place(const std::string& name) const { return shown(folder_ / name); }

    void read_config() {
        const json own = document("config.json");
        const JsonView config(own, place("config.json"));
        record_.model_name = config.string_or("model_name", "");
        std::int64_t last_layer = -1;
        std::map<std::int64_t, std::int64_t> heads;  // of each layer
        for (const JsonView& one : config.at("heads").items()) {
            const auto name = one.integers({0, kMostTreeLayers - 1});
            if (name.size() != 2) one.refuse(ErrorCode::format, "expected a layer and a head");
            if (name[1] >= kMostTreeHeads) one.refuse(ErrorCode::limit, "expected at most 4096 heads of a layer");
            if (!heads_.insert({name[0], name[1]}).second) one.refuse(ErrorCode::format, "expected each head once");
            last_layer = std::max(last_layer, name[0]);
            heads[name[0]] = std::max(heads[name[0]], name[1] + 1);
        }
        if (heads_.empty()) config.at("heads").refuse(ErrorCode::format, "expected heads");
        const std::int64_t layers = config.integer_or("n_layers", last_layer + 1, {last_layer + 1, kMostTreeLayers});
        intervals_ = config.integer_or("n_intervals", 1, {1, 1000});
        pattern_ = config.string_or("head_data_pattern", pattern_);
        if (pattern_.find('/') != std::string::npos || pattern_.find("{layer}") == std::string::npos ||
            pattern_.find("{head}") == std::string::npos)
            config.at("head_data_pattern")
                .refuse(ErrorCode::format, "expected a file's name with {layer} and {head}, without a folder");
        for (const std::string& name : config.strings_or_none("metrics")) {
            if (!is_plain_name(name))
                config.at("metrics").refuse(ErrorCode::format, "expected names of letters, digits and _");
            if (!is_known(name)) more_.insert(name);
        }
        if (const auto pipeline = config.find("pipeline_config")) {
            texts_ = pipeline->integer_or("actual_sequences_processed", pipeline->integer_or("n_sequences", -1));
            tokens_ = pipeline->integer_or("n_tokens", -1);
        }
        check_grid(layers, heads);
        record_.mixers.resize(static_cast<std::size_t>(layers));
        for (std::int64_t layer = 0; layer < layers; ++layer) {
            Site site;
            site.layer = static_cast<std::int32_t>(layer);
            site.heads = site.key_value_heads = static_cast<std::int32_t>(heads.contains(layer) ? heads[layer] : 0);
            site.has_matrix = site.heads > 0;
            record_.sites.push_back(site);
        }
    }

    /// Tables have a cell for every head that a layer may have: a few numbers of config.json decide their size.
    void check_grid(std::int64_t layers, const std::map<std::int64_t, std::int64_t>& heads) const {
        std::int64_t most = 0;
        for (const auto& [layer, count] : heads) most = std::max(most, count);
        if (static_cast<double>(layers) * static_cast<double>(most) > kMostTreeGrid)
            throw Error(ErrorCode::limit, place("config.json"), "expected fewer layers or heads",
                        "found " + std::to_string(layers) + " layers of up to " + std::to_string(most) + " heads");
    }

    /// Measures that ask corpus has, too; the one of HeadVis's own page has another name there.
    static bool is_known(const std::string& name) {
        const auto measures = head_measures();
        return name == "previous_token_score" ||
               std::any_of(measures.begin(), measures.end(), [&](const auto& one) { return name == one.name; });
    }

    std::string file_of(const HeadName& name) const {
        std::string file = pattern_;
        file.replace(file.find("{layer}"), 7, std::to_string(name.first));
        file.replace(file.find("{head}"), 6, std::to_string(name.second));
        return "heads/" + file;
    }

    TreeFile read_head(const HeadName& name) {
        const json own = document(file_of(name));
        const JsonView view(own, place(file_of(name)));
        TreeFile file;
        for (const JsonView& one : view.at("sequences").items()) file.texts.push_back(read_text(one));
        file.distances = read_histogram(view, "qk_distance_histogram");
        file.maxima = read_histogram(view, "histogram");
        const auto cells = static_cast<double>(file.maxima.values.size());
        for (std::size_t i = 0; cells > 0 && i < file.maxima.edges.size(); ++i)
            if (std::abs(file.maxima.edges[i] - static_cast<double>(i) / cells) > kTreeRounding)
                view.at("histogram").at("bin_edges").refuse(ErrorCode::format, "expected equal cells from 0 to 1");
        file.queries = read_tokens(view, "top_query_tokens");
        file.keys = read_tokens(view, "top_key_tokens");
        if (const auto statistics = view.find("statistics"))
            file.mean_maximum = number_or_none(*statistics, "mean_max_activation");
        return file;
    }

    TreeText read_text(const JsonView& view) {
        TreeText text;
        text.document = view.at("sequence_id").integer({0, std::int64_t{1} << 53U});
        text.maximum = number_or_none(view, "max_activation");
        const std::vector<std::string> tokens = view.at("tokens").strings();
        const std::int64_t length = view.at("seq_len").integer({0, 1 << 24});
        if (length != std::ssize(tokens))
            view.at("seq_len").refuse(ErrorCode::format, "expected " + std::to_string(tokens.size()) + " tokens");
        text.sequence = sequence_of(view, text.document, tokens);
        const auto places = view.at("attention_indices").integers({0, length * length - 1});
        const std::vector<double> weights = view.at("attention_values").numbers();
        if (places.size() != weights.size())
            view.at("attention_values")
                .refuse(ErrorCode::format, "expected " + std::to_string(places.size()) + " weights");
        // Writers may leave out more than row and column 0, such as the diagonal.
        const double most =
            std::isnan(text.maximum) ? std::numeric_limits<double>::infinity() : text.maximum + kTreeRounding;
        double largest = 0;
        for (std::size_t i = 0; i < places.size(); ++i) {
            const std::int64_t query = places[i] / length, key = places[i] % length;
            if (query == 0 || key == 0 || weights[i] > most || !(weights[i] > largest)) continue;
            largest = weights[i];
            text.query = query;
            text.key = key;
        }
        return text;
    }

    /// Index of a text, which several heads may keep.
    std::int64_t sequence_of(const JsonView& view, std::int64_t document, const std::vector<std::string>& tokens) {
        const auto [known, fresh] = sequences_.try_emplace(document, std::ssize(record_.sequences));
        if (!fresh) {
            if (record_.sequences[static_cast<std::size_t>(known->second)].pieces != tokens)
                view.at("tokens").refuse(ErrorCode::format, "expected the tokens that other heads have of this text");
            return known->second;
        }
        store::SequenceTokens text;
        text.pieces = tokens;
        for (const std::string& token : tokens) {
            text.ids.push_back(id_of(token));
            text.text += token;
        }
        record_.sequences.push_back(std::move(text));
        documents_.push_back(document);
        return known->second;
    }

    std::int32_t id_of(const std::string& token) {
        const auto [place, fresh] = ids_.try_emplace(token, static_cast<std::int32_t>(ids_.size()));
        if (fresh) record_.words[place->second] = token;
        return place->second;
    }

    /// Empty where the tree has none.
    static TreeHistogram read_histogram(const JsonView& head, const char* key) {
        TreeHistogram histogram;
        const auto view = head.find(key);
        if (!view || !view->has("bin_edges")) return histogram;
        histogram.edges = view->at("bin_edges").numbers();
        histogram.values = view->at("bin_values").numbers();
        if (histogram.edges.size() != histogram.values.size() + 1 ||
            !std::is_sorted(histogram.edges.begin(), histogram.edges.end()))
            view->refuse(ErrorCode::format, "expected rising bin_edges, one more than bin_values");
        return histogram;
    }

    std::vector<std::pair<std::int32_t, double>> read_tokens(const JsonView& head, const char* key) {
        std::vector<std::pair<std::int32_t, double>> tokens;
        if (const auto view = head.find(key))
            for (const JsonView& one : view->items())
                tokens.emplace_back(id_of(one.at("token").string()), number_or_none(one, "weight"));
        return tokens;
    }

    void add_tables() {
        CorpusSizes sizes;
        sizes.intervals = intervals_;
        sizes.slots = sizes.distances = sizes.top_tokens = 1;
        std::int64_t cells = 0;  // of largest weights
        for (const auto& [name, file] : files_) {
            sizes.slots = std::max(sizes.slots, std::ssize(file.texts));
            sizes.top_tokens = std::max({sizes.top_tokens, std::ssize(file.queries), std::ssize(file.keys)});
            // Texts of other lengths have fewer cells of distances, never others.
            if (file.distances.values.size() > distance_edges_.size()) {
                distance_edges_ = file.distances.edges;
                distance_edges_.pop_back();
            }
            const std::int64_t own = std::ssize(file.maxima.values);
            if (own > 0 && cells > 0 && own != cells)
                throw Error(ErrorCode::format, place(file_of(name)) + ": histogram",
                            "expected " + std::to_string(cells) + " cells, as other heads have",
                            "found " + std::to_string(own));
            cells = std::max(cells, own);
        }
        sizes.histogram_cells = std::max<std::int64_t>(1, cells);
        sizes.distances = std::max(sizes.distances, std::ssize(distance_edges_));
        store::add_usual_dimensions(record_);
        const double heads = static_cast<double>(record_.sites.size()) * static_cast<double>(record_.size_of("/head"));
        const auto most = static_cast<double>(std::max(
            {sizes.slots, sizes.histogram_cells, sizes.distances, sizes.top_tokens, intervals_, std::ssize(more_)}));
        if (heads * most > kMostTreeCells)
            throw Error(
                ErrorCode::limit, shown(folder_), "expected heads with fewer texts and cells",
                "found tables of more than " + std::to_string(static_cast<std::int64_t>(kMostTreeCells)) + " numbers");
        add_corpus_dimensions(record_, sizes);
        add_corpus_tables(record_);
        for (const std::string& name : more_)
            if (record_.find(corpus_path(name)))
                throw Error(ErrorCode::format, place("config.json") + ": metrics", "expected names of measures",
                            "found " + name + ", a table of ask corpus");
        // The tree has neither indicators nor the boundaries of intervals, nor sums.
        std::erase_if(record_.tables, [](const store::AskTable& table) {
            const auto begins = [&](const char* name) { return table.path.starts_with(corpus_path(name)); };
            return begins("mean/") || begins("std/") || begins("count/") || begins("sum/") || begins("setting_") ||
                   begins("interval_");
        });
        for (const std::string& name : more_) record_.add_table(corpus_path(name), {"/site", "/head"}, name);
    }

    void fill() {
        auto& progress = answer_table(record_, "/corpus/progress").values;
        std::fill(progress.begin(), progress.end(), -1.0);
        progress[kTexts] = static_cast<double>(texts_);
        progress[kTokens] = static_cast<double>(tokens_);
        auto& documents = answer_table(record_, "/corpus/document").values;
        std::copy(documents_.begin(), documents_.end(), documents.begin());
        auto& distances = answer_table(record_, "/corpus/distance").values;
        std::copy(distance_edges_.begin(), distance_edges_.end(), distances.begin());
        for (const auto& [name, file] : files_) fill_head(name, file);
    }

    void fill_head(const HeadName& name, const TreeFile& file) {
        const std::vector<std::int64_t> head{name.first, name.second};
        const auto at = [&](std::size_t place) {
            return std::vector<std::int64_t>{name.first, name.second, static_cast<std::int64_t>(place)};
        };
        for (std::size_t slot = 0; slot < file.texts.size(); ++slot) {
            const TreeText& text = file.texts[slot];
            put(record_, "/corpus/kept", at(slot), static_cast<double>(text.document));
            put(record_, "/corpus/kept_sequence", at(slot), static_cast<double>(text.sequence));
            put(record_, "/corpus/kept_maximum", at(slot), text.maximum);
            put(record_, "/corpus/kept_query", at(slot), static_cast<double>(text.query));
            put(record_, "/corpus/kept_key", at(slot), static_cast<double>(text.key));
        }
        const auto& edges = file.distances.edges;
        if (!std::equal(distance_edges_.begin(),
                        distance_edges_.begin() + static_cast<std::ptrdiff_t>(file.distances.values.size()),
                        edges.begin()))
            throw Error(ErrorCode::format, place(file_of(name)), "expected the bin_edges of distances of other heads",
                        "found other ones");
        for (std::size_t bin = 0; bin < file.distances.values.size(); ++bin)
            put(record_, "/corpus/distance_histogram", at(bin), file.distances.values[bin]);
        for (std::size_t cell = 0; cell < file.maxima.values.size(); ++cell)
            put(record_, "/corpus/maximum_histogram", at(cell), file.maxima.values[cell]);
        for (const auto& [tokens, ids, masses] :
             {std::tuple(&file.queries, "/corpus/query_token", "/corpus/query_mass"),
              std::tuple(&file.keys, "/corpus/key_token", "/corpus/key_mass")}) {
            for (std::size_t i = 0; i < tokens->size(); ++i) {
                put(record_, ids, at(i), (*tokens)[i].first);
                put(record_, masses, at(i), (*tokens)[i].second);
            }
        }
        put(record_, "/corpus/maximum_mean", head, file.mean_maximum);
    }

    void read_scatter() {
        const json own = document("scatter_data.json");
        const JsonView rows(own, place("scatter_data.json"));
        std::set<HeadName> seen;
        for (const JsonView& row : rows.items()) {
            const HeadName name{row.at("layer").integer({0, kMostTreeLayers}),
                                row.at("head").integer({0, kMostTreeHeads})};
            if (!heads_.contains(name)) row.refuse(ErrorCode::format, "expected a head of config.json");
            if (!seen.insert(name).second) row.refuse(ErrorCode::format, "expected each head once");
            const std::vector<std::int64_t> cell{name.first, name.second};
            for (const HeadMeasure& measure : head_measures())
                if (row.has(measure.name)) put(record_, corpus_path(measure.name), cell, row.at(measure.name).number());
            if (row.has("previous_token_score"))
                put(record_, "/corpus/prev_token_score", cell, row.at("previous_token_score").number());
            for (const std::string& measure : more_)
                put(record_, corpus_path(measure), cell, number_or_none(row, measure));
        }
    }

    fs::path folder_;
    store::AskRecord record_;
    std::set<HeadName> heads_;
    std::set<std::string> more_;  ///< measures that ask corpus lacks
    std::string pattern_ = "L{layer}H{head}.json";
    std::int64_t intervals_ = 1, texts_ = -1, tokens_ = -1;
    std::map<HeadName, TreeFile> files_;
    std::map<std::int64_t, std::int64_t> sequences_;  ///< by document
    std::vector<std::int64_t> documents_;             ///< of each sequence
    std::map<std::string, std::int32_t> ids_;
    std::vector<double> distance_edges_;  ///< smallest distances
};

}  // namespace

bool is_headvis_tree(const fs::path& folder) {
    std::error_code ignored;
    return ends_at_regular_file(folder / "config.json") && ends_at_regular_file(folder / "scatter_data.json") &&
           fs::is_directory(folder / "heads", ignored);
}

store::AskRecord read_headvis_tree(const fs::path& folder) {
    return TreeReader(folder).run();
}

}  // namespace headscope::ask::corpus
