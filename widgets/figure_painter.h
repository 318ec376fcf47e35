// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/figures/figure.h"

namespace headscope::widgets {

struct FigureStyle {
    double width_mm = 180;  ///< two columns of a paper; 85: one column
    double height_mm = 0;   ///< 0: follows from the panels
    bool dark = false;
    double font_points = 8;
    bool title = true;
    double dpi = 300;  ///< PNG only; vector output is true to size
};

/// Draws `figure` into a .pdf, .svg or .png by its ending, whole or not at all. Needs a QApplication (the offscreen
/// platform is enough, see offscreen.h) and its thread. The same figure and style give the same bytes on every
/// platform that has the same fonts. Throws Error: usage (ending, style), io, limit (a picture too large).
void export_figure(const figures::FigureData& figure, const FigureStyle& style, const std::string& path);

/// The bytes that export_figure() writes; format: "pdf", "svg", "png".
std::string render_figure(const figures::FigureData& figure, const FigureStyle& style, const std::string& format);

}  // namespace headscope::widgets
