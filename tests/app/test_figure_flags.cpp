// SPDX-License-Identifier: GPL-3.0-or-later
// The options of `export` as CLI11 reads them: what figure_arguments() writes comes back as the same request.
#include <CLI/CLI.hpp>
#include <catch2/catch.hpp>

#include "app/commands/context.h"
#include "app/commands/figures/figure_flags.h"
#include "core/figures/make_figure.h"
#include "core/figures/options/figure_arguments.h"

using namespace headscope;
using namespace headscope::figures;

namespace {

/// As commands/export.cpp declares it.
struct Command {
    explicit Command(const std::vector<std::string>& arguments) {
        auto* command = app.add_subcommand("export", "");
        command->add_option("files", files, "")->required();
        command->add_option("--figure", request.recipe, "")->required();
        command->add_option("-o,--output", output, "")->required();
        app::add_figure_flags(*command, request);
        command->callback([this, command] { app::check_figure_flags(*command, request); });
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    }

    CLI::App app;
    std::vector<std::string> files;
    std::string output;
    FigureRequest request;
};

}  // namespace

TEST_CASE("The command of a figure is read as the request it was made of", "[app][export]") {
    FigureRequest request;
    request.recipe = "attention";
    request.options.layer = 0;
    request.options.head = 11;
    request.options.sequence = 2;
    request.options.scale = CellScale::row_rank;
    request.options.from_query = 0;
    request.options.to_key = 40;
    request.options.pixels = 99;
    request.style.title_text = "-- 'what'? --head=3";
    request.style.font_family = "DejaVu Serif";
    request.style.sequential_map = "magma";
    request.style.diverging_map = "purple-green";
    request.style.dark = true;
    request.style.labels = false;
    request.style.width_mm = 85.5;
    request.style.dpi = 0.1 + 142;
    const Command command(figure_arguments(request, {"a b.h5", "-c.h5"}, "x.svg"));
    CHECK(command.request == request);
    CHECK(command.files == std::vector<std::string>{"a b.h5", "./-c.h5"});
    CHECK(command.output == "x.svg");

    for (const Recipe* recipe : recipes()) {
        FigureRequest other;
        other.recipe = recipe->name;
        other.options.all_sequences = recipe->of_analyses != nullptr;
        other.style.title = false;
        const Command read(figure_arguments(other, {"a.h5"}, "x.csv"));
        CHECK(read.request == other);
    }
}

TEST_CASE("Several heads may be given one by one or as a list", "[app][export]") {
    const std::vector<std::string> start{"export", "a.h5", "--figure", "lines", "-o", "x.csv"};
    const auto heads = [&](const std::vector<std::string>& more) {
        auto arguments = start;
        arguments.insert(arguments.end(), more.begin(), more.end());
        return Command(arguments).request.options;
    };
    CHECK(heads({"--head", "4"}).head == 4);
    CHECK(heads({"--head", "4"}).heads.empty());
    CHECK(heads({"--head", "0", "--head", "3"}).heads == std::vector<std::int64_t>{0, 3});
    CHECK(heads({"--heads", "0,3,5"}).heads == std::vector<std::int64_t>{0, 3, 5});
    CHECK_THROWS_AS(heads({"--heads", "0,,5"}), CLI::ParseError);
    CHECK_THROWS_AS(heads({"--heads", "0,3,"}), CLI::ParseError);
}

TEST_CASE("Options that a figure lacks and values that cannot be are wrong usage", "[app][export]") {
    CHECK_THROWS_AS(Command({"export", "a.h5", "--figure", "radar", "-o", "x.csv", "--scale", "linear"}),
                    app::UsageError);
    CHECK_THROWS_AS(Command({"export", "a.h5", "--figure", "attention", "-o", "x.csv", "--scale", "cubic"}),
                    CLI::ParseError);
    CHECK_THROWS_AS(Command({"export", "a.h5", "--figure", "attention", "-o", "x.csv", "--layer", "1", "--layer", "2"}),
                    CLI::ParseError);
    CHECK_THROWS_AS(Command({"export", "a.h5", "--figure", "radar", "-o", "x.csv", "--layer", "-1"}), CLI::ParseError);
    // Unknown recipes are refused with the list of them, when the figure is made.
    CHECK_NOTHROW(Command({"export", "a.h5", "--figure", "frob", "-o", "x.csv", "--scale", "linear"}));
}
