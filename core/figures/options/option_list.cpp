// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/options/option_list.h"

#include <algorithm>

#include "core/figures/make_figure.h"
#include "core/figures/options/option_kinds.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kFewestCells = 16;
constexpr double kMostCells = 8192;

constexpr const char* kMean = "mean";
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// Numbers with commas between, of an option that may repeat; `mean`: or that word.
std::vector<std::int64_t> read_list(const std::string& option, const OptionValues& values, bool mean = false) {
    const std::vector<std::string> words = mean ? std::vector<std::string>{kMean} : std::vector<std::string>{};
    std::vector<std::int64_t> list;
    for (const std::string& text : values) {
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find(',', begin), text.size());
            const std::string one = text.substr(begin, end - begin);
            list.push_back(mean && one == kMean ? kMeanOfHeads : read_count(option, one, 0, kNoLimit, words));
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

constexpr char kEscape = '\\';

/// "A,B" as two names; a backslash keeps the character after it. An empty name: the usual one.
std::vector<std::string> read_names(const std::string& list) {
    std::vector<std::string> names(1);
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i] == kEscape && i + 1 < list.size())
            names.back() += list[++i];
        else if (list[i] == ',')
            names.emplace_back();
        else
            names.back() += list[i];
    }
    if (std::all_of(names.begin(), names.end(), [](const std::string& name) { return name.empty(); }))
        refuse_value("names", "a name for each file, separated by commas", list);
    return names;
}

FigureOption names_option() {
    FigureOption option{
        "names",
        "LIST",
        "Names of the files, or of the models of evaluations, in titles and legends, in order, separated by commas "
        "(\\, stands for a comma in a name; an empty one, and the default: the model's)",
        {},
        false,
        {},
        {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        request.options.names = read_names(values.back());
    };
    option.get = [](const FigureRequest& request) -> OptionValues {
        const std::vector<std::string>& names = request.options.names;
        std::string list;
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (i > 0) list += ',';
            for (const char c : names[i]) {
                if (c == ',' || c == kEscape) list += kEscape;
                list += c;
            }
        }
        return names.empty() ? OptionValues{} : OptionValues{list};
    };
    return option;
}

FigureOption layer_option() {
    FigureOption option{
        "layer", "N", "Layer, counted from 0; attention of several files: one for each file, as 3,7,5", {}, false,
        {},      {}};
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
                        "Head, counted from 0; lines: may repeat; attention: also mean, the mean of the layer's "
                        "heads, or one for each file, as 0,mean,5",
                        {},
                        true,
                        {},
                        {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        set_one_or_several(read_list("head", values, true), request.options.head, request.options.heads);
    };
    option.get = [](const FigureRequest& request) {
        // Several of one file are --heads.
        const Recipe* recipe = find_recipe(request.recipe);
        const bool own = recipe != nullptr && recipe->heads == RecipeHeads::of_each_file;
        return one_or_several(request.options.head, own ? request.options.heads : std::vector<std::int64_t>{});
    };
    return option;
}

FigureOption heads_option() {
    FigureOption option{"heads", "LIST", "Heads, separated by commas, as 0,3,5", {}, false, {}, {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        for (const auto head : read_list("heads", {values.back()})) request.options.heads.push_back(head);
    };
    option.get = [](const FigureRequest& request) { return one_or_several(std::nullopt, request.options.heads); };
    return option;
}

FigureOption sequence_option() {
    FigureOption option{
        "sequence", "N|all", "Sequence, counted from 0, or all for the mean over all sequences", {}, false, {}, {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        request.options.all_sequences = values.back() == "all";
        request.options.sequence.reset();
        if (request.options.all_sequences) return;
        request.options.sequence = read_count("sequence", values.back(), 0, kNoLimit, {"all"});
    };
    option.get = [](const FigureRequest& request) -> OptionValues {
        if (request.options.all_sequences) return {"all"};
        const auto& value = request.options.sequence;
        return value ? OptionValues{std::to_string(*value)} : OptionValues{};
    };
    return option;
}

FigureOption indicator_option() {
    FigureOption option{"indicator", "NAME", "One indicator (default: all)", {}, false, {}, {}};
    option.set = [](FigureRequest& request, const OptionValues& values) { request.options.indicator = values.back(); };
    option.get = [](const FigureRequest& request) -> OptionValues {
        return request.options.indicator.empty() ? OptionValues{} : OptionValues{request.options.indicator};
    };
    return option;
}

FigureOption pixels_option() {
    FigureOption option{"pixels", "N", "Largest number of cells along a side; longer texts are pooled", {}, false,
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

FigureOption least_option() {
    FigureOption option{"least", "W", "Smallest weight that is drawn (default: 0.01)", {}, false, {}, {}};
    option.set = [](FigureRequest& request, const OptionValues& values) {
        request.options.least = read_real("least", values.back(), 0, 1);
    };
    option.get = [](const FigureRequest& request) -> OptionValues {
        return request.options.least ? OptionValues{csv_number(*request.options.least)} : OptionValues{};
    };
    return option;
}

void add_map_options(std::vector<FigureOption>& all) {
    all.push_back(choice<MapValues>(
        "values",
        "Attention weights; scores before the normalizer; norms: length of each key's contribution in one head, or in "
        "all heads of the layer together; rollout: attention through all layers up to this one",
        {{"weights", MapValues::weights},
         {"scores", MapValues::logits},
         {"norms", MapValues::norms},
         {"layer-norms", MapValues::layer_norms},
         {"rollout", MapValues::rollout}},
        [](FigureRequest& r) -> MapValues& { return r.options.values; }, {{"logits", MapValues::logits}}));
    all.push_back(choice<Pooling>("pooling",
                                  "What a cell of several pairs shows: the largest value (of scores the one farthest "
                                  "from 0) or the mean",
                                  {{"maximum", Pooling::maximum}, {"mean", Pooling::mean}},
                                  [](FigureRequest& r) -> Pooling& { return r.options.pooling; }));
    all.push_back(pixels_option());
    all.push_back(optional_count(
        "other-sequence", "Second side: another sequence, of the same file or the second one; maps pair equal tokens",
        &FigureOptions::other_sequence));
    all.push_back(optional_count("other-layer",
                                 "Second side of maps: another layer, of the same file or the second one",
                                 &FigureOptions::other_layer));
    all.push_back(optional_count("other-head", "Second side of maps: another head, of the same file or the second one",
                                 &FigureOptions::other_head));
    all.push_back(flag_option("sides", "Draw both maps beside their difference", &FigureOptions::sides));
    all.push_back(
        choice<Units>("units",
                      "Draw the tokenizer's pieces or whole words, whose rows are averaged and whose columns are "
                      "summed; positions then count words",
                      {{"pieces", Units::pieces}, {"words", Units::words}},
                      [](FigureRequest& r) -> Units& { return r.options.units; }));
    all.push_back(choice<Tower>("tower",
                                "Which attention of a model with encoder and decoder, or of a layer with two branches",
                                {{"encoder", Tower::encoder},
                                 {"decoder", Tower::decoder},
                                 {"cross", Tower::cross},
                                 {"softmax", Tower::softmax},
                                 {"linear", Tower::linear}},
                                [](FigureRequest& r) -> Tower& { return r.options.tower; }));
}

void add_text_options(std::vector<FigureOption>& all) {
    all.push_back(optional_count("query", "Draw how much this token attends to the others, counted from 0",
                                 &FigureOptions::query));
    all.push_back(
        optional_count("key", "Draw how much the others attend to this token, counted from 0", &FigureOptions::key));
    all.push_back(
        choice<TextColour>("colour",
                           "Meaning of the colors: weights of --query, weights of all tokens to --key (lookers), "
                           "mean weight that a token receives (mass), or its loss",
                           {{"weights", TextColour::weights},
                            {"lookers", TextColour::lookers},
                            {"mass", TextColour::mass},
                            {"loss", TextColour::loss}},
                           [](FigureRequest& r) -> TextColour& { return r.options.colour; }));
    all.push_back(choice<ColourRange>("range", "End of the color scale: the largest value, or 1",
                                      {{"largest", ColourRange::largest}, {"one", ColourRange::one}},
                                      [](FigureRequest& r) -> ColourRange& { return r.options.range; }));
}

std::vector<FigureOption> all_options() {
    std::vector<FigureOption> all;
    all.push_back(layer_option());
    all.push_back(head_option());
    all.push_back(heads_option());
    all.push_back(sequence_option());
    all.push_back(names_option());
    all.push_back(indicator_option());
    all.push_back(choice<Normalise>(
        "normalise", "Colors by the values themselves, by their range in the figure, or by the range of each layer",
        {{"absolute", Normalise::absolute}, {"minmax", Normalise::minmax}, {"layer", Normalise::layer}},
        [](FigureRequest& request) -> Normalise& { return request.options.normalise; }));
    all.push_back(choice<std::string>("statistic",
                                      "What a block of a thumbnail shows: the mean or the largest of its weights",
                                      {{"mean", "mean"}, {"maximum", "maximum"}},
                                      [](FigureRequest& r) -> std::string& { return r.options.statistic; }));
    all.push_back(choice<ScaleKind>("distance", "Scale of the distance axis",
                                    {{"logarithmic", ScaleKind::logarithmic}, {"linear", ScaleKind::linear}},
                                    [](FigureRequest& r) -> ScaleKind& { return r.options.distance; }));
    all.push_back(flag_option("scale-per-head", "Each head has its own color scale, up to its largest value",
                              &FigureOptions::scale_per_head));
    all.push_back(least_option());
    all.push_back(choice<CellScale>("scale",
                                    "Color scale (default: square root up to 256 tokens, logarithmic for longer texts)",
                                    {{"linear", CellScale::linear},
                                     {"logarithmic", CellScale::logarithmic},
                                     {"square-root", CellScale::square_root},
                                     {"row-rank", CellScale::row_rank}},
                                    [](FigureRequest& r) -> CellScale& { return r.options.scale; }));
    add_map_options(all);
    all.push_back(optional_count("from-query", "First query to draw, counted from 0", &FigureOptions::from_query));
    all.push_back(
        optional_count("to-query", "Query at which the part ends; it is not drawn", &FigureOptions::to_query));
    all.push_back(optional_count("from-key", "First key to draw, counted from 0", &FigureOptions::from_key));
    all.push_back(optional_count("to-key", "Key at which the part ends; it is not drawn", &FigureOptions::to_key));
    add_text_options(all);
    all.push_back(choice<Stage>("stage", "Scores before the softmax, weights after it (needs maps), or both",
                                {{"before", Stage::before}, {"after", Stage::after}, {"both", Stage::both}},
                                [](FigureRequest& r) -> Stage& { return r.options.stage; }));
    add_record_options(all);

    add_style_options(all);
    return all;
}

}  // namespace

FigureOption::FigureOption(std::string name_, std::string value_, std::string help_, std::vector<std::string> choices_,
                           bool repeats_, Set set_, Get get_)
    : Option(std::move(name_), value_.empty() ? OptionValue(false) : OptionValue(std::string()), std::move(choices_)),
      value(std::move(value_)),
      repeats(repeats_),
      set(std::move(set_)),
      get(std::move(get_)) {
    help = std::move(help_);
}

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
    const Recipe* recipe = find_recipe(name);
    return recipe == nullptr ? name : recipe->name;
}

namespace {

bool reads(const Recipe& recipe, const FigureOption& option) {
    return std::find(recipe.options.begin(), recipe.options.end(), option.name) != recipe.options.end();
}

}  // namespace

bool has_option(const std::string& recipe, const FigureOption& option) {
    const Recipe* found = find_recipe(recipe);
    return option.of_page || (found != nullptr && reads(*found, option));
}

std::vector<std::string> recipes_with(const FigureOption& option) {
    std::vector<std::string> names;
    for (const Recipe* recipe : recipes())
        if (!option.of_page && reads(*recipe, option)) names.push_back(recipe->name);
    return names;
}

}  // namespace headscope::figures
