// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/evaluate/averaged_run.h"

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/fresh/average.h"
#include "core/model/load/open_checkpoint.h"
#include "core/run/run_folder.h"
#include "core/training/trainer/snapshots.h"

namespace headscope::app {

namespace fs = std::filesystem;

AveragedRun::AveragedRun(const fs::path& run, std::int64_t last, Progress& progress, const Cancellation& cancellation) {
    const training::RunFolder folder{run};
    if (!folder.exists())
        throw Error(ErrorCode::usage, shown(run), "expected a run's folder (--average)", "found none");
    std::vector<std::shared_ptr<const checkpoint::Checkpoint>> files;
    for (const fs::path& snapshot : training::last_snapshots(folder, last)) {
        files.push_back(model::open_checkpoint(snapshot, ""));
        newest_ = snapshot;
    }
    std::string name = (fs::temp_directory_path() / "headscope-mean-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
        throw Error(ErrorCode::io, name, "expected a folder for the mean of snapshots (TMPDIR)",
                    "found " + std::generic_category().message(errno));
    folder_ = name;
    try {
        model::convert_average(files, checkpoint(), checkpoint::LoadAs::stored, progress, cancellation);
    } catch (...) {
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
        throw;
    }
}

AveragedRun::~AveragedRun() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

}  // namespace headscope::app
