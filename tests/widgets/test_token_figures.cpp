// SPDX-License-Identifier: GPL-3.0-or-later
// Texts and links as they are laid out and drawn.
#include <QImage>
#include <catch2/catch.hpp>
#include <set>

#include "tests/widgets/sample_figures.h"
#include "widgets/fonts.h"
#include "widgets/plots/chart/link_lines.h"
#include "widgets/plots/chart/text_chips.h"
#include "widgets/plots/figure/figure_layout.h"
#include "widgets/plots/figure/figure_painter.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::widgets;

TEST_CASE("Tokens of a text wrap within their panel, in order, and none is lost", "[widgets][text]") {
    ensure_application();
    for (const double width : {40.0, 85.0, 180.0}) {
        FigureStyle style;
        style.width_mm = width;
        const auto figure = tests::sample_text(300);
        const auto layout = make_layout(figure, style);
        const auto& block = std::get<figures::TextBlock>(figure.panels[0].content);
        REQUIRE(layout.panels.size() == 1);
        const auto& panel = layout.panels[0];
        REQUIRE(panel.chips.size() == block.chips.size());
        INFO("at " << width << " mm");
        std::size_t wrong = 0;
        std::set<double> lines;
        for (std::size_t i = 0; i < panel.chips.size(); ++i) {
            const auto& chip = panel.chips[i];
            wrong += panel.plot.adjusted(-1, -1, 1, 1).contains(chip.rect) ? 0 : 1;
            wrong += chip.chip == &block.chips[i] ? 0 : 1;
            wrong += text_width(figure_font(style.font_points), chip.text) <= chip.rect.width() ? 0 : 1;
            lines.insert(chip.rect.top());
            if (i == 0) continue;
            const auto& before = panel.chips[i - 1].rect;
            const bool after = chip.rect.top() > before.top() + 1 || chip.rect.left() > before.right();
            wrong += after && chip.rect.top() >= before.top() ? 0 : 1;
            // A line feed ends its line.
            if (block.chips[i - 1].breaks_after > 0) wrong += chip.rect.top() > before.top() ? 0 : 1;
        }
        CHECK(wrong == 0);
        CHECK(lines.size() > 30);
        REQUIRE(layout.shared_bar.has_value());
        CHECK(layout.shared_bar->left() > panel.plot.right());
    }
}

TEST_CASE("Tokens of a word stay on one line where it has room", "[widgets][text]") {
    ensure_application();
    figures::TextBlock block;
    for (const char* text : {"one", " lan", "ter", "n", " end"})
        block.chips.push_back({text, {1}, false, false, false, 0, 0});
    const QFont font = figure_font(8);
    // "one lan" fits, "one lantern" does not, "lantern" does.
    const double width = text_width(font, " lan") + text_width(font, "ter") + text_width(font, "n") + 40;
    const auto chips = place_chips(block, font, width);
    CHECK(chips[1].rect.top() > chips[0].rect.top());
    CHECK(chips[1].rect.left() == 0);
    CHECK(chips[2].rect.top() == chips[1].rect.top());
    CHECK(chips[3].rect.top() == chips[1].rect.top());
    CHECK(chips[4].rect.top() > chips[1].rect.top());
    // Too long for any line: it is broken where it must be.
    const auto narrow = place_chips(block, font, text_width(font, " lan") + text_width(font, "ter") + 12);
    CHECK(narrow[2].rect.top() == narrow[1].rect.top());
    CHECK(narrow[3].rect.top() > narrow[2].rect.top());
}

TEST_CASE("A token wider than a line is elided", "[widgets][text]") {
    ensure_application();
    figures::TextBlock block;
    block.chips.push_back({std::string(300, 'm'), {1}, false, false, false, 0, 0});
    block.chips.push_back({"next", {1}, false, false, false, 0, 0});
    const auto chips = place_chips(block, figure_font(8), 400);
    REQUIRE(chips.size() == 2);
    CHECK(chips[0].rect.width() <= 400);
    CHECK(chips[0].text.contains(QChar(0x2026)));
    CHECK(chips[1].rect.top() > chips[0].rect.top());
}

TEST_CASE("Links have a row for each token and words at both sides", "[widgets][links]") {
    ensure_application();
    const auto figure = tests::sample_links(20, 1);
    const auto layout = make_layout(figure, {});
    const auto& plot = layout.panels.at(0).plot;
    int left = 0, right = 0;
    for (const auto& text : layout.texts) {
        if (text.text == "␣the" || text.text == "␣lantern") {
            CHECK(text.rect.right() <= plot.left() + 1);
            ++left;
        }
        if (text.text == "月光" || text.text.startsWith("antidise")) {
            CHECK(text.rect.left() >= plot.right() - 1);
            ++right;
        }
    }
    CHECK(left == 20);
    CHECK(right == 20);
    FigureStyle positions;
    positions.labels = false;
    const auto without = make_layout(figure, positions);
    CHECK(std::count_if(without.texts.begin(), without.texts.end(),
                        [](const PlacedText& text) { return text.text == "29"; }) == 1);
    CHECK(std::none_of(without.texts.begin(), without.texts.end(),
                       [](const PlacedText& text) { return text.text == "␣the"; }));
}

TEST_CASE("Words beside points stay inside the plot and clear of each other", "[widgets][curves]") {
    ensure_application();
    const QString svg = QString::fromStdString(render_figure(tests::sample_labelled_curves(), {}, "svg"));
    CHECK(svg.contains("lantern"));
    CHECK(!svg.contains("lost"));
    CHECK(svg.contains("at the very end"));
    CHECK(!svg.contains("outside"));
}
