// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Several processes that train one model together: MPI's, started by mpirun or srun. Process 0 has the run folder and
// decides; the others compute. Without MPI at build time, or without a launcher, there is one process and no object.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace headscope::training {

class Processes {
public:
    virtual ~Processes() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual int on_this_machine() const = 0;        ///< how many of them: what its processors are shared among
    virtual int rank_on_this_machine() const = 0;   ///< from 0
    virtual int first_on_this_machine() const = 0;  ///< the rank of its first one

    /// Adds `values` of all processes up, the same sums for each.
    virtual void sum(double* values, int count) = 0;
    /// Hands bytes of process 0 to the others, which wait without burning a processor: process 0 may be long.
    virtual void broadcast(void* bytes, std::size_t size) = 0;

    enum class Type { float32, bfloat16 };
    struct Block {
        void* values = nullptr;
        std::int64_t count = 0;
        Type type = Type::float32;
        std::function<void()> ready = {};  ///< returns when `values` may be read, or throws; empty: at once
        std::function<void()> done = {};   ///< called when `values` are sums, unless ready() threw; may be empty
    };
    /// Adds up a block in place on a thread of its own, one block after the other in the order of the calls, which must
    /// be the same in all processes. ready() and done() run on that thread. Nothing else may be called before wait().
    virtual void sum_in_background(Block block) = 0;
    /// Returns when all blocks are sums. Throws the first failure: Error (io), or that of ready() or done().
    virtual void wait() = 0;

    /// Ends all processes at once: one of them cannot go on.
    [[noreturn]] virtual void abort() = 0;

    void broadcast_text(std::string& text);
};

/// The processes that a launcher started together with this one; null when it started alone. Call once, before threads
/// are started; MPI_Init is only called here, and MPI_Finalize when the object goes.
std::unique_ptr<Processes> connect_processes();

/// `own` of each process, by rank. All processes call it together.
std::vector<double> of_all(Processes& processes, double own);

}  // namespace headscope::training
