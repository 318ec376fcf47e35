// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/recipes/run_probe.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/series.h"
#include "core/base/text/text.h"
#include "core/store/hdf5/half.h"

namespace headscope::figures {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kFocus = "local_focus_";

/// Which of the run's indicators a name means, and which of its values.
struct Place {
    const store::RunIndicator* indicator = nullptr;
    std::int64_t part = 0;
};

Place find(const store::RunRecord& run, const std::string& name) {
    if (const auto* whole = run.probes.find(name); whole != nullptr && whole->width == 1) return {whole, 0};
    if (!name.starts_with(kFocus)) return {};
    const auto* focus = run.probes.find("local_focus");
    std::int64_t part = -1;
    const char* end = name.data() + name.size();
    if (std::from_chars(name.data() + kFocus.size(), end, part).ptr != end) return {};
    if (focus == nullptr || part < 0 || part >= focus->width) return {};
    return {focus, part};
}

double value_at(const store::RunRecord& run, const Place& place, std::int64_t probe, std::int64_t site,
                std::optional<std::int64_t> head) {
    const auto sites = std::ssize(run.sites);
    const auto& values = place.indicator->values;
    const std::int64_t cell = probe * sites + site;
    if (!place.indicator->per_head) return values[static_cast<std::size_t>(cell)];
    const std::int64_t most = run.heads(), heads = run.sites[static_cast<std::size_t>(site)].heads;
    const std::int64_t first = head.value_or(0), width = place.indicator->width;
    if (first >= heads) return kNone;
    return finite_mean(values, static_cast<std::size_t>((cell * most + first) * width + place.part),
                       static_cast<std::size_t>(head ? 1 : heads), static_cast<std::size_t>(width));
}

}  // namespace

std::vector<std::string> probe_indicators(const store::RunRecord& run) {
    std::vector<std::string> names;
    for (const auto& indicator : run.probes.indicators) {
        if (indicator.width == 1) {
            names.push_back(indicator.name);
            continue;
        }
        for (std::int64_t part = 0; part < indicator.width; ++part)
            names.push_back(indicator.name + "_" + std::to_string(part));
    }
    return names;
}

std::vector<double> probe_values(const store::RunRecord& run, const std::string& indicator, std::int64_t site,
                                 std::optional<std::int64_t> head) {
    const Place place = find(run, indicator);
    if (place.indicator == nullptr) {
        throw Error(ErrorCode::usage, "--indicator",
                    "expected one that " + escaped(run.name) + " recorded: " + list_text(probe_indicators(run), 30),
                    "found " + escaped(indicator));
    }
    std::vector<double> values;
    for (std::int64_t probe = 0; probe < run.probes.count(); ++probe)
        values.push_back(value_at(run, place, probe, site, head));
    return values;
}

RadarValues probe_radar(const store::RunRecord& run, std::int64_t probe, std::int64_t site,
                        std::optional<std::int64_t> head) {
    RadarValues raw;
    for (std::size_t k = 0; k < kRadarSpokes; ++k) {
        const Place place = find(run, kRadarNames[k]);
        raw[k] = place.indicator == nullptr ? kNone : value_at(run, place, probe, site, head);
    }
    return raw;
}

RadarExtents probe_extents(const store::RunRecord& run, std::optional<std::int64_t> head) {
    RadarExtents extents;
    for (std::int64_t probe = 0; probe < run.probes.count(); ++probe) {
        for (std::int64_t site = 0; site < std::ssize(run.sites); ++site)
            extend(extents, probe_radar(run, probe, site, head));
    }
    return extents;
}

std::int64_t probe_at(const store::RunRecord& run, std::int64_t step) {
    const auto& steps = run.probes.step;
    if (steps.empty()) return -1;
    const auto after = std::upper_bound(steps.begin(), steps.end(), step) - steps.begin();
    return std::max<std::int64_t>(0, after - 1);
}

std::vector<float> probe_thumbnail(const store::RunRecord& run, std::int64_t probe, std::int64_t site,
                                   std::int64_t head) {
    const auto& probes = run.probes;
    if (probes.thumbnail_size == 0) return {};
    const std::int64_t cells = probes.thumbnail_size * probes.thumbnail_size;
    const std::int64_t begin = ((probe * std::ssize(run.sites) + site) * run.heads() + head) * cells;
    std::vector<float> values;
    for (std::int64_t i = begin; i < begin + cells; ++i)
        values.push_back(store::float_from_half(probes.thumbnails[static_cast<std::size_t>(i)]));
    return values;
}

}  // namespace headscope::figures
