// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Names of sites, the same in every table, view and figure. A name has only the parts that distinguish the site within
// its model: the stack if there are several, kind or branch if the layer has several sites. Threads: any.

#include <cstdint>
#include <span>
#include <string>

#include "core/base/site.h"

namespace headscope {

/// For axes, columns and boxes: "3", "decoder 3 cross", "1 softmax".
std::string site_label(std::span<const Site> sites, std::int64_t site);

/// For sentences: "layer 3", "decoder layer 3, cross-attention", "layer 1, softmax branch".
std::string site_title(std::span<const Site> sites, std::int64_t site);

/// The same at the start of a sentence or a heading: "Layer 1, softmax branch".
std::string site_heading(std::span<const Site> sites, std::int64_t site);

}  // namespace headscope
