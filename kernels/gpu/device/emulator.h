// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The device of the emulator. Blocks run one after the other in random order; the threads of a block are fibers, which
// run in another random order after each barrier. Shadow words of shared memory detect reads of values that no thread
// wrote, accesses that no barrier orders, and accesses to words that a copy is still writing. Threads of a block must
// meet at the same barrier, and lanes of a warp at the same exchange. A fault ends the launch with a message.
//
// HEADSCOPE_EMULATOR_SEED (1 by default) chooses the orders. Results must not depend on it.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#define HS_DEVICE inline
#define HS_BOTH inline

namespace headscope::gpu {

/// Threads of a warp, 32 or 64, for the launches of this thread.
int& emulated_warp();

/// A line of a kernel: a default argument here() is the line of the call.
struct Site {
    const char* file = "";
    int line = 0;

    static constexpr Site here(const char* path = __builtin_FILE(), int number = __builtin_LINE()) {
        return {path, number};
    }
    bool operator==(const Site& other) const {
        return line == other.line && (file == other.file || std::strcmp(file, other.file) == 0);
    }
};

/// One block's threads, shared memory and shadow.
class Block {
public:
    Block(int threads, int shared_bytes, std::uint64_t seed);

    using Body = void (*)(const void* argument);
    /// Runs a block to its end; throws std::runtime_error with what a thread did wrong.
    void run(std::int64_t index, Body body, const void* argument);

    // For the running thread.
    int thread() const { return now_; }
    int index() const { return static_cast<int>(index_); }
    void barrier(Site site);
    std::uint64_t exchange(std::uint64_t x, int mask, Site site);
    /// Calls operation(lanes) once for a warp of 32, with what each of its lanes passes.
    using WarpOperation = void (*)(void* const* lanes);
    void join_warp(void* lane, WarpOperation operation, Site site);
    void read(int word, int words);
    void write(int word, int words);
    /// An atomic operation: no order is needed, but an earlier value is.
    void change(int word);
    /// Copies 16 bytes to four words, or zeros if `from` is null, at the thread's next wait_copies(). No thread may
    /// access these words before.
    void copy(int word, const void* from);
    void wait_copies();
    /// Ends the launch.
    [[noreturn]] void fail(const char* what);
    unsigned char* memory() { return memory_.data(); }
    int words() const { return static_cast<int>(shadow_.size()); }

    static Block*& current();
    static void start();

private:
    struct Word {
        std::uint32_t writer_epoch = 0, reader_epoch = 0;
        std::int16_t writer = -1, reader = -1;  ///< -2: several
        bool written = false, pending = false;
    };
    struct Copy {
        int word;
        const void* from;
    };
    enum class State : std::uint8_t { ready, at_barrier, in_exchange, finished };
    static constexpr std::size_t kStack = std::size_t{256} << 10;

    void prepare(int t);
    void enter(int t);
    void leave();
    void release_warps();
    void release_barrier();
    /// Each thread of a warp waits where thread `begin` does.
    void check_warp(int begin, int end) const;
    /// Two threads of one block that do not fit together.
    [[noreturn]] void refuse(int a, int b, const char* what, const std::string& more) const;
    [[noreturn]] void refuse_exchange() const;
    [[noreturn]] void fault(const char* what, int word);
    Word& word_at(int n, const char* beyond);
    Word& writable(int n);

    int threads_, warp_, now_ = 0;
    std::int64_t index_ = 0;
    std::uint32_t epoch_ = 1;
    std::vector<unsigned char> memory_;
    std::vector<Word> shadow_;
    std::mt19937_64 random_;
    std::vector<std::unique_ptr<char[]>> stacks_;
    std::vector<void*> stack_pointers_;
    std::vector<State> states_;
    int ended_ = 0, waiting_ = 0, exchanging_ = 0;  ///< threads by state
    std::vector<Site> sites_;                       ///< of the barrier or exchange that a thread waits at
    std::vector<std::vector<Copy>> copies_;
    std::vector<int> order_, masks_;
    std::vector<std::uint64_t> values_;
    std::vector<void*> joined_;  ///< by thread, of join_warp()
    std::vector<WarpOperation> operations_;
    void* main_ = nullptr;
    Body body_ = nullptr;
    const void* argument_ = nullptr;
    std::string error_;
    // For AddressSanitizer.
    void* main_fake_ = nullptr;
    const void* main_bottom_ = nullptr;
    std::size_t main_size_ = 0;
};

/// A checked element of shared memory.
template <class T>
struct Reference {
    T* at;
    int word;
    static_assert(sizeof(T) % 4 == 0);
    static constexpr int kWords = static_cast<int>(sizeof(T) / 4);

    operator T() const {
        Block::current()->read(word, kWords);
        return *at;
    }
    void operator=(T x) const {
        Block::current()->write(word, kWords);
        *at = x;
    }
    void operator=(const Reference& other) const { *this = static_cast<T>(other); }
};

template <class T>
struct Shared {
    T* data;
    int word;
    Reference<T> operator[](int i) const { return {data + i, word + i * Reference<T>::kWords}; }
    Shared operator+(int n) const { return {data + n, word + n * Reference<T>::kWords}; }
};

struct Float4 {
    float x, y, z, w;
};

inline void expect_aligned(const void* p) {
    if (reinterpret_cast<std::uintptr_t>(p) % 16 != 0) Block::current()->fail("unaligned access of 16 bytes");
}

inline Float4 load4(Shared<float> p, int i) {
    expect_aligned(p.data + i);
    Block::current()->read(p.word + i, 4);
    Float4 v;
    std::memcpy(&v, p.data + i, sizeof v);
    return v;
}

/// One lane's part of ldmatrix.x4.
struct MatrixRows {
    const unsigned* row;
    unsigned to[4];
};
void share_matrices(void* const* lanes);
void transpose_matrices(void* const* lanes);

/// One lane's part of mma.m16n8k16, as the PTX manual lays out bfloat16 operands and float32 sums.
struct Fragments {
    float d[4];
    unsigned a[4], b[2];
};
/// Products enter a sum one by one, in the order of k: a device adds them in another order.
void multiply_fragments(void* const* lanes);

inline constexpr bool kCompilesMma = true;

/// Warps of 32 threads have the instruction.
inline bool has_mma() {
    return emulated_warp() == 32;
}

struct Context {
    int thread() const { return Block::current()->thread(); }
    int block() const { return Block::current()->index(); }
    void sync(Site site = Site::here()) const { Block::current()->barrier(site); }
    template <class T>
    Shared<T> shared(int offset) const {
        return {reinterpret_cast<T*>(Block::current()->memory() + offset), offset / 4};
    }
    template <class T>
    T shuffle_xor(T x, int mask, Site site = Site::here()) const {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &x, sizeof x);
        bits = Block::current()->exchange(bits, mask, site);
        std::memcpy(&x, &bits, sizeof x);
        return x;
    }
    /// As the device: results below 2^-126 are 0.
    float exp2(float x) const {
        const float y = std::exp2(x);
        return y < 0x1p-126F ? 0.0F : y;
    }
    template <class T>
    void copy16(Shared<T> to, int at, const T* from, bool valid) const {
        if (valid) expect_aligned(from);
        expect_aligned(to.data + at);
        Block::current()->copy(to.word + at, valid ? from : nullptr);
    }
    void wait_copies() const { Block::current()->wait_copies(); }
    template <bool kTransposed>
    void load_matrices(Shared<unsigned> p, int at, unsigned (&to)[4], Site site = Site::here()) const {
        expect_aligned(p.data + at);
        Block::current()->read(p.word + at, 4);
        MatrixRows lane{p.data + at, {}};
        Block::current()->join_warp(&lane, kTransposed ? &transpose_matrices : &share_matrices, site);
        for (int m = 0; m < 4; ++m) to[m] = lane.to[m];
    }
    void multiply_add(float& d0, float& d1, float& d2, float& d3, const unsigned (&a)[4], unsigned b0, unsigned b1,
                      Site site = Site::here()) const {
        Fragments lane{{d0, d1, d2, d3}, {a[0], a[1], a[2], a[3]}, {b0, b1}};
        Block::current()->join_warp(&lane, &multiply_fragments, site);
        d0 = lane.d[0];
        d1 = lane.d[1];
        d2 = lane.d[2];
        d3 = lane.d[3];
    }
    void add(unsigned long long* to, unsigned long long x) const { *to += x; }
    void add(unsigned* to, unsigned x) const { *to += x; }
    void add(Shared<unsigned> to, int at, unsigned x) const {
        Block::current()->change(to.word + at);
        to.data[at] += x;
    }
    void raise(unsigned* to, unsigned x) const {
        if (*to < x) *to = x;
    }
    void set_flag(unsigned* to) const { *to = 1; }
};

inline unsigned bits_of(float x) {
    return std::bit_cast<unsigned>(x);
}
inline float float_of(unsigned bits) {
    return std::bit_cast<float>(bits);
}

inline unsigned pack_halves(float low, float high) {
    const auto rounded = [](float x) {
        const unsigned bits = bits_of(x);
        return x == x ? (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16 : 0x7FFFU;
    };
    return rounded(low) | rounded(high) << 16;
}

/// Runs all blocks; returns null, or the text of an error until the next launch of this thread.
const char* emulate(std::int64_t blocks, int threads, int shared, Block::Body body, const void* argument);

template <class K>
const char* launch(std::int64_t blocks, int shared, const typename K::Args& args, void*) {
    return emulate(
        blocks, K::kThreads, shared,
        [](const void* argument) { K::run(*static_cast<const typename K::Args*>(argument), Context()); }, &args);
}

}  // namespace headscope::gpu
