// SPDX-License-Identifier: GPL-3.0-or-later
// What is added to a score by the distance of query and key (Lazy Attention, Fig. 4, 8 and 9): a curve a head, small
// multiples of layers. ALiBi's slopes and T5's buckets are drawn alike; layers that share theirs are one panel.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kSlopeReach = 511;  ///< a slope has no end: at least as far as Lazy Attention's biases go
constexpr std::int64_t kEveryDistance = 128;
constexpr std::size_t kMostPoints = 600;
constexpr double kPerEFold = 48;  ///< points on a logarithmic axis, beyond kEveryDistance

/// One layer, or several that have the same biases.
struct Biased {
    std::string model, title, stack;
    std::vector<std::int64_t> layers, sites;
    std::size_t analysis = 0;
    std::int64_t first_head = 0, first = 0;   ///< the first distance
    std::vector<std::vector<double>> biases;  ///< [heads, distances]
    bool slopes = false;                      ///< they are a slope times the distance alone
    bool sums = false;                        ///< a learned bias minus that
};

bool equal(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
    const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto& one, const auto& other) {
        return std::equal(one.begin(), one.end(), other.begin(), other.end(), same);
    });
}

/// The last distance that is drawn of slopes: all files alike, so that panels compare.
std::int64_t reach_of(Files files) {
    std::int64_t reach = kSlopeReach;
    for (const auto& file : files) {
        const auto& header = file->header();
        reach = std::max(reach, header.bias_first + header.bias_window - 1);
    }
    return reach;
}

class BiasReader {
public:
    BiasReader(const store::AnalysisFile& file, std::size_t analysis, std::string model, const FigureOptions& options,
               std::int64_t reach)
        : file_(file),
          analysis_(analysis),
          model_(std::move(model)),
          options_(options),
          reach_(reach),
          table_(file.parameters("distance_bias")),
          slopes_(file.parameters("slope")) {}

    void read(std::vector<Biased>& all) const {
        const std::size_t before = all.size();
        for (const auto site : chosen_sites(file_, options_)) {
            check_head(file_, site, options_);
            Biased one = of(site);
            if (one.biases.empty()) continue;
            Biased* last = all.size() > before ? &all.back() : nullptr;
            if (last != nullptr && one.slopes == last->slopes && one.first == last->first && one.stack == last->stack &&
                equal(one.biases, last->biases)) {
                last->layers.push_back(one.layers.front());
                last->sites.insert(last->sites.end(), one.sites.begin(), one.sites.end());
                continue;
            }
            all.push_back(std::move(one));
        }
        for (std::size_t i = before; i < all.size(); ++i) {
            auto& layers = all[i].layers;
            const std::string first = "layer " + std::to_string(layers.front());
            const auto at = all[i].title.find(first);
            if (layers.size() > 1 && at != std::string::npos)
                all[i].title.replace(
                    at, first.size(),
                    "layers " + std::to_string(layers.front()) + " to " + std::to_string(layers.back()));
        }
        if (all.size() == before) refuse();
    }

private:
    double slope(std::int64_t site, std::int64_t head) const {
        if (!slopes_) return std::numeric_limits<double>::quiet_NaN();
        return slopes_->data[static_cast<std::size_t>(site * slopes_->shape[1] + head)];
    }

    Biased of(std::int64_t site) const {
        const auto& header = file_.header();
        const Site& about = header.sites[static_cast<std::size_t>(site)];
        Biased one;
        one.model = model_;
        one.title = site_title(file_, site);
        one.stack = about.stack;
        one.layers = {about.layer};
        one.analysis = analysis_;
        one.sites = {site};
        const std::int64_t heads = about.heads, window = header.bias_window;
        const auto stored = [&](std::int64_t h, std::int64_t i) {
            return table_->data[static_cast<std::size_t>((site * table_->shape[1] + h) * window + i)];
        };
        // Sites without a table, and distances that only others' tables have, are NaN.
        std::int64_t begin = window, end = 0;
        for (std::int64_t i = 0; table_ && i < window; ++i) {
            for (std::int64_t h = 0; h < heads; ++h) {
                if (std::isnan(stored(h, i))) continue;
                begin = std::min(begin, i);
                end = i + 1;
            }
        }
        bool sloped = false;
        for (std::int64_t h = 0; h < heads; ++h) sloped |= !std::isnan(slope(site, h));
        if (end == 0 && !sloped) return one;
        one.slopes = end == 0;
        one.sums = sloped && !one.slopes;
        one.first = one.slopes ? 0 : header.bias_first + begin;
        one.first_head = options_.head.value_or(0);
        for (std::int64_t h = one.first_head; h < (options_.head ? std::min(heads, one.first_head + 1) : heads); ++h) {
            std::vector<double> row;
            for (std::int64_t i = 0; i < (one.slopes ? reach_ + 1 : end - begin); ++i) {
                const auto distance = static_cast<double>(one.first + i);
                row.push_back((one.slopes ? 0.0 : stored(h, begin + i)) - (sloped ? slope(site, h) * distance : 0.0));
            }
            one.biases.push_back(std::move(row));
        }
        return one;
    }

    [[noreturn]] void refuse() const {
        const auto& header = file_.header();
        const bool some = header.bias_window > 0 || header.has_slopes;
        throw Error(ErrorCode::usage, "figure bias of " + file_name(file_),
                    "expected scores with a bias by distance: of Lazy Attention, ALiBi or T5",
                    some ? "found none in the layers that were measured" : "found none");
    }

    const store::AnalysisFile& file_;
    std::size_t analysis_;
    std::string model_;
    const FigureOptions& options_;
    std::int64_t reach_;
    std::optional<store::Values> table_, slopes_;
};

/// On a logarithmic axis keeps points as dense as can be distinguished; else keeps peaks.
Curve drawn(Curve curve, bool logarithmic) {
    if (!logarithmic) return thinned(std::move(curve), kMostPoints);
    Curve fewer = curve;
    fewer.x.clear();
    fewer.y.clear();
    double last = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
        const double size = std::abs(curve.x[i]);
        const double place = size > kEveryDistance ? std::floor(std::log(size) * kPerEFold) : -size;
        if (place == last && i + 1 < curve.x.size()) continue;
        last = place;
        fewer.x.push_back(curve.x[i]);
        fewer.y.push_back(curve.y[i]);
    }
    return fewer;
}

Panel panel(const Biased& one, bool logarithmic, bool several_models, bool titled, std::pair<double, double> range) {
    Panel panel;
    if (titled) {
        panel.title = one.title;
        panel.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(panel.title[0])));
    }
    if (several_models) panel.title += (titled ? " · " : "") + one.model;
    Curves curves;
    for (std::size_t h = 0; h < one.biases.size(); ++h) {
        Curve curve;
        const auto head = one.first_head + static_cast<std::int64_t>(h);
        curve.name = "head " + std::to_string(head);
        curve.subject = of_head(head);
        for (std::size_t i = 0; i < one.biases[h].size(); ++i)
            curve.x.push_back(static_cast<double>(one.first + static_cast<std::int64_t>(i)));
        curve.y = one.biases[h];
        curve.thin = one.biases.size() > 1;
        colour_member(curve, h, one.biases.size());
        curves.curves.push_back(drawn(std::move(curve), logarithmic));
    }
    panel.subject = of_analysis(one.analysis);
    panel.subject.sites = one.sites;
    panel.x.label = "distance";
    panel.y.label = "bias";
    if (logarithmic) panel.x.scale = ScaleKind::symmetric_log;  // 0 has a place, and so has what comes after
    panel.x.range =
        std::pair(static_cast<double>(one.first), static_cast<double>(one.first + std::ssize(one.biases.front()) - 1));
    panel.y.range = range;
    panel.content = std::move(curves);
    return panel;
}

/// The range of all biases and 0, with some room.
std::pair<double, double> common_range(const std::vector<Biased>& all) {
    double low = 0, high = 0;
    for (const auto& one : all) {
        for (const auto& row : one.biases) {
            for (const double value : row) {
                if (!std::isfinite(value)) continue;
                low = std::min(low, value);
                high = std::max(high, value);
            }
        }
    }
    if (!(high > low)) high = low + 1;
    const double room = (high - low) * 0.03;
    return {low - room, high + room};
}

Table bias_table(const std::vector<Biased>& all) {
    std::vector<std::string> model, place;
    std::vector<std::int64_t> layer, head, distance;
    std::vector<double> bias;
    for (const auto& one : all) {
        for (const auto l : one.layers) {
            for (std::size_t h = 0; h < one.biases.size(); ++h) {
                for (std::size_t i = 0; i < one.biases[h].size(); ++i) {
                    model.push_back(one.model);
                    layer.push_back(l);
                    place.push_back(one.title);
                    head.push_back(one.first_head + static_cast<std::int64_t>(h));
                    distance.push_back(one.first + static_cast<std::int64_t>(i));
                    bias.push_back(one.biases[h][i]);
                }
            }
        }
    }
    return {{{"model", std::move(model)},
             {"layer", std::move(layer)},
             {"panel", std::move(place)},
             {"head", std::move(head)},
             {"distance", std::move(distance)},
             {"bias", std::move(bias)}}};
}

FigureData bias(Files files, const FigureOptions& options) {
    const auto names = file_labels(files, options);
    const std::int64_t reach = reach_of(files);
    std::vector<Biased> all;
    for (std::size_t f = 0; f < files.size(); ++f) BiasReader(*files[f], f, names[f], options, reach).read(all);
    const bool logarithmic = options.distance == ScaleKind::logarithmic;
    FigureData figure;
    figure.title = "Bias by distance";
    if (options.layer) figure.title += ", layer " + std::to_string(*options.layer);
    if (options.head) figure.title += ", head " + std::to_string(*options.head);
    const auto range = common_range(all);
    std::size_t heads = 0;
    bool slopes = false, sums = false, shared = false;
    for (const auto& one : all) {
        figure.panels.push_back(panel(one, logarithmic, files.size() > 1, !options.layer || all.size() > 1, range));
        heads = std::max(heads, one.biases.size());
        slopes |= one.slopes;
        sums |= one.sums;
        shared |= one.layers.size() > 1;
    }
    figure.columns = std::min<std::int64_t>(4, std::ssize(all));
    figure.reflow = true;
    figure.narrowest_mm = 34;
    figure.share_y = true;
    figure.panel_aspect = all.size() == 1 ? 0.55 : 0.7;
    if (!options.head) {
        std::vector<std::string> members;
        for (std::size_t h = 0; h < heads; ++h) members.push_back("head " + std::to_string(h));
        figure.legend = member_legend(members);
    }
    FigureOptions shown = options;  // the same for every text
    shown.sequence.reset();
    shown.all_sequences = false;
    figure.notes = source_notes(files, shown);
    figure.notes.front() = "Parameters of ";
    for (std::size_t f = 0; f < names.size(); ++f) figure.notes.front() += (f > 0 ? "; " : "") + names[f];
    figure.notes.front() += ": added to a score, by the position of the query minus that of the key.";
    figure.notes.emplace_back(
        logarithmic ? "Distance: linear from 0 to 1, then logarithmic; all panels share the scale of biases."
                    : "Linear distance; all panels share the scale of biases.");
    if (slopes)
        figure.notes.push_back("ALiBi: slope times distance, unbounded; drawn up to " + std::to_string(reach) + ".");
    if (sums) figure.notes.emplace_back("Drawn: the learned bias minus slope times distance, as far as biases go.");
    if (shared) figure.notes.emplace_back("Layers with equal biases share a panel.");
    figure.table = [all = std::move(all)] { return bias_table(all); };
    return figure;
}

}  // namespace

extern const Recipe kBias{
    .name = "bias",
    .description =
        "what is added to a score by distance: Lazy Attention's learned "
        "biases, ALiBi's slopes, T5's buckets; a curve a head, a panel a layer",
    .needs = "a model whose scores have a bias by distance",
    .of_analyses = bias,
    .options = {"layer", "head", "sequence", "names", "distance"},
};

}  // namespace headscope::figures
