// SPDX-License-Identifier: GPL-3.0-or-later
// A libnccl.so.2 without GPUs, for HEADSCOPE_NCCL: processes of one machine add up memory that they can read, in the
// order of their ranks, through a file in HEADSCOPE_FAKE_NCCL, a folder. Each process writes its calls to FOLDER/RANK.
// HEADSCOPE_FAKE_NCCL_FAILS="reduce:1:3" lets the third sum of rank 1 fail ("id", "init"), which the others then report
// as a remote error; "version:1" gives rank 1 another version.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0, kSystemError = 2, kInternalError = 3, kInvalidArgument = 4, kRemoteError = 6;
constexpr int kFloat32 = 7, kBfloat16 = 9, kSum = 0;
constexpr int kMostRanks = 8;
constexpr std::size_t kPiece = 1024;  ///< numbers that are added up at a time

/// Lies in a file that all processes map.
struct Meeting {
    std::atomic<int> arrived, turn, failed;
    float numbers[kMostRanks][kPiece];
};

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::string own_rank() {
    return variable("OMPI_COMM_WORLD_RANK");
}

void record(const std::string& line) {
    std::ofstream(variable("HEADSCOPE_FAKE_NCCL") + "/" + own_rank(), std::ios::app) << line << '\n';
}

/// True if HEADSCOPE_FAKE_NCCL_FAILS names this call of this process, its `number`-th.
bool fails(const std::string& call, int number) {
    const std::string wanted = variable("HEADSCOPE_FAKE_NCCL_FAILS"), own = call + ":" + own_rank();
    return wanted == own ? number == 1 : wanted == own + ":" + std::to_string(number);
}

float float_of(std::uint16_t half) {
    const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16U;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/// To the nearest, ties to even.
std::uint16_t bfloat16_of(float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

}  // namespace

extern "C" {

struct ncclUniqueId {
    char internal[128];
};

struct ncclComm {
    Meeting* meeting;
    int size, rank, sums;

    /// Waits for all ranks; false if one failed, or does not come within a minute.
    bool meet() const {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        const int turn = meeting->turn;
        if (++meeting->arrived == size) {
            meeting->arrived = 0;
            ++meeting->turn;
        }
        while (meeting->turn == turn) {
            if (meeting->failed != 0 || std::chrono::steady_clock::now() > end) return false;
            ::sched_yield();
        }
        return true;
    }
};

int ncclGetVersion(int* version) {
    *version = fails("version", 1) ? 22'003 : 29'901;
    return kSuccess;
}

const char* ncclGetErrorString(int result) {
    switch (result) {
        case kInternalError:
            return "internal error";
        case kRemoteError:
            return "remote process exited or there was a network error";
        default:
            return "another error";
    }
}

int ncclGetUniqueId(ncclUniqueId* id) {
    if (fails("id", 1)) return kInternalError;
    std::snprintf(id->internal, sizeof id->internal, "%s/meeting-%d", variable("HEADSCOPE_FAKE_NCCL").c_str(),
                  static_cast<int>(::getpid()));
    return kSuccess;
}

int ncclCommInitRank(ncclComm** made, int ranks, ncclUniqueId id, int rank) {
    *made = nullptr;
    if (fails("init", 1)) return kInternalError;
    if (ranks > kMostRanks || std::to_string(rank) != own_rank()) return kInvalidArgument;
    const int file = ::open(id.internal, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(Meeting)) != 0) return kSystemError;
    void* const place = ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (place == MAP_FAILED) return kSystemError;
    *made = new ncclComm{static_cast<Meeting*>(place), ranks, rank, 0};
    record("init " + std::to_string(rank) + " of " + std::to_string(ranks));
    return kSuccess;
}

int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation, ncclComm* communicator,
                  void*) {
    if (operation != kSum || (type != kFloat32 && type != kBfloat16)) return kInvalidArgument;
    Meeting& meeting = *communicator->meeting;
    if (fails("reduce", ++communicator->sums)) {
        meeting.failed = 1;
        return kInternalError;
    }
    record("sum of " + std::to_string(count) + (type == kFloat32 ? " float32" : " bfloat16"));
    for (std::size_t begin = 0; begin < count; begin += kPiece) {
        const std::size_t size = std::min(kPiece, count - begin);
        float* const own = meeting.numbers[communicator->rank];
        for (std::size_t i = 0; i < size; ++i)
            own[i] = type == kFloat32 ? static_cast<const float*>(from)[begin + i]
                                      : float_of(static_cast<const std::uint16_t*>(from)[begin + i]);
        if (!communicator->meet()) return kRemoteError;
        std::vector<float> sums(size, 0.0F);
        for (int rank = 0; rank < communicator->size; ++rank)
            for (std::size_t i = 0; i < size; ++i) sums[i] += meeting.numbers[rank][i];
        if (!communicator->meet()) return kRemoteError;
        for (std::size_t i = 0; i < size; ++i) {
            if (type == kFloat32)
                static_cast<float*>(to)[begin + i] = sums[i];
            else
                static_cast<std::uint16_t*>(to)[begin + i] = bfloat16_of(sums[i]);
        }
    }
    return kSuccess;
}

int ncclCommDestroy(ncclComm* communicator) {
    // As NCCL's, it waits for the others.
    record(communicator->meet() ? "destroy" : "destroy alone");
    ::munmap(communicator->meeting, sizeof(Meeting));
    delete communicator;
    return kSuccess;
}

int ncclCommAbort(ncclComm* communicator) {
    record("abort");
    ::munmap(communicator->meeting, sizeof(Meeting));
    delete communicator;
    return kSuccess;
}

}  // extern "C"
