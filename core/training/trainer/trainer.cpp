// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/trainer.h"

#include <c10/util/Exception.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/machine.h"
#include "core/run/control.h"
#include "core/run/run_history.h"
#include "core/training/job/job_keys.h"
#include "core/training/job/number_text.h"
#include "core/training/job/run_end.h"
#include "core/training/job/schedule.h"
#include "core/training/trainer/coordinator.h"
#include "core/training/trainer/generation_config.h"
#include "core/training/trainer/observer.h"
#include "core/training/trainer/run_file_keeper.h"
#include "core/training/trainer/trainer_session.h"
#include "kernels/backend.h"

namespace headscope::training {
namespace {

using Clock = std::chrono::steady_clock;

bool due(std::int64_t step, std::int64_t every) {
    return every > 0 && step % every == 0;
}

/// The loop of one process over one run.
class Run {
public:
    Run(const TrainRequest& request, Session& session, Coordinator& coordinator, const Cancellation& cancellation)
        : request_(request),
          s_(session),
          coordinator_(coordinator),
          cancellation_(cancellation),
          observer_(
              session, [this](What what) { emit(std::move(what)); }, never_),
          start_(Clock::now()),
          before_(session.state.seconds),
          schedule_(session.job.schedule),
          plan_(session.job.training.minutes.value_or(0) * 60),
          run_file_(session.run.path, request.run_file_every) {
        schedule_.warmup_steps = session.lengths.warmup;
    }

    TrainOutcome run() {
        begin();
        data::Prefetcher reader(*s_.source, read_plan(s_.job, s_.state.position, 0, coordinator_.size()),
                                static_cast<int>(s_.job.data_workers));
        while (true) {
            between_steps();
            if (ending_ || done()) break;
            step(reader);
        }
        return end();
    }

    /// Whatever goes wrong is in the journal too, if that can still be written.
    void tell_failure(const Error& error) {
        try {
            emit(StateChanged{RunState::failed, s_.state.step, error.what()});
            s_.journal->sync();
            run_file_.stop();
            build_run_file(s_.run.path);
        } catch (...) {
        }
    }

private:
    TrainingState& state() { return s_.state; }
    bool minutes() const { return s_.job.training.minutes.has_value(); }
    bool done() const {
        const std::int64_t patience = s_.job.evaluation.patience;
        if (patience > 0 && s_.state.waited >= patience) return true;
        return s_.state.planned_steps > 0 && s_.state.step >= s_.state.planned_steps;
    }
    double elapsed() const { return before_ + seconds_since(start_) - paused_; }
    /// Seconds of this run alone: a fork's minutes count from its begin.
    double own_time() const { return elapsed() - s_.state.begin_seconds; }
    std::int64_t own_updates() const { return s_.state.step - s_.state.begin_step; }

    void emit(What what) {
        s_.journal->append(what);
        if (request_.on_event) request_.on_event(Event{now(), std::move(what)});
    }
    void log(LogLevel level, const std::string& text) { emit(Log{level, state().step, text}); }

    void begin() {
        if (s_.rewound) emit(Rewound{state().step, "resumed from " + snapshot_name(state().step)});
        Started started = started_event(s_, request_.program_version);
        started.processes = coordinator_.size();
        emit(std::move(started));
        emit(StateChanged{RunState::running, state().step, s_.resumed ? "resumed" : ""});
        for (const std::string& problem : s_.problems) log(LogLevel::warning, problem);
        if (const std::string& text = s_.learner->exchange_text(); !text.empty()) log(LogLevel::note, text);
        if (!s_.resumed && gives_other_units(s_.job)) log(LogLevel::note, "the run has " + s_.lengths.text());
        if (!s_.resumed) tell_entropies();
        if (s_.untold)
            emit(Snapshot{state().step, snapshot_name(state().step), s_.snapshots->bytes(state().step), 0,
                          state().best_step == state().step});
        if (state().planned_steps > 0 && minutes() && s_.replays.empty()) plan_.resume(before_ - state().begin_seconds);
        if (!s_.resumed && !minutes()) warn_of_intervals();
        if (request_.start == TrainRequest::Start::fork) snapshot();
        if (state().step > 0) return;
        if (s_.job.evaluation.evaluates() && !s_.validated_first) observer_.validate();
        if (s_.job.probe.every > 0 && !s_.probed_first) observer_.probe();
    }

    /// Lower bounds of the loss, where known.
    void tell_entropies() {
        std::string text;
        for (const double entropy : s_.data->summary().entropies)
            text += (text.empty() ? "" : ", ") + number_text(entropy);
        if (!text.empty())
            log(LogLevel::note,
                "entropy of the data in nats a token, when 0, 1, ... tokens before it are known: " + text);
    }

    TrainOutcome end() {
        const bool finished = done() && !stopping_;
        if (s_.held_out && s_.job.evaluation.evaluates()) observer_.validate();
        if (state().step > 0) snapshot();
        emit(StateChanged{finished ? RunState::finished : RunState::stopped, state().step, ""});
        s_.journal->sync();
        run_file_.stop();
        build_run_file(s_.run.path);
        TrainOutcome outcome;
        outcome.state = finished ? RunState::finished : RunState::stopped;
        outcome.cancelled = cancelled_;
        outcome.step = state().step;
        outcome.loss = loss_;
        outcome.validation = state().validation;
        return outcome;
    }

    // One update.

    void step(data::Prefetcher& reader) {
        const auto start = Clock::now();
        const std::int64_t number = state().step + 1;
        std::vector<data::DataBatch> parts;
        for (std::int64_t i = 0; i < s_.job.training.accumulate; ++i) parts.push_back(reader.next());
        Step event;
        event.step = number;
        event.learning_rate = rate(number);
        coordinator_.command(number, state().optimizer_step + 1, event.learning_rate);
        compute(parts, number, event);
        s_.learner->update(event.learning_rate, event.gradient_norm, state().optimizer_step + 1);
        state().step = number;
        ++state().optimizer_step;
        state().position += s_.job.sequences();
        state().tokens += s_.job.step_tokens();
        state().seconds = elapsed();
        state().validation = state().score = std::nan("");
        loss_ = event.loss;
        event.tokens = state().tokens;
        event.tokens_per_second = static_cast<double>(s_.job.step_tokens()) / std::max(seconds_since(start), 1e-9);
        event.seconds = state().seconds;
        event.memory = resident_memory();
        emit(event);
        after_step();
    }

    /// Loss and gradient of the step; computed again when they are not finite: a fault of the machine passes, one of
    /// the job does not. The weights are still those of the step before.
    void compute(const std::vector<data::DataBatch>& parts, std::int64_t number, Step& event) {
        const std::string name = loss_words(s_.job.data.objective).name;
        for (int attempt = 0; attempt < 2; ++attempt) {
            const Loss found = s_.learner->gradients(parts, number);
            event.loss = found.mean();
            if (has_accuracy(s_.job.data.objective)) event.accuracy = found.accuracy();
            if (request_.on_gradients) request_.on_gradients(number, attempt, s_.learner->summed_gradients());
            event.gradient_norm = s_.learner->gradient_norm();
            const bool finite = std::isfinite(event.loss) && std::isfinite(event.gradient_norm);
            if (finite && attempt == 0) return;
            if (finite) {
                log(LogLevel::warning, "update " + std::to_string(number) +
                                           ": finite when it was computed again, so a fault of the machine; going on");
                return;
            }
            if (attempt == 0)
                log(LogLevel::warning, "update " + std::to_string(number) + ": " + name + " " +
                                           number_text(event.loss) + ", gradient norm " +
                                           number_text(event.gradient_norm) + "; not applied, computed again");
        }
        throw Error(ErrorCode::limit, "update " + std::to_string(number),
                    "expected a finite loss and gradient; nothing of this update was kept, the run can be resumed, or "
                    "forked with a lower learning rate, from its last snapshot",
                    "found " + name + " " + number_text(event.loss) + " and gradient norm " +
                        number_text(event.gradient_norm) + ", twice");
    }

    double rate(std::int64_t update) {
        // Before its first plan a job of minutes is as long as it can be.
        const std::int64_t all = state().planned_steps > 0 ? state().planned_steps : std::int64_t{1} << 40;
        return learning_rate(schedule_, state().peak_rate, update, all);
    }

    void after_step() {
        const std::int64_t step = state().step;
        if (due(step, s_.lengths.evaluation_every)) {
            observer_.validate();
            wait_for_better();
        }
        if (due(step, s_.job.probe.every)) observer_.probe();
        if (due(step, s_.job.sample.every)) observer_.sample();
        if (due(step, s_.job.snapshots.every) || (s_.job.keeps_best() && better_than_best())) snapshot();
        if (request_.stop_after && request_.stop_after(step)) stop();
    }

    /// Counts the planned evaluations in a row that found no better metric: job, data and step decide it alone.
    void wait_for_better() {
        const std::int64_t patience = s_.job.evaluation.patience;
        if (patience == 0 || !s_.held_out) return;
        const bool better = state().score < state().least_validation;
        state().waited = better ? 0 : state().waited + 1;
        if (better) state().least_validation = state().score;
        if (state().waited >= patience)
            log(LogLevel::note, "ends here: " + std::to_string(patience) + " evaluations in a row found no better " +
                                    s_.job.evaluation.metric + " (evaluation.patience)");
    }

    // Work between two updates.

    void between_steps() {
        replay();
        if (minutes()) plan();
        wishes();
        while (paused_now_ && !ending_) {
            const auto start = Clock::now();
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            wishes();
            paused_ += seconds_since(start);
            if (cancellation_.requested()) break;
        }
        if (cancellation_.requested()) {
            cancelled_ = true;
            stop();
        }
    }

    void stop() {
        stopping_ = true;
        ending_ = true;
    }

    void replay() {
        while (!s_.replays.empty() && s_.replays.front().step <= state().step) {
            const Replay replay = s_.replays.front();
            s_.replays.erase(s_.replays.begin());
            ControlRequest wish;
            if (replay.action == "plan") {
                std::int64_t steps = 0;
                std::from_chars(replay.value.data(), replay.value.data() + replay.value.size(), steps);
                set_plan(steps);
            } else if (replay.action == "learning_rate" || replay.action == "evaluate" || replay.action == "snapshot") {
                wish.id = replay.id;
                wish.action = action_of(replay.action);
                // Journals have the digits that JSON writes, whatever the locale.
                std::from_chars(replay.value.data(), replay.value.data() + replay.value.size(), wish.value);
                apply(wish, replay.value);
            }
            if (s_.replays.empty() && minutes()) plan_.resume(own_time());
        }
    }

    void plan() {
        for (const Replay& replay : s_.replays)
            if (replay.action == "plan") return;  // it was planned before what is done again
        const double time = own_time();
        const std::int64_t begin = state().begin_step, planned = state().planned_steps;
        if (plan_.over(time) && own_updates() > 0 && !done()) {
            set_plan(state().step);
        } else if (const std::int64_t steps = plan_.plan(own_updates(), time, planned > 0 ? planned - begin : 0);
                   steps > 0) {
            set_plan(begin + steps);
            if (planned == 0) warn_of_intervals();
        }
    }

    /// Logs intervals that a newly planned run never reaches.
    void warn_of_intervals() {
        if (state().planned_steps <= 0) return;
        for (const std::string& problem :
             unreached_intervals(s_.job, s_.lengths, state().begin_step, state().planned_steps, s_.held_out != nullptr))
            log(LogLevel::warning, problem);
    }

    void set_plan(std::int64_t steps) {
        if (steps <= 0) return;
        state().planned_steps = steps;
        emit(Control{state().step, "plan", std::to_string(steps),
                     "updates that " + number_text(*s_.job.training.minutes) + " minutes are"});
    }

    void wishes() {
        std::vector<std::string> refused;
        for (const ControlRequest& wish : read_control(s_.run, refused)) {
            if (!done_.insert(wish.id).second) continue;  // it could not be removed
            const std::string value =
                wish.action == ControlAction::learning_rate ? nlohmann::json(wish.value).dump() : std::string();
            if (wish.action == ControlAction::learning_rate) {
                // Said now, it counts more than what had been said for later before a resume.
                std::erase_if(s_.replays, [](const Replay& replay) { return replay.action == "learning_rate"; });
            }
            apply(wish, value);
            remove_control(s_.run, wish.id);
        }
        for (const std::string& text : refused)
            if (done_.insert(text).second) log(LogLevel::warning, "a request that cannot be read: " + text);
    }

    void apply(const ControlRequest& wish, const std::string& value) {
        std::string outcome;
        switch (wish.action) {
            case ControlAction::pause:
                outcome = paused_now_ ? "was paused already" : "paused";
                if (!paused_now_) change_state(RunState::paused);
                paused_now_ = true;
                break;
            case ControlAction::resume:
                outcome = paused_now_ ? "goes on" : "was not paused";
                if (paused_now_) change_state(RunState::running);
                paused_now_ = false;
                break;
            case ControlAction::stop:
                outcome = "stops, with a snapshot";
                stop();
                break;
            case ControlAction::snapshot:
                outcome = snapshot();
                break;
            case ControlAction::evaluate:
                outcome = observer_.validate();
                break;
            case ControlAction::learning_rate:
                state().peak_rate = wish.value;
                outcome =
                    "the schedule's peak from now on; the next update's rate is " + number_text(rate(state().step + 1));
                break;
        }
        emit(Control{state().step, action_name(wish.action), value, outcome, wish.id});
    }

    void change_state(RunState to) { emit(StateChanged{to, state().step, ""}); }

    bool better_than_best() const { return std::isfinite(s_.state.score) && s_.state.score < s_.state.best_validation; }

    /// Its name, for messages. A full disk ends no training: the older snapshots exist.
    std::string snapshot() {
        if (s_.job.evaluation.evaluates()) observer_.validate();
        if (!s_.learner->weights_finite())
            throw Error(ErrorCode::limit, "snapshot of step " + std::to_string(state().step), "expected finite weights",
                        "found others; nothing was written");
        // One that is there already says what was best when it was written, and the link says the same.
        const bool best = !s_.snapshots->holds(state().step) && better_than_best();
        const TrainingState before = state();
        if (best) {
            state().best_validation = state().score;
            state().best_step = state().step;
        }
        const auto start = Clock::now();
        try {
            s_.journal->sync();
            const std::uint64_t bytes = s_.snapshots->write(state(), save_request(), never_);
            if (best) s_.snapshots->link("best", state().step);
            if (bytes > 0) emit(Snapshot{state().step, snapshot_name(state().step), bytes, seconds_since(start), best});
            s_.snapshots->prune(s_.job.snapshots.keep, state().best_step);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::io || ending_ || done()) throw;
            state() = before;
            log(LogLevel::error, std::string("no snapshot: ") + error.what());
            return error.what();
        }
        return snapshot_name(state().step);
    }

    checkpoint::SaveRequest save_request() {
        config_ = parse_json(s_.learner->model().config_json(), "config.json");
        checkpoint::SaveRequest request;
        request.config = &config_;
        request.tensors = s_.learner->model().output_tensors();
        request.side_tensors[kOptimizerName] = s_.learner->optimizer_tensors();
        for (const auto& file : s_.data->tokenizer_files()) request.texts[file.name] = file.content;
        request.texts["generation_config.json"] = json_text(generation_config(s_, config_));
        return request;
    }

    const TrainRequest& request_;
    Session& s_;
    Coordinator& coordinator_;
    const Cancellation& cancellation_;
    Cancellation never_;  ///< what must not be left half done
    CancellationScope scope_{never_};
    Observer observer_;
    Clock::time_point start_;
    double before_ = 0, paused_ = 0;
    ScheduleSettings schedule_;  ///< with its warm-up in updates
    TimePlan plan_;
    bool paused_now_ = false, stopping_ = false, ending_ = false, cancelled_ = false;
    double loss_ = std::nan("");
    std::set<std::string> done_;  ///< requests, and messages on invalid ones: each once
    nlohmann::json config_;
    RunFileKeeper run_file_;
};

}  // namespace

TrainOutcome train(const TrainRequest& request, Progress& progress, const Cancellation& cancellation) {
    try {
        std::optional<Session> session;
        Coordinator coordinator(request.processes);  // stops the workers before the learner leaves them
        check_together(request.job);  // with --set keys may have come together that contradict each other
        coordinator.check(request.job);
        session.emplace(open_session(request, progress, cancellation));
        coordinator.start_workers(*session);
        Run run(request, *session, coordinator, cancellation);
        try {
            return run.run();
        } catch (...) {
            const Error error = current_error("training");
            run.tell_failure(error);
            throw error;
        }
    } catch (const kernels::Cancelled&) {
        throw Stopped();
    } catch (...) {
        throw current_error("training");
    }
}

}  // namespace headscope::training
