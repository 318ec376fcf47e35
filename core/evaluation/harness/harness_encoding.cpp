// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/gguf/tokenizer_documents.h"
#include "core/data/batch/batch_source.h"
#include "core/evaluation/harness/harness_requests.h"
#include "core/evaluation/metrics/python_text.h"
#include "core/evaluation/rolling_windows.h"
#include "core/model/load/build.h"
#include "core/tokenizer/unicode/text_ends.h"

namespace headscope::evaluation {
namespace {

using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kUsualLength = 2048;  // lm-eval's default

class IdSink final : public tokenizer::TokenSink {
public:
    void add(const tokenizer::FoundToken& token) override { ids.push_back(token.id); }
    Ids ids;
};

Ids plain_ids(const HarnessTokens& tokens, std::string_view text) {
    IdSink sink;
    tokens.tokenizer->encode_into(sink, text, false);
    return std::move(sink.ids);
}

/// With the tokens that the tokenizer adds by itself, unless the text begins with such a one.
Ids whole_ids(const HarnessTokens& tokens, std::string_view text) {
    IdSink sink;
    tokens.tokenizer->encode_into(sink, text, !(tokens.prefix && text.starts_with(tokens.prefix_text)));
    return std::move(sink.ids);
}

/// Returns whether there were more.
bool keep_last(Ids& ids, std::int64_t most) {
    const bool more = std::ssize(ids) > most;
    if (more) ids.erase(ids.begin(), ids.end() - most);
    return more;
}

/// Ids of a continuation and of the text before it.
struct Parts {
    Ids before, after;
};

Parts parts_of(const HarnessTokens& tokens, const TextPair& texts, const std::string& place) {
    Parts parts;
    if (texts.context.empty()) {
        parts.after = plain_ids(tokens, texts.continuation);
        if (!tokens.prefix)
            throw Error(ErrorCode::usage, place,
                        "expected a context, for the tokenizer names no token that a text begins or ends with",
                        "found none");
        parts.before = {*tokens.prefix};
        if (!parts.after.empty() && parts.after.front() == parts.before.front()) parts.after.erase(parts.after.begin());
        return parts;
    }
    const std::string_view context = trimmed_right(texts.context);
    parts.before = whole_ids(tokens, context);
    if (tokens.encoder_decoder) {
        parts.after = plain_ids(tokens, texts.context.substr(context.size()) + texts.continuation);
        return parts;
    }
    parts.after = whole_ids(tokens, texts.context + texts.continuation);
    // Whatever its first tokens are: where tokens merge across the seam, they are not those of the context.
    parts.after.erase(parts.after.begin(),
                      parts.after.begin() + std::min(std::ssize(parts.before), std::ssize(parts.after)));
    return parts;
}

/// model_max_length, or max_len of older files, where it is not the endless number that stands for none.
std::optional<std::int64_t> tokenizer_length(const checkpoint::Checkpoint& checkpoint) {
    constexpr double kEndless = 1e15;
    const nlohmann::json document = checkpoint.tokenizer_settings();
    if (document.is_null()) return std::nullopt;
    const JsonView config(document, "tokenizer_config.json");
    auto length = config.object().find("model_max_length");
    if (!length) length = config.find("max_len");
    if (!length) return std::nullopt;
    const double said = length->number();
    return said >= 1 && said < kEndless ? std::optional(static_cast<std::int64_t>(said)) : std::nullopt;
}

std::int64_t default_length(const checkpoint::Checkpoint& checkpoint, const model::ModelConfig& model) {
    const JsonView whole(checkpoint.config(), "config.json");
    const auto text = whole.find("text_config");  // of models that read more than text
    const JsonView config = text && text->is_object() ? *text : whole;
    for (const char* key : {"n_positions", "max_position_embeddings", "n_ctx"}) {
        const std::int64_t said = config.integer_or(key, 0);
        if (said > 0) return said;
    }
    if (model.max_positions > 0) return model.max_positions;  // by another key, or the family's default
    return tokenizer_length(checkpoint).value_or(kUsualLength);
}

}  // namespace

HarnessTokens harness_tokens(const checkpoint::Checkpoint& checkpoint,
                             std::shared_ptr<const tokenizer::Tokenizer> tokenizer, std::int64_t length) {
    if (!tokenizer)
        throw Error(ErrorCode::usage, checkpoint.display_name(), "expected a tokenizer beside the model", "found none");
    const model::ModelConfig config = model::make_blueprint(checkpoint).config;
    HarnessTokens tokens;
    tokens.length = length > 0 ? length : default_length(checkpoint, config);
    tokens.encoder_decoder = config.encoder != nullptr;
    std::error_code ignored;
    const std::filesystem::path& path = checkpoint.path();
    const bool is_folder = std::filesystem::is_directory(path, ignored);
    const auto own = checkpoint.own_tokenizer();
    const tokenizer::TextEnds ends = own ? tokenizer::text_ends(own->settings, path.string())
                                         : tokenizer::text_ends(is_folder ? path : path.parent_path());
    for (const auto& piece : {ends.beginning, ends.end})
        if (piece && !tokens.prefix) tokens.prefix = tokenizer->id_of(*piece);
    if (tokens.prefix) tokens.prefix_text = tokenizer->decode({&*tokens.prefix, 1});
    tokens.tokenizer = std::move(tokenizer);
    return tokens;
}

HarnessRequest encode_request(const HarnessTokens& tokens, const TextPair& texts, const std::string& place) {
    Parts parts = parts_of(tokens, texts, place);
    const auto refuse_none = [&](const char* what) {
        throw Error(ErrorCode::usage, place, std::string("expected ") + what + " of at least one token", "found none");
    };
    if (parts.before.empty()) refuse_none("a context");
    if (parts.after.empty()) refuse_none("a continuation");
    HarnessRequest request;
    request.scored = std::ssize(parts.after);
    if (request.scored > tokens.length)
        throw Error(ErrorCode::limit, place,
                    "expected a continuation of at most " + std::to_string(tokens.length) +
                        " tokens, which is what the model reads at once (--length)",
                    "found " + std::to_string(request.scored));
    if (tokens.encoder_decoder) {
        request.source = std::move(parts.before);
        request.cut = keep_last(request.source, tokens.length);
        request.ids = std::move(parts.after);
        return request;
    }
    request.ids = std::move(parts.before);
    request.ids.insert(request.ids.end(), parts.after.begin(), parts.after.end());
    request.cut = keep_last(request.ids, tokens.length + 1);
    return request;
}

std::vector<HarnessRequest> encode_page(const HarnessTokens& tokens, const std::string& page, const std::string&) {
    std::vector<HarnessRequest> requests;
    const auto take = [&](Window window) {
        HarnessRequest& request = requests.emplace_back();
        const auto first = std::find_if(window.targets.begin(), window.targets.end(),
                                        [](std::int64_t target) { return target != data::no_target; });
        request.scored = window.targets.end() - first;
        request.ids = std::move(window.ids);
        if (tokens.encoder_decoder) {
            request.source.assign(request.ids.begin(), request.ids.end() - (request.scored - 1));
            request.ids.assign(first, window.targets.end());
        } else {
            request.ids.push_back(window.targets.back());
        }
    };
    RollingWindows windows(tokens.length, tokens.length, tokens.prefix, take);
    const Ids ids = whole_ids(tokens, page);
    windows.add(std::vector<std::int32_t>(ids.begin(), ids.end()));
    windows.finish();
    return requests;
}

}  // namespace headscope::evaluation
