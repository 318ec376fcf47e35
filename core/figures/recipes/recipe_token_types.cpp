// SPDX-License-Identifier: GPL-3.0-or-later
// Which tokens NAtS-L's heads give to softmax attention (Deng et al., Fig. 1c, 5 and 8): the share of softmax chunks by
// layer and head, texts side by side; of one layer the type of every chunk by head; of one head the text, coloured by
// type.

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/figures/head_weights.h"
#include "core/figures/recipe.h"
#include "core/figures/token_chips.h"
#include "core/figures/token_text.h"
#include "core/figures/token_types.h"

namespace headscope::figures {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kMostTokens = 3000;  ///< of one text that is drawn

/// One text's types at the sites that have them: 1 softmax, 0 linear, NaN none.
struct TypedText {
    std::string title;
    std::string model;
    std::int64_t sequence = 0, chunk = 0;
    std::size_t analysis = 0;
    std::shared_ptr<const store::AnalysisFile> file;
    struct Row {
        std::int64_t site = 0, layer = 0;
        std::string label;
        std::int64_t heads = 0, chunks = 0;
        std::vector<float> softmax;  ///< [heads, chunks]
        float fraction(std::int64_t head) const {
            double sum = 0, count = 0;
            for (std::int64_t c = 0; c < chunks; ++c) {
                const float value = softmax[static_cast<std::size_t>(head * chunks + c)];
                if (std::isnan(value)) continue;
                sum += static_cast<double>(value);
                ++count;
            }
            return count > 0 ? static_cast<float>(sum / count) : kNone;
        }
    };
    std::vector<Row> rows;
};

TypedText read(const std::shared_ptr<store::AnalysisFile>& file, const std::string& model, std::int64_t s,
               const FigureOptions& options) {
    const auto& header = file->header();
    if (header.type_chunk == 0) {
        throw Error(ErrorCode::usage, "figure token-types of " + file_name(*file),
                    "expected a model with NAtS-L layers, whose chunks of tokens have types", "found none");
    }
    TypedText text{"", model, s, header.type_chunk, 0, file, {}};
    const std::int64_t length = std::ssize(header.sequences.at(static_cast<std::size_t>(s)).ids);
    for (const auto site : chosen_sites(*file, options)) {
        const Site& here = header.sites[static_cast<std::size_t>(site)];
        if (here.branch != "linear") continue;
        check_head(*file, site, options);
        const auto types = file->token_types(s, site);
        TypedText::Row row{
            site, here.layer, site_label(*file, site), here.heads, (length + header.type_chunk - 1) / header.type_chunk,
            {}};
        const std::int64_t stored = types->shape.back();
        for (std::int64_t h = 0; h < row.heads; ++h) {
            for (std::int64_t c = 0; c < row.chunks; ++c) {
                const double type = types->data[static_cast<std::size_t>(h * stored + c)];
                row.softmax.push_back(type == 0 ? 1.0F : type == 1 ? 0.0F : kNone);
            }
        }
        text.rows.push_back(std::move(row));
    }
    if (text.rows.empty()) {
        throw Error(ErrorCode::usage, "--layer", "expected a NAtS-L layer of " + file_name(*file),
                    "found " + (options.layer ? std::to_string(*options.layer) : "none"));
    }
    return text;
}

/// The sequence chosen, or with all of them each one: the papers' figures put texts beside each other.
std::vector<TypedText> read_all(Files files, const FigureOptions& options) {
    const auto names = file_labels(files, options);
    std::vector<TypedText> texts;
    for (std::size_t f = 0; f < files.size(); ++f) {
        for (const auto s : chosen_sequences(*files[f], options)) {
            if (std::ssize(texts) == kMostTypedTexts) {
                throw Error(ErrorCode::limit, "figure token-types",
                            "expected at most " + std::to_string(kMostTypedTexts) + " texts: choose with --sequence",
                            "found more");
            }
            texts.push_back(read(files[f], names[f], s, options));
            texts.back().analysis = f;
            std::string& title = texts.back().title;
            if (files.size() > 1) title = names[f];
            if (options.all_sequences) title += (title.empty() ? "sequence " : ", sequence ") + std::to_string(s);
        }
    }
    return texts;
}

ColourScale share_scale(const std::string& label) {
    ColourScale scale;
    scale.label = label;
    return scale;
}

Panel fraction_panel(const TypedText& text, const FigureOptions& options) {
    Panel panel;
    panel.title = text.title;
    HeatMap map;
    const std::int64_t first = options.head.value_or(0);
    std::int64_t heads = 1;
    for (const auto& row : text.rows) heads = std::max(heads, row.heads);
    map.rows = std::ssize(text.rows);
    map.columns = options.head ? 1 : heads;
    map.write_values = true;
    map.pooling = Pooling::mean;
    map.colours = share_scale("softmax fraction");
    for (std::int64_t r = 0; r < map.rows; ++r) {
        const auto& row = text.rows[static_cast<std::size_t>(r)];
        panel.y.ticks.push_back({static_cast<double>(r), row.label, of_site(row.site)});
        for (std::int64_t c = 0; c < map.columns; ++c)
            map.values.push_back(first + c < row.heads ? row.fraction(first + c) : kNone);
    }
    for (std::int64_t c = 0; c < map.columns; ++c)
        panel.x.ticks.push_back({static_cast<double>(c), std::to_string(first + c), of_head(first + c)});
    panel.subject = of_analysis(text.analysis);
    panel.x.label = "head";
    panel.y.label = "layer";
    panel.content = std::move(map);
    return panel;
}

/// Heads by chunks of one layer, on an axis of tokens.
Panel chunk_panel(const TypedText& text) {
    Panel panel;
    panel.title = text.title;
    const auto& row = text.rows.front();
    HeatMap map;
    map.rows = row.heads;
    map.columns = row.chunks;
    map.values = row.softmax;
    map.pooling = Pooling::mean;
    map.colours = share_scale("0: linear, 1: softmax");
    for (std::int64_t h = 0; h < row.heads; ++h)
        panel.y.ticks.push_back({static_cast<double>(h), std::to_string(h), of_head(h)});
    panel.subject = of_site(row.site).within(of_analysis(text.analysis));
    panel.x.cells_per_value = 1.0 / static_cast<double>(text.chunk);
    panel.x.label = "token";
    panel.y.label = "head";
    panel.content = std::move(map);
    return panel;
}

/// The text, each token in the colour of its chunk's type at one head.
Panel text_panel(const TypedText& text, std::int64_t head, const FigureOptions& options,
                 std::vector<std::string>& notes) {
    Panel panel;
    panel.title = text.title;
    const auto& row = text.rows.front();
    const auto& tokens = text.file->header().sequences[static_cast<std::size_t>(text.sequence)];
    const std::int64_t count = std::ssize(tokens.ids);
    maps::Cells part = chosen_region(options, count, count);
    if (part.keys() > kMostTokens) {
        part.k_end = part.k_begin + kMostTokens;
        notes.push_back("Tokens " + std::to_string(part.k_begin) + " to " + std::to_string(part.k_end - 1) + " of " +
                        std::to_string(count) + "; --from-key and --to-key select others.");
    }
    std::vector<float> shown(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
        shown[static_cast<std::size_t>(i)] = row.softmax[static_cast<std::size_t>(head * row.chunks + i / text.chunk)];
    panel.content = text_block(tokens, part.k_begin, part.k_end, shown, -1, share_scale("0: linear, 1: softmax"));
    return panel;
}

Table fractions_table(const std::vector<TypedText>& texts, const FigureOptions& options) {
    std::vector<std::string> model;
    std::vector<std::int64_t> sequence, layer, head, chunks;
    std::vector<double> fraction;
    for (const auto& text : texts) {
        for (const auto& row : text.rows) {
            for (std::int64_t h = 0; h < row.heads; ++h) {
                if (options.head && *options.head != h) continue;
                model.push_back(text.model);
                sequence.push_back(text.sequence);
                layer.push_back(row.layer);
                head.push_back(h);
                chunks.push_back(row.chunks);
                fraction.push_back(static_cast<double>(row.fraction(h)));
            }
        }
    }
    return {{{"model", std::move(model)},
             {"sequence", std::move(sequence)},
             {"layer", std::move(layer)},
             {"head", std::move(head)},
             {"chunks", std::move(chunks)},
             {"softmax_fraction", std::move(fraction)}}};
}

Table types_table(const std::vector<TypedText>& texts, const FigureOptions& options) {
    std::vector<std::string> model, type;
    std::vector<std::int64_t> sequence, layer, head, chunk, first;
    for (const auto& text : texts) {
        const auto& row = text.rows.front();
        for (std::int64_t h = 0; h < row.heads; ++h) {
            for (std::int64_t c = 0; c < row.chunks && (!options.head || *options.head == h); ++c) {
                const float softmax = row.softmax[static_cast<std::size_t>(h * row.chunks + c)];
                model.push_back(text.model);
                sequence.push_back(text.sequence);
                layer.push_back(row.layer);
                head.push_back(h);
                chunk.push_back(c);
                first.push_back(c * text.chunk);
                type.emplace_back(std::isnan(softmax) ? "" : softmax > 0 ? "softmax" : "linear");
            }
        }
    }
    return {{{"model", std::move(model)},
             {"sequence", std::move(sequence)},
             {"layer", std::move(layer)},
             {"head", std::move(head)},
             {"chunk", std::move(chunk)},
             {"first_token", std::move(first)},
             {"type", std::move(type)}}};
}

FigureData token_types(Files files, const FigureOptions& options) {
    auto texts = read_all(files, options);
    FigureData figure;
    figure.shared_colours = true;
    FigureOptions told = options;
    if (options.all_sequences) {  // each for itself: no mean is taken
        told.all_sequences = false;
        told.sequence = 0;
    }
    figure.notes = source_notes(files, told);
    if (options.all_sequences) {
        std::string names;
        for (const auto& name : file_labels(files, options)) names += (names.empty() ? "" : "; ") + name;
        figure.notes.front() = names + ", all sequences, one by one.";
    }
    double rows = 1, columns = 1;
    if (options.layer && options.head) {
        figure.title =
            "Types of tokens, layer " + std::to_string(*options.layer) + ", head " + std::to_string(*options.head);
        for (const auto& text : texts) figure.panels.push_back(text_panel(text, *options.head, options, figure.notes));
    } else if (options.layer) {
        figure.title = "Types of chunks, layer " + std::to_string(*options.layer);
        for (const auto& text : texts) {
            figure.panels.push_back(chunk_panel(text));
            rows = std::max(rows, static_cast<double>(text.rows.front().heads));
        }
        figure.panel_height_mm = std::clamp(6 * rows, 18.0, 60.0);
    } else {
        figure.title = "Softmax fraction by layer and head";
        for (const auto& text : texts) {
            figure.panels.push_back(fraction_panel(text, options));
            const auto& map = std::get<HeatMap>(figure.panels.back().content);
            rows = std::max(rows, static_cast<double>(map.rows));
            columns = std::max(columns, static_cast<double>(map.columns));
        }
        figure.columns = std::min<std::int64_t>(std::ssize(texts), 4);
        figure.reflow = true;
        figure.panel_aspect = std::clamp(rows / std::max(columns, 4.0), 0.3, 1.5);
        if (texts.size() == 1) figure.widest_mm = std::max(40.0, columns * 14);
    }
    std::vector<std::string> sizes;
    for (const auto& text : texts) {
        const std::string size = std::to_string(text.chunk);
        if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
    }
    figure.notes.push_back(
        "Chunks of " + joined_text(sizes, " and ") +
        " tokens (the last one may be shorter). Softmax fraction: share of a head's chunks that later tokens "
        "attend to by softmax attention. Gray: none.");
    const bool types = options.layer.has_value();
    figure.table = [texts = std::move(texts), options, types] {
        return types ? types_table(texts, options) : fractions_table(texts, options);
    };
    return figure;
}

}  // namespace

extern const Recipe kTokenTypes{
    .name = "token-types",
    .description =
        "softmax fraction of NAtS-L's layers and heads, texts side "
        "by side; --layer: the type of every chunk; with --head: "
        "the text colored by type",
    .needs = "a model with NAtS-L layers",
    .of_analyses = token_types,
    .options = {"layer", "head", "sequence", "names", "from-key", "to-key"},
};

}  // namespace headscope::figures
