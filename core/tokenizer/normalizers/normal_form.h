// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/tokenizer/aligned_text.h"

namespace headscope::tokenizer {

/// NFC, NFD, NFKC or NFKD (Unicode standard annex 15) of the text. Data from utf8proc, without what the reference's
/// older tables lack.
void apply_normal_form(AlignedText& text, bool compatible, bool composed);

}  // namespace headscope::tokenizer
