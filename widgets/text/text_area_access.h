// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace headscope::widgets {

class TokenTextArea;

/// From now on screen readers can read what a TokenTextArea shows: its text, the chosen token as the cursor, each
/// token's value as an attribute of its characters.
void enable_text_access();

void tell_text_changed(TokenTextArea* area);
void tell_token_chosen(TokenTextArea* area, std::int64_t token);

}  // namespace headscope::widgets
