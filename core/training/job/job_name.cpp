// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/job/job_name.h"

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/run/run_folder.h"
#include "core/training/job/job.h"

namespace headscope::training {

namespace fs = std::filesystem;

std::string job_name(const std::string& job) {
    if (job.empty()) return {};
    try {
        return read_job(job, "job").name;
    } catch (const Error&) {  // another version, or no job: the folder's name serves
        return {};
    }
}

std::string snapshot_title(const fs::path& snapshot) {
    std::error_code ignored;
    fs::path whole = fs::absolute(snapshot, ignored).lexically_normal();
    if (!whole.has_filename()) whole = whole.parent_path();
    const RunFolder run{whole.parent_path().parent_path()};
    const std::int64_t step = snapshot_step(fs::weakly_canonical(whole, ignored).filename().string());
    if (step < 0 || whole.parent_path() != run.snapshots()) return {};
    std::string name = run.path.filename().string();
    try {
        const JobFile job = read_job_file(run.job());
        if (!job.name.empty()) name = job.name;
    } catch (const Error&) {  // the folder's name is a name too
    }
    return shortened(name, 200) + ", step " + std::to_string(step);
}

}  // namespace headscope::training
