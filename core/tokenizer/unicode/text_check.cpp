// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/unicode/text_check.h"

#include <cstdint>
#include <limits>
#include <string>

#include "core/base/error.h"
#include "core/base/text/text.h"

namespace headscope::tokenizer {

void check_text(std::string_view text) {
    constexpr std::size_t longest_text = std::numeric_limits<std::int32_t>::max();
    if (text.size() > longest_text) {
        throw Error(ErrorCode::limit, "text", "expected less than 2 GiB",
                    "found " + std::to_string(text.size()) + " bytes");
    }
    const std::size_t invalid = find_invalid_utf8(text);
    if (invalid != std::string_view::npos) {
        throw Error(ErrorCode::format, "text", "expected UTF-8",
                    "found \"" + escaped(text.substr(invalid, 1)) + "\" at byte " + std::to_string(invalid));
    }
}

}  // namespace headscope::tokenizer
