// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/presence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"
#include "core/mixers/types/type.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/run_shelf.h"

namespace headscope::widgets {
namespace {

template <class Rule>
bool any_site(const Study* study, Rule rule) {
    return study && std::any_of(study->sites().begin(), study->sites().end(), rule);
}

/// `recorded`: the weights of a normalizer are in the file.
Presence presence_of_weights(const Study* study, bool recorded) {
    const bool matrix = any_site(study, [](const Site& site) { return site.has_matrix; });
    const bool implicit = any_site(study, [](const Site& site) { return site.has_implicit; });
    if (!matrix && !implicit) return Presence::none;
    const bool filled = (matrix && recorded) || (implicit && study->header().record.implicit);
    return filled ? Presence::filled : Presence::unrecorded;
}

}  // namespace

Presence always(const Desk& desk) {
    Q_UNUSED(desk);
    return Presence::filled;
}

Presence with_sites(const Desk& desk) {
    return filled_if(desk.current() && !desk.current()->sites().empty());
}

Presence with_scores(const Desk& desk) {
    return filled_if(any_site(desk.current(), [](const Site& site) { return site.has_matrix; }));
}

Presence with_weights(const Desk& desk) {
    return presence_of_weights(desk.current(), true);
}

Presence with_maps(const Desk& desk) {
    return presence_of_weights(desk.current(), desk.current() && desk.current()->has_maps());
}

Presence with_output(const Desk& desk) {
    if (!desk.current()) return Presence::none;
    const store::AnalysisHeader& header = desk.current()->header();
    const figures::OutputKind kind = figures::output_kind(header);
    if (kind.none) return Presence::none;
    return kind.next || header.record.logits || header.classes > 0 ? Presence::filled : Presence::unrecorded;
}

Presence with_states(const Desk& desk) {
    if (!desk.current()) return Presence::none;
    return desk.current()->header().record.states ? Presence::filled : Presence::unrecorded;
}

Presence with_branches(const Desk& desk) {
    if (!desk.current() || desk.current()->header().type_chunk == 0) return Presence::none;
    return desk.current()->header().record.branches ? Presence::filled : Presence::unrecorded;
}

Presence with_biases(const Desk& desk) {
    if (!desk.current()) return Presence::none;
    return filled_if(desk.current()->header().bias_window > 0 || desk.current()->header().has_slopes);
}

Presence with_results(const Desk& desk, const std::string& recipe) {
    const bool by_length = recipe == "context-perplexity", by_mixer = recipe == "ablation";
    // A first evaluation reports its progress there.
    if (by_length && desk.evaluations().all().empty()) return filled_if(!desk.evaluations().evaluating().isEmpty());
    std::map<figures::Measured, std::set<std::int64_t>> lengths;
    for (const OpenEvaluation& one : desk.evaluations().all()) {
        for (const store::EvaluationResult& result : one.record->results) {
            if (!std::isfinite(result.value) || !figures::draws(recipe, result)) continue;
            if (by_mixer && mixers::is_standard(one.record->models[static_cast<std::size_t>(result.model)].mixer))
                continue;
            if (!by_length) return Presence::filled;
            std::set<std::int64_t>& known = lengths[{result.task, result.metric, result.shots}];
            known.insert(result.length);
            if (known.size() > 1) return Presence::filled;
        }
    }
    return Presence::none;
}

Presence with_ask(const Desk& desk, const std::string& tool) {
    return filled_if(desk.asks().chosen(tool) != nullptr);
}

Presence with_items(const Desk& desk) {
    const auto& all = desk.evaluations().all();
    return filled_if(
        std::any_of(all.begin(), all.end(), [](const OpenEvaluation& one) { return one.record->item_count > 0; }));
}

Presence with_runs(const Desk& desk) {
    return filled_if(!desk.runs().runs().empty());
}

}  // namespace headscope::widgets
