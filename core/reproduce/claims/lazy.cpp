// SPDX-License-Identifier: GPL-3.0-or-later
// Lazy Attention: where weights go, learned biases and offsets by layer.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/series.h"
#include "core/reproduce/claims/code.h"
#include "core/store/analysis/analysis_file.h"

namespace headscope::reproduce {

Matrix finite_rows(const std::vector<double>& values, std::size_t rows, std::size_t width) {
    Matrix matrix;
    for (std::size_t row = 0; row < rows; ++row) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * width);
        std::vector<double> finite(begin, begin + static_cast<std::ptrdiff_t>(width));
        std::erase_if(finite, [](double value) { return !std::isfinite(value); });
        if (!finite.empty()) matrix.push_back(std::move(finite));
    }
    return matrix;
}

Decay decay_of(const std::vector<double>& biases) {
    if (biases.size() < 8) return {};
    std::vector<double> distances(biases.size());
    std::iota(distances.begin(), distances.end(), 0.0);
    const double along = correlation(distances, biases);
    const auto begin = biases.begin(), half = begin + std::ssize(biases) / 2;
    return {std::isnan(along) ? 0 : along,
            finite_mean({begin, begin + std::ssize(biases) / 8}) - finite_mean({half, biases.end()})};
}

namespace {

/// Reads the longest sequences: a shorter one at the end has another even share.
void read_attended(const std::filesystem::path& path, const std::string& subject, const std::string&,
                   Measured& measured) {
    const auto file = store::AnalysisFile::open(path);
    const auto& header = file->header();
    const auto sites = header.sites.size(), heads = static_cast<std::size_t>(header.most_heads());
    const auto length = static_cast<std::size_t>(header.longest());
    std::vector<std::size_t> sequences;
    for (std::size_t s = 0; s < header.sequences.size(); ++s)
        if (header.sequences[s].ids.size() == length) sequences.push_back(s);
    for (const char* name : {"density", "sink", "sparsity", "zero_fraction"}) {
        const auto stored = file->indicator(name);
        std::vector<double> layers, all;
        for (std::size_t site = 0; site < sites; ++site) {
            std::vector<double> layer;
            for (const std::size_t s : sequences) {
                const auto begin = stored.data.begin() + static_cast<std::ptrdiff_t>((s * sites + site) * heads);
                layer.insert(layer.end(), begin, begin + static_cast<std::ptrdiff_t>(heads));
            }
            layers.push_back(finite_mean(layer));
            all.insert(all.end(), layer.begin(), layer.end());
        }
        measured.add(subject, name, finite_mean(all), std::nan(""));
        measured.matrices[{subject, name}] = {{layers}};
    }
    std::vector<std::vector<double>> on_key(length);
    for (const std::size_t s : sequences)
        for (std::size_t site = 0; site < sites; ++site) {
            const auto stored = file->column_mass(static_cast<std::int64_t>(s), static_cast<std::int64_t>(site)).data;
            for (std::size_t i = 0; i < stored.size(); ++i) on_key[i % length].push_back(stored[i]);
        }
    Matrix& keys = measured.matrices[{subject, "on key"}].emplace_back(1);
    for (const auto& key : on_key) keys.front().push_back(finite_mean(key));
    if (const auto stored = file->parameters("offset"))
        measured.matrices[{subject, "offsets"}].push_back(finite_rows(stored->data, sites, heads));
    if (const auto stored = file->parameters("distance_bias")) {
        Matrix& biases = measured.matrices[{subject, "biases"}].emplace_back();
        const auto window = static_cast<std::size_t>(stored->shape.at(2));
        for (std::size_t site = 0; site < sites; ++site) {
            std::vector<double> layer;
            for (std::size_t d = 0; d < window; ++d)
                layer.push_back(finite_mean(stored->data, site * heads * window + d, heads, window));
            if (std::isfinite(finite_mean(layer))) biases.push_back(std::move(layer));
        }
    }
}

void derive(const Plan& plan, Measured& measured) {
    for (const Model& model : plan.paper->models) {
        const std::string& subject = model.name;
        const Matrix *keys = measured.matrix(subject, "on key"), *biases = measured.matrix(subject, "biases"),
                     *offsets = measured.matrix(subject, "offsets");
        for (const std::size_t key : {0, 2, 16})
            if (keys != nullptr && key < keys->front().size())
                measured.set(subject, "on key " + std::to_string(key), keys->front()[key]);
        if (keys != nullptr) {  // even weights give the first of n keys the mean of 1 / i
            double sum = 0;
            for (std::size_t i = 1; i <= keys->front().size(); ++i) sum += 1 / static_cast<double>(i);
            measured.set(subject, "even share", sum / static_cast<double>(keys->front().size()));
        }
        if (biases != nullptr && !biases->empty()) {
            std::vector<double> drops;
            for (const auto& layer : *biases) drops.push_back(decay_of(layer).drop);
            measured.set(subject, "bias distances", static_cast<double>(biases->front().size()));
            measured.set(subject, "first correlation", decay_of(biases->front()).correlation);
            measured.set(subject, "first drop", drops.front());
            if (drops.size() > 1) measured.set(subject, "last drop", drops.back());
            // No layer falls less than a first layer whose biases do not fall.
            measured.set(subject, "decay", drops.front() > 0 ? drops.front() : -std::numeric_limits<double>::max());
            measured.matrices[{subject, "drops"}] = {{drops}};
        }
        if (offsets != nullptr && offsets->size() > 1) {
            std::vector<double> means;
            for (const auto& layer : *offsets) means.push_back(finite_mean(layer));
            measured.set(subject, "first offset", means.front());
            measured.set(subject, "least offset", *std::min_element(means.begin(), means.end()));
            measured.matrices[{subject, "offset means"}] = {{means}};
        }
    }
}

/// Lazy Attention by layer.
Rows rows(const std::string&, const Plan&, const Measured& measured) {
    Rows rows;
    const Matrix *zeros = measured.matrix("lazy", "zero_fraction"), *offsets = measured.matrix("lazy", "offsets"),
                 *biases = measured.matrix("lazy", "biases");
    for (std::size_t layer = 0; zeros != nullptr && layer < zeros->front().size(); ++layer) {
        const bool has_offsets = offsets != nullptr && layer < offsets->size();
        const Decay decay = biases != nullptr && layer < biases->size() ? decay_of((*biases)[layer]) : Decay();
        rows.push_back({std::to_string(layer), number_text(100 * zeros->front()[layer]),
                        has_offsets ? numbers_text((*offsets)[layer], " ") : "–", number_text(decay.correlation),
                        number_text(decay.drop)});
    }
    return rows;
}

}  // namespace

const PaperCode kLazy{"lazy", read_attended, nullptr, derive, rows};

}  // namespace headscope::reproduce
