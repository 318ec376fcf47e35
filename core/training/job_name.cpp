// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/job_name.h"

#include "core/base/error.h"
#include "core/training/job.h"

namespace headscope::training {

std::string job_name(const std::string& job) {
    if (job.empty()) return {};
    try {
        return read_job(job, "job").name;
    } catch (const Error&) {  // of another version, or nobody's: a run has its folder's name, too
        return {};
    }
}

}  // namespace headscope::training
