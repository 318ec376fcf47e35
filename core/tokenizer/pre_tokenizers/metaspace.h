// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/base/json/json.h"

namespace headscope::tokenizer {

enum class PrependScheme : unsigned char { always, first, never };

/// Fields shared by Metaspace as pre-tokenizer and as decoder, in old files and new.
struct MetaspaceFields {
    std::string replacement;  ///< one character, mostly U+2581
    PrependScheme prepend = PrependScheme::always;
};
MetaspaceFields metaspace_fields(const JsonView& description);

}  // namespace headscope::tokenizer
