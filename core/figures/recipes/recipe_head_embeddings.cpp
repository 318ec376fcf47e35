// SPDX-License-Identifier: GPL-3.0-or-later
// Embeddings by which the heads of multiple-head-embedding attention differ (Xue's thesis, Chapter 3): their norms, the
// cosines of each two heads, and how far the heads' weights differ for all that. A row a site: encoder, decoder, cross.

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr std::array kParts{"query", "key", "value"};

struct EmbeddedPart {
    std::vector<double> norms;    ///< [heads]
    std::vector<double> cosines;  ///< [heads, heads]; NaN of an embedding that is 0
    double mean_cosine = 0;       ///< over pairs of different heads; NaN: there is none
};

struct EmbeddedSite {
    std::string label, title;
    std::int64_t site = 0, layer = 0, heads = 0;
    std::array<EmbeddedPart, kParts.size()> parts;
    double diversity = 0;  ///< mean over the chosen sequences; NaN: not measured
};

struct EmbeddedModel {
    std::string name;
    std::vector<EmbeddedSite> sites;
};

/// `values`: [heads, size], of which `width` numbers are the site's.
EmbeddedPart part_of(const double* values, std::int64_t heads, std::int64_t size, std::int64_t width) {
    EmbeddedPart part;
    const auto product = [&](std::int64_t a, std::int64_t b) {
        double sum = 0;
        for (std::int64_t i = 0; i < width; ++i) sum += values[a * size + i] * values[b * size + i];
        return sum;
    };
    for (std::int64_t h = 0; h < heads; ++h) part.norms.push_back(std::sqrt(product(h, h)));
    std::vector<double> different;
    for (std::int64_t a = 0; a < heads; ++a) {
        for (std::int64_t b = 0; b < heads; ++b) {
            const double norms = part.norms[static_cast<std::size_t>(a)] * part.norms[static_cast<std::size_t>(b)];
            const double cosine = norms > 0 ? a == b ? 1 : std::clamp(product(a, b) / norms, -1.0, 1.0)
                                            : std::numeric_limits<double>::quiet_NaN();
            part.cosines.push_back(cosine);
            if (a < b) different.push_back(cosine);
        }
    }
    part.mean_cosine = moments(different).mean;
    return part;
}

EmbeddedModel read(const store::AnalysisFile& file, const std::string& name, const FigureOptions& options) {
    EmbeddedModel model{name, {}};
    const auto stored = file.parameters("head_embedding");
    const store::Values diversity = stored ? file.indicator("head_diversity") : store::Values{};
    const auto sequences = chosen_sequences(file, options);
    for (const auto site : chosen_sites(file, options)) {
        if (!stored) break;
        const Site& about = file.header().sites[static_cast<std::size_t>(site)];
        const std::int64_t most = stored->shape[2], size = stored->shape[3];
        const double* own = stored->data.data() + site * std::ssize(kParts) * most * size;
        if (std::isnan(*own)) continue;
        EmbeddedSite one{site_label(file, site), site_title(file, site), site, about.layer, about.heads, {}, 0};
        for (std::size_t p = 0; p < kParts.size(); ++p)
            one.parts[p] = part_of(own + static_cast<std::int64_t>(p) * most * size, about.heads, size,
                                   std::min<std::int64_t>(size, about.key_size));
        std::vector<double> each;
        for (const auto s : sequences)
            each.push_back(diversity.data[static_cast<std::size_t>(s * diversity.shape[1] + site)]);
        one.diversity = moments(each).mean;
        model.sites.push_back(std::move(one));
    }
    if (model.sites.empty()) {
        throw Error(ErrorCode::usage, "figure head-embeddings of " + file_name(file),
                    "expected layers of mhe_add or mhe_mul, whose heads differ by an embedding each",
                    stored ? "found none among the layers that were measured" : "found none");
    }
    return model;
}

std::vector<Tick> head_ticks(std::int64_t heads) {
    std::vector<Tick> ticks;
    for (std::int64_t h = 0; h < heads; ++h) ticks.push_back({static_cast<double>(h), std::to_string(h), of_head(h)});
    return ticks;
}

std::vector<Tick> site_ticks(const EmbeddedModel& model) {
    std::vector<Tick> ticks;
    for (std::size_t r = 0; r < model.sites.size(); ++r)
        ticks.push_back({static_cast<double>(r), model.sites[r].label, of_site(model.sites[r].site)});
    return ticks;
}

std::int64_t most_heads(const EmbeddedModel& model) {
    std::int64_t most = 0;
    for (const auto& site : model.sites) most = std::max(most, site.heads);
    return most;
}

std::string in_words(std::size_t part) {
    return std::string(kParts.at(part)) + " embeddings";
}

Panel norms_panel(const EmbeddedModel& model, std::size_t part, double highest, const std::string& suffix) {
    Panel panel;
    panel.title = "Norms of " + in_words(part) + suffix;
    HeatMap map;
    map.rows = std::ssize(model.sites);
    map.columns = most_heads(model);
    for (const auto& site : model.sites) {
        const auto& norms = site.parts.at(part).norms;
        for (std::int64_t h = 0; h < map.columns; ++h)
            map.values.push_back(h < site.heads ? static_cast<float>(norms[static_cast<std::size_t>(h)]) : kNone);
    }
    map.colours.label = "norm";
    map.colours.maximum = highest > 0 ? highest : 1;
    map.write_values = true;
    map.pooling = Pooling::mean;
    panel.x.label = "head";
    panel.x.ticks = head_ticks(map.columns);
    panel.y.label = "layer";
    panel.y.ticks = site_ticks(model);
    panel.content = std::move(map);
    return panel;
}

ColourScale cosine_scale() {
    ColourScale scale;
    scale.label = "cosine";
    scale.map = ColourMap::diverging;
    scale.minimum = -1;
    return scale;
}

/// A small square of heads by heads for each site and part.
Panel cosines_panel(const EmbeddedModel& model, const std::string& suffix) {
    Panel panel;
    panel.title = "Cosines of each two heads" + suffix;
    Mosaic mosaic;
    mosaic.rows = std::ssize(model.sites);
    mosaic.columns = std::ssize(kParts);
    mosaic.size = most_heads(model);
    mosaic.colours = cosine_scale();
    mosaic.pooling = Pooling::extreme;
    for (const auto& site : model.sites) {
        for (const auto& part : site.parts) {
            for (std::int64_t a = 0; a < mosaic.size; ++a)
                for (std::int64_t b = 0; b < mosaic.size; ++b)
                    mosaic.values.push_back(
                        a < site.heads && b < site.heads
                            ? static_cast<float>(part.cosines[static_cast<std::size_t>(a * site.heads + b)])
                            : kNone);
        }
    }
    for (std::size_t p = 0; p < kParts.size(); ++p) panel.x.ticks.push_back({static_cast<double>(p), kParts.at(p)});
    panel.y.label = "layer";
    panel.y.ticks = site_ticks(model);
    panel.content = std::move(mosaic);
    return panel;
}

Panel cosine_panel(const EmbeddedSite& site, std::size_t part, const std::string& suffix) {
    Panel panel;
    panel.title = std::string(kParts.at(part)) + ", " + site.title + suffix;
    panel.title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(panel.title.front())));
    HeatMap map;
    map.rows = map.columns = site.heads;
    for (const double cosine : site.parts.at(part).cosines) map.values.push_back(static_cast<float>(cosine));
    map.colours = cosine_scale();
    map.write_values = true;
    map.pooling = Pooling::extreme;
    panel.x.label = panel.y.label = "head";
    panel.x.ticks = panel.y.ticks = head_ticks(site.heads);
    for (Tick& tick : panel.x.ticks) tick.subject = {};  // a cell selects the head of its row
    panel.subject = of_site(site.site);
    panel.content = std::move(map);
    return panel;
}

TextTable sites_table(const std::vector<EmbeddedModel>& models) {
    TextTable table;
    const bool several = models.size() > 1;
    table.words = several ? 2 : 1;
    if (several) table.header.emplace_back("model");
    table.header.emplace_back("layer");
    for (const char* part : kParts) table.header.push_back(std::string("norm, ") + part);
    for (const char* part : kParts) table.header.push_back(std::string("cosine, ") + part);
    table.header.emplace_back("head diversity");
    for (const auto& model : models) {
        for (const auto& site : model.sites) {
            std::vector<std::string> row;
            if (several) row.push_back(model.name);
            row.push_back(site.label);
            for (const auto& part : site.parts) row.push_back(short_number(moments(part.norms).mean));
            for (const auto& part : site.parts) row.push_back(short_number(part.mean_cosine));
            row.push_back(short_number(site.diversity));
            table.rows.push_back(std::move(row));
        }
    }
    return table;
}

/// A row for each two heads of a part.
Table pairs_table(const std::vector<EmbeddedModel>& models) {
    std::vector<std::string> name, site, part;
    std::vector<std::int64_t> layer, head, other;
    std::vector<double> norm, cosine, diversity;
    for (const auto& model : models) {
        for (const auto& one : model.sites) {
            for (std::size_t p = 0; p < kParts.size(); ++p) {
                for (std::int64_t at = 0; at < one.heads * one.heads; ++at) {
                    name.push_back(model.name);
                    layer.push_back(one.layer);
                    site.push_back(one.label);
                    part.emplace_back(kParts.at(p));
                    head.push_back(at / one.heads);
                    norm.push_back(one.parts.at(p).norms[static_cast<std::size_t>(head.back())]);
                    other.push_back(at % one.heads);
                    cosine.push_back(one.parts.at(p).cosines[static_cast<std::size_t>(at)]);
                    diversity.push_back(one.diversity);
                }
            }
        }
    }
    return {{{"model", std::move(name)},
             {"layer", std::move(layer)},
             {"site", std::move(site)},
             {"part", std::move(part)},
             {"head", std::move(head)},
             {"norm", std::move(norm)},
             {"other", std::move(other)},
             {"cosine", std::move(cosine)},
             {"head_diversity", std::move(diversity)}}};
}

FigureData head_embeddings(Files files, const FigureOptions& options) {
    const auto names = file_labels(files, options);
    std::vector<EmbeddedModel> models;
    double highest = 0;
    std::int64_t rows = 1;
    for (std::size_t f = 0; f < files.size(); ++f) models.push_back(read(*files[f], names[f], options));
    for (const auto& model : models) {
        rows = std::max(rows, std::ssize(model.sites));
        for (const auto& site : model.sites)
            for (const auto& part : site.parts)
                highest = std::max(highest, *std::max_element(part.norms.begin(), part.norms.end()));
    }
    FigureData figure;
    figure.title = "Head embeddings";
    figure.reflow = true;
    figure.narrowest_mm = options.layer ? 30 : 40;  // three squares side by side have no labels of layers
    figure.shared_colours = options.layer.has_value();
    for (std::size_t m = 0; m < models.size(); ++m) {
        const EmbeddedModel& model = models[m];
        const std::string suffix = models.size() > 1 ? " · " + model.name : "";
        const std::size_t first = figure.panels.size();
        for (std::size_t p = 0; p < kParts.size() && !options.layer; ++p)
            figure.panels.push_back(norms_panel(model, p, highest, suffix));
        if (!options.layer) figure.panels.push_back(cosines_panel(model, suffix));
        for (std::size_t s = 0; s < model.sites.size() && options.layer; ++s)
            for (std::size_t p = 0; p < kParts.size(); ++p)
                figure.panels.push_back(cosine_panel(model.sites[s], p, suffix));
        for (std::size_t p = first; p < figure.panels.size(); ++p)
            figure.panels[p].subject = figure.panels[p].subject.within(of_analysis(m));
    }
    figure.columns = options.layer ? std::ssize(kParts) : 2;
    if (!options.layer) figure.panel_height_mm = std::clamp(8.0 * static_cast<double>(rows), 30.0, 110.0);
    figure.notes = source_notes(files, options);
    figure.notes.emplace_back(
        "Embeddings as stored; mhe_mul multiplies by the embedding plus 1. Table: means over heads, and over pairs of "
        "different heads; head diversity: difference of their weights on this text.");
    figure.text_table = sites_table(models);
    figure.table = [models = std::move(models)] { return pairs_table(models); };
    return figure;
}

}  // namespace

extern const Recipe kHeadEmbeddings{
    .name = "head-embeddings",
    .description =
        "embeddings by which the heads of multiple-head-embedding attention "
        "differ: norms, pairwise cosines, and beside them how far the heads' "
        "weights differ; --layer: the cosines of one layer",
    .needs = "a model with mhe_add or mhe_mul layers",
    .of_analyses = head_embeddings,
    .options = {"layer", "sequence", "names"},
};

}  // namespace headscope::figures
