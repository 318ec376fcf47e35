// SPDX-License-Identifier: GPL-3.0-or-later
// What NAtS-L multiplies each token's softmax and linear output by (Deng et al.): a curve a layer, means over heads, or
// with --layer a curve a head; two rows of panels, softmax above linear.

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

constexpr std::size_t kMostPoints = 600;
constexpr std::array<const char*, 2> kBranches{"linear", "softmax"};  ///< as files have them

struct Series {
    std::string member;
    std::int64_t layer = 0, head = -1;             ///< -1: mean over heads
    std::vector<std::int64_t> sites;               ///< both branches of the layer
    std::array<std::vector<double>, 2> of_branch;  ///< by position
};

struct Model {
    std::string name;
    std::vector<Series> series;
};

Model read(const store::AnalysisFile& file, const std::string& name, const FigureOptions& options) {
    const auto& header = file.header();
    if (!header.record.branches) {
        throw Error(ErrorCode::usage, "figure branch-weights of " + file_name(file),
                    "expected a file with weights of branches: analyze a model with NAtS-L layers with --record "
                    "branch-weights",
                    "found none recorded");
    }
    const std::int64_t s = chosen_sequence(file, options);
    Model model{name, {}};
    for (const auto site : chosen_sites(file, options)) {
        const Site& here = header.sites[static_cast<std::size_t>(site)];
        if (!header.weighed(here)) continue;
        check_head(file, site, options);
        std::vector<std::int64_t> branches{site};
        for (std::int64_t other = 0; other < std::ssize(header.sites); ++other)
            if (other != site && header.sites[static_cast<std::size_t>(other)].layer == here.layer)
                branches.push_back(other);
        const auto weights = file.branch_weights(s, site);
        const std::int64_t length = header.queries(s, here), stored = weights->shape.at(1);
        const auto mean = [&](std::int64_t first, std::int64_t end, std::size_t branch) {
            std::vector<double> curve;
            for (std::int64_t i = 0; i < length; ++i) {
                double sum = 0;
                for (std::int64_t h = first; h < end; ++h)
                    sum += weights->data[static_cast<std::size_t>((h * stored + i) * 2) + branch];
                curve.push_back(sum / static_cast<double>(end - first));
            }
            return curve;
        };
        const bool heads = options.layer.has_value() || options.head.has_value();
        const std::int64_t first = options.head.value_or(0), last = options.head ? first + 1 : here.heads;
        for (std::int64_t h = first; h < (heads ? last : first + 1); ++h) {
            const std::int64_t end = heads ? h + 1 : last;
            model.series.push_back({options.layer ? "head " + std::to_string(h) : "layer " + std::to_string(here.layer),
                                    here.layer,
                                    heads ? h : -1,
                                    branches,
                                    {mean(h, end, 0), mean(h, end, 1)}});
        }
    }
    if (model.series.empty()) {
        throw Error(ErrorCode::usage, "--layer", "expected a NAtS-L layer of " + file_name(file),
                    "found " + (options.layer ? std::to_string(*options.layer) : "none"));
    }
    return model;
}

Panel panel(const Model& model, std::size_t analysis, std::size_t branch, bool several) {
    Panel drawn;
    drawn.subject = of_analysis(analysis);
    drawn.title = (several ? model.name + ": " : std::string()) + kBranches[branch];
    Curves curves;
    for (std::size_t m = 0; m < model.series.size(); ++m) {
        Curve curve;
        curve.name = model.series[m].member;
        curve.subject.sites = model.series[m].sites;
        if (model.series[m].head >= 0) curve.subject.head = model.series[m].head;
        curve.y = model.series[m].of_branch[branch];
        for (std::size_t i = 0; i < curve.y.size(); ++i) curve.x.push_back(static_cast<double>(i));
        colour_member(curve, m, model.series.size());
        curves.curves.push_back(thinned(std::move(curve), kMostPoints));
    }
    drawn.x.label = "position";
    drawn.y.label = "weight";
    drawn.content = std::move(curves);
    return drawn;
}

Table weights_table(const std::vector<Model>& models) {
    std::vector<std::string> name;
    std::vector<std::int64_t> layer, head, position;
    std::vector<double> linear, softmax;
    for (const auto& model : models) {
        for (const auto& series : model.series) {
            for (std::size_t i = 0; i < series.of_branch[0].size(); ++i) {
                name.push_back(model.name);
                layer.push_back(series.layer);
                head.push_back(series.head);
                position.push_back(static_cast<std::int64_t>(i));
                linear.push_back(series.of_branch[0][i]);
                softmax.push_back(series.of_branch[1][i]);
            }
        }
    }
    return {{{"model", std::move(name)},
             {"layer", std::move(layer)},
             {"head", std::move(head)},
             {"position", std::move(position)},
             {"linear", std::move(linear)},
             {"softmax", std::move(softmax)}}};
}

FigureData branch_weights(Files files, const FigureOptions& options) {
    const auto names = file_labels(files, options);
    std::vector<Model> models;
    for (std::size_t f = 0; f < files.size(); ++f) models.push_back(read(*files[f], names[f], options));
    FigureData figure;
    figure.title = "Weights of the two branches";
    if (options.layer) figure.title += ", layer " + std::to_string(*options.layer);
    if (options.head) figure.title += ", head " + std::to_string(*options.head);
    for (const std::size_t branch : {std::size_t{1}, std::size_t{0}})
        for (std::size_t m = 0; m < models.size(); ++m)
            figure.panels.push_back(panel(models[m], m, branch, models.size() > 1));
    figure.columns = std::ssize(models);
    figure.panel_aspect = 0.4;
    std::vector<std::string> members;
    for (const auto& series : models.front().series) members.push_back(series.member);
    figure.legend = member_legend(members);
    figure.notes = source_notes(files, options);
    figure.notes.push_back(std::string(options.layer || options.head ? "" : "Means over the heads of a layer. ") +
                           "Factors of each token's normalized output of the two branches, before they are added.");
    figure.table = [models = std::move(models)] { return weights_table(models); };
    return figure;
}

}  // namespace

extern const Recipe kBranchWeights{
    .name = "branch-weights",
    .description =
        "weights of NAtS-L's softmax and linear branches for each "
        "token, by layer, or by head of --layer",
    .needs = "weights of branches (analyze --record branch-weights)",
    .of_analyses = branch_weights,
    .options = {"layer", "head", "sequence", "names"},
};

}  // namespace headscope::figures
