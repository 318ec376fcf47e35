// SPDX-License-Identifier: GPL-3.0-or-later
// Names of evaluated models, as legends have them.
#include <filesystem>

#include "core/checkpoint/checkpoint.h"
#include "core/evaluation/describe.h"
#include "core/run/run_folder.h"
#include "tests/catch_with_torch.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
namespace fs = std::filesystem;

TEST_CASE("A snapshot has its job's name, or its run's folder where the job has none", "[evaluation]") {
    const test::TemporaryFolder folder;
    const fs::path run = folder / "bible-20261128-054112";
    const fs::path snapshot = run / "snapshots" / training::snapshot_name(10);
    fs::create_directories(snapshot.parent_path());
    fs::copy(fs::path(HEADSCOPE_SOURCE_DIR) / "resources/samples/llama-kjv-shakespeare", snapshot);
    const auto name = [](const fs::path& place) {
        return evaluation::evaluated_name(*checkpoint::Checkpoint::open(place));
    };
    CHECK(name(snapshot) == "bible-20261128-054112");
    test::write_file(run / "job.toml", "name = \"bible\"\n[data]\ncorpus = \"kjv\"\nsequence_length = 64\n");
    CHECK(name(snapshot) == "bible");
    test::write_file(run / "job.toml", "[data]\ncorpus = \"kjv\"\nsequence_length = 64\n");
    CHECK(name(snapshot) == "bible-20261128-054112");
    // Any other checkpoint has its folder's name.
    fs::copy(snapshot, folder / "llama");
    CHECK(name(folder / "llama") == "llama");
}
