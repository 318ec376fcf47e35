// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// NVIDIA's library of collective operations, by the functions of nccl.h that are used. It is opened at run time: it
// comes with LibTorch's library for CUDA, which nothing links either. Threads: any.

#include <array>
#include <cstddef>
#include <string>

namespace headscope::training {

/// ncclUniqueId
struct NcclId {
    std::array<char, 128> bytes = {};
};

/// ncclComm
struct NcclCommunicator;

constexpr int kNcclFloat32 = 7, kNcclBfloat16 = 9;  ///< ncclDataType_t
constexpr int kNcclSum = 0;                         ///< ncclRedOp_t
constexpr int kNcclRemoteError = 6;                 ///< ncclResult_t, 0 for success

struct NcclLibrary {
    std::string problem;  ///< why it cannot be used; empty if it can
    std::string version;  ///< "2.30.7"
    int number = 0;       ///< of the version; 0 with a problem

    int (*unique_id)(NcclId* id) = nullptr;
    int (*init_rank)(NcclCommunicator** made, int ranks, NcclId id, int rank) = nullptr;
    int (*all_reduce)(const void* from, void* to, std::size_t count, int type, int operation,
                      NcclCommunicator* communicator, void* stream) = nullptr;
    int (*destroy)(NcclCommunicator* communicator) = nullptr;
    int (*abort)(NcclCommunicator* communicator) = nullptr;
    const char* (*error_string)(int result) = nullptr;

    /// "internal error (3)"
    std::string error_text(int result) const;
};

/// Opens libnccl.so.2, or the library that HEADSCOPE_NCCL names; "none" opens no library.
NcclLibrary open_nccl();

}  // namespace headscope::training
