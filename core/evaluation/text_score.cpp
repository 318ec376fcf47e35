// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/text_score.h"

#include <algorithm>
#include <limits>

namespace headscope::evaluation {
namespace {

class Scoring final : public DocumentSink {
public:
    Scoring(model::Model& model, const TextOptions& options, TextScore& score, const Share& progress)
        : options_(options), score_(score), scorer_(model, options.score, score.tokens, progress) {}

    void begin(std::optional<std::int64_t> before) override {
        const std::int64_t stride = options_.stride > 0 ? options_.stride : options_.length;
        windows_.emplace(options_.length, stride, before ? before : options_.prefix,
                         [this](Window window) { scorer_.add(std::move(window)); });
        ++score_.documents;
    }
    void tokens(std::span<const std::int32_t> ids) override {
        if (options_.most_tokens > 0) {
            const auto left = static_cast<std::size_t>(options_.most_tokens - taken_);
            if (ids.size() > left) score_.cut = true;
            ids = ids.first(std::min(ids.size(), left));
        }
        taken_ += static_cast<std::int64_t>(ids.size());
        windows_->add(ids);
    }
    void end(std::int64_t words, std::int64_t bytes) override {
        windows_->finish();
        windows_.reset();
        score_.words += words;
        score_.bytes += bytes;
    }
    std::int64_t wanted() const override {
        return options_.most_tokens > 0 ? options_.most_tokens - taken_ : std::numeric_limits<std::int64_t>::max();
    }
    void report(double share) { scorer_.report(share); }
    void finish() { scorer_.finish(); }

private:
    const TextOptions& options_;
    TextScore& score_;
    WindowScorer scorer_;
    std::optional<RollingWindows> windows_;
    std::int64_t taken_ = 0;
};

double per(double loss, std::int64_t count, bool cut) {
    return cut || count == 0 ? std::numeric_limits<double>::quiet_NaN() : loss / static_cast<double>(count);
}

}  // namespace

double TextScore::word_loss() const {
    return per(tokens.loss_sum(), words, cut);
}

double TextScore::byte_loss() const {
    return per(tokens.loss_sum(), bytes, cut);
}

TextScore score_text(model::Model& model, const Documents& documents, const TextOptions& options,
                     const Share& progress) {
    TextScore score;
    Scoring scoring(model, options, score, progress);
    documents.read(scoring, [&scoring](double share) { scoring.report(share); });
    scoring.finish();
    return score;
}

}  // namespace headscope::evaluation
