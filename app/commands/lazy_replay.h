// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/commands/replay.h"
#include "core/reproduce/lazy/claims.h"
#include "core/reproduce/lazy/plan.h"

namespace headscope::app {

/// `headscope reproduce lazy`: trains Lazy Attention, its ablations, the seven formulations of Table 2, Mask@k and what
/// it is compared with; measures perplexity beyond the training length and where attention goes; draws and reports.
/// Folder: plan.json, text.txt, mask-2.json, mask-16.json, jobs/, runs/, models/, analyses/, figures/, log.txt,
/// report.md.
class LazyReplay final : public Replay {
public:
    using Replay::Replay;
    std::filesystem::path run() override;

private:
    using Plan = reproduce::lazy::Plan;
    using Model = reproduce::lazy::Model;

    void make_plan();
    Speed calibrate(const std::string& size, const Model& model);
    void do_trial(const Model& model);
    bool is_done(const Model& model) const;
    void evaluate(const std::filesystem::path& run, const std::filesystem::path& output);
    void analyse(const std::filesystem::path& checkpoint, const Model& model, const std::filesystem::path& output);
    void write_masked_text(const Model& model, const std::filesystem::path& checkpoint) const;
    reproduce::lazy::Measured gather() const;
    void draw();
    std::filesystem::path write_report();

    std::filesystem::path run_folder(const Model& model) const;
    std::filesystem::path scores_file(const Model& model) const { return run_folder(model) / "scores.evaluation.h5"; }
    std::filesystem::path analysis_file(const Model& model) const;
    std::filesystem::path model_link(const Model& model) const;
    std::filesystem::path masked_text(const Model& model) const;

    Plan plan_;
};

}  // namespace headscope::app
