// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>

#include "app/child.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/device.h"
#include "app/commands/figures/figure_flags.h"
#include "app/commands/figures/figure_inputs.h"
#include "app/commands/options.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/text/text.h"
#include "core/figures/make_figure.h"
#include "core/figures/options/option_list.h"
#ifdef HEADSCOPE_WITH_WINDOW
#include "widgets/plots/figure/figure_painter.h"
#include "widgets/plots/figure/offscreen.h"
#endif

namespace headscope::app {
namespace export_command {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
    std::vector<std::string> files;
    std::string output;
    figures::FigureRequest request;
};

std::string ending_of(const std::string& path) {
    std::string ending = fs::path(path).extension().string();
    std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
    return ending;
}

void write_text(const std::string& path, const std::string& text, const std::vector<fs::path>& inputs) {
    write_whole_file(path, text, "table", inputs);
}

void draw(const figures::FigureData& figure, const ExportOptions& options, const std::vector<fs::path>& inputs) {
#ifdef HEADSCOPE_WITH_WINDOW
    OutputFile::check_target(options.output, inputs);
    widgets::ensure_application();
    widgets::export_figure(figure, options.request.style, options.output);
#else
    (void)figure;
    (void)inputs;
    throw Error(ErrorCode::unsupported, options.output,
                "expected a build with the figure painter for " + ending_of(options.output) + " files",
                "found one without Qt (preset core-only), which writes .csv only");
#endif
}

/// Refuses a table for LaTeX of a recipe that has none.
void check_latex(const std::string& name) {
    const figures::Recipe* recipe = figures::find_recipe(name);
    if (recipe == nullptr || recipe->latex) return;  // an unknown one is refused with the names of all
    std::vector<std::string> names;
    for (const figures::Recipe* one : figures::recipes())
        if (one->latex) names.push_back(one->name);
    throw Error(ErrorCode::usage, "-o", "expected a figure that has a LaTeX table: " + joined_text(names, ", "),
                "found " + recipe->name);
}

void run_export(const ExportOptions& options, const Cancellation& cancellation) {
    const std::string ending = ending_of(options.output);
    if (ending != ".pdf" && ending != ".svg" && ending != ".png" && ending != ".csv" && ending != ".tex")
        throw UsageError("-o: an output that ends in .pdf, .svg, .png, .csv or .tex is expected; found " +
                         (options.output.empty() ? std::string("none") : escaped(options.output)));
    const std::vector<fs::path> inputs(options.files.begin(), options.files.end());
    OutputFile::check_target(options.output, inputs);
    if (ending == ".tex") check_latex(options.request.recipe);
    check_kernel_environment();
    continue_in_child(inputs, cancellation);
    const auto files = open_figure_inputs(inputs, options.request, cancellation);
    const auto figure = figures::make_figure(options.request.recipe, files, options.request.options);
    cancellation.check();
    if (ending == ".csv" || ending == ".tex")
        write_text(options.output, ending == ".csv" ? figures::figure_csv(figure) : figure.latex(), inputs);
    else
        draw(figure, options, inputs);
}

}  // namespace
}  // namespace export_command

void add_export(CLI::App& app, Context& context) {
    using namespace export_command;
    auto* command = app.add_subcommand(
        "export",
        "Draw a figure of analyses, runs, evaluations, models or tensors as PDF, SVG or PNG, or its numbers as CSV");
    auto options = std::make_shared<ExportOptions>();
    add_option(*command, "files", options->files,
               "Analysis files (*.headscope.h5), run folders, evaluation and ask files; cost: also checkpoints and "
               "presets; tensors: checkpoints; hash with --words: md5, lsh, checkpoints")
        ->required();
    add_option(*command, "--figure", options->request.recipe, "A recipe; see headscope list figures")->required();
    add_option(*command, "-o,--output", options->output,
               "OUT.pdf, .svg, .png or .csv; of tasks, longbench and benchmark also .tex: a table for LaTeX")
        ->required();
    add_figure_flags(*command, options->request);
    command->callback([&context, options, command] {
        options->request.recipe = figures::current_recipe(options->request.recipe);
        check_figure_flags(*command, options->request);
        context.command = [&context, options] { run_export(*options, context.cancellation); };
    });
}

}  // namespace headscope::app
