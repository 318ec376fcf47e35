// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/job/run_end.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/training/job/job_keys.h"
#include "core/training/job/schedule.h"

namespace headscope::training {
namespace {

bool same_end(const TrainingSettings& a, const TrainingSettings& b) {
    return a.steps == b.steps && a.tokens == b.tokens && a.minutes == b.minutes && a.epochs == b.epochs;
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

/// `passes` over `epoch` sequences, in updates rounded up; a product that is whole but for its last bits is whole.
std::int64_t updates_for_epochs(double passes, std::int64_t epoch, std::int64_t sequences) {
    if (epoch <= 0) return 0;
    const double updates = passes * static_cast<double>(epoch) / static_cast<double>(sequences);
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(updates * (1 - 1e-12))));
}

}  // namespace

std::int64_t planned_updates(const JobFile& job, std::int64_t epoch) {
    if (job.training.steps) return *job.training.steps;
    if (job.training.tokens) return updates_for_tokens(*job.training.tokens, job.step_tokens());
    if (job.training.epochs) return updates_for_epochs(*job.training.epochs, epoch, job.sequences());
    return 0;
}

std::string RunLengths::text() const {
    return (updates > 0 ? std::to_string(updates) + " updates" : std::string("the updates of its time")) +
           ", a warm-up of " + std::to_string(warmup) +
           (evaluation_every > 0 ? ", an evaluation every " + std::to_string(evaluation_every) : ", no evaluations");
}

RunLengths run_lengths(const JobFile& job, std::int64_t epoch) {
    RunLengths lengths;
    lengths.updates = planned_updates(job, epoch);
    const ScheduleSettings& schedule = job.schedule;
    if (schedule.warmup_steps) lengths.warmup = *schedule.warmup_steps;
    if (schedule.warmup_tokens && *schedule.warmup_tokens > 0)
        lengths.warmup = updates_for_tokens(*schedule.warmup_tokens, job.step_tokens());
    if (schedule.warmup_share) {
        const double share = *schedule.warmup_share * static_cast<double>(lengths.updates);
        lengths.warmup = static_cast<std::int64_t>(std::ceil(share * (1 - 1e-12)));
    }
    if (job.evaluation.every) lengths.evaluation_every = *job.evaluation.every;
    if (job.evaluation.every_epochs)
        lengths.evaluation_every = updates_for_epochs(*job.evaluation.every_epochs, epoch, job.sequences());
    return lengths;
}

bool gives_other_units(const JobFile& job) {
    return job.training.tokens || job.training.epochs || job.schedule.warmup_tokens || job.schedule.warmup_share ||
           job.evaluation.every_epochs;
}

void check_epochs(const JobFile& job, std::int64_t epoch) {
    if (epoch > 0 || (!job.training.epochs && !job.evaluation.every_epochs)) return;
    throw error_at_key(job, job.training.epochs ? "training.epochs" : "evaluation.every_epochs",
                       Error(ErrorCode::usage, "", "expected data that end", "found a generator"));
}

bool follows_plans(const JobFile& job) {
    return job.training.minutes && schedule_kind(job.schedule).rate != nullptr;
}

void check_end(const JobFile& job, const JobFile& was, std::int64_t done, std::int64_t planned, std::int64_t epoch,
               const std::filesystem::path& run) {
    if (same_end(job.training, was.training)) return;
    const std::int64_t wanted = planned_updates(job, epoch);
    if (wanted > 0 && wanted < done)
        throw Error(ErrorCode::mismatch, shown(run),
                    "expected an end after the " + std::to_string(done) + " updates that are done",
                    "found " + end_text(job) + (job.training.tokens ? ", " + std::to_string(wanted) + " updates" : ""));
    if (done > 0 && job.schedule.warmup_share)
        refuse(job, was, run, "rates so far depend on it (schedule.warmup_share)");
    if (schedule_kind(job.schedule).rate == nullptr) return;
    if (job.training.minutes || was.training.minutes)
        refuse(job, was, run, "the rates of minutes follow plans that were made (schedule.kind is not \"constant\")");
    ScheduleSettings schedule = job.schedule;
    schedule.warmup_steps = run_lengths(job, epoch).warmup;
    if (depends_on_end(schedule, done, planned) || depends_on_end(schedule, done, wanted))
        refuse(job, was, run,
               "rates so far depend on it (schedule.kind = \"" + job.schedule.kind + "\", " + std::to_string(done) +
                   " updates done)");
}

std::vector<std::string> unreached_intervals(const JobFile& job, const RunLengths& lengths, std::int64_t begin,
                                             std::int64_t end, bool held_out) {
    std::vector<std::string> problems;
    const std::int64_t updates = std::max<std::int64_t>(0, end - begin);
    const std::string run = "the run's " + std::to_string(updates) + (updates == 1 ? " update" : " updates");
    const std::int64_t warmup = std::max<std::int64_t>(0, lengths.warmup - begin);
    const std::string rising = "schedule.warmup_steps = " + std::to_string(lengths.warmup);
    if (warmup > updates)
        problems.push_back(rising + " is longer than " + run + ": the rate never reaches its peak");
    else if (2 * warmup > updates)
        problems.push_back(rising + " takes more than half of " + run);
    const auto never = [&](const char* key, std::int64_t every, const char* what) {
        if (every > 0 && end / every == begin / every)
            problems.push_back(std::string(key) + " = " + std::to_string(every) + " is longer than " + run + ": " +
                               what);
    };
    if (held_out) never("evaluation.every", lengths.evaluation_every, "only its begin and its end are evaluated");
    never("probe.every", job.probe.every, "no indicator is measured after its begin");
    return problems;
}

}  // namespace headscope::training
