// SPDX-License-Identifier: GPL-3.0-or-later
// Fibers, barriers and shadow memory of the emulator.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "kernels/gpu/device/platform.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__)
#error "the emulator's fibers are written for x86-64"
#endif

// (void** from, void* to): saves the registers that calls preserve and continues on another stack.
asm(R"(
.text
.globl headscope_switch_fiber
.hidden headscope_switch_fiber
.type headscope_switch_fiber,@function
headscope_switch_fiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size headscope_switch_fiber, .-headscope_switch_fiber
)");
extern "C" __attribute__((visibility("hidden"))) void headscope_switch_fiber(void** from, void* to);

namespace headscope::gpu {
namespace {

constexpr int kMostWarp = 64;
constexpr int kMostThreads = 1024;
constexpr int kMostShared = 64 << 10;  ///< on every supported device

thread_local std::string last_error;

/// "file.h:12"
std::string text_of(const Site& site) {
    const std::string_view file = site.file;
    return std::string(file.substr(file.rfind('/') + 1)) + ":" + std::to_string(site.line);
}

}  // namespace

int& emulated_warp() {
    static thread_local int warp = 32;
    return warp;
}

void share_matrices(void* const* lanes) {
    for (int lane = 0; lane < 32; ++lane)
        for (int m = 0; m < 4; ++m)
            static_cast<MatrixRows*>(lanes[lane])->to[m] =
                static_cast<const MatrixRows*>(lanes[8 * m + lane / 4])->row[lane % 4];
}

void transpose_matrices(void* const* lanes) {
    const auto number = [lanes](int m, int row, int column) {
        const unsigned word = static_cast<const MatrixRows*>(lanes[8 * m + row])->row[column / 2];
        return column % 2 == 0 ? word & 0xFFFFU : word >> 16;
    };
    for (int lane = 0; lane < 32; ++lane)
        for (int m = 0; m < 4; ++m)
            static_cast<MatrixRows*>(lanes[lane])->to[m] =
                number(m, lane % 4 * 2, lane / 4) | number(m, lane % 4 * 2 + 1, lane / 4) << 16;
}

void multiply_fragments(void* const* lanes) {
    const auto low = [](unsigned word) { return float_of(word << 16); };
    const auto high = [](unsigned word) { return float_of(word & 0xFFFF0000U); };
    float a[16][16], b[16][8];
    for (int lane = 0; lane < 32; ++lane) {
        const auto& from = *static_cast<const Fragments*>(lanes[lane]);
        const int group = lane / 4, pair = lane % 4 * 2;
        for (int x = 0; x < 4; ++x) {
            const int row = group + x % 2 * 8, k = pair + x / 2 * 8;
            a[row][k] = low(from.a[x]);
            a[row][k + 1] = high(from.a[x]);
        }
        for (int x = 0; x < 2; ++x) {
            b[pair + 8 * x][group] = low(from.b[x]);
            b[pair + 8 * x + 1][group] = high(from.b[x]);
        }
    }
    for (int lane = 0; lane < 32; ++lane) {
        auto& to = *static_cast<Fragments*>(lanes[lane]);
        for (int x = 0; x < 4; ++x) {
            const int row = lane / 4 + x / 2 * 8, column = lane % 4 * 2 + x % 2;
            for (int k = 0; k < 16; ++k) to.d[x] += a[row][k] * b[k][column];
        }
    }
}

Block*& Block::current() {
    static thread_local Block* block = nullptr;
    return block;
}

Block::Block(int threads, int shared_bytes, std::uint64_t seed)
    : threads_(threads),
      warp_(emulated_warp()),
      memory_(static_cast<std::size_t>(shared_bytes) + 16),
      shadow_(static_cast<std::size_t>(shared_bytes / 4)),
      random_(seed) {
    const auto count = static_cast<std::size_t>(threads);
    stack_pointers_.resize(count);
    states_.resize(count);
    sites_.resize(count);
    copies_.resize(count);
    masks_.resize(count);
    values_.resize(count);
    joined_.resize(count);
    operations_.resize(count);
    for (int t = 0; t < threads; ++t) {
        stacks_.push_back(std::make_unique_for_overwrite<char[]>(kStack));
        order_.push_back(t);
    }
}

void Block::run(std::int64_t index, Body body, const void* argument) {
    index_ = index;
    body_ = body;
    argument_ = argument;
    epoch_ = 1;
    std::fill(memory_.begin(), memory_.end(), static_cast<unsigned char>(0xFF));  // NaN
    std::fill(shadow_.begin(), shadow_.end(), Word());
    for (int t = 0; t < threads_; ++t) prepare(t);
    std::fill(states_.begin(), states_.end(), State::ready);
    ended_ = waiting_ = exchanging_ = 0;
    for (;;) {
        std::shuffle(order_.begin(), order_.end(), random_);
        for (const int t : order_) {
            if (states_[static_cast<std::size_t>(t)] == State::ready) enter(t);
            if (!error_.empty()) throw std::runtime_error(error_);
        }
        if (exchanging_ > 0) release_warps();
        if (ended_ == threads_) return;
        if (ended_ + waiting_ == threads_)
            release_barrier();
        else if (ended_ + waiting_ + exchanging_ == threads_)
            refuse_exchange();
    }
}

void Block::barrier(Site site) {
    const auto t = static_cast<std::size_t>(now_);
    sites_[t] = site;
    states_[t] = State::at_barrier;
    ++waiting_;
    leave();
}

std::uint64_t Block::exchange(std::uint64_t x, int mask, Site site) {
    const auto t = static_cast<std::size_t>(now_);
    sites_[t] = site;
    values_[t] = x;
    masks_[t] = mask;
    operations_[t] = nullptr;
    states_[t] = State::in_exchange;
    ++exchanging_;
    leave();
    return values_[t];
}

void Block::join_warp(void* lane, WarpOperation operation, Site site) {
    const auto t = static_cast<std::size_t>(now_);
    sites_[t] = site;
    masks_[t] = 0;
    joined_[t] = lane;
    operations_[t] = operation;
    states_[t] = State::in_exchange;
    ++exchanging_;
    leave();
}

void Block::refuse(int a, int b, const char* what, const std::string& more) const {
    throw std::runtime_error("block " + std::to_string(index_) + ", threads " + std::to_string(a) + " and " +
                             std::to_string(b) + " " + what + " (" + more + ")");
}

/// All threads have ended or wait at a barrier.
void Block::release_barrier() {
    const auto waiting = std::find(states_.begin(), states_.end(), State::at_barrier) - states_.begin();
    const Site& site = sites_[static_cast<std::size_t>(waiting)];
    for (int t = 0; t < threads_; ++t) {
        const auto at = static_cast<std::size_t>(t);
        if (states_[at] == State::finished)
            throw std::runtime_error("block " + std::to_string(index_) + ", thread " + std::to_string(t) +
                                     " ended while others wait at a barrier (" + text_of(site) + ")");
        if (!(sites_[at] == site))
            refuse(0, t, "wait at different barriers", text_of(site) + " and " + text_of(sites_[at]));
    }
    ++epoch_;
    waiting_ = 0;
    std::fill(states_.begin(), states_.end(), State::ready);
}

/// A thread waits in an exchange for a thread of its warp that ended or waits at a barrier.
void Block::refuse_exchange() const {
    const auto state = [this](int t) { return states_[static_cast<std::size_t>(t)]; };
    int waiting = 0;
    while (state(waiting) != State::in_exchange) ++waiting;
    int absent = waiting / warp_ * warp_;
    while (state(absent) == State::in_exchange) ++absent;
    const bool ended = state(absent) == State::finished;
    throw std::runtime_error(
        "block " + std::to_string(index_) + ", thread " + std::to_string(waiting) + " waits in an exchange (" +
        text_of(sites_[static_cast<std::size_t>(waiting)]) + ") for thread " + std::to_string(absent) + ", which " +
        (ended ? "ended" : "waits at a barrier (" + text_of(sites_[static_cast<std::size_t>(absent)]) + ")"));
}

void Block::check_warp(int begin, int end) const {
    const auto first = static_cast<std::size_t>(begin);
    for (int t = begin; t < end; ++t) {
        const auto at = static_cast<std::size_t>(t);
        if (operations_[at] != operations_[first] || !(sites_[at] == sites_[first]))
            refuse(begin, t, "of one warp run different instructions",
                   text_of(sites_[first]) + " and " + text_of(sites_[at]));
        if (masks_[at] != masks_[first])
            refuse(begin, t, "of one warp exchange by different masks",
                   std::to_string(masks_[first]) + " and " + std::to_string(masks_[at]) + ", " + text_of(sites_[at]));
    }
}

/// Exchanges values, or calls the common operation, in the warps of which all threads have arrived.
void Block::release_warps() {
    for (int begin = 0; begin < threads_; begin += warp_) {
        const int end = std::min(begin + warp_, threads_);
        const auto arrived = [this](int t) { return states_[static_cast<std::size_t>(t)] == State::in_exchange; };
        bool all = true;
        for (int t = begin; t < end; ++t) all = all && arrived(t);
        if (!all) continue;
        check_warp(begin, end);
        exchanging_ -= end - begin;
        const WarpOperation operation = operations_[static_cast<std::size_t>(begin)];
        if (operation != nullptr) {
            if (end - begin != 32)
                throw std::runtime_error("a matrix instruction of a warp of " + std::to_string(end - begin) +
                                         " threads");
            operation(joined_.data() + begin);
            std::fill(states_.begin() + begin, states_.begin() + end, State::ready);
            continue;
        }
        std::uint64_t found[kMostWarp];
        for (int t = begin; t < end; ++t) {
            const int from = begin + ((t - begin) ^ masks_[static_cast<std::size_t>(t)]);
            if (from >= end) throw std::runtime_error("an exchange with a lane that does not exist");
            found[t - begin] = values_[static_cast<std::size_t>(from)];
        }
        for (int t = begin; t < end; ++t) {
            values_[static_cast<std::size_t>(t)] = found[t - begin];
            states_[static_cast<std::size_t>(t)] = State::ready;
        }
    }
}

Block::Word& Block::word_at(int n, const char* beyond) {
    if (n < 0 || n >= words()) fault(beyond, n);
    return shadow_[static_cast<std::size_t>(n)];
}

void Block::read(int word, int words) {
    for (int n = word; n < word + words; ++n) {
        Word& w = word_at(n, "reads beyond shared memory");
        if (w.pending) fault("reads what a copy is still writing, before its wait_copies()", n);
        if (!w.written) fault("reads shared memory that no thread wrote", n);
        if (w.writer != now_ && w.writer_epoch == epoch_)
            fault("reads what another thread writes without a barrier between", n);
        w.reader = static_cast<std::int16_t>(w.reader_epoch == epoch_ && w.reader != now_ ? -2 : now_);
        w.reader_epoch = epoch_;
    }
}

Block::Word& Block::writable(int n) {
    Word& w = word_at(n, "writes beyond shared memory");
    if (w.pending) fault("writes what a copy is still writing, before its wait_copies()", n);
    if (w.written && w.writer != now_ && w.writer_epoch == epoch_)
        fault("writes what another thread writes without a barrier between", n);
    if (w.reader_epoch == epoch_ && w.reader != now_)
        fault("writes what another thread reads without a barrier between", n);
    return w;
}

void Block::write(int word, int words) {
    for (int n = word; n < word + words; ++n) {
        Word& w = writable(n);
        w.writer = static_cast<std::int16_t>(now_);
        w.writer_epoch = epoch_;
        w.written = true;
    }
}

void Block::change(int word) {
    Word& w = word_at(word, "adds beyond shared memory");
    if (w.pending) fault("adds to what a copy is still writing, before its wait_copies()", word);
    if (!w.written) fault("adds to shared memory that no thread wrote", word);
    const bool plain_write = w.writer_epoch == epoch_ && w.writer != -2 && w.writer != now_;
    if (plain_write || (w.reader_epoch == epoch_ && w.reader != now_))
        fault("adds to what another thread accesses without a barrier between", word);
    if (w.writer_epoch == epoch_) return;  // a plain write of this thread stays one
    w.writer = -2;
    w.writer_epoch = epoch_;
}

void Block::copy(int word, const void* from) {
    for (int n = word; n < word + 4; ++n) writable(n).pending = true;
    copies_[static_cast<std::size_t>(now_)].push_back({word, from});
}

void Block::wait_copies() {
    std::vector<Copy>& own = copies_[static_cast<std::size_t>(now_)];
    for (const Copy& copy : own) {
        for (int n = copy.word; n < copy.word + 4; ++n) shadow_[static_cast<std::size_t>(n)].pending = false;
        write(copy.word, 4);
        unsigned char* to = memory_.data() + 4 * static_cast<std::ptrdiff_t>(copy.word);
        if (copy.from != nullptr)
            std::memcpy(to, copy.from, 16);
        else
            std::memset(to, 0, 16);
    }
    own.clear();
}

void Block::fault(const char* what, int word) {
    // fail() does not return, so no string may live in this frame then.
    char text[200];
    std::snprintf(text, sizeof text, "%s (word %d, barrier %u)", what, word, epoch_ - 1);
    fail(text);
}

void Block::fail(const char* what) {
    if (error_.empty()) error_ = "block " + std::to_string(index_) + ", thread " + std::to_string(now_) + " " + what;
    leave();  // run() throws; this fiber does not continue
    std::abort();
}

void Block::prepare(int t) {
#if defined(__SANITIZE_ADDRESS__)
    // The last leave() of the block before never returned, so its frame is still poisoned.
    __asan_unpoison_memory_region(stacks_[static_cast<std::size_t>(t)].get(), kStack);
#endif
    char* end = stacks_[static_cast<std::size_t>(t)].get() + kStack;
    const auto top = reinterpret_cast<std::uintptr_t>(end) & ~std::uintptr_t{63};
    void** p = reinterpret_cast<void**>(top) - 1;  // the alignment that a call leaves
    *p = nullptr;
    *--p = reinterpret_cast<void*>(&Block::start);
    p -= 6;
    std::memset(p, 0, 6 * sizeof(void*));
    stack_pointers_[static_cast<std::size_t>(t)] = p;
}

void Block::enter(int t) {
    now_ = t;
    current() = this;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&main_fake_, stacks_[static_cast<std::size_t>(t)].get(), kStack);
#endif
    headscope_switch_fiber(&main_, stack_pointers_[static_cast<std::size_t>(t)]);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(main_fake_, nullptr, nullptr);
#endif
}

void Block::leave() {
    const auto t = static_cast<std::size_t>(now_);
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(states_[t] == State::finished ? nullptr : &fake, main_bottom_, main_size_);
#endif
    headscope_switch_fiber(&stack_pointers_[t], main_);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, &main_bottom_, &main_size_);
#endif
}

void Block::start() {
    Block* block = current();
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &block->main_bottom_, &block->main_size_);
#endif
    block->body_(block->argument_);
    if (!block->copies_[static_cast<std::size_t>(block->now_)].empty())
        block->fail("ends while its copies are still writing, without a wait_copies()");
    block->states_[static_cast<std::size_t>(block->now_)] = State::finished;
    ++block->ended_;
    block->leave();
    std::abort();
}

const char* emulate(std::int64_t blocks, int threads, int shared, Block::Body body, const void* argument) {
    try {
        if (threads > kMostThreads) throw std::runtime_error("a block of more than 1024 threads");
        if (shared > kMostShared) throw std::runtime_error("a block with more than 64 KB of shared memory");
        const char* chosen = std::getenv("HEADSCOPE_EMULATOR_SEED");
        const std::uint64_t seed = chosen == nullptr ? 1 : std::strtoull(chosen, nullptr, 10);
        std::vector<std::int64_t> order;
        for (std::int64_t n = 0; n < blocks; ++n) order.push_back(n);
        std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
        Block block(threads, shared, seed);
        for (const std::int64_t n : order) block.run(n, body, argument);
        return nullptr;
    } catch (const std::exception& error) {
        last_error = error.what();
        return last_error.c_str();
    }
}

}  // namespace headscope::gpu
