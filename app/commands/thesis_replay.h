// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "app/commands/replay.h"
#include "core/reproduce/thesis/claims.h"
#include "core/reproduce/thesis/plan.h"

namespace headscope::app {

/// `headscope reproduce thesis-mhe` and `thesis-hash`: trains a chapter's models, tunes its encoders to tell passages
/// apart, asks them what they learned, times steps, draws and reports. Folder: plan.json, text.txt, held-out.txt,
/// passages/, jobs/, runs/, models/, analyses/, figures/, timing.json, STACK.evaluation.h5, log.txt, report.md.
class ThesisReplay final : public Replay {
public:
    ThesisReplay(reproduce::thesis::Chapter chapter, ReproduceOptions options, Progress& progress,
                 const Cancellation& cancellation)
        : Replay(std::move(options), progress, cancellation), chapter_(chapter) {}
    std::filesystem::path run() override;

private:
    using Plan = reproduce::thesis::Plan;
    using Planned = reproduce::thesis::Trial;
    using Model = reproduce::thesis::Model;
    using Stage = reproduce::thesis::Stage;
    using Stack = reproduce::thesis::Stack;

    /// Stages of a trial: of who is not pre-trained the tuning alone.
    std::vector<Stage> stages(const Planned& trial) const;
    static Planned calibrated(const Model& model, Stage stage);
    Speed calibrate(const Plan& plan, const Model& model, Stage stage);
    void write_texts() const;
    void make_plan();
    void do_trial(const Planned& trial);
    bool is_done(const Planned& trial) const;
    void evaluate(const std::filesystem::path& run, const Model& model, Stage stage,
                  const std::filesystem::path& output);
    std::int64_t passage_tokens(const std::filesystem::path& checkpoint) const;
    void analyse(const std::filesystem::path& checkpoint, const std::filesystem::path& output);
    bool analysed(const Planned& trial) const;
    /// Training steps and forward passes, nothing else running.
    void time_models();
    void gather();
    void take_scores(const Planned& trial, Stage stage, store::Evaluation& all);
    void draw();
    std::filesystem::path write_report();

    const Model& model_of(const Planned& trial) const { return reproduce::thesis::model(chapter_, trial.model); }
    std::filesystem::path run_folder(const Planned& trial, Stage stage) const;
    std::filesystem::path scores_file(const Planned& trial, Stage stage) const;
    std::filesystem::path speed_file(const Planned& trial) const {
        return run_folder(trial, Stage::classify) / "speed.evaluation.h5";
    }
    std::filesystem::path analysis_file(const Planned& trial) const;
    std::filesystem::path model_link(const Planned& trial) const;
    std::filesystem::path all_scores(Stack stack) const;

    reproduce::thesis::Chapter chapter_;
    Plan plan_;
    reproduce::thesis::Measured measured_;
    std::map<Stack, store::Evaluation> evaluations_;
};

}  // namespace headscope::app
