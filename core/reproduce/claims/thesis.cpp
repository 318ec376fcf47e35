// SPDX-License-Identifier: GPL-3.0-or-later
// Xue's thesis: performance retention (PRR) and elasticity of parameters (PEoP).

#include <cmath>

#include "core/cost/thesis.h"
#include "core/reproduce/claims/code.h"

namespace headscope::reproduce {
namespace {

/// PRR against the baseline, PEoP against SHA, both of each seed; PEoP with the errors of both scores. Encoders without
/// heads share nothing.
void derive(const Plan& plan, Measured& measured) {
    constexpr const char* smallest = "sha";
    for (const auto& [score, stack] : {std::pair{"passages", "encoder"},
                                       {"spoilt", "encoder"},
                                       {"perplexity", "decoder"},
                                       {"bleu", "translation"}}) {
        const std::string counted = std::string("attention ") + stack;
        const double fewest = measured.value(smallest, counted);
        const bool lower = score == std::string("perplexity");
        const Series least = measured.series(smallest, score), base = measured.series(plan.paper->baseline, score);
        for (const Model& model : plan.paper->models) {
            const double parameters = measured.value(model.name, counted), more = parameters / fewest - 1;
            const bool elastic = std::abs(more) > 0 && model.stacks.empty();
            const Series own = measured.series(model.name, score);
            Series retained, elasticity;
            for (std::size_t seed = 0; seed < own.values.size(); ++seed) {
                const double value = own.values[seed];
                if (seed < base.values.size())
                    retained.values.push_back(cost::performance_retention(value, base.values[seed], lower));
                if (!elastic || seed >= least.values.size()) continue;
                const double smaller = least.values[seed];
                elasticity.values.push_back(cost::performance_elasticity(value, smaller, parameters, fewest, lower));
                elasticity.error = std::fmax(
                    elasticity.error, std::hypot(own.error, value / smaller * least.error) / std::abs(smaller * more));
            }
            if (!retained.values.empty()) measured.values[{model.name, std::string("retention ") + score}] = retained;
            if (!elasticity.values.empty())
                measured.values[{model.name, std::string("elasticity ") + score}] = elasticity;
        }
    }
}

}  // namespace

const PaperCode kThesis{"thesis", nullptr, nullptr, derive, nullptr};

}  // namespace headscope::reproduce
