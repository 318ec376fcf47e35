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
    measured.matrices[{subject, "fractions " + text}].push_back(
        finite_rows(file->indicator("softmax_fraction").data, file->header().sites.size(),
                    static_cast<std::size_t>(file->header().most_heads())));
}

/// Mean softmax fraction at the run's first and last probe.
void read_shares(const std::filesystem::path& folder, const std::string& subject, Measured& measured) {
    const store::RunRecord run = training::read_run(folder);
    for (const store::RunIndicator& one : run.probes.indicators) {
        if (one.name != "softmax_fraction" || run.probes.step.empty()) continue;
        const auto size = static_cast<std::ptrdiff_t>(one.values.size() / run.probes.step.size());
        const auto last = one.values.begin() + (std::ssize(run.probes.step) - 1) * size;
        const double first_share = finite_mean({one.values.begin(), one.values.begin() + size});
        measured.add(subject, "softmax first", first_share, std::nan(""));
        measured.add(subject, "softmax last", finite_mean({last, last + size}), std::nan(""));
    }
}

/// Softmax fractions of all heads of a seed on a text; empty: not measured.
std::vector<double> fractions_on(const char* text, const std::string& subject, std::size_t seed,
                                 const Measured& measured) {
    std::vector<double> all;
    const auto found = measured.matrices.find({subject, std::string("fractions ") + text});
    if (found == measured.matrices.end() || found->second.size() <= seed) return all;
    for (const auto& layer : found->second[seed]) all.insert(all.end(), layer.begin(), layer.end());
    return all;
}

/// Mean |difference| of the softmax fractions of two texts.
double apart(const std::vector<double>& one, const std::vector<double>& other) {
    std::vector<double> differences;
    for (std::size_t head = 0; head < std::min(one.size(), other.size()); ++head)
        differences.push_back(std::abs(one[head] - other[head]));
    return finite_mean(differences);
}

/// Numbers of one seed. False: it was not measured.
bool derive_types(const std::string& subject, std::size_t seed, Measured& measured) {
    const double no_error = std::nan("");
    std::vector<double> heads;  // the largest fraction of each over texts
    for (const char* text : kTexts) {
        const std::vector<double> own = fractions_on(text, subject, seed, measured);
        heads.resize(std::max(heads.size(), own.size()));
        for (std::size_t head = 0; head < own.size(); ++head) heads[head] = std::max(heads[head], own[head]);
    }
    if (heads.empty()) return false;
    measured.set(subject, "heads", static_cast<double>(heads.size()));
    measured.add(subject, "most", *std::max_element(heads.begin(), heads.end()), no_error);
    measured.add(subject, "pure heads", static_cast<double>(std::count(heads.begin(), heads.end(), 0.0)), no_error);
    if (*std::max_element(heads.begin(), heads.end()) == 0) return true;  // to all heads all texts are alike
    std::map<std::string, double> between;
    for (const auto& [one, other] : {std::pair{"prose", "verse"}, {"prose", "code"}, {"verse", "code"}}) {
        const double distance =
            apart(fractions_on(one, subject, seed, measured), fractions_on(other, subject, seed, measured));
        between[one + std::string(" ") + other] = distance;
        measured.add(subject, one + std::string(" ") + other, distance, no_error);
    }
    measured.add(subject, "code apart", std::min(between["prose code"], between["verse code"]), no_error);
    return true;
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
        for (std::size_t seed = 0; derive_types(subject, seed, measured);) ++seed;
        const std::vector<double> first = measured.series(subject, "softmax first").values,
                                  last = measured.series(subject, "softmax last").values;
        for (std::size_t seed = 0; seed < first.size(); ++seed)
            measured.add(subject, "softmax change", std::abs(last.at(seed) - first[seed]), std::nan(""));
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
