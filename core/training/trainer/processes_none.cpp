// SPDX-License-Identifier: GPL-3.0-or-later
// Built where there is no MPI.
#include <cstdlib>

#include "core/base/error.h"
#include "core/training/trainer/processes.h"

namespace headscope::training {

std::unique_ptr<Processes> connect_processes() {
    const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
    if (size != nullptr && std::atoi(size) > 1)
        throw Error(ErrorCode::unsupported, "mpirun", "expected one process, for this program was built without MPI",
                    std::string("found ") + size);
    return nullptr;
}

}  // namespace headscope::training
