// SPDX-License-Identifier: GPL-3.0-or-later
// NAtS-L: which tokens go to softmax, and latency between two models.

#include <algorithm>
#include <cmath>

#include "core/reproduce/claims/code.h"
#include "core/run/run_history.h"
#include "core/store/analysis/analysis_file.h"

namespace headscope::reproduce {
namespace {

constexpr const char* kTexts[] = {"prose", "verse", "code"};

/// Fractions of softmax chunks of the layers that have them, of the first sequence.
void read_types(const std::filesystem::path& path, const std::string& subject, const std::string& text,
                Measured& measured) {
    const auto file = store::AnalysisFile::open(path);
    const auto heads = static_cast<std::size_t>(file->header().most_heads());
    const auto values = file->indicator("softmax_fraction").data;
    Matrix fractions;
    for (std::size_t site = 0; site < file->header().sites.size(); ++site) {
        std::vector<double> layer;
        for (std::size_t head = 0; head < heads; ++head)
            if (const double value = values[site * heads + head]; std::isfinite(value)) layer.push_back(value);
        if (!layer.empty()) fractions.push_back(std::move(layer));
    }
    measured.matrices[{subject, "fractions " + text}] = {std::move(fractions)};
}

/// Mean softmax fraction at the run's first and last probe.
void read_shares(const std::filesystem::path& folder, const std::string& subject, Measured& measured) {
    const store::RunRecord run = training::read_run(folder);
    for (const store::RunIndicator& one : run.probes.indicators) {
        if (one.name != "softmax_fraction" || run.probes.step.empty()) continue;
        const auto size = static_cast<std::ptrdiff_t>(one.values.size() / run.probes.step.size());
        const auto last = one.values.begin() + (std::ssize(run.probes.step) - 1) * size;
        measured.set(subject, "softmax first", mean_of({one.values.begin(), one.values.begin() + size}));
        measured.set(subject, "softmax last", mean_of({last, last + size}));
    }
}

/// Mean |difference| of the softmax fractions of two texts.
double apart(const Measured& measured, const std::string& subject, const char* one, const char* other) {
    const Matrix *a = measured.matrix(subject, std::string("fractions ") + one),
                 *b = measured.matrix(subject, std::string("fractions ") + other);
    std::vector<double> differences;
    for (std::size_t layer = 0; a != nullptr && b != nullptr && layer < std::min(a->size(), b->size()); ++layer)
        for (std::size_t head = 0; head < (*a)[layer].size(); ++head)
            differences.push_back(std::abs((*a)[layer][head] - (*b)[layer].at(head)));
    return mean_of(differences);
}

void derive_types(const std::string& subject, Measured& measured) {
    Matrix largest;  // over texts
    for (const char* text : kTexts) {
        const Matrix* own = measured.matrix(subject, std::string("fractions ") + text);
        if (own == nullptr) continue;
        if (largest.empty()) largest = *own;
        for (std::size_t layer = 0; layer < std::min(largest.size(), own->size()); ++layer)
            for (std::size_t head = 0; head < largest[layer].size(); ++head)
                largest[layer][head] = std::max(largest[layer][head], (*own)[layer].at(head));
    }
    if (largest.empty()) return;
    double most = 0, pure = 0, heads = 0;
    for (const auto& layer : largest)
        for (const double one : layer) {
            most = std::max(most, one);
            pure += one == 0 ? 1 : 0;
            ++heads;
        }
    measured.set(subject, "most", most);
    measured.set(subject, "pure heads", pure);
    measured.set(subject, "heads", heads);
    measured.set(subject, "prose verse", apart(measured, subject, "prose", "verse"));
    measured.set(subject, "prose code", apart(measured, subject, "prose", "code"));
    measured.set(subject, "verse code", apart(measured, subject, "verse", "code"));
    measured.set(subject, "code apart",
                 std::min(measured.value(subject, "prose code"), measured.value(subject, "verse code")));
}

/// Times of a model by length over the training length.
std::map<double, double> times_of(const Measured& measured, const std::string& model, const std::string& what) {
    std::map<double, double> times;
    for (const auto& [key, series] : measured.values)
        if (key.first == model && key.second.starts_with(what + "@") && spread_of(series.values).mean > 0)
            times[std::stod(key.second.substr(what.size() + 1))] = spread_of(series.values).mean;
    return times;
}

/// At the longest length at which all three were timed.
void derive_latency(const Plan& plan, Measured& measured) {
    const std::string own = "natsl-hybrid";
    for (const char* what : {"prefill", "decode"}) {
        const auto here = times_of(measured, own, what), gdn = times_of(measured, "gdn", what),
                   softmax = times_of(measured, "transformer", what);
        for (auto length = here.rbegin(); length != here.rend(); ++length) {
            if (!gdn.contains(length->first) || !softmax.contains(length->first)) continue;
            const std::string name(what);
            const double over = length->second / gdn.at(length->first),
                         under = softmax.at(length->first) / length->second;
            measured.set(own, "timed length", length->first * static_cast<double>(plan.paper->sequence_length));
            measured.set(own, name + " over", over);
            measured.set(own, name + " under", under);
            measured.set(own, name + " between", over >= 0.9 && under > 1 ? 1 : 0);
            break;
        }
    }
}

void derive(const Plan& plan, Measured& measured) {
    for (const char* subject : {"natsl-hybrid", "natsl"}) {
        derive_types(subject, measured);
        measured.set(subject, "softmax change",
                     std::abs(measured.value(subject, "softmax last") - measured.value(subject, "softmax first")));
    }
    derive_latency(plan, measured);
}

Rows rows(const std::string& table, const Plan& plan, const Measured& measured) {
    Rows rows;
    for (const Model& model : plan.paper->models) {
        if (table == "latency") {
            const auto decode = times_of(measured, model.name, "decode"),
                       bytes = times_of(measured, model.name, "cache_bytes");
            for (const auto& [times, seconds] : times_of(measured, model.name, "prefill"))
                rows.push_back({model.label,
                                std::to_string(std::llround(times * static_cast<double>(plan.paper->sequence_length))),
                                number_text(seconds),
                                number_text(decode.contains(times) ? 1000 * decode.at(times) : std::nan("")),
                                bytes.contains(times) ? std::to_string(std::llround(bytes.at(times))) : "–"});
            continue;
        }
        for (const char* text : kTexts) {
            const Matrix* fractions = measured.matrix(model.name, std::string("fractions ") + text);
            if (fractions == nullptr) continue;
            std::string layers;
            for (const auto& layer : *fractions) {
                std::string heads;
                for (const double one : layer) heads += (heads.empty() ? "" : " ") + number_text(one);
                layers += (layers.empty() ? "" : "; ") + heads;
            }
            rows.push_back({model.label, text, layers});
        }
    }
    return rows;
}

}  // namespace

const PaperCode kNatsl{"natsl", read_types, read_shares, derive, rows};

}  // namespace headscope::reproduce
