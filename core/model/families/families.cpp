// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/families/families.h"

#include <string>
#include <vector>

#include "core/model/model.h"

namespace headscope::model {

const std::vector<const Family*>& families() {
    static const std::vector<const Family*> all{
        &kGpt2,
        &kLlama,
        &kQwen2,
        &kBert,
        &kRoberta,
        &kDistilbert,
        &kAlbert,
        &kModernBert,
        &kOpt,
        &kBloom,
        &kGptNeox,
        &kMistral,
        &kQwen3,
        &kGemma2,
        &kPhi,
        &kGptj,
        &kOlmo2,
        &kGptOss,
        &kT5,
        &kBart,
    };
    return all;
}

std::vector<std::string> known_families() {
    std::vector<std::string> names;
    for (const Family* family : families()) names.push_back(family->name);
    return names;
}

}  // namespace headscope::model
