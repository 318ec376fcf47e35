// SPDX-License-Identifier: GPL-3.0-or-later
#include "training_job.h"

#include <catch2/catch.hpp>

#include <cstdlib>

namespace headscope::testing {

std::filesystem::path write_tiny_job(const std::filesystem::path& folder, int steps, const std::string& extra) {
    std::string text;
    for (unsigned i = 0, state = 7; i < 4000; ++i, state = state * 1664525U + 1013904223U)
        text += std::to_string(state >> 29U) + (state >> 31U != 0 ? " and " : " or ");
    write_file(folder / "text.txt", text);
    return write_file(folder / "job.toml", R"([model]
preset = "nano-100k"
hidden_size = 32
intermediate_size = 48
num_attention_heads = 2
[data]
text = ["*.txt"]
sequence_length = 32
validation = 0.1
[optimizer]
learning_rate = 5e-3
[schedule]
warmup_steps = 5
[evaluation]
every = 10
batches = 2
[probe]
every = 25
sequences = 2
length = 16
[sample]
every = 0
[training]
steps = )" + std::to_string(steps) + "\nbatch = 4\nthreads = 1\n" +
                                               extra);
}

bool has_mpi() {
    if (std::system("command -v mpirun > /dev/null 2>&1") == 0) return true;
    WARN("no mpirun here: not tested");
    return false;
}

Settings two_processes() {
    Settings settings;
    settings.environment = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMP_NUM_THREADS=1",
                            // It would ask the X server for graphics cards, and end with it.
                            "HWLOC_COMPONENTS=-gl"};
#if defined(__SANITIZE_ADDRESS__)
    // Open MPI's plugins leak, and are unloaded before the leak checker runs.
    const char* options = std::getenv("ASAN_OPTIONS");
    settings.environment.push_back("ASAN_OPTIONS=" + std::string(options == nullptr ? "" : options) +
                                   ":detect_leaks=0");
#endif
    settings.shell_prefix = "exec mpirun --oversubscribe --bind-to none -n 2 \"$0\" \"$@\";";
    settings.seconds = 120;
    return settings;
}

}  // namespace headscope::testing
