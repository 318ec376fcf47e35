// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A model's inputs and targets: an endless row of sequences, of which sequence i is a pure function of the seed and i.
// So there is no state to save: step s of a job with batches of B sequences (all processes and accumulated parts
// together) reads the sequences [s B, (s + 1) B), each process and part its share, and the same ones after a restart,
// with another number of data workers or processes.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/progress.h"

namespace headscope::data {

constexpr std::int64_t no_target = -1;

/// B sequences of L tokens, row-major.
struct DataBatch {
    std::int64_t sequences = 0;         ///< B
    std::int64_t length = 0;            ///< L
    std::vector<std::int64_t> ids;      ///< [B, L] what the model reads
    std::vector<std::int64_t> lengths;  ///< [B] or empty: all L; what lies behind is padding
    std::vector<std::int64_t> types{};  ///< [B, L] token types, or empty: all 0
    /// [B, L] what it should say behind each token, or of it (encoders); [B, Lt] with a target text, behind each of
    /// its tokens; [B] the class of each text; [B, 2] the first and the last token of an answer. no_target: does not
    /// count.
    std::vector<std::int64_t> targets;
    std::vector<float> values;  ///< [B] in place of classes: the number that is to be said of each text
    std::int64_t counted = 0;   ///< targets, or values, that count
    std::int64_t cut = 0;       ///< items (core/data/batch/item_source.h) of which something was cut

    /// For an encoder-decoder: the decoder's input, the start token first.
    std::int64_t target_length = 0;            ///< Lt
    std::vector<std::int64_t> target_ids;      ///< [B, Lt]
    std::vector<std::int64_t> target_lengths;  ///< [B] or empty

    /// For a hash embedding (model::Batch::features): one of the two, or none.
    std::int64_t bits_per_token = 0;
    std::vector<std::uint8_t> bits;    ///< [B, L, bits_per_token]
    std::vector<std::int64_t> points;  ///< [B, L] code points
};

/// Const members are safe from several threads.
class BatchSource {
public:
    virtual ~BatchSource() = default;
    /// Sequences [first, first + count). Error: format when a token file holds ids beyond its vocabulary.
    virtual DataBatch read(std::int64_t first, std::int64_t count) const;

    std::int64_t length() const noexcept { return length_; }          ///< L; of items the most that a batch may have
    std::int64_t vocabulary() const noexcept { return vocabulary_; }  ///< ids are in [0, vocabulary)
    /// Sequences after which they come again in another order: windows of a text, items. 0: a generator, they never
    /// end.
    virtual std::int64_t epoch() const = 0;

protected:
    BatchSource(std::int64_t length, std::int64_t vocabulary) : length_(length), vocabulary_(vocabulary) {}
    /// Writes L ids and L targets of sequence `index`; targets hold no_target before the call. For sources that leave
    /// read() as it is.
    virtual void write(std::int64_t index, std::int64_t* ids, std::int64_t* targets) const;
    static void check_range(std::int64_t first, std::int64_t count);

private:
    std::int64_t length_;
    std::int64_t vocabulary_;
};

/// Which sequences a reader gets, batch after batch: batch b is [first + b stride, first + b stride + count).
struct ReadPlan {
    std::int64_t first = 0;
    std::int64_t count = 1;
    std::int64_t stride = 1;  ///< count, or the sequences of all processes and accumulated parts together
};

/// Reads ahead on threads of its own. Batches come in order, the same ones whatever `workers` is. The source must
/// live as long. Threads: next() from one at a time.
class Prefetcher {
public:
    Prefetcher(const BatchSource& source, ReadPlan plan, int workers = 1, int ahead = 4);
    ~Prefetcher();
    Prefetcher(const Prefetcher&) = delete;
    Prefetcher& operator=(const Prefetcher&) = delete;

    /// The next batch. Throws what reading it threw; Stopped within a CancellationScope or when `cancellation` asks.
    DataBatch next(const Cancellation* cancellation = nullptr);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace headscope::data
