// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/families/families.h"

#include <vector>

namespace headscope::model {

const std::vector<const Family*>& families() {
    static const std::vector<const Family*> all{
        &kGpt2,
        &kLlama,
        &kQwen2,
        &kBert,
    };
    return all;
}

}  // namespace headscope::model
