// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/figures/sample_folder.h"

#include "core/run/journal.h"
#include "core/run/run_history.h"
#include "core/store/hdf5/half.h"

namespace headscope::test {

void write_run_folder(const std::filesystem::path& folder, const store::RunRecord& run) {
    std::filesystem::create_directories(folder);
    training::JournalWriter writer(folder / training::kJournalName);
    training::Started started;
    started.job = run.job.empty() ? "name = \"made up\"\n" : run.job;
    started.program_version = "0.1.0";
    started.model_type = "headscope";
    started.config_json = run.config_json;
    started.parameters = 123456;
    started.mixers = run.mixers;
    started.sites = run.sites;
    started.threads = 2;
    started.steps = run.last_step();
    double time = 1.75e9;
    writer.append(started, time);
    const auto& t = run.training;
    const auto& p = run.probes;
    const std::size_t each = p.thumbnails.size() / static_cast<std::size_t>(p.count());
    std::size_t validation = 0, probe = 0;
    const auto add_probe = [&](std::int64_t step) {
        if (probe >= p.step.size() || p.step[probe] != step) return;
        training::ProbeResult result;
        result.step = step;
        result.seconds = p.seconds[probe];
        for (const auto& indicator : p.indicators) {
            const std::size_t size = indicator.values.size() / p.step.size();
            const auto begin = indicator.values.begin() + static_cast<std::ptrdiff_t>(probe * size);
            result.indicators.push_back({indicator.name, {begin, begin + static_cast<std::ptrdiff_t>(size)}});
        }
        result.thumbnail_size = p.thumbnail_size;
        for (std::size_t i = probe * each; i < (probe + 1) * each; ++i)
            result.thumbnails.push_back(store::float_from_half(p.thumbnails[i]));
        writer.append(result, time);
        ++probe;
    };
    add_probe(0);
    for (std::size_t i = 0; i < t.step.size(); ++i) {
        time += 0.2;
        writer.append(training::Step{t.step[i], t.tokens[i], t.loss[i], t.learning_rate[i], t.gradient_norm[i],
                                     t.tokens_per_second[i], t.seconds[i], t.memory[i]},
                      time);
        if (validation < run.validation.step.size() && run.validation.step[validation] == t.step[i]) {
            writer.append(training::Validation{t.step[i], run.validation.loss[validation], 8192, 0.3}, time);
            ++validation;
        }
        add_probe(t.step[i]);
    }
    writer.append(training::Control{100, "learning_rate", "5e-4", "set"}, time);
    writer.append(training::SampleText{200, "In the", " beginning…"}, time);
    writer.append(training::Log{training::LogLevel::warning, 200, "a spike"}, time);
    writer.append(training::Snapshot{200, "step-000200", 1000000, 0.1, true}, time);
    writer.append(training::StateChanged{training::RunState::finished, run.last_step(), ""}, time);
    writer.sync();
    training::build_run_file(folder);
}

}  // namespace headscope::test
