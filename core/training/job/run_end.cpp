// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/job/run_end.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/training/job/job_keys.h"
#include "core/training/job/schedule.h"

namespace headscope::training {
namespace {

bool same_end(const TrainingSettings& a, const TrainingSettings& b) {
    return a.steps == b.steps && a.tokens == b.tokens && a.minutes == b.minutes;
}

/// "training.steps = 1500".
std::string end_text(const JobFile& job) {
    for (const JobKey& key : job_keys())
        if (const auto value = key.ends_run ? key.get(job) : nlohmann::json(); !value.is_null())
            return key.full_name() + " = " + toml_value(value);
    return "no end";
}

[[noreturn]] void refuse(const JobFile& job, const JobFile& was, const std::filesystem::path& run,
                         const std::string& why) {
    throw Error(ErrorCode::mismatch, shown(run),
                "expected the end that the run began with, " + end_text(was) + ", for " + why +
                    "; train --from SNAPSHOT starts another run from here",
                "found " + end_text(job));
}

}  // namespace

std::int64_t planned_updates(const JobFile& job) {
    if (job.training.steps) return *job.training.steps;
    if (job.training.tokens) return updates_for_tokens(*job.training.tokens, job.step_tokens());
    return 0;
}

bool follows_plans(const JobFile& job) {
    return job.training.minutes && schedule_kind(job.schedule).rate != nullptr;
}

void check_end(const JobFile& job, const JobFile& was, std::int64_t done, std::int64_t planned,
               const std::filesystem::path& run) {
    if (same_end(job.training, was.training)) return;
    const std::int64_t wanted = planned_updates(job);
    if (wanted > 0 && wanted < done)
        throw Error(ErrorCode::mismatch, shown(run),
                    "expected an end after the " + std::to_string(done) + " updates that are done",
                    "found " + end_text(job) + (job.training.tokens ? ", " + std::to_string(wanted) + " updates" : ""));
    if (schedule_kind(job.schedule).rate == nullptr) return;
    if (job.training.minutes || was.training.minutes)
        refuse(job, was, run, "the rates of minutes follow plans that were made (schedule.kind is not \"constant\")");
    if (depends_on_end(job.schedule, done, planned) || depends_on_end(job.schedule, done, wanted))
        refuse(job, was, run,
               "rates so far depend on it (schedule.kind = \"" + job.schedule.kind + "\", " + std::to_string(done) +
                   " updates done)");
}

std::vector<std::string> unreached_intervals(const JobFile& job, std::int64_t begin, std::int64_t end, bool held_out) {
    std::vector<std::string> problems;
    const std::int64_t updates = std::max<std::int64_t>(0, end - begin);
    const std::string run = "the run's " + std::to_string(updates) + (updates == 1 ? " update" : " updates");
    const std::int64_t warmup = std::max<std::int64_t>(0, job.schedule.warmup_steps - begin);
    if (warmup > updates)
        problems.push_back("schedule.warmup_steps = " + std::to_string(job.schedule.warmup_steps) + " is longer than " +
                           run + ": the rate never reaches its peak");
    else if (2 * warmup > updates)
        problems.push_back("schedule.warmup_steps = " + std::to_string(job.schedule.warmup_steps) +
                           " takes more than half of " + run);
    const auto never = [&](const char* key, std::int64_t every, const char* what) {
        if (every > 0 && end / every == begin / every)
            problems.push_back(std::string(key) + " = " + std::to_string(every) + " is longer than " + run + ": " +
                               what);
    };
    if (held_out) never("evaluation.every", job.evaluation.every, "only its begin and its end are evaluated");
    never("probe.every", job.probe.every, "no indicator is measured after its begin");
    return problems;
}

}  // namespace headscope::training
