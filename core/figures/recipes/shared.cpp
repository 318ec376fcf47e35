// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/base/class_names.h"
#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/figures/recipe.h"

namespace headscope::figures {

std::string file_name(const store::AnalysisFile& file) {
    return file.path().filename().string();
}

FigureOptions minuend_options(const FigureOptions& options) {
    FigureOptions minuend = options;
    if (options.other_sequence) minuend.sequence = options.other_sequence;
    if (options.other_layer) minuend.layer = options.other_layer;
    if (options.other_head) minuend.head = options.other_head;
    return minuend;
}

std::int64_t chosen_sequence(const store::AnalysisFile& file, const FigureOptions& options) {
    if (options.all_sequences) {
        throw Error(ErrorCode::usage, "--sequence", "expected a number: this figure is of one sequence", "found all");
    }
    const std::int64_t s = options.sequence.value_or(0);
    const auto count = std::ssize(file.header().sequences);
    if (s < 0 || s >= count) {
        throw Error(ErrorCode::usage, "--sequence",
                    "expected 0 to " + std::to_string(count - 1) + " of " + file_name(file),
                    "found " + std::to_string(s));
    }
    return s;
}

std::vector<std::int64_t> chosen_sequences(const store::AnalysisFile& file, const FigureOptions& options) {
    if (!options.all_sequences) return {chosen_sequence(file, options)};
    std::vector<std::int64_t> all(file.header().sequences.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
}

Moments moments(std::span<const double> values) {
    double sum = 0, squares = 0;
    std::int64_t count = 0;
    for (const double value : values) {
        if (std::isnan(value)) continue;
        sum += value;
        ++count;
    }
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    if (count == 0) return {none, none};
    const double mean = sum / static_cast<double>(count);
    for (const double value : values)
        if (!std::isnan(value)) squares += (value - mean) * (value - mean);
    return {mean, count > 1 ? std::sqrt(squares / static_cast<double>(count - 1)) : none};
}

namespace {

bool belongs(const Site& site, Tower tower) {
    switch (tower) {
        case Tower::encoder:
            return site.stack == "encoder";
        case Tower::decoder:
            return site.stack == "decoder" && !site.is_cross();
        case Tower::cross:
            return site.is_cross();
        case Tower::softmax:  // of a layer that has no branches, whatever is in its place
            return site.branch.empty() ? site.has_matrix : site.branch == "softmax";
        case Tower::linear:
            return site.branch.empty() ? site.has_implicit : site.branch == "linear";
        case Tower::any:
            break;
    }
    return true;
}

/// Throws Error (usage) where the model has nothing of that name.
void check_tower(const store::AnalysisFile& file, Tower tower) {
    const auto& sites = file.header().sites;
    if (std::any_of(sites.begin(), sites.end(), [&](const Site& site) { return belongs(site, tower); })) return;
    if (tower == Tower::softmax || tower == Tower::linear) {
        throw Error(ErrorCode::usage, "--tower", "expected an attention that " + file_name(file) + " has",
                    std::string("found ") + (tower == Tower::softmax ? "softmax" : "linear"));
    }
    const char* name = tower == Tower::encoder ? "encoder" : tower == Tower::decoder ? "decoder" : "cross";
    throw Error(ErrorCode::usage, "--tower",
                "expected no such option, for " + file_name(file) + " has one stack of layers",
                std::string("found ") + name);
}

}  // namespace

std::vector<std::int64_t> chosen_sites(const store::AnalysisFile& file, const FigureOptions& options) {
    const auto& sites = file.header().sites;
    if (options.tower != Tower::any) check_tower(file, options.tower);
    std::vector<std::int64_t> chosen;
    std::set<std::int32_t> layers;
    for (std::int64_t i = 0; i < std::ssize(sites); ++i) {
        const auto layer = sites[static_cast<std::size_t>(i)].layer;
        const auto& measured = file.header().measured_layers;
        if (!measured.empty() && !measured.contains(layer)) continue;
        if (!belongs(sites[static_cast<std::size_t>(i)], options.tower)) continue;
        layers.insert(layer);
        if (!options.layer || *options.layer == layer) chosen.push_back(i);
    }
    if (chosen.empty()) {
        // Gaps are possible: analyze --layers.
        const bool whole = !layers.empty() && *layers.rbegin() - *layers.begin() + 1 == std::ssize(layers);
        std::string range = layers.empty() ? "a file with attention layers" : "";
        if (whole) {
            range = std::to_string(*layers.begin()) + " to " + std::to_string(*layers.rbegin());
        } else {
            for (const auto layer : layers) range += (range.empty() ? "" : ", ") + std::to_string(layer);
        }
        range += " of " + file_name(file);
        throw Error(ErrorCode::usage, "--layer", "expected " + range,
                    "found " + (options.layer ? std::to_string(*options.layer) : "none"));
    }
    return chosen;
}

Tower tower_of(std::span<const Site> sites, std::int64_t site) {
    const bool several = std::any_of(sites.begin(), sites.end(), [](const Site& one) { return one.is_cross(); });
    const Site& here = sites[static_cast<std::size_t>(site)];
    if (!here.branch.empty()) return here.branch == "linear" ? Tower::linear : Tower::softmax;
    if (!several) return Tower::any;
    if (here.is_cross()) return Tower::cross;
    return here.stack == "encoder" ? Tower::encoder : Tower::decoder;
}

void check_head(const store::AnalysisFile& file, std::int64_t site, const FigureOptions& options) {
    if (!options.head) return;
    const auto heads = file.header().sites[static_cast<std::size_t>(site)].heads;
    if (*options.head < 0 || *options.head >= heads) {
        throw Error(ErrorCode::usage, "--head", "expected 0 to " + std::to_string(heads - 1) + " of " + file_name(file),
                    "found " + std::to_string(*options.head));
    }
}

std::string site_label(const store::AnalysisFile& file, std::int64_t site) {
    return site_label(file.header().sites, site);
}

std::string site_title(const store::AnalysisFile& file, std::int64_t site) {
    return site_title(file.header().sites, site);
}

std::string chosen_title(const store::AnalysisFile& file, const FigureOptions& options) {
    const auto sites = chosen_sites(file, options);
    if (sites.size() == 1) return site_title(file, sites.front());
    return options.layer ? "layer " + std::to_string(*options.layer) : "every layer";
}

OutputKind output_kind(const store::AnalysisHeader& header) {
    bool causal = std::any_of(header.sites.begin(), header.sites.end(), [](const Site& site) {
        return site.stack != "encoder" && site.is_self() && site.causal;
    });
    std::string head;
    try {
        const nlohmann::json document = parse_json(header.config_json, "/model/config");
        const JsonView config(document, "/model/config");
        head = config.string_or("head", "");
        causal = config.boolean_or("causal", causal);
    } catch (const Error&) {  // of a file from elsewhere: what its sites say
    }
    OutputKind kind;
    kind.classes = head == "token_classes" || head == "sequence_classes" || head == "spans";
    kind.none = head == "none";
    kind.next = causal && !kind.classes;
    if (kind.classes) kind.class_names = class_names(header.config_json);
    return kind;
}

std::vector<bool> heads_with_zeros(const store::AnalysisFile& file, std::int64_t site,
                                   std::span<const std::int64_t> sequences) {
    const auto zeros = file.indicator("zero_fraction");
    std::vector<bool> sparse;
    std::vector<double> each;
    for (std::int64_t h = 0; h < file.header().sites[static_cast<std::size_t>(site)].heads; ++h) {
        each.clear();
        for (const auto s : sequences)
            each.push_back(zeros.data[static_cast<std::size_t>((s * zeros.shape[1] + site) * zeros.shape[2] + h)]);
        sparse.push_back(moments(each).mean >= kSparseHead);
    }
    return sparse;
}

void set_zero_apart(ColourScale& scale, std::span<const float> values) {
    scale.zero_apart |= std::find(values.begin(), values.end(), 0.0F) != values.end();
}

namespace {

/// "512 tokens", "512 tokens and 30 of the target, sequence 2", "means over 5 sequences of 30 to 512 tokens".
std::string text_note(const store::AnalysisFile& file, const FigureOptions& options) {
    const auto& sequences = file.header().sequences;
    const auto& output = file.header().output_sequences();
    const auto chosen = chosen_sequences(file, options);
    if (chosen.size() == 1) {
        const auto s = static_cast<std::size_t>(chosen.front());
        std::string text = std::to_string(sequences[s].ids.size()) + " tokens";
        if (&output != &sequences) text += " and " + std::to_string(output[s].ids.size()) + " of the target";
        return text + (sequences.size() > 1 ? ", sequence " + std::to_string(s) : "");
    }
    const auto [least, most] = std::minmax_element(
        sequences.begin(), sequences.end(), [](const auto& a, const auto& b) { return a.ids.size() < b.ids.size(); });
    return "means over " + std::to_string(chosen.size()) + " sequences of " + std::to_string(least->ids.size()) +
           (least->ids.size() == most->ids.size() ? "" : " to " + std::to_string(most->ids.size())) + " tokens";
}

}  // namespace

std::vector<std::string> source_notes(Files files, const FigureOptions& options) {
    std::vector<std::string> notes;
    const auto labels = file_labels(files, options);
    const FigureOptions minuend = minuend_options(options);
    const auto of = [&](std::size_t f) -> const FigureOptions& { return f == 1 ? minuend : options; };
    const auto note = [&notes](const std::string& text) {
        if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
    };
    std::string source;
    for (std::size_t f = 0; f < files.size(); ++f)
        source += (f > 0 ? "; " : "") + labels[f] + ", " + text_note(*files[f], of(f));
    note(source + ".");
    for (std::size_t f = 0; f < files.size(); ++f) {
        const auto& header = files[f]->header();
        const auto limit = header.max_positions;
        std::int64_t tokens = 0;
        for (const auto s : chosen_sequences(*files[f], of(f))) {
            tokens = std::max({tokens, std::ssize(header.sequences[static_cast<std::size_t>(s)].ids),
                               std::ssize(header.output_sequences()[static_cast<std::size_t>(s)].ids)});
        }
        if (limit > 0 && tokens > limit)
            note(labels[f] + ": beyond the trained " + std::to_string(limit) + " positions.");
    }
    for (std::size_t f = 0; f < files.size(); ++f) {
        if (files[f]->complete()) continue;
        const auto sequences = chosen_sequences(*files[f], of(f));
        const auto sites = std::ssize(files[f]->header().sites);
        std::int64_t done = 0;
        for (const auto s : sequences)
            for (std::int64_t i = 0; i < sites; ++i) done += files[f]->site_done(s, i) ? 1 : 0;
        note(labels[f] + ": partial file, " + std::to_string(done) + " of " +
             std::to_string(sites * std::ssize(sequences)) + " layers done" +
             (sequences.size() > 1 ? ", all sequences together." : "."));
    }
    return notes;
}

std::string short_number(double value, int digits) {
    if (std::isnan(value)) return "–";
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
    return buffer;
}

std::string smallest_note(const std::string& values, double smallest) {
    std::string number = short_number(smallest, 2);
    // 1e-04 as readers write it.
    if (const std::size_t zero = number.find("e-0"); zero != std::string::npos) number.erase(zero + 2, 1);
    if (number == "0.0001") number = "1e-4";
    return values + " below " + number + " are drawn as " + number + ".";
}

std::string short_count(double count) {
    char buffer[32];
    const char* unit = "";
    for (const char* larger : {"k", "M", "G", "T"}) {
        if (count < 999.5) break;
        count /= 1000;
        unit = larger;
    }
    std::snprintf(buffer, sizeof buffer, *unit != '\0' && count < 99.95 ? "%.1f%s" : "%.0f%s", count, unit);
    return buffer;
}

}  // namespace headscope::figures
