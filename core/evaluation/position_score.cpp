// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/position_score.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"

namespace headscope::evaluation {
namespace {

class Blocks final : public DocumentSink {
public:
    Blocks(model::Model& model, const PositionOptions& options, const Share& progress)
        : options_(options),
          passes_(model, options.score, progress),
          room_(std::max<std::int64_t>(1, options.score.batch_tokens / options.length)),
          sums_(static_cast<std::size_t>((options.length + options.bucket - 1) / options.bucket)) {}

    void begin(std::optional<std::int64_t>) override {}
    void tokens(std::span<const std::int32_t> ids) override {
        for (const std::int32_t id : ids) {
            if (wanted() <= 0) return;
            ++taken_;
            block_.push_back(id);
            if (std::ssize(block_) == options_.length) add_block();
        }
    }
    void end(std::int64_t, std::int64_t) override {}
    std::int64_t wanted() const override {
        return options_.most_tokens > 0 ? options_.most_tokens - taken_ : std::numeric_limits<std::int64_t>::max();
    }

    void report(double share) { passes_.report(share); }

    std::vector<PositionBucket> finish(const std::string& name) {
        flush();
        passes_.finish();
        if (blocks_ == 0)
            throw Error(ErrorCode::usage, name,
                        "expected text of at least one block, " + std::to_string(options_.length) + " tokens",
                        "found " + std::to_string(taken_));
        std::vector<PositionBucket> buckets;
        const auto n = static_cast<double>(blocks_);
        for (std::size_t b = 0; b < sums_.size(); ++b) {
            const Sums& sums = sums_[b];
            if (sums.tokens == 0) continue;
            PositionBucket bucket;
            bucket.last = std::min((static_cast<std::int64_t>(b) + 1) * options_.bucket, options_.length);
            bucket.tokens = sums.tokens;
            bucket.loss = sums.mean / n;  // every block has as many tokens in it
            const double deviations = std::max(0.0, sums.square - n * bucket.loss * bucket.loss);
            bucket.error = blocks_ > 1 ? std::sqrt(deviations / (n - 1) / n) : std::numeric_limits<double>::quiet_NaN();
            buckets.push_back(bucket);
        }
        return buckets;
    }

private:
    struct Sums {
        double mean = 0, square = 0;  ///< over blocks, of a block's mean loss
        std::int64_t tokens = 0;
    };

    void add_block() {
        waiting_.length = options_.length - 1;
        ++waiting_.sequences;
        waiting_.ids.insert(waiting_.ids.end(), block_.begin(), block_.end() - 1);
        waiting_.targets.insert(waiting_.targets.end(), block_.begin() + 1, block_.end());
        block_.clear();
        if (waiting_.sequences >= room_) flush();
    }

    void flush() {
        add_target_losses(passes_, std::exchange(waiting_, {}), [this](const TargetLosses& all) { sum_up(all); });
    }

    void sum_up(const TargetLosses& all) {
        for (const auto& losses : all) {
            ++blocks_;
            std::size_t target = 0;  // position 2 is the first that is predicted
            for (std::size_t b = 0; b < sums_.size(); ++b) {
                const auto end = static_cast<std::size_t>(
                    std::min((static_cast<std::int64_t>(b) + 1) * options_.bucket, options_.length) - 1);
                double sum = 0;
                const std::size_t first = target;
                for (; target < end; ++target) sum += losses[target];
                if (target == first) continue;
                const double mean = sum / static_cast<double>(target - first);
                sums_[b].mean += mean;
                sums_[b].square += mean * mean;
                sums_[b].tokens += static_cast<std::int64_t>(target - first);
            }
        }
    }

    const PositionOptions& options_;
    GroupedPasses passes_;
    std::int64_t room_;
    std::vector<Sums> sums_;
    std::vector<std::int64_t> block_;
    data::DataBatch waiting_;
    std::int64_t blocks_ = 0, taken_ = 0;
};

}  // namespace

std::vector<PositionBucket> score_positions(model::Model& model, const Documents& documents,
                                            const PositionOptions& options, const Share& progress) {
    if (options.length < 2)
        throw Error(ErrorCode::usage, "position_perplexity", "expected a length of at least 2 tokens",
                    "found " + std::to_string(options.length));
    if (options.bucket < 1 || options.bucket > options.length)
        throw Error(ErrorCode::usage, "position_perplexity.bucket",
                    "expected 1 to the length, " + std::to_string(options.length),
                    "found " + std::to_string(options.bucket));
    Blocks blocks(model, options, progress);
    documents.read(blocks, [&blocks](double share) { blocks.report(share); });
    return blocks.finish(documents.name());
}

}  // namespace headscope::evaluation
