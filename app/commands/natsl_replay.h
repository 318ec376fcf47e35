// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "app/commands/replay.h"
#include "core/reproduce/natsl/claims.h"
#include "core/reproduce/natsl/plan.h"

namespace headscope::app {

/// `headscope reproduce natsl`: trains the paper's six models on text and on a recall task, and NAtS-L Hybrid's
/// ablations; measures perplexity by position, recall by length, latency, token types; draws and reports. Folder:
/// plan.json, jobs/, runs/, models/, analyses/, figures/, log.txt, report.md.
class NatslReplay final : public Replay {
public:
    using Replay::Replay;
    std::filesystem::path run() override;

private:
    using Plan = reproduce::natsl::Plan;
    using Planned = reproduce::natsl::Trial;

    Speed calibrate(const std::string& size, const std::string& model);
    void make_plan();
    void do_trial(const Planned& trial);
    bool is_done(const Planned& trial) const;
    void measure(const Planned& trial);
    void analyse(const Planned& trial, const std::string& text);
    void evaluate_text(const std::filesystem::path& run, const std::filesystem::path& output);
    void time_models();
    reproduce::natsl::Measured gather() const;
    void draw();
    std::filesystem::path write_report();

    std::filesystem::path run_folder(const Planned& trial) const { return options_.folder / "runs" / trial.name; }
    std::filesystem::path scores_file(const Planned& trial) const { return run_folder(trial) / "scores.evaluation.h5"; }
    std::filesystem::path analysis_file(const Planned& trial, const std::string& text) const;
    std::filesystem::path model_link(const Planned& trial) const;
    std::filesystem::path latency_file() const { return options_.folder / "latency.evaluation.h5"; }
    const Planned* text_trial(const std::string& model) const;

    Plan plan_;
};

}  // namespace headscope::app
