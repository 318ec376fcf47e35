// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Rules that several views share (ViewKind::presence). All of them read headers alone.

#include "widgets/desk/view.h"

namespace headscope::widgets {

Presence always(const Desk& desk);
/// The analysis has sites.
Presence with_sites(const Desk& desk);
/// Some site has weights of softmax or another normalizer.
Presence with_scores(const Desk& desk);
/// Some site has weights, of a normalizer or as an implicit matrix that was recorded.
Presence with_weights(const Desk& desk);
/// Weights of each pair of tokens are in the file.
Presence with_maps(const Desk& desk);
/// The model predicts tokens, or its logits were recorded.
Presence with_output(const Desk& desk);
Presence with_states(const Desk& desk);
/// The analysis recorded the branches of NAtS-L.
Presence with_branches(const Desk& desk);
/// Scores have a bias by distance.
Presence with_biases(const Desk& desk);
/// Some run is open.
Presence with_runs(const Desk& desk);
/// Open evaluations hold results that this recipe draws.
Presence with_results(const Desk& desk, const std::string& recipe);
/// A file of this tool of `headscope ask` is open.
Presence with_ask(const Desk& desk, const std::string& tool);
/// Open evaluations hold answers to items.
Presence with_items(const Desk& desk);

/// filled or none.
constexpr Presence filled_if(bool filled) {
    return filled ? Presence::filled : Presence::none;
}

}  // namespace headscope::widgets
