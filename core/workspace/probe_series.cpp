// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/probe_series.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/series.h"
#include "core/base/site_name.h"
#include "core/figures/recipes/radar_rule.h"
#include "core/workspace/measures.h"

namespace headscope::workspace {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kFocus = 4;
// A journal may come from anywhere; models have fewer than that.
constexpr std::int64_t kMostHeads = 4096, kMostSites = 1024;

/// "local_focus", 2 of "local_focus_2".
std::pair<std::string, std::int64_t> split(const std::string& indicator) {
    constexpr std::string_view prefix = "local_focus_";
    if (!indicator.starts_with(prefix)) return {indicator, 0};
    return {"local_focus", indicator.back() - '0'};
}

std::int64_t site_count(const LiveRun& record) {
    return record.started ? std::min<std::int64_t>(std::ssize(record.started->sites), kMostSites) : 0;
}

}  // namespace

std::int64_t most_heads(const LiveRun& record) {
    std::int64_t most = 0;
    if (record.started)
        for (const Site& site : record.started->sites) most = std::max<std::int64_t>(most, site.heads);
    return std::min(most, kMostHeads);
}

std::vector<std::string> probe_indicators(const LiveRun& record) {
    std::vector<std::string> names;
    if (record.probes.empty()) return names;
    const auto& probe = *record.probes.back();
    for (const Measure& measure : measures()) {
        const std::string name(measure.name);
        if (find_indicator(probe, split(name).first)) names.push_back(name);
    }
    return names;
}

double probe_value(const training::ProbeResult& probe, std::int64_t sites, std::int64_t heads,
                   const std::string& indicator, std::int64_t site, std::int64_t head) {
    const auto [name, place] = split(indicator);
    const auto* found = find_indicator(probe, name);
    if (!found || site < 0 || site >= sites || heads <= 0) return kNone;
    const auto& values = found->values;
    const std::int64_t size = std::ssize(values);
    if (size == sites && indicator == "head_diversity") return values[static_cast<std::size_t>(site)];
    const std::int64_t width = name == "local_focus" ? kFocus : 1;
    if (place < 0 || place >= width) return kNone;
    if (size != sites * heads * width) return kNone;
    if (head >= heads) return kNone;
    return finite_mean(values,
                       static_cast<std::size_t>((site * heads + std::max<std::int64_t>(head, 0)) * width + place),
                       static_cast<std::size_t>(head < 0 ? heads : 1), static_cast<std::size_t>(width));
}

ProbeSeries probe_series(const LiveRun& record, const std::string& indicator, std::optional<std::int64_t> site) {
    ProbeSeries series;
    const std::int64_t sites = site_count(record), heads = most_heads(record);
    for (const auto& probe : record.probes) series.steps.push_back(static_cast<double>(probe->step));
    const auto add = [&](std::int64_t s, std::int64_t head) {
        ProbeSeries::Line line{s, head, {}};
        bool any = false;
        for (const auto& probe : record.probes) {
            line.values.push_back(probe_value(*probe, sites, heads, indicator, s, head));
            any |= !std::isnan(line.values.back());
        }
        if (any) series.lines.push_back(std::move(line));
    };
    const bool of_layer = indicator == "head_diversity";
    for (std::int64_t s = 0; s < sites; ++s) {
        if (!site || of_layer) {
            add(s, -1);
        } else if (s == *site) {
            const std::int64_t count = record.started->sites[static_cast<std::size_t>(s)].heads;
            for (std::int64_t h = 0; h < std::min(count, heads); ++h) add(s, h);
        }
    }
    return series;
}

figures::FigureData probe_radars(const LiveRun& record, std::size_t probe, std::optional<std::int64_t> head) {
    figures::FigureData figure;
    figure.recipe = "timeline";
    const std::int64_t sites = site_count(record), heads = most_heads(record);
    const std::int64_t chosen = head.value_or(-1);
    const auto raw = [&](const training::ProbeResult& one, std::int64_t s) {
        figures::RadarValues values{};
        for (std::size_t k = 0; k < figures::kRadarSpokes; ++k)
            values[k] = probe_value(one, sites, heads, figures::kRadarNames[k], s, chosen);
        return values;
    };
    figures::RadarExtents extents;
    for (const auto& one : record.probes)
        for (std::int64_t s = 0; s < sites; ++s) figures::extend(extents, raw(*one, s));
    for (std::int64_t s = 0; s < sites; ++s) {
        figures::Radar radar;
        radar.spokes.assign(figures::kRadarSymbols.begin(), figures::kRadarSymbols.end());
        const Site& site = record.started->sites[static_cast<std::size_t>(s)];
        if (!site.has_matrix && !site.has_implicit) radar.nothing = "no attention matrix";
        figures::Radar::Series series{"", {}, 0, {}};
        const figures::RadarValues own = raw(*record.probes.at(probe), s);
        for (std::size_t k = 0; k < figures::kRadarSpokes; ++k)
            series.values.push_back(figures::displayed(own, k, extents));
        radar.series.push_back(std::move(series));
        figures::Panel panel;
        panel.subject = figures::of_site(s);
        // A small radar has no room for the title of a branch or a tower.
        panel.title = site_heading(record.started->sites, s);
        if (panel.title.find(',') != std::string::npos) panel.title = site_label(record.started->sites, s);
        panel.content = std::move(radar);
        figure.panels.push_back(std::move(panel));
    }
    figure.columns = std::clamp<std::int64_t>(sites, 1, 4);
    figure.reflow = true;
    figure.narrowest_mm = 16;
    return figure;
}

std::optional<std::size_t> probe_at(const LiveRun& record, std::optional<std::int64_t> step) {
    if (record.probes.empty()) return std::nullopt;
    std::size_t at = record.probes.size() - 1;
    if (step)
        while (at > 0 && record.probes[at]->step > *step) --at;
    return at;
}

}  // namespace headscope::workspace
