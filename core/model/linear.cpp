// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/blocks.h"

namespace headscope::model {

std::int64_t Linear::outputs() const {
    return packed ? packed->rows() : weight.size(0);
}

std::int64_t Linear::elements() const {
    return packed ? packed->rows() * packed->columns() : weight.numel();
}

void Linear::declare(TensorPlan& plan, const std::string& stem, const Dimension& out, const Dimension& in,
                     bool with_bias) {
    plan.want_linear(&weight, stem, out, in);
    if (with_bias) plan.want(&bias, {stem + ".bias"}, {out});
}

void Linear::declare_for_products(TensorPlan& plan, const std::string& stem, const Dimension& out, const Dimension& in,
                                  bool with_bias) {
    plan.want_linear(&weight, stem, out, in);
    plan.allow_product(&packed);
    if (with_bias) plan.want(&bias, {stem + ".bias"}, {out});
}

}  // namespace headscope::model
