// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/options/figure_options.h"

#include <algorithm>

#include "core/figures/options/option_kinds.h"
#include "core/figures/task_averages.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kFewestCells = 16, kMostCells = 8192;

/// Recipes that draw analyses.
std::vector<std::string> of_analyses() {
    std::vector<std::string> names;
    for (const auto& recipe : recipes())
        if (recipe.of_analyses) names.push_back(recipe.name);
    return names;
}

std::vector<std::string> with(std::vector<std::string> names, const std::string& more) {
    names.push_back(more);
    return names;
}

constexpr const char* kMean = "mean";

/// Numbers with commas between, of an option that may repeat; `mean`: or that word.
std::vector<std::int64_t> read_list(const std::string& option, const OptionValues& values, bool mean = false) {
    std::vector<std::int64_t> list;
    for (const std::string& text : values) {
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find(',', begin), text.size());
            const std::string one = text.substr(begin, end - begin);
            list.push_back(mean && one == kMean ? kMeanOfHeads : read_count(option, one));
            begin = end + 1;
        }
    }
    return list;
}

std::string list_of(const std::vector<std::int64_t>& numbers) {
    std::string list;
    for (const auto number : numbers)
        list += (list.empty() ? "" : ",") + (number == kMeanOfHeads ? kMean : std::to_string(number));
    return list;
}

/// One number is that of all files, several are kept apart.
void set_one_or_several(const std::vector<std::int64_t>& numbers, std::optional<std::int64_t>& one,
                        std::vector<std::int64_t>& several) {
    if (numbers.size() == 1)
        one = numbers.front();
    else
        several = numbers;
}

OptionValues one_or_several(const std::optional<std::int64_t>& one, const std::vector<std::int64_t>& several) {
    if (one) return {list_of({*one})};
    return several.empty() ? OptionValues{} : OptionValues{list_of(several)};
}

FigureOption layer_option() {
    FigureOption option{"layer",
                        "N",
                        "Layer, counted from 0; attention of several files: one each, as 3,7,5",
                        {},
                        with(of_analyses(), "timeline"),
                        false,
                        {},
                        {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        set_one_or_several(read_list("layer", values), request.options.layer, request.options.layers);
    };
    option.get = [](const FigureRequest& request) {
        return one_or_several(request.options.layer, request.options.layers);
    };
    return option;
}

FigureOption head_option() {
    FigureOption option{"head",
                        "N",
                        "Head, counted from 0; lines: may repeat; attention: or mean, of several files one each, as "
                        "0,mean,5",
                        {},
                        {"radar", "scores", "attention", "lines", "text", "states", "difference", "indicators",
                         "thumbnails", "timeline", "token-types", "branch-weights", "bias", "mass"},
                        true,
                        {},
                        {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        set_one_or_several(read_list("head", values, true), request.options.head, request.options.heads);
    };
    option.get = [](const FigureRequest& request) {
        // Those of `lines` are --heads.
        const bool own = request.recipe == "attention";
        return one_or_several(request.options.head, own ? request.options.heads : std::vector<std::int64_t>{});
    };
    return option;
}

FigureOption heads_option() {
    FigureOption option{"heads", "LIST", "Heads with commas between, as 0,3,5", {}, {"lines"}, false, {}, {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        for (const auto head : read_list("heads", {values.back()})) request.options.heads.push_back(head);
    };
    option.get = [](const FigureRequest& request) { return one_or_several(std::nullopt, request.options.heads); };
    return option;
}

FigureOption sequence_option() {
    FigureOption option{"sequence", "N|all", "Sequence, counted from 0; all: mean over them", {}, of_analyses(), false,
                        {},         {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        request.options.all_sequences = values.back() == "all";
        request.options.sequence.reset();
        if (request.options.all_sequences) return;
        const auto value = whole_number<std::int64_t>(values.back());
        if (!value || *value < 0) refuse_value("sequence", "a whole number from 0, or all", values.back());
        request.options.sequence = value;
    };
    option.get = [](const FigureRequest& request) -> OptionValues {
        if (request.options.all_sequences) return {"all"};
        const auto& value = request.options.sequence;
        return value ? OptionValues{std::to_string(*value)} : OptionValues{};
    };
    return option;
}

FigureOption indicator_option() {
    FigureOption option{
        "indicator", "NAME", "One indicator; default all", {}, {"indicators", "difference", "timeline"}, false, {}, {}};
    option.set = [](FigureRequest& request, const OptionValues& values) { request.options.indicator = values.back(); };
    option.get = [](const FigureRequest& request) -> OptionValues {
        return request.options.indicator.empty() ? OptionValues{} : OptionValues{request.options.indicator};
    };
    return option;
}

FigureOption pixels_option() {
    FigureOption option{"pixels", "N", "Most cells along a side, pooled beyond", {}, {"attention", "difference"}, false,
                        {},       {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        request.options.pixels = read_count("pixels", values.back(), kFewestCells, kMostCells);
    };
    option.get = [](const FigureRequest& request) -> OptionValues {
        const auto value = request.options.pixels;
        return value == FigureOptions().pixels ? OptionValues{} : OptionValues{std::to_string(value)};
    };
    return option;
}

/// A text of the options; empty where it was not given.
FigureOption word_option(const std::string& name, const std::string& help, std::vector<std::string> recipes,
                         std::string FigureOptions::*member) {
    FigureOption option{name, "NAME", help, {}, std::move(recipes), false, {}, {}};
    option.set = [member](FigureRequest& request, const OptionValues& values) {
        request.options.*member = values.back();
    };
    option.get = [member](const FigureRequest& request) -> OptionValues {
        const auto& value = request.options.*member;
        return value.empty() ? OptionValues{} : OptionValues{value};
    };
    return option;
}

FigureOption flag_option(const std::string& name, const std::string& help, std::vector<std::string> recipes,
                         bool FigureOptions::*member) {
    FigureOption option{name, "", help, {}, std::move(recipes), false, {}, {}};
    option.set = [member](FigureRequest& request, const OptionValues&) { request.options.*member = true; };
    option.get = [member](const FigureRequest& request) {
        return request.options.*member ? OptionValues{""} : OptionValues{};
    };
    return option;
}

FigureOption mixers_option() {
    FigureOption option{"mixers", "LIST", "Some of list mixers, with commas between; default all", {}, {"cost"}, false,
                        {},       {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        std::vector<std::string>& mixers = request.options.mixers;
        mixers.clear();
        const std::string& list = values.back();
        for (std::size_t begin = 0; begin <= list.size();) {
            const std::size_t end = std::min(list.find(',', begin), list.size());
            if (end == begin) refuse_value("mixers", "names with commas between", list);
            mixers.push_back(list.substr(begin, end - begin));
            begin = end + 1;
        }
    };
    option.get = [](const FigureRequest& request) -> OptionValues {
        std::string list;
        for (const std::string& mixer : request.options.mixers) list += (list.empty() ? "" : ",") + mixer;
        return list.empty() ? OptionValues{} : OptionValues{list};
    };
    return option;
}

FigureOption tensor_option() {
    FigureOption option{"tensor", "NAME",      "A tensor of the checkpoint, or some, as '*.q_proj.weight'; may repeat",
                        {},       {"tensors"}, true,
                        {},       {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        for (const auto& name : values) {
            if (name.empty()) refuse_value("tensor", "a name", "none");
            request.options.tensors.push_back(name);
        }
    };
    option.get = [](const FigureRequest& request) -> OptionValues { return request.options.tensors; };
    return option;
}

void add_record_options(std::vector<FigureOption>& all) {
    const std::vector<std::string> evaluations{"context-perplexity", "ablation", "scaling", "retention"};
    all.push_back(optional_count("step", "Radar and thumbnails at the last probe up to this step", {"timeline"},
                                 &FigureOptions::step));
    all.push_back(optional_count("smooth", "Of the running mean: steps of runs, buckets of positions; 1: none",
                                 {"loss", "position-perplexity"}, &FigureOptions::smooth));
    all.push_back(choice<Against>("against", "Of runs: what the curves are drawn against", {"loss", "timeline"},
                                  {{"step", Against::step}, {"tokens", Against::tokens}, {"time", Against::time}},
                                  [](FigureRequest& r) -> Against& { return r.options.against; }));
    all.push_back(word_option("task", "A task of the evaluations; default all",
                              with(with(evaluations, "ruler"), "tasks"), &FigureOptions::task));
    all.push_back(
        word_option("metric",
                    "A metric of them; default the first, of tasks: as the papers print; acc and acc_norm: of "
                    "the tasks that have it",
                    with(evaluations, "tasks"), &FigureOptions::metric));
    NamedValues<std::string> averages;
    for (const TaskAverage& one : task_averages()) averages.emplace_back(one.name, one.name);
    averages.emplace_back(kAverageOfAll, kAverageOfAll);
    all.push_back(choice<std::string>(
        "average", "A paper's average, or that of all accuracies; default the paper's whose tasks these are, else all",
        {"tasks"}, averages, [](FigureRequest& r) -> std::string& { return r.options.average; }));
    all.push_back(optional_count("length", "Tokens: context of an evaluation, or of the table of costs",
                                 {"ablation", "scaling", "tasks", "cost", "retention"}, &FigureOptions::length));
    all.push_back(tensor_option());
    all.push_back(word_option("words", "A text whose words are hashed, with md5, lsh, or a model's hash embedding",
                              {"hash"}, &FigureOptions::words));
    all.back().value = "TEXT";
    all.push_back(flag_option("measure", "Beside the formulas what this machine does, which takes minutes", {"cost"},
                              &FigureOptions::measure));
    all.push_back(choice<CostOf>(
        "of",
        "Mixers by length; variants of multi-head attention: a sublayer's weights by its "
        "heads, or those of stacks",
        {"cost"}, {{"mixers", CostOf::mixers}, {"sublayer", CostOf::sublayer}, {"stacks", CostOf::stacks}},
        [](FigureRequest& r) -> CostOf& { return r.options.cost_of; }));
    all.push_back(mixers_option());
    all.push_back(word_option("baseline", "The model that scores and sizes are compared with", {"retention"},
                              &FigureOptions::baseline));
    all.push_back(word_option("smallest", "The model that the elasticity of scores is told from, as SHA", {"retention"},
                              &FigureOptions::smallest));
}

FigureOption font_family_option() {
    FigureOption option{"font-family", "NAME", "An installed font; default Noto Sans", {}, {}, false, {}, {}};
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
    FigureOption option{"colour-map", "NAME", "A map of list colour-maps; one of each kind may be given", {}, {}, true,
                        {},           {}};
    std::string list;
    for (const auto& map : colour_maps()) {
        option.choices.push_back(map.name);
        list += (list.empty() ? "" : ", ") + map.name;
    }
    option.set = [list](FigureRequest& request, const OptionValues& values) {
        for (const auto& name : values) {
            const auto* map = find_colour_map(name);
            if (map == nullptr) refuse_value("colour-map", "one of " + list, name);
            (map->kind == ColourMap::diverging ? request.style.diverging_map : request.style.sequential_map) = name;
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
    FigureOption option{"title", "TEXT", "Another title", {}, {}, false, {}, {}};
    option.set = [](FigureRequest& request, const OptionValues& values) { request.style.title_text = values.back(); };
    option.get = [](const FigureRequest& request) -> OptionValues {
        return request.style.title_text.empty() ? OptionValues{} : OptionValues{request.style.title_text};
    };
    return option;
}

FigureOption no_title_option() {
    FigureOption option{"no-title", "", "Leave the title to the caption", {}, {}, false, {}, {}};
    option.set = [](FigureRequest& request, const OptionValues&) { request.style.title = false; };
    option.get = [](const FigureRequest& request) { return request.style.title ? OptionValues{} : OptionValues{""}; };
    return option;
}

FigureOption least_option() {
    FigureOption option{"least", "W", "Weights below this are not drawn; default 0.01", {}, {"lines"}, false, {}, {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        request.options.least = read_real("least", values.back(), 0, 1);
    };
    option.get = [](const FigureRequest& request) -> OptionValues {
        return request.options.least ? OptionValues{csv_number(*request.options.least)} : OptionValues{};
    };
    return option;
}

void add_map_options(std::vector<FigureOption>& all) {
    const std::vector<std::string> maps{"attention", "difference"};
    all.push_back(choice<MapValues>(
        "values",
        "Weights; scores before the normalizer; norms of what a key contributes, by one head or "
        "by all of a layer; rollout through the layers up to this one",
        {"attention", "text", "difference"},
        {{"weights", MapValues::weights},
         {"scores", MapValues::logits},
         {"norms", MapValues::norms},
         {"layer-norms", MapValues::layer_norms},
         {"rollout", MapValues::rollout}},
        [](FigureRequest& r) -> MapValues& { return r.options.values; }, {{"logits", MapValues::logits}}));
    all.push_back(choice<Pooling>("pooling",
                                  "What a cell shows of the pairs under it; maximum of scores: greatest magnitude",
                                  maps, {{"maximum", Pooling::maximum}, {"mean", Pooling::mean}},
                                  [](FigureRequest& r) -> Pooling& { return r.options.pooling; }));
    all.push_back(pixels_option());
    all.push_back(optional_count("other-sequence",
                                 "Minuend: another sequence, of the same file or the second; maps pair equal tokens",
                                 {"difference"}, &FigureOptions::other_sequence));
    all.push_back(optional_count("other-layer", "Minuend of maps: another layer, of the same file or the second",
                                 {"difference"}, &FigureOptions::other_layer));
    all.push_back(optional_count("other-head", "Minuend of maps: another head, of the same file or the second",
                                 {"difference"}, &FigureOptions::other_head));
    all.push_back(choice<Units>("units",
                                "Pieces of the tokenizer, or words: their rows averaged, their columns summed; then "
                                "queries and keys are counted in words",
                                {"attention", "lines", "text"}, {{"pieces", Units::pieces}, {"words", Units::words}},
                                [](FigureRequest& r) -> Units& { return r.options.units; }));
    all.push_back(choice<Tower>("tower",
                                "Of models with an encoder and a decoder, or layers with two branches: which attention",
                                {"attention", "lines", "text", "difference"},
                                {{"encoder", Tower::encoder},
                                 {"decoder", Tower::decoder},
                                 {"cross", Tower::cross},
                                 {"softmax", Tower::softmax},
                                 {"linear", Tower::linear}},
                                [](FigureRequest& r) -> Tower& { return r.options.tower; }));
}

void add_text_options(std::vector<FigureOption>& all) {
    all.push_back(optional_count("query", "The token that looks, counted from 0", {"text"}, &FigureOptions::query));
    all.push_back(optional_count("key", "The token that is looked at, counted from 0", {"text"}, &FigureOptions::key));
    all.push_back(choice<TextColour>("colour",
                                     "What a token's colour is: what --query looks at, who looks at --key, how much it "
                                     "is looked at, its loss",
                                     {"text"},
                                     {{"weights", TextColour::weights},
                                      {"lookers", TextColour::lookers},
                                      {"mass", TextColour::mass},
                                      {"loss", TextColour::loss}},
                                     [](FigureRequest& r) -> TextColour& { return r.options.colour; }));
    all.push_back(choice<ColourRange>("range", "Where the colours end: at the largest value, or at 1", {"text"},
                                      {{"largest", ColourRange::largest}, {"one", ColourRange::one}},
                                      [](FigureRequest& r) -> ColourRange& { return r.options.range; }));
}

std::vector<FigureOption> all_options() {
    std::vector<FigureOption> all;
    all.push_back(layer_option());
    all.push_back(head_option());
    all.push_back(heads_option());
    all.push_back(sequence_option());
    all.push_back(indicator_option());
    all.push_back(choice<Normalise>(
        "normalise", "Colours by the values themselves, by their range, or by the range of each layer", {"indicators"},
        {{"absolute", Normalise::absolute}, {"minmax", Normalise::minmax}, {"layer", Normalise::layer}},
        [](FigureRequest& request) -> Normalise& { return request.options.normalise; }));
    all.push_back(choice<std::string>("statistic", "Of the pairs in a block", {"thumbnails"},
                                      {{"mean", "mean"}, {"maximum", "maximum"}},
                                      [](FigureRequest& r) -> std::string& { return r.options.statistic; }));
    all.push_back(choice<ScaleKind>("distance", "The axis of distances", {"bias"},
                                    {{"logarithmic", ScaleKind::logarithmic}, {"linear", ScaleKind::linear}},
                                    [](FigureRequest& r) -> ScaleKind& { return r.options.distance; }));
    all.push_back(flag_option("scale-per-head", "Each head's colours end at its own highest value", {"thumbnails"},
                              &FigureOptions::scale_per_head));
    all.push_back(least_option());
    all.push_back(choice<CellScale>("scale", "How values become colours; default by length",
                                    {"attention", "text", "difference"},
                                    {{"linear", CellScale::linear},
                                     {"logarithmic", CellScale::logarithmic},
                                     {"square-root", CellScale::square_root},
                                     {"row-rank", CellScale::row_rank}},
                                    [](FigureRequest& r) -> CellScale& { return r.options.scale; }));
    add_map_options(all);
    const std::vector<std::string> square{"attention", "lines", "difference"},
        any{"attention", "lines", "text", "difference", "token-types"};
    all.push_back(optional_count("from-query", "First query, counted from 0", square, &FigureOptions::from_query));
    all.push_back(optional_count("to-query", "First query that is left out", square, &FigureOptions::to_query));
    all.push_back(optional_count("from-key", "First key, counted from 0", any, &FigureOptions::from_key));
    all.push_back(optional_count("to-key", "First key that is left out", any, &FigureOptions::to_key));
    add_text_options(all);
    all.push_back(choice<Stage>("stage", "Scores before the softmax, weights after it (needs maps), or both",
                                {"scores"}, {{"before", Stage::before}, {"after", Stage::after}, {"both", Stage::both}},
                                [](FigureRequest& r) -> Stage& { return r.options.stage; }));
    add_record_options(all);

    all.push_back(
        real_style("width", "MM", "Width in mm (85: one column; 180: two)", 30, 2000, &FigureStyle::width_mm));
    all.push_back(
        real_style("height", "MM", "Height in mm; default follows from the panels", 20, 2000, &FigureStyle::height_mm));
    all.push_back(font_family_option());
    all.push_back(real_style("font-size", "POINTS", "Size of the text", 3, 40, &FigureStyle::font_points));
    all.push_back(real_style("dpi", "N", "Dots per inch of a PNG", 36, 2400, &FigureStyle::dpi));
    all.push_back(choice<bool>("theme", "The page", {}, {{"light", false}, {"dark", true}},
                               [](FigureRequest& r) -> bool& { return r.style.dark; }));
    all.push_back(colour_map_option());
    all.push_back(choice<bool>("labels", "Token labels; off: positions", {}, {{"on", true}, {"off", false}},
                               [](FigureRequest& r) -> bool& { return r.style.labels; }));
    all.push_back(title_option());
    all.push_back(no_title_option());
    return all;
}

}  // namespace

std::span<const FigureOption> figure_options() {
    static const std::vector<FigureOption> all = all_options();
    return all;
}

const FigureOption* find_figure_option(const std::string& name) {
    const auto all = figure_options();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& option) { return option.name == name; });
    return found == all.end() ? nullptr : &*found;
}

std::string current_recipe(const std::string& name) {
    return name == "logits" ? "scores" : name;
}

bool has_option(const std::string& recipe, const FigureOption& option) {
    return option.recipes.empty() ||
           std::find(option.recipes.begin(), option.recipes.end(), current_recipe(recipe)) != option.recipes.end();
}

}  // namespace headscope::figures
