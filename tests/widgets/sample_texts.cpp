// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of tokens: a coloured text, links, curves with words.
#include <cmath>
#include <limits>

#include "tests/widgets/sample_figures.h"

namespace headscope::tests {

using namespace figures;

FigureData sample_text(int tokens) {
    const std::vector<std::string> words{" the", " wind", "ow", " of", " light", ",", " 月", "↵", " sea", " 🙂"};
    FigureData figure;
    figure.recipe = "text";
    figure.title = "Which tokens are looked at";
    figure.notes = {"A note."};
    figure.shared_colours = true;
    TextBlock block;
    block.colours.label = "column mass";
    for (int i = 0; i < tokens; ++i) {
        TextBlock::Chip chip;
        chip.text = i == 0 ? "<s>" : words[static_cast<std::size_t>(i * 7 % 10)];
        chip.values.assign(i % 9 == 4 ? 3 : 1, static_cast<float>(i % 5) / 4);
        if (i % 6 == 5) chip.values = {std::numeric_limits<float>::quiet_NaN()};
        chip.outlined = i == 0;
        chip.stressed = i == 7;
        chip.space_before = i % 11 == 3;
        chip.breaks_after = chip.text == "↵" ? 1 : 0;
        block.chips.push_back(chip);
    }
    Panel panel;
    panel.content = std::move(block);
    figure.panels.push_back(std::move(panel));
    return figure;
}

FigureData sample_links(int tokens, int panels) {
    FigureData figure;
    figure.recipe = "lines";
    figure.title = "Attention, layer 2";
    figure.columns = panels;
    figure.reflow = true;
    figure.narrowest_mm = 22;
    figure.widest_mm = 70;
    figure.panel_height_mm = 40;
    for (int p = 0; p < panels; ++p) {
        Links links;
        links.left_label = "query";
        links.right_label = "key";
        links.first_left = 10;
        for (int i = 0; i < tokens; ++i) {
            links.left.push_back(i % 3 == 0 ? "␣the" : "␣lantern");
            links.right.push_back(i % 4 == 0 ? "月光" : "antidise…rianism");
            for (int j = 0; j <= i; j += 2)
                links.links.push_back({i, j, 1.0F / static_cast<float>(i + 1), (i + j) % 3});
        }
        Panel panel;
        panel.title = panels > 1 ? "model " + std::to_string(p) : "";
        panel.content = std::move(links);
        figure.panels.push_back(std::move(panel));
    }
    figure.legend = {{"head 0", 0}, {"head 3", 1}, {"head 5", 2}};
    return figure;
}

FigureData sample_labelled_curves() {
    FigureData figure;
    figure.recipe = "loss";
    figure.title = "Next-token loss";
    Panel panel;
    panel.x.label = "position";
    panel.y.label = "loss (nats)";
    Curves curves;
    for (int k = 0; k < 12; ++k) {
        Curve curve;
        curve.name = "layer " + std::to_string(k);
        curve.shade = k / 11.0;
        curve.faint = k == 0;
        for (int i = 0; i < 200; ++i) {
            curve.x.push_back(i);
            curve.y.push_back(5 + std::sin(i * 0.1 + k) + k * 0.2);
            curve.error.push_back(i % 20 == 0 ? 0.3 : std::numeric_limits<double>::quiet_NaN());
        }
        curves.curves.push_back(std::move(curve));
        figure.legend.push_back({"layer " + std::to_string(k), 0, k / 11.0});
    }
    // The second meets the first and gives way; the third would stick out.
    curves.labels = {{100, 7.2, "␣lantern"}, {101, 7.2, "␣lost"}, {199, 6.0, "␣at the very end"}, {500, 5, "outside"}};
    panel.x.range = std::pair(0.0, 199.0);
    panel.content = std::move(curves);
    figure.panels.push_back(std::move(panel));
    figure.panel_aspect = 0.45;
    return figure;
}

}  // namespace headscope::tests
