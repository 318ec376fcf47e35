// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/branches.h"

#include <string>

#include "core/base/error.h"

namespace headscope::model {

std::int64_t branch_site(const std::vector<Site>& sites, LayerIndex layer, std::string_view branch) {
    for (std::size_t i = 0; i < sites.size(); ++i)
        if (sites[i].layer == layer.value && sites[i].branch == branch) return static_cast<std::int64_t>(i);
    throw Error(ErrorCode::internal, "layer " + std::to_string(layer.value),
                "expected a site of the branch " + std::string(branch), "found none");
}

at::Tensor softmax_fraction(const at::Tensor& types) {
    const at::Tensor softmax = types.eq(0).sum(-1), typed = types.ge(0).sum(-1);
    return (softmax.to(at::kDouble).div(typed)).contiguous();
}

}  // namespace headscope::model
