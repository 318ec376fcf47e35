// SPDX-License-Identifier: GPL-3.0-or-later
// The list of options: set values are printed, and the command that makes a figure reads back as the same request.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "core/base/error.h"
#include "core/figures/make_figure.h"
#include "core/figures/options/figure_arguments.h"
#include "core/figures/options/option_list.h"

using namespace headscope;
using namespace headscope::figures;

namespace {

/// Reads what figure_arguments() gives, by the list of options alone.
FigureRequest read_back(const std::vector<std::string>& arguments) {
    FigureRequest request;
    std::map<std::string, std::vector<std::string>> given;
    for (std::size_t i = 1; i < arguments.size(); ++i) {
        std::string name = arguments[i];
        if (!name.starts_with("--")) continue;
        std::optional<std::string> value;
        if (const auto equals = name.find('='); equals != std::string::npos) {
            value = name.substr(equals + 1);
            name.resize(equals);
        }
        if (name == "--figure") {
            request.recipe = arguments.at(++i);
            continue;
        }
        const auto* option = find_figure_option(name.substr(2));
        REQUIRE(option != nullptr);
        if (!option->value.empty()) given[option->name].push_back(value ? *value : arguments.at(++i));
        if (option->value.empty()) given[option->name];
    }
    for (const auto& [name, values] : given) find_figure_option(name)->set(request, values);
    return request;
}

std::string refusal(const std::string& name, const std::vector<std::string>& values) {
    FigureRequest request;
    try {
        find_figure_option(name)->set(request, values);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::usage);
        CHECK(error.where() == "--" + name);
        return error.what();
    }
    return "";
}

/// A value that is not the default, for any option.
std::vector<std::string> some_value(const FigureOption& option, std::mt19937& random) {
    if (option.value.empty()) return {};
    if (option.name == "colour-map") return {random() % 2 == 0 ? "magma" : "purple-green"};
    if (!option.choices.empty()) return {option.choices[random() % option.choices.size()]};
    if (option.name == "sequence") return {random() % 2 == 0 ? "all" : "3"};
    if (option.name == "heads") return {"0,3,5"};
    if (option.name == "mixers") return {"standard,mlp"};
    if (option.name == "names") return {random() % 2 == 0 ? "whole,without 3.1\\, 5.0" : ",a\\\\b"};
    if (option.name == "from" || option.name == "to") return {"0.5"};
    if (option.name == "layer") return {random() % 2 == 0 ? "4" : "3,7,3"};
    if (option.name == "indicator" || option.name == "task" || option.name == "metric") return {"sink"};
    if (option.name == "tensor") return {"--a b", "model.layers.*.weight"};
    if (option.name == "title") return {random() % 2 == 0 ? "--what's \"new\"? ünïcode" : "A title"};
    if (option.name == "font-family") return {"DejaVu Serif"};
    if (option.name == "dpi") return {"142.75"};
    if (option.name == "least") return {"0.0725"};
    return {std::to_string(30 + random() % 9)};
}

}  // namespace

TEST_CASE("The command of a figure reads back as the same request", "[figures][options]") {
    std::mt19937 random(5);
    for (const Recipe* recipe : recipes()) {
        for (int round = 0; round < 40; ++round) {
            FigureRequest request;
            request.recipe = recipe->name;
            std::string said;
            for (const auto& option : figure_options()) {
                if (!has_option(recipe->name, option) || random() % 2 == 0) continue;
                option.set(request, some_value(option, random));
                said += " " + option.name;
            }
            INFO(recipe->name << said);
            const auto arguments = figure_arguments(request, {"a.headscope.h5", "-b.headscope.h5"}, "-out.pdf");
            CHECK(arguments.front() == "export");
            CHECK(arguments[2] == "./-b.headscope.h5");
            CHECK(arguments.back() == "./-out.pdf");
            CHECK(read_back(arguments) == request);
        }
    }
}

TEST_CASE("Every option can be said: its value differs from the default and comes back", "[figures][options]") {
    std::mt19937 random(9);
    for (const auto& option : figure_options()) {
        INFO(option.name);
        CHECK(!option.help.empty());
        bool differs = false;
        for (int round = 0; round < 20; ++round) {
            FigureRequest request, again;
            option.set(request, some_value(option, random));
            const auto values = option.get(request);
            if (request == FigureRequest()) {
                CHECK(values.empty());
                continue;
            }
            differs = true;
            REQUIRE(!values.empty());
            option.set(again, option.value.empty() ? std::vector<std::string>() : values);
            CHECK(again == request);
        }
        CHECK(differs);
        CHECK((option.of_page || !recipes_with(option).empty()));
    }
}

TEST_CASE("A head of each file, or the mean of heads, are said as they are read", "[figures][options]") {
    const auto* head = find_figure_option("head");
    FigureRequest request;
    request.recipe = "attention";
    head->set(request, {"mean"});
    CHECK(request.options.head == kMeanOfHeads);
    CHECK(head->get(request) == std::vector<std::string>{"mean"});
    request.options = {};
    head->set(request, {"2,mean", "0"});
    CHECK_FALSE(request.options.head);
    CHECK(request.options.heads == std::vector<std::int64_t>{2, kMeanOfHeads, 0});
    find_figure_option("layer")->set(request, {"5,1,2"});
    CHECK(request.options.layers == std::vector<std::int64_t>{5, 1, 2});
    const auto arguments = figure_arguments(request, {"a.h5"}, "a.pdf");
    CHECK(arguments == std::vector<std::string>{"export", "a.h5", "--figure", "attention", "--layer", "5,1,2", "--head",
                                                "2,mean,0", "-o", "a.pdf"});
    CHECK(read_back(arguments) == request);
    CHECK(refusal("head", {"men"}).find("found men") != std::string::npos);
    CHECK(refusal("layer", {"1,"}).find("expected a whole number from 0") != std::string::npos);
    CHECK(refusal("layer", {"mean"}).find("found mean") != std::string::npos);
}

TEST_CASE("Defaults are not said", "[figures][options]") {
    FigureRequest request;
    request.recipe = "radar";
    request.options.indicator = "sink";  // the radar has no such option
    CHECK(figure_arguments(request, {"a.headscope.h5"}, "out.csv") ==
          std::vector<std::string>{"export", "a.headscope.h5", "--figure", "radar", "-o", "out.csv"});
}

TEST_CASE("A shell reads the line as the arguments it was made of", "[figures][options]") {
    CHECK(shell_command({"export", "a b.h5", "--title", "it's $HOME; `x`", "", "plain-1.pdf"}) ==
          "headscope export 'a b.h5' --title 'it'\\''s $HOME; `x`' '' plain-1.pdf");
    CHECK(shell_command({"export"}, "/opt/head scope/bin") == "'/opt/head scope/bin' export");
}

TEST_CASE("Values that cannot be are refused with what is expected", "[figures][options]") {
    CHECK(refusal("layer", {"first"}).find("expected a whole number from 0; found first") != std::string::npos);
    CHECK(refusal("layer", {"-1"}).find("found -1") != std::string::npos);
    CHECK(refusal("layer", {"3x"}).find("found 3x") != std::string::npos);
    CHECK(refusal("pixels", {"15"}).find("16 to 8192") != std::string::npos);
    CHECK(refusal("pixels", {"99999999999999999999"}).find("found 9999") != std::string::npos);
    CHECK(refusal("width", {"nan"}).find("30 to 2000") != std::string::npos);
    CHECK(refusal("width", {"29.9"}).find("30 to 2000") != std::string::npos);
    CHECK(refusal("sequence", {"some"}).find("or \"all\"") != std::string::npos);
    CHECK(refusal("scale", {"cubic"}).find("row-rank") != std::string::npos);
    CHECK(refusal("normalise", {""}).find("minmax") != std::string::npos);
    CHECK(refusal("theme", {"grey"}).find("\"light\", \"dark\"") != std::string::npos);
    CHECK(refusal("labels", {"yes"}).find("\"on\", \"off\"") != std::string::npos);
    CHECK(refusal("colour-map", {"viridis", "jet"}).find("\"indigo\", \"viridis\"") != std::string::npos);
    CHECK(refusal("font-family", {""}).find("font") != std::string::npos);
    CHECK(refusal("colour-map", {"viridis", "blue-orange"}).empty());
}

TEST_CASE("Older names of figures and values are accepted and written as today's", "[figures][options]") {
    CHECK(current_recipe("logits") == "scores");
    CHECK(current_recipe("radar") == "radar");
    CHECK(has_option("logits", *find_figure_option("stage")));
    FigureRequest older, today;
    find_figure_option("values")->set(older, {"logits"});
    find_figure_option("values")->set(today, {"scores"});
    CHECK(older == today);
    CHECK(older.options.values == MapValues::logits);
    CHECK(find_figure_option("values")->get(older) == std::vector<std::string>{"scores"});
    const auto& listed = find_figure_option("values")->choices;
    CHECK(std::find(listed.begin(), listed.end(), "logits") == listed.end());
    for (const Recipe* recipe : recipes()) CHECK(recipe->name == current_recipe(recipe->name));
}
