// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/figures/recipe.h"
#include "widgets/desk/study.h"

namespace headscope::widgets {

/// The model's choices for a token, or classes of a token or a text, most probable first, and where the one stands that
/// is there.
struct Predictions {
    struct Choice {
        std::int32_t id = 0;
        double probability = 0;
    };
    std::vector<Choice> best;
    std::int64_t rank = -1;  ///< of the token that is there, from 0; -1: none is, or they are classes
    Choice actual;
    double only = 0;  ///< the logit, where there is one alone: a regression's number
};

/// Pieces of the tokens that occur in an analysis: the part of the vocabulary that it has; and the kind of its logits.
struct KnownPieces {
    std::unordered_map<std::int32_t, QString> labels;
    figures::OutputKind output;
};
std::int64_t bytes_of(const KnownPieces& known);

/// The most probable class of each token of a sequence; NaN where it has no logits.
struct TokenClasses {
    std::vector<float> best;
    std::int64_t classes = 0;
};
inline std::int64_t bytes_of(const TokenClasses& classes) {
    return static_cast<std::int64_t>(classes.best.size() * sizeof(float));
}

/// Mean loss per sequence, over those that have one.
struct MeanLoss {
    std::int64_t sequences = 0;
    double mean = 0, deviation = 0;  ///< nats; divisor n - 1, NaN for one sequence
};

/// The stream of tokens that the model's output is about.
std::string output_stream(const store::AnalysisHeader& header);

/// Softmax of one row of logits.
Predictions predictions_of(const std::vector<double>& logits, std::int64_t actual, std::size_t most);

/// For a token, from the logits before it or its own. Null value, nothing pending and no failure: the file has none.
Reply<Predictions> predictions(Study& study, std::int64_t sequence, std::int64_t token, std::size_t most,
                               figures::OutputKind output);
/// Predictions of a head of token classes; a null value as above.
Reply<TokenClasses> token_classes(Study& study, std::int64_t sequence);
/// Predictions of the text's classes, likewise.
Reply<Predictions> class_predictions(Study& study, std::int64_t sequence, std::size_t most);
Reply<KnownPieces> known_pieces(Study& study);
Reply<MeanLoss> mean_loss(Study& study);

}  // namespace headscope::widgets
