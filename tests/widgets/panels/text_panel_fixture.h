// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The text panel, with made-up models and tokens.

#include <QString>
#include <cstddef>
#include <cstdint>

#include "widgets/panels/text_choice.h"
#include "widgets/panels/text_panel.h"
#include "widgets/plots/figure/offscreen.h"

namespace headscope::tests {

inline widgets::ModelCard card(int id, bool head = true) {
    widgets::ModelCard made;
    made.id = id;
    made.name = QStringLiteral("model %1").arg(id);
    made.family = QStringLiteral("llama");
    made.layers = 4;
    made.heads = 8;
    made.max_positions = 1024;
    made.tokenizer = true;
    made.head = head;
    return made;
}

inline widgets::TokenPreview preview(std::size_t tokens) {
    widgets::TokenPreview made;
    made.sequences.resize(1);
    made.sequences[0].tokens = static_cast<std::int64_t>(tokens);
    for (std::size_t i = 0; i < tokens; ++i)
        made.sequences[0].chips.push_back({QStringLiteral("token%1").arg(i % 97), QString::number(i), i == 0, false});
    made.first_token = QStringLiteral("added by the tokenizer");
    return made;
}

struct ShownTextPanel {
    bool application = (widgets::ensure_application(), true);
    widgets::TextPanel panel;
};

}  // namespace headscope::tests
