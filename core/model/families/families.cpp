// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/families/families.h"

#include <string>
#include <vector>

#include "core/model/model.h"

namespace headscope::model {

const std::vector<const Family*>& families() {
    static const std::vector<const Family*> all{
#define HEADSCOPE_FAMILY(file, constant) &constant,
#include "core/model/families/list.inc"
#undef HEADSCOPE_FAMILY
    };
    return all;
}

std::vector<std::string> known_families() {
    std::vector<std::string> names;
    for (const Family* family : families()) names.push_back(family->name);
    return names;
}

}  // namespace headscope::model
