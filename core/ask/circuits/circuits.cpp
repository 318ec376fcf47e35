// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/circuits/circuits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <ATen/TensorOperators.h>
#include <c10/core/InferenceMode.h>

#include "core/ask/answers.h"
#include "core/ask/circuits/head_factors.h"
#include "core/ask/circuits/vocabulary.h"
#include "core/base/error.h"
#include "core/model/model.h"

namespace headscope::ask::circuits {
namespace {

constexpr const char* kCompositions[] = {"/circuits/composition_q", "/circuits/composition_k",
                                         "/circuits/composition_v"};

class Circuits {
public:
    Circuits(const model::Model& model, const CircuitsOptions& options, store::AskRecord& record)
        : options_(options), record_(record), reader_(model, options.fold), maps_(token_maps(model, options.fold)) {
        const bool has_tables = maps_.embedding.defined() && maps_.unembedding.defined();
        const bool has_source = !model.config().encoder || maps_.source.defined();
        shares_vocabulary_ = has_source && !model.config().own_embedding;
        if (options.pairs > 0 && !(has_tables && has_source))
            throw Error(ErrorCode::unsupported, "--pairs", "expected tables of tokens at both ends in float32",
                        "found another embedding or head");
        for (const analysis::HeadIndex& one : options.heads)
            if (std::find(reader_.sites().begin(), reader_.sites().end(), one.site) == reader_.sites().end())
                throw Error(ErrorCode::usage, "--heads", "expected heads of softmax attention with maps of its own",
                            "found head " + std::to_string(one.head) + " of site " + std::to_string(one.site));
        add_tables(has_tables);
    }

    std::int64_t steps() const {
        const std::int64_t sites = std::ssize(reader_.sites());
        return sites + sites * (sites - 1) / 2 + (options_.pairs > 0 ? std::ssize(chosen()) : 0);
    }

    /// `step` is called as many times as steps() says.
    void run(const Cancellation& cancellation, const std::function<void(const std::string&)>& step) {
        const c10::InferenceMode inference;
        const std::vector<std::int64_t>& sites = reader_.sites();
        for (const std::int64_t site : sites) {
            cancellation.check();
            if (!has(record_, "/circuits/ov_singular_values", {site, 0, 0})) site_alone(site, cancellation);
            step("spectra");
        }
        for (std::size_t b = 0; b < sites.size(); ++b) {
            for (std::size_t a = 0; a < b; ++a) {
                cancellation.check();
                const ReadParts reads = read_parts(sites[a], sites[b]);
                const char* const last = reads.value ? kCompositions[2] : kCompositions[0];
                if ((reads.query || reads.value) && !has(record_, last, {sites[a], 0, sites[b], 0}))
                    compose(sites[a], sites[b], reads);
                step("composition");
            }
            none_from(sites, b);
        }
        if (options_.pairs == 0) return;
        for (const analysis::HeadIndex& head : chosen()) {
            if (!has(record_, "/circuits/qk_top_pair_values", {head.site, head.head, 0})) pairs(head, cancellation);
            step("token pairs");
        }
    }

private:
    void add_tables(bool has_tables) {
        std::int64_t most = 1;
        for (const std::int64_t site : reader_.sites()) {
            const Site& own = record_.sites[static_cast<std::size_t>(site)];
            most = std::max<std::int64_t>({most, own.key_size, own.value_size});
        }
        record_.add_dimension("/singular_value", most, "singular value, the largest first");
        record_.add_dimension("/later_site", record_.size_of("/site"), "site of the later head, counted from 0");
        record_.add_dimension("/later_head", record_.size_of("/head"), "head that reads, counted from 0");
        record_.add_dimension("/pair", std::max<std::int64_t>(1, options_.pairs), "token pair, the largest first");
        record_.add_dimension("/pair_token", 2, "0: the query's or source token; 1: the key's or written token");
        if (!record_.tables.empty()) return;
        const std::vector<std::string> heads{"/site", "/head"}, spectra{"/site", "/head", "/singular_value"};
        const std::vector<std::string> two{"/site", "/head", "/later_site", "/later_head"};
        record_.add_table("/circuits/qk_singular_values", spectra, "singular values of W_Q W_K^T");
        record_.add_table("/circuits/ov_singular_values", spectra, "singular values of W_V W_O");
        record_.add_table("/circuits/qk_eigenvalue_score", heads, "real parts of W_Q W_K^T's eigenvalues over moduli");
        record_.add_table("/circuits/ov_eigenvalue_score", heads, "real parts of W_V W_O's eigenvalues over moduli");
        if (has_tables)
            record_.add_table("/circuits/copying_score", heads, "the same of W_E W_V W_O W_U: 1 copies every token");
        for (const char* path : kCompositions)
            record_.add_table(path, two, "composition score; 0 unless the later head is in a later layer or attention");
        for (const char* which : {"qk", "ov"}) {
            if (options_.pairs == 0) break;
            const std::string stem = std::string("/circuits/") + which + "_top_pair";
            record_.add_table(stem + "s", {"/site", "/head", "/pair", "/pair_token"}, "tokens of the largest entries",
                              store::kTokenUnits, true);
            record_.add_table(stem + "_values", {"/site", "/head", "/pair"}, "the largest entries");
        }
    }

    std::vector<analysis::HeadIndex> chosen() const {
        if (!options_.heads.empty()) return options_.heads;
        std::vector<analysis::HeadIndex> all;
        for (const std::int64_t site : reader_.sites())
            for (std::int64_t head = 0; head < record_.sites[static_cast<std::size_t>(site)].heads; ++head)
                all.push_back({site, head});
        return all;
    }

    /// Rows of `values` [.., n], which lie one behind the other from `index` on.
    void put_row(const std::string& path, std::vector<std::int64_t> index, const at::Tensor& values) {
        store::AskTable& table = answer_table(record_, path);
        while (index.size() < table.dimensions.size()) index.push_back(0);
        const at::Tensor row = values.to(at::kDouble).contiguous();
        std::copy_n(row.const_data_ptr<double>(), row.numel(),
                    table.values.begin() + static_cast<std::ptrdiff_t>(cell_of(record_, table, index)));
    }

    const Site& described(std::int64_t site) const { return record_.sites[static_cast<std::size_t>(site)]; }
    static bool is_encoder(const Site& site) { return site.stack == "encoder"; }

    /// The table of the tokens in a stream that queries or keys count.
    const at::Tensor& table_of(const std::string& stream) const {
        return maps_.source.defined() && stream == "tokens" ? maps_.source : maps_.embedding;
    }

    /// Copying leads through the tables of the stream that is read and of the head: an encoder's heads write no tokens.
    bool may_copy(std::int64_t site) const {
        return !is_encoder(described(site)) && (!described(site).is_cross() || shares_vocabulary_);
    }

    /// Singular values of OV are written last.
    void site_alone(std::int64_t site, const Cancellation& cancellation) {
        const HeadFactors own = reader_.factors(site);
        const Triangles& of = triangles_of(site, own);
        const at::Tensor qk = qk_singular_values(of), ov = ov_singular_values(of);
        if (!described(site).is_cross()) {
            put_row("/circuits/qk_eigenvalue_score", {site},
                    eigenvalue_score(own.key.transpose(1, 2).to(at::kDouble).matmul(own.query.to(at::kDouble))));
            put_row("/circuits/ov_eigenvalue_score", {site},
                    eigenvalue_score(own.output.to(at::kDouble).matmul(own.value.to(at::kDouble))));
        }
        if (record_.find("/circuits/copying_score") && may_copy(site)) {
            if (!both_ends_.defined()) both_ends_ = unembedded_embedding(maps_, cancellation);
            put_row("/circuits/copying_score", {site}, copying_score(own, both_ends_));
        }
        for (std::int64_t head = 0; head < own.query.size(0); ++head) {
            put_row("/circuits/qk_singular_values", {site, head}, qk[head]);
            put_row("/circuits/ov_singular_values", {site, head}, ov[head]);
        }
        if (options_.saved) options_.saved();
    }

    /// Queries, keys and values that the later site makes of the stream that the earlier one writes.
    ReadParts read_parts(std::int64_t earlier, std::int64_t later) const {
        const std::string& written = described(earlier).query_stream;
        const bool keys = described(later).key_stream == written;
        return {described(later).query_stream == written, keys, keys};
    }

    void compose(std::int64_t earlier, std::int64_t later, const ReadParts& reads) {
        const HeadFactors a = reader_.factors(earlier);
        if (held_ != later) {
            held_factors_ = reader_.factors(later);
            held_ = later;
        }
        const Composition scores =
            composition(a, triangles_of(earlier, a), held_factors_, triangles_of(later, held_factors_), reads);
        const at::Tensor* const all[] = {&scores.query, &scores.key, &scores.value};
        for (std::size_t kind = 0; kind < 3; ++kind) {
            if (!all[kind]->defined()) continue;
            for (std::int64_t head = 0; head < all[kind]->size(0); ++head)
                put_row(kCompositions[kind], {earlier, head, later}, (*all[kind])[head]);
        }
        if (options_.saved) options_.saved();
    }

    /// Zeros where the second head is not later.
    void none_from(const std::vector<std::int64_t>& sites, std::size_t b) {
        const auto heads = [&](std::int64_t site) { return record_.sites[static_cast<std::size_t>(site)].heads; };
        for (std::size_t a = b; a < sites.size(); ++a)
            for (const char* path : kCompositions)
                for (std::int64_t head = 0; head < heads(sites[a]); ++head)
                    for (std::int64_t later = 0; later < heads(sites[b]); ++later)
                        put(record_, path, {sites[a], head, sites[b], later}, 0);
    }

    void pairs(const analysis::HeadIndex& head, const Cancellation& cancellation) {
        if (held_ != head.site) {
            held_factors_ = reader_.factors(head.site);
            held_ = head.site;
        }
        const HeadFactors& own = held_factors_;
        const Site& site = described(head.site);
        const auto embedded = [&](const std::string& stream, const at::Tensor& maps) {
            return table_of(stream).matmul(maps[head.head]);
        };
        if (!is_encoder(site)) {
            const at::Tensor written = maps_.unembedding.matmul(own.output[head.head].t());
            put_pairs("/circuits/ov_top_pair", head,
                      largest_entries(embedded(site.key_stream, own.value), written, options_.pairs, cancellation));
        }
        put_pairs("/circuits/qk_top_pair", head,
                  largest_entries(embedded(site.query_stream, own.query), embedded(site.key_stream, own.key),
                                  options_.pairs, cancellation));
        if (options_.saved) options_.saved();
    }

    void put_pairs(const std::string& stem, const analysis::HeadIndex& head, const std::vector<TokenPair>& found) {
        for (std::int64_t k = 0; k < std::ssize(found); ++k) {
            const TokenPair& pair = found[static_cast<std::size_t>(k)];
            put(record_, stem + "s", {head.site, head.head, k, 0}, static_cast<double>(pair.row));
            put(record_, stem + "s", {head.site, head.head, k, 1}, static_cast<double>(pair.column));
            put(record_, stem + "_values", {head.site, head.head, k}, pair.value);
        }
    }

    const Triangles& triangles_of(std::int64_t site, const HeadFactors& factors) {
        const auto found = triangles_.find(site);
        return found != triangles_.end() ? found->second : triangles_.emplace(site, triangles(factors)).first->second;
    }

    const CircuitsOptions& options_;
    store::AskRecord& record_;
    HeadReader reader_;
    TokenMaps maps_;
    at::Tensor both_ends_;
    bool shares_vocabulary_ = false;  ///< one table is the source's and the decoder's
    std::map<std::int64_t, Triangles> triangles_;
    std::int64_t held_ = -1;  ///< site of held_factors_
    HeadFactors held_factors_;
};

}  // namespace

void run_circuits(const model::Model& model, const CircuitsOptions& options, store::AskRecord& record,
                  Progress& progress, const Cancellation& cancellation) {
    Circuits circuits(model, options, record);
    const auto all = static_cast<double>(circuits.steps());
    double done = 0;
    circuits.run(cancellation, [&](const std::string& what) { progress.advance(++done, all, what); });
    record.complete = true;
}

}  // namespace headscope::ask::circuits
