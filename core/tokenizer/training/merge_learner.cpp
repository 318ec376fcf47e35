// SPDX-License-Identifier: GPL-3.0-or-later
// The rules of the `tokenizers` library, whose result must be met to the last merge:
//
// - The queue's entries are a pair, a count, and the words where the pair came about since its last entry. The greatest
//   count comes first, of equal ones the pair with the smaller ids. An entry whose count is out of date is put back
//   with the true one when it comes up.
// - Merging a pair in a word lowers the counts of the pairs to its left and right, raises those of the new ones, and
//   leaves the merged pair's own count as it is. A pair that was raised gets an entry, beside those it may still have:
//   this happens when two ways of merging lead to the same piece, which has one id. Such a pair can be merged more
//   than once; the last time is its place among the merges.
#include "core/tokenizer/training/merge_learner.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "core/tokenizer/hashing.h"

namespace headscope::tokenizer {
namespace {

using Pair = std::pair<std::int32_t, std::int32_t>;
using Places = std::vector<std::uint32_t>;  ///< words, ascending, each once

std::uint64_t packed(Pair pair) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(pair.first)) << 32U |
           static_cast<std::uint32_t>(pair.second);
}

/// Data of each pair, by open addressing: training spends its time on one look-up per change.
class PairTable {
public:
    struct Entry {
        std::uint64_t pair = 0;
        std::int64_t count = 0;
        Places raised;  ///< words where it came about since its last entry in the queue
        bool used = false;
    };

    PairTable() : entries_(1U << 12U) {}

    Entry& at(Pair pair) {
        if (used_ * 2 >= entries_.size()) grow();
        Entry& entry = find(entries_, packed(pair));
        if (!entry.used) {
            entry.used = true;
            entry.pair = packed(pair);
            ++used_;
        }
        return entry;
    }

private:
    static Entry& find(std::vector<Entry>& entries, std::uint64_t pair) {
        const std::size_t mask = entries.size() - 1;
        std::size_t slot = static_cast<std::size_t>(hash_number(pair)) & mask;
        while (entries[slot].used && entries[slot].pair != pair) slot = (slot + 1) & mask;
        return entries[slot];
    }
    void grow() {
        std::vector<Entry> larger(entries_.size() * 2);
        for (Entry& entry : entries_) {
            if (entry.used) find(larger, entry.pair) = std::move(entry);
        }
        entries_ = std::move(larger);
    }

    std::vector<Entry> entries_;
    std::size_t used_ = 0;
};

struct QueueEntry {
    std::int64_t count = 0;
    Pair pair;
    Places places;
    friend bool operator<(const QueueEntry& a, const QueueEntry& b) {
        return a.count != b.count ? a.count < b.count : b.pair < a.pair;
    }
};

class Learner {
public:
    Learner(CountedWords words, std::vector<std::string> pieces)
        : words_(std::move(words)), pieces_(std::move(pieces)) {
        lengths_.reserve(words_.counts.size());
        for (std::size_t w = 0; w < words_.counts.size(); ++w) {
            lengths_.push_back(static_cast<std::uint32_t>(words_.begins[w + 1] - words_.begins[w]));
        }
        for (std::size_t i = 0; i < pieces_.size(); ++i) ids_.emplace(pieces_[i], static_cast<std::int32_t>(i));
    }

    LearnedMerges run(std::int64_t vocabulary, std::int64_t least, Progress& progress, const Cancellation& stop) {
        count_pairs(stop);
        const auto start = static_cast<double>(pieces_.size());
        while (static_cast<std::int64_t>(pieces_.size()) < vocabulary && !queue_.empty()) {
            QueueEntry top = pop();
            const std::int64_t count = pairs_.at(top.pair).count;
            if (top.count != count) {
                top.count = count;
                push(std::move(top));
                continue;
            }
            if (count < 1 || least > count) break;
            stop.check();
            merge(top);
            progress.advance(static_cast<double>(pieces_.size()) - start, static_cast<double>(vocabulary) - start,
                             "train the tokenizer");
        }
        return {std::move(pieces_), ordered()};
    }

private:
    void push(QueueEntry entry) {
        queue_.push_back(std::move(entry));
        std::push_heap(queue_.begin(), queue_.end());
    }
    QueueEntry pop() {
        std::pop_heap(queue_.begin(), queue_.end());
        QueueEntry top = std::move(queue_.back());
        queue_.pop_back();
        return top;
    }

    void change(Pair pair, std::int64_t by, std::uint32_t word) {
        PairTable::Entry& entry = pairs_.at(pair);
        entry.count += by;
        if (by < 0) return;
        if (entry.raised.empty()) raised_.push_back(pair);
        if (entry.raised.empty() || entry.raised.back() != word) entry.raised.push_back(word);
    }

    /// Entries for all pairs that were raised.
    void enqueue() {
        for (const Pair& pair : raised_) {
            PairTable::Entry& entry = pairs_.at(pair);
            if (entry.count > 0) push({entry.count, pair, std::move(entry.raised)});
            entry.raised = {};
        }
        raised_.clear();
    }

    void count_pairs(const Cancellation& stop) {
        for (std::size_t w = 0; w < lengths_.size(); ++w) {
            if (w % 65536 == 0) stop.check();
            const std::int32_t* symbols = words_.symbols.data() + words_.begins[w];
            for (std::uint32_t i = 0; i + 1 < lengths_[w]; ++i) {
                change({symbols[i], symbols[i + 1]}, words_.counts[w], static_cast<std::uint32_t>(w));
            }
        }
        enqueue();
    }

    void merge(const QueueEntry& top) {
        std::string piece =
            pieces_[static_cast<std::size_t>(top.pair.first)] + pieces_[static_cast<std::size_t>(top.pair.second)];
        const auto [at, is_new] = ids_.emplace(std::move(piece), static_cast<std::int32_t>(pieces_.size()));
        if (is_new) pieces_.push_back(at->first);
        merges_.push_back(top.pair);
        for (const std::uint32_t word : top.places) merge_in(word, top.pair, at->second);
        enqueue();
    }

    void merge_in(std::uint32_t word, Pair pair, std::int32_t id) {
        std::int32_t* const symbols = words_.symbols.data() + words_.begins[word];
        const std::uint32_t length = lengths_[word];
        const std::int64_t count = words_.counts[word];
        std::uint32_t to = 0;
        for (std::uint32_t from = 0; from < length;) {
            if (symbols[from] != pair.first || from + 1 >= length || symbols[from + 1] != pair.second) {
                symbols[to++] = symbols[from++];
                continue;
            }
            if (to > 0) {
                change({symbols[to - 1], pair.first}, -count, word);
                change({symbols[to - 1], id}, count, word);
            }
            from += 2;
            if (from < length) {
                change({pair.second, symbols[from]}, -count, word);
                change({id, symbols[from]}, count, word);
            }
            symbols[to++] = id;
        }
        lengths_[word] = to;
    }

    /// The merges, each at its last place.
    std::vector<Pair> ordered() const {
        std::unordered_map<std::uint64_t, std::size_t> last;
        for (std::size_t i = 0; i < merges_.size(); ++i) last[packed(merges_[i])] = i;
        std::vector<Pair> order;
        for (std::size_t i = 0; i < merges_.size(); ++i) {
            if (last.at(packed(merges_[i])) == i) order.push_back(merges_[i]);
        }
        return order;
    }

    CountedWords words_;
    std::vector<std::uint32_t> lengths_;  ///< symbols that each word still has
    std::vector<std::string> pieces_;
    std::unordered_map<std::string, std::int32_t> ids_;
    PairTable pairs_;
    std::vector<Pair> raised_;
    std::vector<QueueEntry> queue_;  ///< a heap
    std::vector<Pair> merges_;
};

}  // namespace

LearnedMerges learn_merges(CountedWords words, std::vector<std::string> pieces, std::int64_t vocabulary,
                           std::int64_t least_frequency, Progress& progress, const Cancellation& cancellation) {
    return Learner(std::move(words), std::move(pieces)).run(vocabulary, least_frequency, progress, cancellation);
}

}  // namespace headscope::tokenizer
