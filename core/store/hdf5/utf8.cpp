// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/hdf5/utf8.h"

#include <cstdio>

#include "core/base/text/text.h"

namespace headscope::store {

std::string readable_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        char32_t point = 0;
        std::size_t length = decode_utf8(text, point);
        if (length == 0) {
            char buffer[8];
            std::snprintf(buffer, sizeof buffer, "<0x%02X>", static_cast<unsigned char>(text[0]));
            out += buffer;
            length = 1;
        } else {
            out.append(text.substr(0, length));
        }
        text.remove_prefix(length);
    }
    return out;
}

}  // namespace headscope::store
