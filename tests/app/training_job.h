// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "files.h"
#include "program.h"

namespace headscope::testing {

/// Writes text.txt and job.toml of a tiny job into the folder: two layers, 32 wide, sequences of 32 bytes; `extra` are
/// lines of TOML that follow its [training] section. Returns job.toml.
std::filesystem::path write_tiny_job(const std::filesystem::path& folder, int steps, const std::string& extra = "");

/// True if mpirun is installed; else warns that the test is skipped.
bool has_mpi();
/// Starts the program by mpirun, in two processes.
Settings two_processes();

}  // namespace headscope::testing
