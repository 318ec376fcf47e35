// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QString>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/store/analysis/analysis_header.h"

namespace headscope::widgets {

/// One text of a request: typed, a file, or a bundled example's name.
struct TextSource {
    enum class Kind { text, file, example };
    Kind kind = Kind::text;
    QString value;
    bool used = true;
    bool operator==(const TextSource&) const = default;
};

/// A bundled text.
struct TextExample {
    QString name, text;
};

/// Edits of the forward pass, as `--interventions` reads them.
struct InterventionText {
    QString toml;   ///< empty: none
    QString place;  ///< the file that it was read from or saved to; vectors are read relative to its folder
    bool operator==(const InterventionText&) const = default;
};

/// Choices of the text panel: those of the command line's `analyze`. Values only.
struct TextChoice {
    enum class First { automatic, yes, no };
    int model = 0;  ///< id of a ModelCard; 0: none
    std::vector<TextSource> sources;
    QString pair;    ///< the second text of a pair with each of them; empty: no pairs
    QString target;  ///< the decoder's side of an encoder-decoder
    First first = First::automatic;
    bool chat = false;          ///< through the checkpoint's chat template
    bool repeat_token = false;  ///< every token becomes the text's first one
    /// Tokens kept of each text; 0: all that the model has positions for, or all where `whole` or beyond_positions.
    std::int64_t length = 0;
    bool whole = false;    ///< a text beyond the model's positions is refused, not cut
    bool windows = false;  ///< cut into windows of `length` instead of to it
    /// Transformer-XL: how many tokens are read at once, 0: all; and before them, -1: as the model has.
    std::int64_t segment = 0, memory = -1;
    bool beyond_positions = false;
    bool maps = true, states = false, logits = false, experts = false, norms = false, implicit = false,
         branches = false;
    /// Given: these tokens are run as they are, whatever `sources` says (an analysis that is run again).
    std::shared_ptr<const std::vector<store::SequenceTokens>> tokens, target_tokens;
    QString labels;                          ///< a file of labels of these tokens, for an encoder's head; empty: none
    QString device = QStringLiteral("cpu");  ///< as the command line's --device has it
    QString switch_off;                      ///< heads, as the command line's --switch-off has them: "3.1,4.2"
    bool mean = false;                       ///< their output becomes its mean, else zero
    InterventionText interventions;
    bool operator==(const TextChoice&) const = default;
};

QJsonObject to_json(const TextChoice& choice);
/// Missing or wrong values keep their defaults. The model is not part of it.
TextChoice text_choice_from(const QJsonObject& object);

/// An open checkpoint as panels show it.
struct ModelCard {
    int id = 0;
    QString path, name, family;
    std::int64_t parameters = 0, layers = 0, heads = 0, key_value_heads = 0, max_positions = 0, vocabulary = 0;
    bool tokenizer = false, causal = true, encoder_decoder = false, head = false, chat_template = false,
         experts = false, recurrent = false;  ///< recurrent: some layer has an implicit matrix
    bool memory = false;                      ///< of earlier segments: Transformer-XL
    bool loaded = false;                      ///< the weights are in memory
    bool tensors_only = false;                ///< no configuration, or an unknown one: to be looked at, not to be run
    QString note;                             ///< tensors that were left over, choices that were filled in
};

/// The tokens that a choice would give, and what analysing them would cost.
struct TokenPreview {
    struct Chip {
        QString text;                          ///< as shown
        QString hint;                          ///< id, piece, position
        bool special = false, joined = false;  ///< joined: continues the character of the chip before
    };
    struct Sequence {
        std::vector<Chip> chips;
        std::int64_t tokens = 0;
    };
    std::vector<Sequence> sequences;
    QString failure;                           ///< why there are none, or why they cannot be analyzed
    QString first_token;                       ///< what was done about it
    double seconds = 0, memory = 0, file = 0;  ///< estimates; bytes
    double spilled = 0;                        ///< estimate of bytes on the disk while it runs
    bool beyond = false;                       ///< a sequence is longer than the model's positions
    std::int64_t uncut = 0;  ///< tokens of the longest text that was cut to the model's positions; 0: none was
};

}  // namespace headscope::widgets
