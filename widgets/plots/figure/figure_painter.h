// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/figures/figure_data.h"
#include "core/figures/figure_style.h"

namespace headscope::widgets {

using figures::FigureStyle;

/// Draws `figure` into a .pdf, .svg or .png by its ending, whole or not at all. Needs a QApplication (the offscreen
/// platform is enough, see offscreen.h) and its thread. The same figure and style give the same bytes on every
/// platform that has the same fonts. Throws Error: usage (ending, style), io, limit (a picture too large).
void export_figure(const figures::FigureData& figure, const FigureStyle& style, const std::string& path);

/// The bytes that export_figure() writes; format: "pdf", "svg", "png".
std::string render_figure(const figures::FigureData& figure, const FigureStyle& style, const std::string& format);

}  // namespace headscope::widgets
