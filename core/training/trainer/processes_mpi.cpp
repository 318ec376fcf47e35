// SPDX-License-Identifier: GPL-3.0-or-later
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/process/threads.h"
#include "core/training/trainer/processes.h"

namespace headscope::training {
namespace {

void check(int result) {
    if (result == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(result, text, &length);
    throw Error(ErrorCode::io, "MPI", "expected the other processes", "found: " + escaped(text));
}

float float_of(std::uint16_t bits) {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16U;
    float value = 0;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

/// Rounded to the nearest, ties to even; NaN stays one.
std::uint16_t bfloat16_of(float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    if (value != value) return static_cast<std::uint16_t>((bits >> 16U) | 64U);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

class MpiProcesses final : public Processes {
public:
    MpiProcesses() {
        // A process that waits gives its processor away: others may compute on it.
        ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
        int level = 0;
        if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS ||
            level < MPI_THREAD_SERIALIZED)
            throw Error(ErrorCode::unsupported, "MPI", "expected one that may be called from a second thread",
                        "found another");
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
        check(MPI_Comm_size(MPI_COMM_WORLD, &size_));
        MPI_Comm machine = MPI_COMM_NULL;
        check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine));
        check(MPI_Comm_size(machine, &on_this_machine_));
        check(MPI_Comm_rank(machine, &rank_on_this_machine_));
        check(MPI_Allreduce(&rank_, &first_on_this_machine_, 1, MPI_INT, MPI_MIN, machine));
        check(MPI_Comm_free(&machine));
        thread_ = start_thread([this] { work(); });
    }
    ~MpiProcesses() override {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        changed_.notify_all();
        thread_.join();
        MPI_Finalize();
    }
    MpiProcesses(const MpiProcesses&) = delete;
    MpiProcesses& operator=(const MpiProcesses&) = delete;

    int rank() const override { return rank_; }
    int size() const override { return size_; }
    int on_this_machine() const override { return on_this_machine_; }
    int rank_on_this_machine() const override { return rank_on_this_machine_; }
    int first_on_this_machine() const override { return first_on_this_machine_; }

    void sum(double* values, int count) override {
        check(MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    }

    void broadcast(void* bytes, std::size_t size) override {
        constexpr std::size_t piece = std::size_t{1} << 28U;
        for (std::size_t done = 0; done < size; done += piece) {
            MPI_Request request = MPI_REQUEST_NULL;
            check(MPI_Ibcast(static_cast<char*>(bytes) + done, static_cast<int>(std::min(piece, size - done)), MPI_BYTE,
                             0, MPI_COMM_WORLD, &request));
            await(request);
        }
    }

    void sum_in_background(Block block) override {
        {
            const std::lock_guard lock(mutex_);
            waiting_.push_back(std::move(block));
            ++open_;
        }
        changed_.notify_all();
    }

    void wait() override {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return open_ == 0; });
        if (failure_) std::rethrow_exception(failure_);
    }

    void abort() override {
        MPI_Abort(MPI_COMM_WORLD, 1);
        std::abort();
    }

private:
    /// Quick answers are caught by asking at once; long waits sleep.
    static void await(MPI_Request& request) {
        const auto start = std::chrono::steady_clock::now();
        for (int done = 0;;) {
            check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            if (done != 0) return;
            if (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(2))
                std::this_thread::yield();
            else
                std::this_thread::sleep_for(std::chrono::microseconds(500));
        }
    }

    void work() {
        std::unique_lock lock(mutex_);
        while (true) {
            changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
            if (waiting_.empty()) return;
            const Block block = std::move(waiting_.front());
            waiting_.pop_front();
            lock.unlock();
            std::exception_ptr failure;
            try {
                if (block.ready) block.ready();
            } catch (...) {
                failure = std::current_exception();
            }
            // The others wait for this process's part, also where it is not ready.
            try {
                check(reduce(block));
                if (block.done && !failure) block.done();
            } catch (...) {
                if (!failure) failure = std::current_exception();
            }
            lock.lock();
            if (!failure_) failure_ = failure;
            if (--open_ == 0) changed_.notify_all();
        }
    }

    int reduce(const Block& block) {
        const auto count = static_cast<int>(block.count);  // blocks are of some megabytes
        if (block.type == Type::float32)
            return MPI_Allreduce(MPI_IN_PLACE, block.values, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        auto* halves = static_cast<std::uint16_t*>(block.values);
        floats_.resize(static_cast<std::size_t>(block.count));
        std::transform(halves, halves + block.count, floats_.begin(), float_of);
        const int result = MPI_Allreduce(MPI_IN_PLACE, floats_.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        std::transform(floats_.begin(), floats_.end(), halves, bfloat16_of);
        return result;
    }

    int rank_ = 0, size_ = 1, on_this_machine_ = 1, rank_on_this_machine_ = 0, first_on_this_machine_ = 0;
    std::vector<float> floats_;
    std::mutex mutex_;  ///< of what follows
    std::condition_variable changed_;
    std::deque<Block> waiting_;
    int open_ = 0;
    std::exception_ptr failure_;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace

std::unique_ptr<Processes> connect_processes() {
    // Variables that mpirun, and srun by PMIx or PMI-2, set for the processes that they start.
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE"}) {
        if (std::getenv(name) == nullptr) continue;
        auto processes = std::make_unique<MpiProcesses>();
        if (processes->size() > 1) return processes;
        return nullptr;
    }
    return nullptr;
}

}  // namespace headscope::training
