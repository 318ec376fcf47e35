// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/targets.h"

#include <algorithm>

#include "core/analysis/text_sources.h"
#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::analysis {
namespace {

using store::SequenceTokens;

class TargetReader {
public:
    TargetReader(const TargetOptions& options, const tokenizer::Tokenizer* tokenizer, const Cancellation* cancellation)
        : options_(options), tokenizer_(tokenizer ? &tokenizer->of_target() : nullptr), cancellation_(cancellation) {}

    std::vector<SequenceTokens> run(std::size_t sequences) {
        for (const std::string& text : options_.texts) add_text(text);
        for (const auto& file : options_.token_files) {
            for (const auto& ids : read_token_file(file, options_.vocabulary)) add_ids(ids);
        }
        if (targets_.empty()) finish(start());
        if (targets_.size() == 1) targets_.resize(sequences, targets_.front());
        if (targets_.size() != sequences) {
            throw Error(ErrorCode::usage, options_.option,
                        "expected one target, or one for each of " + std::to_string(sequences) + " sequences",
                        "found " + std::to_string(targets_.size()));
        }
        return std::move(targets_);
    }

private:
    bool known(std::int32_t id) const { return tokenizer_ != nullptr && id < tokenizer_->vocabulary_size(); }
    std::string piece(std::int32_t id) const { return known(id) ? tokenizer_->surface(id) : std::to_string(id); }

    SequenceTokens start() const {
        SequenceTokens tokens;
        tokens.ids = {options_.start};
        tokens.offsets = {{0, 0}};
        return tokens;
    }

    void add_text(const std::string& text) {
        const auto refuse = [&](ErrorCode code, const std::string& expected, const std::string& found) {
            throw Error(code, options_.option, expected, found);
        };
        if (tokenizer_ == nullptr)
            refuse(ErrorCode::usage, "expected a tokenizer.json beside the model, or --target-tokens", "found neither");
        if (const std::size_t invalid = find_invalid_utf8(text); invalid != std::string::npos) {
            refuse(ErrorCode::format, "expected text in UTF-8", "found no UTF-8 at byte " + std::to_string(invalid));
        }
        const auto encoding = tokenizer_->encode(text, true, cancellation_);
        const auto first = std::find(encoding.special.begin(), encoding.special.end(), 0) - encoding.special.begin();
        if (first == static_cast<std::ptrdiff_t>(encoding.special.size()))
            refuse(ErrorCode::usage, "expected a text of at least one token", "found none");
        SequenceTokens tokens = start();
        tokens.text = text;
        for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
            const bool repeats = options_.repeat_token && encoding.special[i] == 0;
            const std::size_t taken = repeats ? static_cast<std::size_t>(first) : i;
            if (encoding.ids[taken] >= options_.vocabulary) {
                refuse(ErrorCode::mismatch,
                       "expected a tokenizer whose ids lie below the model's " + std::to_string(options_.vocabulary),
                       "found " + std::to_string(encoding.ids[taken]));
            }
            tokens.ids.push_back(encoding.ids[taken]);
            tokens.offsets.push_back(encoding.offsets[taken]);
        }
        finish(std::move(tokens));
    }

    void add_ids(const std::vector<std::int32_t>& ids) {
        SequenceTokens tokens = start();
        for (const std::int32_t id : ids) {
            tokens.ids.push_back(options_.repeat_token ? ids.front() : id);
            tokens.offsets.push_back({0, 0});
        }
        finish(std::move(tokens));
    }

    void finish(SequenceTokens tokens) {
        if (options_.length > 0 && static_cast<std::int64_t>(tokens.ids.size()) > options_.length) {
            tokens.ids.resize(static_cast<std::size_t>(options_.length));
            tokens.offsets.resize(tokens.ids.size());
        }
        for (const std::int32_t id : tokens.ids) tokens.pieces.push_back(piece(id));
        targets_.push_back(std::move(tokens));
    }

    const TargetOptions& options_;
    const tokenizer::Tokenizer* tokenizer_;
    const Cancellation* cancellation_;
    std::vector<SequenceTokens> targets_;
};

}  // namespace

std::vector<SequenceTokens> read_targets(const TargetOptions& options, std::size_t sequences,
                                         const tokenizer::Tokenizer* tokenizer, const Cancellation* cancellation) {
    return TargetReader(options, tokenizer, cancellation).run(sequences);
}

}  // namespace headscope::analysis
