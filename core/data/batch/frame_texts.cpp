// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/batch/frame_texts.h"

#include <algorithm>

namespace headscope::data {

SpoiltSequence frame_texts(const TokenCode& code, std::span<const tokenizer::FramePart> frame,
                           std::span<const std::int64_t> text, std::span<const std::int64_t> other,
                           std::int64_t padding) {
    SpoiltSequence out;
    for (const tokenizer::FramePart& part : frame) {
        const std::size_t before = out.ids.size();
        if (part.token)
            code.append_special(*part.token, out);
        else
            code.unpack(part.text == 0 ? text : other, out);
        out.types.insert(out.types.end(), out.ids.size() - before, part.type);
    }
    if (out.ids.empty()) {
        code.append_special(std::max<std::int64_t>(padding, 0), out);
        out.types.push_back(0);
    }
    if (std::all_of(out.types.begin(), out.types.end(), [](std::int64_t type) { return type == 0; })) out.types.clear();
    return out;
}

}  // namespace headscope::data
