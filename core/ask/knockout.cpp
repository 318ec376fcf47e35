// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/knockout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "core/ask/answers.h"
#include "core/ask/cells.h"
#include "core/ask/sweep.h"
#include "core/base/error.h"
#include "core/model/model.h"

namespace headscope::ask {
namespace {

using model::Point;
using model::PointKey;

/// Layers that one run edits, both inclusive, and its cell of the tables.
struct KnockoutWindow {
    std::int64_t first = 0, last = 0;
    std::string table;
    std::size_t cell = 0;
    bool has(std::int64_t layer) const { return layer >= first && layer <= last; }
};

/// Heads by site; an empty list: all heads.
using HeadsBySite = std::map<std::int64_t, std::vector<std::int64_t>>;

/// By site: [queries, keys] bool.
using EdgesBySite = std::map<std::int64_t, at::Tensor>;

/// Row b of a batch loses its edges in the layers of window b.
class EdgeEditor final : public model::Editor {
public:
    EdgeEditor(const std::vector<KnockoutWindow>& rows, const EdgesBySite& edges, const HeadsBySite& heads)
        : rows_(&rows), edges_(&edges), heads_(&heads) {}

    bool edits(const PointKey& key) const override {
        return key.point == Point::scores && heads_->contains(key.site) &&
               std::any_of(rows_->begin(), rows_->end(), [&](const KnockoutWindow& row) { return row.has(key.layer); });
    }

    at::Tensor edit(const model::EditPlace& place, const at::Tensor& value) override {
        reached.insert(place.key.site);
        at::Tensor rows = at::zeros({value.size(0), 1, 1, 1}, at::kBool);
        for (std::size_t b = 0; b < rows_->size(); ++b)
            if ((*rows_)[b].has(place.key.layer)) rows.select(0, static_cast<std::int64_t>(b)).fill_(true);
        const std::vector<std::int64_t>& list = heads_->at(place.key.site);
        at::Tensor heads = at::zeros({1, value.size(1), 1, 1}, at::kBool);
        if (list.empty()) heads.fill_(true);
        for (const std::int64_t head : list) heads.select(1, head).fill_(true);
        const at::Tensor edges = edges_->at(place.key.site)
                                     .narrow(0, place.first_position, value.size(2))
                                     .narrow(1, 0, value.size(3))
                                     .unsqueeze(0)
                                     .unsqueeze(0);
        constexpr double hidden = -std::numeric_limits<double>::infinity();
        const at::Tensor forbidden = edges.logical_and(rows).logical_and(heads);
        changes = changes || forbidden.logical_and(value.ne(hidden)).any().item<bool>();
        return value.masked_fill(forbidden, hidden);
    }

    std::set<std::int64_t> reached;  ///< sites whose scores came by
    bool changes = false;            ///< an edge had a score: the site's own mask, as of a window, does not hide it

private:
    const std::vector<KnockoutWindow>* rows_;
    const EdgesBySite* edges_;
    const HeadsBySite* heads_;
};

at::Tensor knockout_positions(const std::vector<model::PositionRange>& ranges, std::int64_t length) {
    at::Tensor chosen = at::zeros({length}, at::kBool);
    for (const model::PositionRange& range : ranges) {
        const std::int64_t first = std::max<std::int64_t>(0, range.first < 0 ? length + range.first : range.first);
        const std::int64_t last = std::min(length - 1, range.last < 0 ? length + range.last : range.last);
        if (first <= last) chosen.narrow(0, first, last - first + 1).fill_(true);
    }
    return chosen;
}

class Knockout {
public:
    static constexpr const char* kBaseline = "/knockout/baseline";
    static constexpr const char* kValue = "/knockout/value";

    Knockout(model::Model& model, const KnockoutOptions& options, store::AskRecord& record)
        : model_(model), options_(options), record_(record), layers_(std::ssize(record.mixers)) {
        options.metric.check(model);
        options.metric.check_texts(record.sequences);
        choose_heads();
        for (std::int64_t s = 0; s < std::ssize(record.sequences); ++s) edges_of(s);
        if (!record.tables.empty()) return;
        record.add_table(kBaseline, {"/sequence"}, "metric of the run with all edges");
        record.add_table(kValue, {"/sequence"}, "metric with the edges forbidden in all layers");
        if (options.window > 0)
            record.add_table("/knockout/by_layer", {"/sequence", "/layer"},
                             "metric with the edges forbidden in " + std::to_string(options.window) +
                                 " layers around each; NaN where these have no chosen head");
    }

    /// Runs of a text that have no number yet.
    std::vector<KnockoutWindow> open(std::int64_t s) const {
        std::vector<KnockoutWindow> rows;
        const auto add = [&](const std::string& table, const std::vector<std::int64_t>& index, std::int64_t first,
                             std::int64_t last) {
            if (has(record_, table, index)) return;
            const KnockoutWindow row{first, last, table, cell_of(record_, record_.table(table), index)};
            const auto inside = [&](const auto& one) { return row.has(layer_of(one.first)); };
            if (std::any_of(heads_.begin(), heads_.end(), inside)) rows.push_back(row);
        };
        add(kValue, {s}, 0, layers_ - 1);
        const auto& encoder = model_.config().encoder;
        const std::int64_t border = encoder ? encoder->layers : 0;  // a window has layers of one side alone
        for (std::int64_t layer = 0; options_.window > 0 && layer < layers_; ++layer) {
            const std::int64_t first = layer - options_.window / 2, last = first + options_.window - 1;
            if (layer < border)
                add("/knockout/by_layer", {s, layer}, first, std::min(last, border - 1));
            else
                add("/knockout/by_layer", {s, layer}, std::max(first, border), last);
        }
        return rows;
    }

    void sequence(std::int64_t s, const Cancellation& cancellation, const std::function<void()>& step) {
        const TextInput text = text_input(record_.sequences[static_cast<std::size_t>(s)]);
        const EdgesBySite edges = edges_of(s);
        double baseline = 0;
        const Measure measure =
            measure_from_run(model_, options_.metric, text, options_.editor, cancellation, baseline);
        put(record_, kBaseline, {s}, baseline);
        each_batch(open(s), text.tokens(), cancellation, [&](const std::vector<KnockoutWindow>& rows) {
            EdgeEditor editor(rows, edges, heads_);
            const std::vector<double> found =
                measure_rows(model_, text, std::ssize(rows), {options_.editor, &editor}, measure, cancellation);
            check_reached(rows, editor.reached);
            // The first run edits all layers.
            if (!editor.changes && rows.front().table == kValue)
                refuse_edges(s, "expected queries that see one of --keys in a layer's window,");
            for (std::size_t i = 0; i < rows.size(); ++i) {
                answer_table(record_, rows[i].table).values[rows[i].cell] = found[i];
                step();
            }
        });
    }

private:
    std::int64_t layer_of(std::int64_t site) const { return model_.sites()[static_cast<std::size_t>(site)].layer; }

    [[noreturn]] void refuse(std::int64_t site) const {
        const std::int64_t layer = layer_of(site);
        throw Error(ErrorCode::usage, options_.heads.empty() ? "ask knockout" : "--heads",
                    "expected heads of layers with attention scores",
                    "layer " + std::to_string(layer) + " (" + record_.mixers[static_cast<std::size_t>(layer)] +
                        ") has no scores");
    }

    [[noreturn]] void refuse_edges(std::int64_t s, const std::string& expected) const {
        const store::SequenceTokens& text = record_.sequences[static_cast<std::size_t>(s)];
        std::string length = std::to_string(text.ids.size()) + " tokens";
        if (text.target) length += " with a target of " + std::to_string(text.target->ids.size());
        throw Error(ErrorCode::usage, "--queries", expected + " in text " + std::to_string(s) + " of " + length,
                    "found none");
    }

    void check_attention() const {
        if (options_.attention == KnockoutIn::all) return;
        const auto expect = [](bool right, const char* expected, const char* found) {
            if (!right) throw Error(ErrorCode::usage, "--attention", expected, found);
        };
        expect(model_.config().encoder != nullptr, "expected all, as the model has one stack", "found another choice");
        expect(options_.heads.empty(), "expected all with --heads", "found another choice");
    }

    bool chosen(const Site& site) const {
        switch (options_.attention) {
            case KnockoutIn::all:
                return true;
            case KnockoutIn::encoder:
                return site.stack == "encoder";
            case KnockoutIn::decoder:
                return site.stack == "decoder" && site.is_self();
            case KnockoutIn::cross:
                return site.is_cross();
        }
        return false;
    }

    void choose_heads() {
        check_attention();
        for (const PointKey& key : model::places_of(Point::scores, model_.config(), model_.sites()))
            if (options_.heads.empty() && chosen(model_.sites()[static_cast<std::size_t>(key.site)]))
                heads_[key.site] = {};
        for (const analysis::HeadIndex& one : options_.heads) {
            if (!model_.sites()[static_cast<std::size_t>(one.site)].has_matrix) refuse(one.site);
            heads_[one.site].push_back(one.head);
        }
        if (heads_.empty()) refuse(0);
    }

    /// Every chosen head has scores; where all were chosen, some have.
    void check_reached(const std::vector<KnockoutWindow>& rows, const std::set<std::int64_t>& reached) const {
        if (options_.heads.empty() && !reached.empty()) return;
        for (const auto& [site, list] : heads_)
            for (const KnockoutWindow& row : rows)
                if (row.has(layer_of(site)) && !reached.contains(site)) refuse(site);
    }

    at::Tensor edges_of(const store::SequenceTokens& text, std::int64_t site) const {
        const Site& own = model_.sites()[static_cast<std::size_t>(site)];
        const PointKey place{Point::scores, own.layer, site};
        const auto length = [&](bool target) { return std::ssize(target ? text.predicted().ids : text.ids); };
        const at::Tensor queries = knockout_positions(options_.queries, length(counts_target(place, model_)));
        const at::Tensor keys = knockout_positions(options_.keys, length(keys_count_target(place, model_)));
        const at::Tensor edges = queries.unsqueeze(1).logical_and(keys.unsqueeze(0));
        return own.stack == "encoder" || own.is_cross() ? edges : edges.tril();
    }

    /// Edges of the chosen sites. Throws usage where no query sees any of the keys.
    EdgesBySite edges_of(std::int64_t s) const {
        const store::SequenceTokens& text = record_.sequences[static_cast<std::size_t>(s)];
        EdgesBySite edges;
        bool any = false;
        for (const auto& [site, list] : heads_) {
            edges[site] = edges_of(text, site);
            any = any || edges[site].any().item<bool>();
        }
        if (!any) refuse_edges(s, "expected queries that see one of --keys");
        return edges;
    }

    model::Model& model_;
    const KnockoutOptions& options_;
    store::AskRecord& record_;
    std::int64_t layers_;
    HeadsBySite heads_;
};

}  // namespace

void run_knockout(model::Model& model, const KnockoutOptions& options, store::AskRecord& record, Progress& progress,
                  const Cancellation& cancellation) {
    Knockout knockout(model, options, record);
    sweep_texts(knockout, record, Knockout::kBaseline, 0, progress, options.saved, cancellation);
    record.complete = true;
}

}  // namespace headscope::ask
