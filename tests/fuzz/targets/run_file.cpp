// SPDX-License-Identifier: GPL-3.0-or-later
// A run file (run.h5) of ours, changed through HDF5 itself by the input's edits (hdf5_edits.h), then read whole.
#include <limits>

#include "core/store/run/run_file.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/targets/hdf5_edits.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {
namespace {

store::RunRecord sample() {
    store::RunRecord run;
    run.job = "name = \"x\"\n";
    run.state = "finished";
    run.config_json = "{}";
    run.mixers = {"standard", "mlp"};
    run.sites.resize(2);
    for (Site& site : run.sites) site.heads = 2;
    run.sites[1].has_matrix = false;
    run.training = {{1, 2, 3}, {10, 20, 30}, {5, 4, 3}, {1, 2, 1},  {1, 1, 1},
                    {7, 7, 7}, {1, 2, 3},    {9, 9, 9}, {0, 0.5, 1}};
    run.validation = {{2}, {100}, {4.5}, {0.25}, {0.75}};
    run.probes.step = {2};
    run.probes.seconds = {0.5};
    const double none = std::numeric_limits<double>::quiet_NaN();
    run.probes.indicators = {{"entropy", true, 1, {1, 2, none, none}}, {"head_diversity", false, 1, {1, none}}};
    run.probes.thumbnail_size = 2;
    run.probes.thumbnails.assign(16, 0x3C00);
    run.snapshots = {{2, "step-000002", 12345, 0.5, true}};
    run.controls = {{1.5e9, 2, "pause", "", "paused"}};
    run.samples = {{3, "", "text\nof lines"}};
    run.log = {{1.5e9, 1, "note", "begin"}};
    return run;
}

/// Checks sizes that readers index without another check.
void check_record(const store::RunRecord& run) {
    const std::size_t steps = run.training.step.size(), sites = run.sites.size();
    for (const auto* column :
         {&run.training.loss, &run.training.learning_rate, &run.training.memory, &run.training.accuracy})
        expect(column->size() == steps, "as many numbers of the training as steps");
    expect(run.training.tokens.size() == steps, "as many counts of tokens as steps");
    expect(run.validation.loss.size() == run.validation.step.size(), "as many losses as validations");
    const std::size_t probes = run.probes.step.size(), heads = static_cast<std::size_t>(run.heads());
    expect(run.probes.seconds.size() == probes, "as many durations as probes");
    for (const store::RunIndicator& indicator : run.probes.indicators) {
        const std::size_t values = (indicator.per_head ? heads : 1) * static_cast<std::size_t>(indicator.width);
        expect(indicator.values.size() == probes * sites * values, "as many values as probes, sites and heads");
    }
}

}  // namespace

void run_run_file(std::string_view input) {
    static const EditedFile file([](const auto& path) { store::write_run_file(path, sample()); });
    const auto path = file.edited(input);
    refusal([&] { check_record(store::read_run_file(path)); });
}

}  // namespace headscope::fuzz
