// SPDX-License-Identifier: GPL-3.0-or-later
// What differs between two analyses, or two sequences, layers or heads of one: the second minus the first. Indicators
// as signed heat maps with the heads that differ most, or the attention maps of one head.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/figures/map_difference.h"
#include "core/figures/recipe.h"
#include "core/figures/recipes/indicator_grid.h"

namespace headscope::figures {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr double kRounding = 1e-12;
constexpr std::size_t kListed = 10;

bool of_maps(const FigureOptions& options) {
    return options.layer && options.head && options.indicator.empty();
}

/// Another head, of the same analysis or of the second.
bool of_other_head(const FigureOptions& options) {
    return options.other_layer || options.other_head;
}

/// Files and options that say what is subtracted from what.
void check_request(Files files, const FigureOptions& options) {
    if (options.values != MapValues::weights && options.values != MapValues::logits) {
        throw Error(ErrorCode::usage, "--values", "expected weights or scores",
                    "found " + std::string(options.values == MapValues::rollout ? "rollout" : "norms"));
    }
    if (of_other_head(options) && !of_maps(options)) {
        throw Error(ErrorCode::usage, options.other_head ? "--other-head" : "--other-layer",
                    "expected --layer and --head beside it, of whose map it is the difference", "found none");
    }
    if (options.sides && !of_maps(options)) {
        throw Error(ErrorCode::usage, "--sides", "expected --layer and --head with it: it draws both maps",
                    options.indicator.empty() ? "found none" : "found --indicator");
    }
    if (options.other_sequence && options.all_sequences) {
        throw Error(ErrorCode::usage, "--other-sequence", "expected one --sequence beside it", "found all of them");
    }
    if (files.size() != 2) {
        throw Error(ErrorCode::usage, "figure difference",
                    "expected two analysis files, or one with --other-sequence, or with --layer, --head and "
                    "--other-layer or --other-head",
                    "found " + std::to_string(files.size()));
    }
    const auto count = std::ssize(files[1]->header().sequences);
    if (options.other_sequence && *options.other_sequence >= count) {
        throw Error(ErrorCode::usage, "--other-sequence",
                    "expected 0 to " + std::to_string(count - 1) + " of " + file_name(*files[1]),
                    "found " + std::to_string(*options.other_sequence));
    }
}

/// Two files whose layers and heads are the same, and as many sequences of both.
void check_alike(Files files, const FigureOptions& options) {
    const auto& a = files[0]->header();
    const auto& b = files[1]->header();
    const auto shape = [](const store::AnalysisHeader& header) {
        return std::to_string(header.sites.size()) + " attentions of up to " + std::to_string(header.most_heads()) +
               " heads";
    };
    bool same = a.sites.size() == b.sites.size();
    for (std::size_t i = 0; same && i < a.sites.size(); ++i)
        same = a.sites[i].heads == b.sites[i].heads && a.sites[i].layer == b.sites[i].layer &&
               a.sites[i].kind == b.sites[i].kind;
    if (!same) {
        not_alike("expected two models with the same layers and heads, or one map of each with --layer and --head",
                  "found " + file_name(*files[0]) + " with " + shape(a) + " and " + file_name(*files[1]) + " with " +
                      shape(b));
    }
    const auto first = chosen_sequences(*files[0], options),
               second = chosen_sequences(*files[1], minuend_options(options));
    if (first.size() != second.size()) {
        not_alike("expected as many sequences in both files",
                  "found " + std::to_string(first.size()) + " and " + std::to_string(second.size()));
    }
}

/// Second minus first of one indicator; means over the chosen sequences.
struct Difference {
    IndicatorGrid grid;  ///< of the first file; its values are unused
    std::vector<double> first, second, value, deviation;
    double range = 0;  ///< of the indicator over both files
};

/// Two analyses of one model may have measured different layers, or other distances.
void check_alike(const IndicatorGrid& a, const IndicatorGrid& b, Files files) {
    if (a.sites == b.sites && a.columns == b.columns && a.first_head == b.first_head &&
        a.values.size() == b.values.size())
        return;
    const auto shape = [](const IndicatorGrid& grid) {
        return std::to_string(grid.sites.size()) + " layers by " + std::to_string(grid.columns) + " heads";
    };
    not_alike("expected " + a.title + " of the same layers and heads in both files",
              "found " + shape(a) + " in " + file_name(*files[0]) + " and " + shape(b) + " in " + file_name(*files[1]));
}

std::vector<Difference> read_differences(Files files, const FigureOptions& options) {
    std::vector<std::string> names;
    const auto other = chosen_indicators(*files[1], options);
    for (const auto& name : chosen_indicators(*files[0], options)) {
        if (std::find(other.begin(), other.end(), name) != other.end()) names.push_back(name);
    }
    std::vector<Difference> all;
    // [sequence][cell] of each file's grids, by their indicators: local focus may be at other distances.
    std::map<std::string, std::vector<std::vector<double>>> values[2];
    const auto sequences = chosen_sequences(*files[0], options),
               others = chosen_sequences(*files[1], minuend_options(options));
    for (std::size_t s = 0; s < sequences.size(); ++s) {
        FigureOptions one = options;
        one.all_sequences = false;
        for (std::size_t f = 0; f < 2; ++f) {
            one.sequence = f == 0 ? sequences[s] : others[s];
            std::vector<IndicatorGrid> grids;
            for (const auto& name : names) add_indicator_grids(grids, *files[f], "", name, one);
            for (auto& grid : grids) {
                values[f][grid.indicator].push_back(grid.values);
                if (f == 0 && s == 0)
                    all.push_back({std::move(grid), {}, {}, {}, {}, 0});
                else if (f == 1)
                    for (const auto& difference : all)
                        if (difference.grid.indicator == grid.indicator) check_alike(difference.grid, grid, files);
            }
        }
    }
    std::erase_if(all, [&](const Difference& one) { return !values[1].contains(one.grid.indicator); });
    if (all.empty()) {
        not_alike("expected an indicator, and distances of local focus, that both files have",
                  "found none in " + file_name(*files[0]) + " and " + file_name(*files[1]));
    }
    for (auto& difference : all) {
        const auto& ours = values[0].at(difference.grid.indicator);
        const auto& theirs = values[1].at(difference.grid.indicator);
        Extent extent;
        for (std::size_t cell = 0; cell < difference.grid.values.size(); ++cell) {
            std::vector<double> first, second, each;
            for (std::size_t s = 0; s < sequences.size(); ++s) {
                first.push_back(ours[s][cell]);
                second.push_back(theirs[s][cell]);
                each.push_back(second.back() - first.back());
            }
            const Moments over = moments(each);
            difference.first.push_back(moments(first).mean);
            difference.second.push_back(moments(second).mean);
            difference.value.push_back(over.mean);
            difference.deviation.push_back(over.deviation);
            for (const double value : {difference.first.back(), difference.second.back()}) {
                if (!std::isfinite(value)) continue;
                extent.low = std::min(extent.low, value);
                extent.high = std::max(extent.high, value);
            }
        }
        difference.range = extent.high > extent.low ? extent.high - extent.low : 0;
    }
    return all;
}

/// A head's difference in one indicator, and how large it is beside the indicator's range.
struct Place {
    std::size_t difference = 0, cell = 0;
    double size = 0;
};

/// Heads by how much they differ, most first; without values of whole layers.
std::vector<Place> ranked(const std::vector<Difference>& all) {
    std::vector<Place> places;
    for (std::size_t d = 0; d < all.size(); ++d) {
        if (all[d].grid.per_layer || !(all[d].range > 0)) continue;
        for (std::size_t cell = 0; cell < all[d].value.size(); ++cell) {
            const double value = all[d].value[cell];
            if (std::isfinite(value)) places.push_back({d, cell, std::abs(value) / all[d].range});
        }
    }
    std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.size > b.size; });
    return places;
}

std::string signed_number(double value) {
    return (value > 0 ? "+" : value < 0 ? "−" : "") + short_number(std::abs(value));
}

std::string list_note(const std::vector<Difference>& all, const std::vector<Place>& places) {
    std::string note = "Largest differences:";
    std::size_t listed = 0;
    for (const auto& place : places) {
        if (listed == kListed || !(place.size > 0)) break;
        const auto& difference = all[place.difference];
        const auto columns = static_cast<std::size_t>(difference.grid.columns);
        note += (listed > 0 ? ", " : " ") + difference.grid.labels[place.cell / columns] + "." +
                std::to_string(difference.grid.first_head + static_cast<std::int64_t>(place.cell % columns)) +
                (all.size() > 1 ? " " + difference.grid.title : "") + " " + signed_number(difference.value[place.cell]);
        ++listed;
    }
    if (listed == 0) return "No head differs.";
    return note + " (layer.head" + (all.size() > 1 ? ", by share of the indicator's range)." : ").");
}

Panel panel(const Difference& difference, bool several) {
    Panel drawn;
    const auto& grid = difference.grid;
    const std::string name = grid.title + (grid.unit.empty() ? "" : " (" + grid.unit + ")");
    if (several) drawn.title = name;
    HeatMap map;
    map.rows = std::ssize(grid.sites);
    map.columns = grid.columns;
    map.write_values = true;
    map.pooling = Pooling::extreme;
    map.colours.map = ColourMap::diverging;
    double most = 0;
    for (const double value : difference.value) {
        map.values.push_back(std::isfinite(value) ? static_cast<float>(value) : kNone);
        if (std::isfinite(value)) most = std::max(most, std::abs(value));
    }
    map.colours.maximum = most > kRounding ? most : 1;
    map.colours.minimum = -map.colours.maximum;
    if (!several) map.colours.label = "difference, " + name;
    for (std::int64_t r = 0; r < map.rows; ++r)
        drawn.y.ticks.push_back({static_cast<double>(r), grid.labels[static_cast<std::size_t>(r)]});
    if (!grid.per_layer) {
        for (std::int64_t c = 0; c < map.columns; ++c)
            drawn.x.ticks.push_back({static_cast<double>(c), std::to_string(grid.first_head + c)});
        drawn.x.label = "head";
    }
    drawn.y.label = "layer";
    drawn.content = std::move(map);
    return drawn;
}

Table difference_table(const std::vector<Difference>& all, const std::vector<Place>& places, bool over_sequences) {
    std::vector<std::string> site, indicator;
    std::vector<std::int64_t> layer, head, rank;
    std::vector<double> first, second, value, deviation;
    std::vector<std::vector<std::int64_t>> ranks;
    for (const auto& difference : all) ranks.emplace_back(difference.value.size(), -1);
    for (std::size_t i = 0; i < places.size(); ++i)
        ranks[places[i].difference][places[i].cell] = static_cast<std::int64_t>(i) + 1;
    for (std::size_t d = 0; d < all.size(); ++d) {
        const auto& grid = all[d].grid;
        const auto columns = static_cast<std::size_t>(grid.columns);
        for (std::size_t cell = 0; cell < all[d].value.size(); ++cell) {
            layer.push_back(grid.layers[cell / columns]);
            site.push_back(grid.labels[cell / columns]);
            head.push_back(grid.per_layer ? -1 : grid.first_head + static_cast<std::int64_t>(cell % columns));
            indicator.push_back(grid.indicator);
            first.push_back(all[d].first[cell]);
            second.push_back(all[d].second[cell]);
            value.push_back(all[d].value[cell]);
            deviation.push_back(all[d].deviation[cell]);
            rank.push_back(ranks[d][cell]);
        }
    }
    Table table{{{"layer", std::move(layer)},
                 {"site", std::move(site)},
                 {"head", std::move(head)},
                 {"indicator", std::move(indicator)},
                 {"first", std::move(first)},
                 {"second", std::move(second)},
                 {"difference", std::move(value)},
                 {"rank", std::move(rank)}}};
    if (over_sequences) table.columns.push_back({"deviation", std::move(deviation)});
    return table;
}

FigureData of_indicators(Files files, const FigureOptions& options) {
    auto all = read_differences(files, options);
    const bool several = options.indicator.empty() || all.size() > 1;
    FigureData figure;
    std::string zero, missing;
    std::int64_t rows = 1, columns = 1;
    for (const auto& difference : all) {
        const auto every = [&](auto property) {
            return std::all_of(difference.value.begin(), difference.value.end(), property);
        };
        const bool none = every([](double v) { return std::isnan(v); });
        const bool same = every([](double v) { return std::isnan(v) || std::abs(v) <= kRounding; });
        if (several && same) {
            auto& list = none ? missing : zero;
            list += (list.empty() ? "" : "; ") + difference.grid.title;
            continue;
        }
        figure.panels.push_back(panel(difference, several));
        rows = std::max(rows, std::ssize(difference.grid.sites));
        columns = std::max(columns, difference.grid.columns);
    }
    if (figure.panels.empty()) figure.panels.push_back(panel(all.front(), several));
    figure.columns = several ? 4 : 1;
    figure.reflow = true;
    figure.narrowest_mm = several ? 24 : 40;
    figure.panel_aspect = std::clamp(
        static_cast<double>(rows) / static_cast<double>(std::max<std::int64_t>(columns, 4)), several ? 0.55 : 0.3, 1.5);
    if (!several) figure.widest_mm = std::max(40.0, static_cast<double>(columns) * 14);
    figure.shared_colours = figure.panels.size() == 1 && !several;
    figure.share_y = true;
    figure.share_x = std::all_of(all.begin(), all.end(), [&](const Difference& difference) {
        return difference.grid.per_layer || difference.grid.columns == columns;
    });
    figure.notes = source_notes(files, options);
    figure.notes.emplace_back(several ? "Compared minus baseline; each indicator has its own scale, symmetric around 0."
                                      : "Compared minus baseline, on a scale symmetric around 0. Gray: none.");
    const auto places = ranked(all);
    figure.notes.push_back(list_note(all, places));
    if (!missing.empty()) figure.notes.push_back("Left out, as not defined in both: " + missing + ".");
    if (!zero.empty()) figure.notes.push_back("Left out, as equal in both: " + zero + ".");
    figure.table = [all = std::move(all), places, over = options.all_sequences] {
        return difference_table(all, places, over);
    };
    return figure;
}

/// ", layer 3, head 1" of the options of a side.
std::string place_of(const store::AnalysisFile& file, const FigureOptions& of) {
    std::string text;
    if (of.layer) text += ", " + chosen_title(file, of);
    if (of.head) text += ", head " + std::to_string(*of.head);
    return text;
}

/// Names of the first and the second side: parts that distinguish them.
std::array<std::string, 2> side_names(Files files, const FigureOptions& options,
                                      const std::vector<std::string>& names) {
    const auto side = [&](const FigureOptions& of, std::size_t f) {
        std::string text = of_other_head(options) ? place_of(*files[f], of) : "";
        if (options.other_sequence) text += ", sequence " + std::to_string(of.sequence.value_or(0));
        if (text.empty()) return names[f];
        return text.substr(2) + (names.size() > 1 ? " of " + names[f] : "");
    };
    return {side(options, 0), side(minuend_options(options), 1)};
}

void set_titles(FigureData& figure, Files files, const FigureOptions& options, const std::vector<std::string>& names) {
    const bool maps = of_maps(options), logits = options.values == MapValues::logits;
    const auto [baseline, compared] = side_names(files, options, names);
    figure.title = maps                        ? (logits ? "Attention scores" : "Attention")
                   : options.indicator.empty() ? "Indicators"
                                               : indicator_title(options.indicator);
    // Layer and head are named once, or on both sides.
    if (!of_other_head(options)) figure.title += place_of(*files[0], options);
    figure.title += ": " + compared + " minus " + baseline;
    if (!options.sides) return;
    const std::array<std::string, 3> titles{"Baseline: " + baseline, "Compared: " + compared, "Compared − baseline"};
    for (std::size_t i = 0; i < figure.panels.size(); ++i) {
        std::string& title = figure.panels[i].title;
        title = titles[i % titles.size()] + (title.empty() ? "" : ", " + title);
    }
}

FigureData difference(Files given, const FigureOptions& options) {
    std::vector<std::shared_ptr<store::AnalysisFile>> pair(given.begin(), given.end());
    if (given.size() == 1 && (of_other_head(options) || options.other_sequence)) pair.push_back(pair.front());
    const Files files(pair);
    check_request(files, options);
    const bool maps = of_maps(options);
    if (!maps) check_alike(files, options);
    FigureData figure = maps ? map_difference(files, options) : of_indicators(files, options);
    set_titles(figure, files, options, file_labels(given, options));
    return figure;
}

}  // namespace

extern const Recipe kDifference{
    .name = "difference",
    .description =
        "difference of two analyses (the second minus the first, the "
        "baseline), or of two sequences, layers or heads of one: indicators, "
        "or the maps of --layer and --head, cells paired by their tokens",
    .needs = "indicators: models alike; maps: analyze --record maps",
    .of_analyses = difference,
    .options = {"layer", "head", "sequence", "names", "indicator", "scale", "values", "pooling", "pixels",
                "other-sequence", "other-layer", "other-head", "sides", "tower", "from-query", "to-query", "from-key",
                "to-key"},
};

}  // namespace headscope::figures
