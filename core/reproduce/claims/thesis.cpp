// SPDX-License-Identifier: GPL-3.0-or-later
// Xue's thesis: performance retention (PRR) and elasticity of parameters (PEoP).

#include <cmath>

#include "core/cost/thesis.h"
#include "core/reproduce/claims/code.h"

namespace headscope::reproduce {
namespace {

/// PRR against the baseline; PEoP against SHA, with the errors of both scores. Encoders without heads share nothing.
void derive(const Plan& plan, Measured& measured) {
    constexpr const char* smallest = "sha";
    for (const auto& [score, stack] : {std::pair{"passages", "encoder"},
                                       {"spoilt", "encoder"},
                                       {"perplexity", "decoder"},
                                       {"bleu", "translation"}}) {
        const std::string counted = std::string("attention ") + stack;
        const double fewest = measured.value(smallest, counted);
        const Estimate least = measured.estimate(smallest, score);
        for (const Model& model : plan.paper->models) {
            const double parameters = measured.value(model.name, counted), more = parameters / fewest - 1;
            const Estimate own = measured.estimate(model.name, score);
            const bool lower = score == std::string("perplexity");
            measured.set(model.name, std::string("retention ") + score,
                         cost::performance_retention(own.value, measured.value(plan.paper->baseline, score), lower));
            if (!(std::abs(more) > 0) || !std::isfinite(own.value) || !model.stacks.empty()) continue;
            measured.set(model.name, std::string("elasticity ") + score,
                         cost::performance_elasticity(own.value, least.value, parameters, fewest, lower),
                         std::hypot(own.error, own.value / least.value * least.error) / std::abs(least.value * more));
        }
    }
}

}  // namespace

const PaperCode kThesis{"thesis", nullptr, nullptr, derive, nullptr};

}  // namespace headscope::reproduce
