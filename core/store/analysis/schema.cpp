// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/analysis/schema.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace headscope::store {
namespace {

using hdf5::Type;
using Names = std::vector<std::string>;

constexpr std::int64_t largest_thumbnail = 128;
constexpr const char* per_head = "; NaN for heads that the site lacks and sites that were not measured";

std::size_t longest_text(const std::vector<SequenceTokens>& sequences) {
    std::size_t longest = 1;
    for (const SequenceTokens& sequence : sequences) longest = std::max(longest, sequence.text.size());
    return longest;
}

std::size_t longest_of_tokens(const std::vector<SequenceTokens>& sequences,
                              std::vector<std::string> SequenceTokens::*texts) {
    std::size_t longest = 1;
    for (const SequenceTokens& sequence : sequences)
        for (const std::string& text : sequence.*texts) longest = std::max(longest, text.size());
    return longest;
}

class Builder {
public:
    explicit Builder(const AnalysisHeader& header) : header_(header) {}

    Schema build() {
        shared_scales();
        model_and_sites();
        tokens("/tokens", header_.sequences);
        for (const auto& [name, stream] : header_.streams) tokens("/streams/" + name, stream);
        indicators();
        scores_and_thumbnails();
        output();
        if (header_.record.states) states();
        if (header_.record.experts) experts();
        extras();
        for (std::int64_t s = 0; s < sequences(); ++s) {
            if (header_.record.maps) maps(s);
            if (header_.record.attention) dense("/attention/", s, "attention weights, row = query");
            if (header_.record.norms) products(s);
            if (header_.record.implicit)
                dense("/implicit_attention/", s, "implicit attention: outputs are this matrix, signed, times values");
        }
        return std::move(schema_);
    }

private:
    std::int64_t sequences() const { return static_cast<std::int64_t>(header_.sequences.size()); }
    std::int64_t sites() const { return static_cast<std::int64_t>(header_.sites.size()); }

    void scale(const std::string& path, std::int64_t size, const std::string& long_name,
               std::vector<double> values = {}, const std::string& units = {}) {
        sizes_[path] = size;
        schema_.scales.push_back({path, size, long_name, std::move(values), units});
    }

    DatasetSpec& add(const std::string& path, Type type, Names dimensions, const std::string& units,
                     const std::string& long_name) {
        DatasetSpec spec{path, type, std::move(dimensions), {}, units, long_name};
        for (const std::string& name : spec.dimensions) spec.shape.push_back(sizes_.at(name));
        schema_.places.emplace(spec.path, schema_.datasets.size());
        schema_.datasets.push_back(std::move(spec));
        return schema_.datasets.back();
    }

    void shared_scales() {
        scale("/sequence", sequences(), "sequence, counted from 0");
        scale("/site", sites(), "attention site, counted from 0");
        scale("/head", header_.most_heads(), "head, counted from 0");
        scale("/token", header_.longest(), "token, counted from 0");
        scale("/layer", static_cast<std::int64_t>(header_.mixers.size()), "layer, counted from 0");
        scale("/bound", 2, "0: begin, 1: end (exclusive)");
        std::vector<double> distances(header_.local_distances.begin(), header_.local_distances.end());
        const auto count = static_cast<std::int64_t>(distances.size());
        scale("/local_distance", count, "distance between query and key", std::move(distances), "token");
        scale("/edge", kernels::kHistogramBins + 1, "edge of the score histogram");
        scale("/bin", kernels::kHistogramBins, "bin of the score histogram, between edges bin and bin + 1");
        scale("/threshold", 3, "absolute score", {10, 100, 1000});
        scale("/thumbnail_query", thumbnail_size(header_), "block of queries");
        scale("/thumbnail_key", thumbnail_size(header_), "block of keys");
    }

    void model_and_sites() {
        add("/model/config", Type::text, {}, "", "the model's configuration as JSON").text_bytes =
            std::max<std::size_t>(header_.config_json.size(), 1);
        std::size_t mixer = 1;
        for (const std::string& name : header_.mixers) mixer = std::max(mixer, name.size());
        add("/model/mixer", Type::text, {"/layer"}, "", "mixer of each layer").text_bytes = mixer;

        const auto text = [&](const char* name, std::string Site::*member, const char* long_name) {
            std::size_t bytes = 1;
            for (const Site& site : header_.sites) bytes = std::max(bytes, (site.*member).size());
            add(std::string("/sites/") + name, Type::text, {"/site"}, "", long_name).text_bytes = bytes;
        };
        const auto number = [&](const char* name, const char* long_name) {
            add(std::string("/sites/") + name, Type::int32, {"/site"}, "", long_name);
        };
        number("layer", "layer that the site belongs to");
        text("stack", &Site::stack, "text, encoder or decoder");
        text("kind", &Site::kind, "self or cross");
        text("branch", &Site::branch, "empty, softmax, linear or difference");
        number("heads", "query heads");
        text("query_stream", &Site::query_stream, "token sequence of the queries");
        text("key_stream", &Site::key_stream, "token sequence of the keys");
        number("key_value_heads", "key-value heads");
        number("key_size", "size of a head's keys");
        number("value_size", "size of a head's values");
        number("causal", "1: a query sees no later key");
        number("has_matrix", "0: no attention matrix, all values absent");
        if (header_.has_implicit()) number("has_implicit", "1: a recurrent mixer, with an implicit matrix");
        number("measured", "0: not measured, all values absent");
        add("/sites/done", Type::int8, {"/sequence", "/site"}, "",
            "1: every value of the sequence at the site is written");
    }

    void tokens(const std::string& group, const std::vector<SequenceTokens>& sequences) {
        add(group + "/ids", Type::int32, {"/sequence", "/token"}, "", "token ids; -1 past a sequence's end");
        add(group + "/length", Type::int32, {"/sequence"}, "token", "tokens of each sequence");
        add(group + "/piece", Type::text, {"/sequence", "/token"}, "", "what each token reads as").text_bytes =
            longest_of_tokens(sequences, &SequenceTokens::pieces);
        add(group + "/offset", Type::int32, {"/sequence", "/token", "/bound"}, "byte",
            "bytes of the text that each token covers; -1 past a sequence's end");
        add(group + "/text", Type::text, {"/sequence"}, "", "the text").text_bytes = longest_text(sequences);
        if (group == "/tokens" && header_.hashed()) {
            add(group + "/hash", Type::text, {"/sequence", "/token"}, "",
                "bits of each word's hash, hexadecimal; empty: none")
                .text_bytes = longest_of_tokens(sequences, &SequenceTokens::hashes);
        }
        if (group != "/tokens" || !header_.pairs()) return;
        add(group + "/type", Type::int32, {"/sequence", "/token"}, "", "token types of a pair; -1: none");
        add(group + "/region", Type::int32, {"/sequence", "/token"}, "",
            "what a pair's token is of: 0 inserted, 1 the first text, 2 the second; -1: none");
    }

    void indicators() {
        const Names heads{"/sequence", "/site", "/head"};
        const auto add_indicator = [this](const kernels::Indicator& one, Names dimensions, const char* absent) {
            add(std::string("/indicators/") + one.name, Type::float64, std::move(dimensions),
                std::string(one.file_unit()), std::string(one.file_text) + absent);
        };
        for (const auto* one : kernels::indicators_of(kernels::IndicatorKind::weights))
            add_indicator(*one, heads, per_head);
        if (header_.pairs())
            for (const auto* one : region_indicators()) add_indicator(*one, heads, per_head);
        add_indicator(*kernels::find_indicator("local_focus"), {"/sequence", "/site", "/head", "/local_distance"},
                      per_head);
        add_indicator(*kernels::find_indicator("head_diversity"), {"/sequence", "/site"},
                      "; NaN for sites that were not measured");
        add("/indicators/column_mass", Type::float32, {"/sequence", "/site", "/head", "/token"}, "",
            std::string("mean weight that each key gets from the queries that may see it") + per_head);
        if (header_.type_chunk > 0) add_indicator(*kernels::find_indicator("softmax_fraction"), heads, per_head);
    }

    void scores_and_thumbnails() {
        add("/logits/edges", Type::float64, {"/edge"}, "", "edges of the score histogram");
        add("/logits/counts", Type::uint64, {"/sequence", "/site", "/head", "/bin"}, "pair",
            "scores before the normaliser, counted over allowed pairs of the sampled rows");
        const Names heads{"/sequence", "/site", "/head"};
        for (const auto* one : kernels::indicators_of(kernels::IndicatorKind::score))
            add("/logits/" + std::string(one->name).substr(std::string_view("score_").size()), Type::float64, heads, "",
                std::string(one->file_text) + per_head);
        add("/logits/above", Type::uint64, {"/sequence", "/site", "/head", "/threshold"}, "pair",
            "allowed pairs whose score exceeds 10, 100, 1000 in absolute value");
        const Names thumbnail{"/sequence", "/site", "/head", "/thumbnail_query", "/thumbnail_key"};
        // Not float16: netCDF-C breaks its heap on it.
        const Type type = header_.thumbnails_float16 ? Type::float16 : Type::float32;
        add("/thumbnails/mean", type, thumbnail, "", "mean weight of each block of the matrix");
        add("/thumbnails/maximum", type, thumbnail, "", "greatest weight of each block of the matrix");
    }

    void output() {
        add("/output/loss", Type::float32, {"/sequence", "/token"}, "nat",
            "loss of predicting the next token; NaN at each sequence's last one");
        if (header_.classes > 0) {
            scale("/class", header_.classes, "class, counted from 0");
            add("/output/class_logits", Type::float32, {"/sequence", "/class"}, "", "logits over the text's classes");
        }
        if (!header_.record.logits) return;
        scale("/vocabulary", header_.vocabulary, "token id");
        add("/output/logits", Type::float32, {"/sequence", "/token", "/vocabulary"}, "",
            "logits over the vocabulary; NaN past a sequence's end")
            .fill = Fill::none;
    }

    void states() {
        for (const char* name : {"q", "k", "v"}) {
            const Names dimensions{"/sequence", "/site", "/head", "/token"};
            const std::string base = std::string("/states/") + name;
            add(base + "_norm", Type::float32, dimensions, "", "L2 norm over the head, before rotary");
            add(base + "_variance", Type::float32, dimensions, "",
                "variance over the head with divisor size - 1, before rotary");
        }
        if (header_.hidden_boundaries == 0) return;
        scale("/boundary", header_.hidden_boundaries, "boundary between layers: 0 before the first");
        const Names dimensions{"/sequence", "/boundary", "/token"};
        add("/states/hidden_norm", Type::float32, dimensions, "", "L2 norm of the hidden state");
        add("/states/hidden_variance", Type::float32, dimensions, "",
            "variance of the hidden state with divisor size - 1");
    }

    void experts() {
        scale("/expert_rank", header_.experts_per_token, "rank of an expert among those of a token, by weight");
        const Names dimensions{"/sequence", "/layer", "/token", "/expert_rank"};
        add("/experts/index", Type::int16, dimensions, "",
            "expert that a token goes through; -1 past a sequence's end and in layers without experts or not measured");
        add("/experts/weight", Type::float32, dimensions, "",
            "what that expert's output is multiplied by; NaN where there is none");
    }

    /// Datasets of mixers in later families.
    void extras() {
        if (header_.type_chunk > 0) {
            scale("/chunk", (header_.longest() + header_.type_chunk - 1) / header_.type_chunk, "chunk of tokens");
            add("/token_types", Type::int8, {"/sequence", "/site", "/head", "/chunk"}, "",
                "0 softmax, 1 linear, -1 none");
        }
        if (header_.record.branches) {
            scale("/branch", 2, "0: linear, 1: softmax");
            add("/branch_weights", Type::float32, {"/sequence", "/site", "/head", "/token", "/branch"}, "",
                std::string("what a token's output of each branch is multiplied by") + per_head);
        }
        if (header_.bias_window > 0) {
            std::vector<double> distances;
            for (std::int64_t i = 0; i < header_.bias_window; ++i)
                distances.push_back(static_cast<double>(header_.bias_first + i));
            scale("/distance", header_.bias_window, "query's position less the key's", std::move(distances), "token");
            add("/parameters/distance_bias", Type::float32, {"/site", "/head", "/distance"}, "",
                std::string("what is added to a score at that distance") + per_head);
        }
        if (header_.has_slopes) {
            add("/parameters/slope", Type::float32, {"/site", "/head"}, "",
                std::string("what a score loses with each token of distance") + per_head);
        }
        if (header_.has_offsets) {
            add("/parameters/offset", Type::float32, {"/site", "/head"}, "",
                std::string("offset of the elastic normaliser") + per_head);
        }
        if (header_.head_embedding_size > 0) {
            scale("/embedding_part", 3, "0: of queries, 1: of keys, 2: of values");
            scale("/embedding_number", header_.head_embedding_size, "number of a head's embedding, counted from 0");
            add("/parameters/head_embedding", Type::float32, {"/site", "/embedding_part", "/head", "/embedding_number"},
                "", std::string("embeddings by which heads differ") + per_head);
        }
    }

    /// The name of a scale of this size beside others: the first size met takes the plain name.
    std::string local_scale(const std::string& group, const std::string& name, std::int64_t size,
                            const std::string& long_name) {
        const std::string plain = group + "/" + name;
        const auto found = sizes_.find(plain);
        if (found != sizes_.end() && found->second == size) return plain;
        const std::string path = found == sizes_.end() ? plain : plain + "_" + std::to_string(size);
        if (!sizes_.contains(path)) scale(path, size, long_name);
        return path;
    }

    void maps(std::int64_t s) {
        const std::string group = "/maps/" + std::to_string(s);
        for (std::int64_t i = 0; i < sites(); ++i) {
            const Site& site = header_.sites[static_cast<std::size_t>(i)];
            if (!header_.measured(site)) continue;
            const Type type = header_.map_type == MapType::float32 ? Type::float32
                              : header_.map_type == MapType::int16 ? Type::int16
                                                                   : Type::float16;
            const std::string head = local_scale(group, "head", site.heads, "query head");
            const std::string kv = local_scale(group, "key_value_head", site.key_value_heads, "key-value head");
            const std::string query = local_scale(group, "query_token", header_.queries(s, site), "query");
            const std::string key = local_scale(group, "key_token", header_.keys(s, site), "key");
            const std::string feature = local_scale(group, "feature", site.key_size, "component of a head");
            const std::string base = map_group(s, i);
            const auto add_numbers = [&](const std::string& path, Names dimensions, const std::string& long_name) {
                DatasetSpec& numbers = add(path, type, std::move(dimensions), "", long_name);
                numbers.fill = Fill::none;
                numbers.scaled = type == Type::int16;
            };
            add_numbers(base + "/query", {head, query, feature}, "queries as they enter the scores");
            add_numbers(base + "/key", {kv, key, feature}, "keys as they enter the scores");
            add(base + "/row_constant", Type::float32, {head, query}, "",
                "what turns a score into a weight: log normaliser or threshold")
                .fill = Fill::none;
        }
    }

    void dense(const std::string& root, std::int64_t s, const std::string& long_name) {
        const std::string group = root + std::to_string(s);
        const bool implicit = root == "/implicit_attention/";
        for (std::int64_t i = 0; i < sites(); ++i) {
            const Site& site = header_.sites[static_cast<std::size_t>(i)];
            if (implicit ? !header_.measured_implicit(site) : !header_.measured(site)) continue;
            DatasetSpec& matrix = add(group + "/" + std::to_string(i), Type::float32,
                                      {local_scale(group, "head", site.heads, "query head"),
                                       local_scale(group, "query_token", header_.queries(s, site), "query"),
                                       local_scale(group, "key_token", header_.keys(s, site), "key")},
                                      "", long_name);
            matrix.fill = Fill::none;
            matrix.compared = implicit;
        }
    }

    void products(std::int64_t s) {
        const std::string group = "/value_products/" + std::to_string(s);
        for (std::int64_t i = 0; i < sites(); ++i) {
            const Site& site = header_.sites[static_cast<std::size_t>(i)];
            if (!header_.measured(site)) continue;
            add(products_path(s, i), Type::float32,
                {local_scale(group, "key_token", header_.keys(s, site), "key"),
                 local_scale(group, "head", site.heads, "query head"),
                 local_scale(group, "other_head", site.heads, "query head")},
                "", "inner products of what two heads give for a key at weight 1: value times output projection")
                .fill = Fill::none;
        }
    }

    const AnalysisHeader& header_;
    Schema schema_;
    std::unordered_map<std::string, std::int64_t> sizes_;
};

}  // namespace

const std::array<const kernels::Indicator*, 9>& region_indicators() {
    static const auto all = [] {
        constexpr const char* regions[] = {"special", "a", "b"};
        std::array<const kernels::Indicator*, 9> found{};
        for (std::size_t k = 0; k < found.size(); ++k)
            found[k] = kernels::find_indicator(std::string(regions[k / 3]) + "_to_" + regions[k % 3]);
        return found;
    }();
    return all;
}

Schema make_schema(const AnalysisHeader& header) {
    return Builder(header).build();
}

const DatasetSpec* Schema::find(const std::string& path) const {
    const auto found = places.find(path);
    return found == places.end() ? nullptr : &datasets[found->second];
}

bool is_stream_name(const std::string& name) {
    const auto good = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), good);
}

std::int64_t thumbnail_size(const AnalysisHeader& header) {
    return std::min(largest_thumbnail, header.longest());
}

std::string map_group(std::int64_t s, std::int64_t site) {
    return "/maps/" + std::to_string(s) + "/" + std::to_string(site);
}

std::string attention_path(std::int64_t s, std::int64_t site) {
    return "/attention/" + std::to_string(s) + "/" + std::to_string(site);
}

std::string products_path(std::int64_t s, std::int64_t site) {
    return "/value_products/" + std::to_string(s) + "/" + std::to_string(site);
}

std::string implicit_path(std::int64_t s, std::int64_t site) {
    return "/implicit_attention/" + std::to_string(s) + "/" + std::to_string(site);
}

}  // namespace headscope::store
