// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/job/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/base/error.h"
#include "core/base/text/text.h"

namespace headscope::training {
namespace {

/// Shares of the time at which the number of updates is planned: early, so that the rate can follow it, and again, for
/// a machine does not keep its pace.
constexpr std::array<double, 7> kPlanAt = {0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9};
/// A plan made on a busy machine would end early once the machine is free.
constexpr double kFaster = 1.1;

/// Falls of cosine_restarts, each from the peak.
constexpr double kRestarts = 5;

double cosine(double peak, double minimum, double progress) {
    return minimum + (peak - minimum) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

double restarts(double peak, double minimum, double progress) {
    return cosine(peak, minimum, progress < 1 ? std::fmod(kRestarts * progress, 1.0) : progress);
}

double line(double peak, double minimum, double progress) {
    return peak + (minimum - peak) * progress;
}

constexpr ScheduleKind kKinds[] = {{.name = "constant", .rate = nullptr},
                                   {.name = "linear", .rate = line, .to_zero = true},
                                   {.name = "cosine", .rate = cosine},
                                   {.name = "cosine_restarts", .rate = restarts, .to_zero = true},
                                   {.name = "wsd", .rate = line, .falls_at_end = true}};

/// wsd: progress of the fall at the end, from 0 to 1.
double fallen(const ScheduleSettings& schedule, std::int64_t update, std::int64_t updates) {
    const double share = schedule.decay_share;
    const auto all = static_cast<double>(std::max<std::int64_t>(1, updates));
    return std::clamp((static_cast<double>(update) / all - (1 - share)) / share, 0.0, 1.0);
}

}  // namespace

const ScheduleKind& schedule_kind(const ScheduleSettings& schedule) {
    for (const ScheduleKind& kind : kKinds)
        if (schedule.kind == kind.name) return kind;
    throw Error(ErrorCode::usage, "schedule.kind", "expected constant, linear, cosine, cosine_restarts or wsd",
                "found " + escaped(schedule.kind, 40));
}

double learning_rate(const ScheduleSettings& schedule, double peak, std::int64_t update, std::int64_t updates) {
    const std::int64_t warmup = schedule.warmup_steps.value_or(0);
    if (update < warmup) {
        const double start = std::min(schedule.warmup_start, peak);
        return start + (peak - start) * static_cast<double>(update) / static_cast<double>(warmup);
    }
    const ScheduleKind& kind = schedule_kind(schedule);
    if (kind.rate == nullptr) return peak;
    const double minimum = std::min(schedule.minimum_rate, peak);
    double progress =
        static_cast<double>(update - warmup) / static_cast<double>(std::max<std::int64_t>(1, updates - warmup));
    progress = std::clamp(progress, 0.0, 1.0);
    if (kind.falls_at_end) progress = fallen(schedule, update, updates);
    return kind.rate(peak, minimum, progress);
}

bool depends_on_end(const ScheduleSettings& schedule, std::int64_t update, std::int64_t updates) {
    const ScheduleKind& kind = schedule_kind(schedule);
    const std::int64_t warmup = schedule.warmup_steps.value_or(0);
    if (kind.rate == nullptr || update < warmup) return false;
    if (kind.falls_at_end) return fallen(schedule, update, updates) > 0;
    return update > warmup;
}

std::int64_t updates_for_tokens(std::int64_t tokens, std::int64_t step_tokens) {
    return std::max<std::int64_t>(1, (tokens + step_tokens - 1) / step_tokens);
}

double TimePlan::next_share() const {
    return made_ < static_cast<int>(kPlanAt.size()) ? kPlanAt[static_cast<std::size_t>(made_)] : 2.0;
}

std::int64_t TimePlan::plan(std::int64_t updates_done, double elapsed, std::int64_t planned) {
    if (updates_done < 2 || elapsed <= 0) return 0;
    const double updates = static_cast<double>(updates_done) * seconds_ / elapsed;
    const bool faster = planned > 0 && updates > kFaster * static_cast<double>(planned);
    if (elapsed < next_share() * seconds_ && !faster) return 0;
    while (elapsed >= next_share() * seconds_) ++made_;
    return std::max(updates_done + 1, static_cast<std::int64_t>(updates));
}

void TimePlan::resume(double elapsed) {
    made_ = 0;
    while (elapsed >= next_share() * seconds_) ++made_;
}

}  // namespace headscope::training
