// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/commands/replay.h"
#include "core/reproduce/measured.h"
#include "core/reproduce/plan.h"

namespace headscope::app {

/// Trains, evaluates, analyses, draws and reports: `headscope reproduce deconattn`. Folder: plan.json, text.txt,
/// jobs/, runs/, analyses/, figures/, evaluation.evaluation.h5 and .csv, log.txt, report.md.
class Reproduction final : public Replay {
public:
    using Replay::Replay;
    std::filesystem::path run() override;

private:
    using Trial = reproduce::Trial;

    void enter_budget();
    void make_plan();
    Speed calibrate(const reproduce::Size& size, const std::string& mixer);
    void write_text();
    void do_trial(const Trial& trial);
    void evaluate(const std::filesystem::path& run, const std::filesystem::path& output, bool skip);
    void analyse(const Trial& trial);
    void analyse(const std::filesystem::path& model, const std::filesystem::path& output);
    bool is_done(const Trial& trial) const;
    void gather();
    void draw();
    void draw_cost();
    void measure_cost();
    std::filesystem::path write_report();

    std::filesystem::path run_folder(const Trial& trial) const;
    std::filesystem::path model_link(const Trial& trial) const;
    std::filesystem::path analysis_file(const Trial& trial) const;
    bool analysed(const Trial& trial) const;

    reproduce::Plan plan_;
    store::Evaluation evaluation_;
};

}  // namespace headscope::app
