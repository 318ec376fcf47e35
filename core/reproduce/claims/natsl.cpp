// SPDX-License-Identifier: GPL-3.0-or-later
// NAtS-L: which tokens go to softmax, and latency between two models.

#include <algorithm>
#include <cmath>

#include "core/base/series.h"
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
    measured.matrices[{subject, "fractions " + text}] = {
        finite_rows(file->indicator("softmax_fraction").data, file->header().sites.size(),
                    static_cast<std::size_t>(file->header().most_heads()))};
}

/// Mean softmax fraction at the run's first and last probe.
void read_shares(const std::filesystem::path& folder, const std::string& subject, Measured& measured) {
    const store::RunRecord run = training::read_run(folder);
    for (const store::RunIndicator& one : run.probes.indicators) {
        if (one.name != "softmax_fraction" || run.probes.step.empty()) continue;
        const auto size = static_cast<std::ptrdiff_t>(one.values.size() / run.probes.step.size());
        const auto last = one.values.begin() + (std::ssize(run.probes.step) - 1) * size;
        measured.set(subject, "softmax first", finite_mean({one.values.begin(), one.values.begin() + size}));
        measured.set(subject, "softmax last", finite_mean({last, last + size}));
    }
}

/// Softmax fractions of all heads on a text; empty: not measured.
std::vector<double> fractions_on(const char* text, const std::string& subject, const Measured& measured) {
    std::vector<double> all;
    if (const Matrix* own = measured.matrix(subject, std::string("fractions ") + text))
        for (const auto& layer : *own) all.insert(all.end(), layer.begin(), layer.end());
    return all;
}

/// Mean |difference| of the softmax fractions of two texts.
double apart(const std::vector<double>& one, const std::vector<double>& other) {
    std::vector<double> differences;
    for (std::size_t head = 0; head < std::min(one.size(), other.size()); ++head)
        differences.push_back(std::abs(one[head] - other[head]));
    return finite_mean(differences);
}

void derive_types(const std::string& subject, Measured& measured) {
    std::vector<double> heads;  // the largest fraction of each over texts
    for (const char* text : kTexts) {
        const std::vector<double> own = fractions_on(text, subject, measured);
        heads.resize(std::max(heads.size(), own.size()));
        for (std::size_t head = 0; head < own.size(); ++head) heads[head] = std::max(heads[head], own[head]);
    }
    if (heads.empty()) return;
    measured.set(subject, "most", *std::max_element(heads.begin(), heads.end()));
    measured.set(subject, "pure heads", static_cast<double>(std::count(heads.begin(), heads.end(), 0.0)));
    measured.set(subject, "heads", static_cast<double>(heads.size()));
    for (const auto& [one, other] : {std::pair{"prose", "verse"}, {"prose", "code"}, {"verse", "code"}})
        measured.set(subject, std::string(one) + " " + other,
                     apart(fractions_on(one, subject, measured), fractions_on(other, subject, measured)));
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
            for (const auto& layer : *fractions) append_found(layers, numbers_text(layer, " "));
            rows.push_back({model.label, text, layers});
        }
    }
    return rows;
}

}  // namespace

const PaperCode kNatsl{"natsl", read_types, read_shares, derive, rows};

}  // namespace headscope::reproduce
