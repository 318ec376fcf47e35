// SPDX-License-Identifier: GPL-3.0-or-later
// Options of the page that a figure is drawn on.
#include "core/figures/options/option_kinds.h"

namespace headscope::figures {
namespace {

FigureOption font_family_option() {
    FigureOption option{"font-family", "NAME", "Name of an installed font (default: Noto Sans)", {}, false, {}, {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        if (values.back().empty()) refuse_value("font-family", "the name of a font", "none");
        request.style.font_family = values.back();
    };
    option.get = [](const FigureRequest& request) -> OptionValues {
        const auto& family = request.style.font_family;
        return family == FigureStyle().font_family ? OptionValues{} : OptionValues{family};
    };
    return option;
}

FigureOption colour_map_option() {
    FigureOption option{
        "colour-map", "NAME", "Color map, see list colour-maps; one of each kind may be given", {}, true, {}, {}};
    for (const auto& map : colour_maps()) option.choices.push_back(map.name);
    option.set = [choices = option.choices](FigureRequest& request, const OptionValues& values) {
        for (const auto& name : values) {
            check_choice(choices, name, "--colour-map");
            (find_colour_map(name)->kind == ColourMap::diverging ? request.style.diverging_map
                                                                 : request.style.sequential_map) = name;
        }
    };
    option.get = [](const FigureRequest& request) {
        const FigureStyle standard;
        OptionValues names;
        if (request.style.sequential_map != standard.sequential_map) names.push_back(request.style.sequential_map);
        if (request.style.diverging_map != standard.diverging_map) names.push_back(request.style.diverging_map);
        return names;
    };
    return option;
}

FigureOption title_option() {
    FigureOption option{"title", "TEXT", "Title in place of the figure's own", {}, false, {}, {}};
    option.set = [](FigureRequest& request, const OptionValues& values) { request.style.title_text = values.back(); };
    option.get = [](const FigureRequest& request) -> OptionValues {
        return request.style.title_text.empty() ? OptionValues{} : OptionValues{request.style.title_text};
    };
    return option;
}

FigureOption no_title_option() {
    FigureOption option{"no-title", "", "Draw no title", {}, false, {}, {}};
    option.set = [](FigureRequest& request, const OptionValues&) { request.style.title = false; };
    option.get = [](const FigureRequest& request) { return request.style.title ? OptionValues{} : OptionValues{""}; };
    return option;
}

}  // namespace

void add_style_options(std::vector<FigureOption>& all) {
    const std::size_t first = all.size();
    all.push_back(
        real_style("width", "MM", "Width in mm (85: one column, 180: two columns)", 30, 2000, &FigureStyle::width_mm));
    all.push_back(
        real_style("height", "MM", "Height in mm (default: as the panels need)", 20, 2000, &FigureStyle::height_mm));
    all.push_back(font_family_option());
    all.push_back(real_style("font-size", "POINTS", "Size of the text in points", 3, 40, &FigureStyle::font_points));
    all.push_back(real_style("dpi", "N", "Resolution of a PNG in dots per inch", 36, 2400, &FigureStyle::dpi));
    all.push_back(choice<bool>("theme", "Colors of the page", {{"light", false}, {"dark", true}},
                               [](FigureRequest& r) -> bool& { return r.style.dark; }));
    all.push_back(colour_map_option());
    all.push_back(choice<bool>("labels", "Label axes with tokens (on) or with positions (off)",
                               {{"on", true}, {"off", false}},
                               [](FigureRequest& r) -> bool& { return r.style.labels; }));
    all.push_back(title_option());
    all.push_back(no_title_option());
    for (std::size_t i = first; i < all.size(); ++i) all[i].of_page = true;
}

}  // namespace headscope::figures
