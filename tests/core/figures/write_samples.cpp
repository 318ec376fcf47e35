// SPDX-License-Identifier: GPL-3.0-or-later
// write_samples FOLDER: a made-up run with its journal and run.h5, two more, two evaluation files, one with items, and
// analyses of a model with recurrent layers, of one with Lazy Attention and of one with ALiBi, for slow tests in Python
// and for looking at figures.
#include <cstdio>
#include <filesystem>

#include "core/base/error.h"
#include "tests/core/figures/sample_folder.h"
#include "tests/core/figures/sample_records.h"
#include "tests/core/store/synthetic_lazy.h"
#include "tests/core/store/synthetic_recurrent.h"

using namespace headscope;

int main(int count, char** arguments) {
    if (count != 2) {
        std::fputs("usage: write_samples FOLDER\n", stderr);
        return 2;
    }
    try {
        const std::filesystem::path folder = arguments[1];
        test::write_run_folder(folder / "first", test::sample_record("first"));
        test::write_run_folder(folder / "second", test::sample_record("second", 300, 3, 0.4));
        test::write_run_folder(folder / "deep", test::sample_record("deep", 600, 12, -0.2));
        tests::write_recurrent_analysis(folder / "recurrent.headscope.h5");
        tests::LazySample lazy;
        lazy.analysis.record.maps = lazy.analysis.record.states = true;
        tests::write_lazy_analysis(folder / "lazy.headscope.h5", lazy);
        tests::write_lazy_analysis(folder / "alibi.headscope.h5", tests::alibi_sample());
        store::write_evaluation(folder / "sample.evaluation.h5", test::sample_evaluation());
        store::write_evaluation(folder / "tasks.evaluation.h5", test::sample_task_evaluation());
    } catch (const Error& error) {
        std::fprintf(stderr, "write_samples: %s\n", error.what());
        return 1;
    }
    return 0;
}
