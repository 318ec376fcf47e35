// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/training/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/base/error.h"
#include "core/tokenizer/byte_level.h"
#include "core/tokenizer/hashing.h"
#include "core/tokenizer/regex/matcher.h"
#include "core/tokenizer/regex/scanner.h"
#include "core/tokenizer/training/merge_learner.h"

namespace headscope::tokenizer {
namespace {

struct WordHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const { return static_cast<std::size_t>(hash_bytes(word)); }
};

std::vector<std::string> without_repetition(const std::vector<std::string>& tokens) {
    std::vector<std::string> all;
    for (const std::string& token : tokens) {
        if (std::find(all.begin(), all.end(), token) == all.end()) all.push_back(token);
    }
    return all;
}

}  // namespace

struct BpeTrainer::Words {
    std::unique_ptr<Matcher> scanner = scanner_for(gpt2_pattern);
    std::vector<Match> matches, parts;
    std::unordered_map<std::string, std::int64_t, WordHash, std::equal_to<>> counts;
};

BpeTrainer::BpeTrainer(BpeSettings settings) : settings_(std::move(settings)), words_(std::make_unique<Words>()) {}

BpeTrainer::~BpeTrainer() = default;

std::int64_t BpeTrainer::words() const {
    return static_cast<std::int64_t>(words_->counts.size());
}

void BpeTrainer::feed(std::string_view text) {
    words_->matches.clear();
    words_->parts.clear();
    words_->scanner->find(text, words_->matches);
    split_parts(words_->matches, static_cast<std::uint32_t>(text.size()), SplitBehavior::isolated, false,
                words_->parts);
    for (const Match& part : words_->parts) {
        if (part.begin == part.end) continue;
        const std::string_view word = text.substr(part.begin, part.end - part.begin);
        const auto at = words_->counts.find(word);
        if (at != words_->counts.end()) {
            ++at->second;
        } else {
            words_->counts.emplace(word, 1);
        }
    }
    if (words_->counts.size() >= std::numeric_limits<std::uint32_t>::max()) {
        throw Error(ErrorCode::limit, "tokenizer", "expected fewer than 2^32 different words", "found more");
    }
}

TrainedBpe BpeTrainer::train(Progress& progress, const Cancellation& cancellation) const {
    TrainedBpe trained;
    trained.pieces = without_repetition(settings_.special_tokens);
    for (std::size_t id = 0; id < trained.pieces.size(); ++id) {
        trained.special_tokens.push_back(static_cast<std::int32_t>(id));
    }

    std::array<bool, 256> occurs{};
    occurs.fill(settings_.all_bytes);
    for (const auto& [word, count] : words_->counts) {
        for (const char byte : word) occurs[static_cast<unsigned char>(byte)] = true;
    }
    std::vector<unsigned char> alphabet;
    for (unsigned byte = 0; byte < 256; ++byte) {
        if (occurs[byte]) alphabet.push_back(static_cast<unsigned char>(byte));
    }
    std::sort(alphabet.begin(), alphabet.end(),
              [](unsigned char a, unsigned char b) { return byte_character(a) < byte_character(b); });
    std::array<std::int32_t, 256> ids{};
    for (const unsigned char byte : alphabet) {
        const std::string spelling(byte_spelling(byte));
        const auto known = std::find(trained.pieces.begin(), trained.pieces.end(), spelling);
        ids[byte] = static_cast<std::int32_t>(known - trained.pieces.begin());
        if (known == trained.pieces.end()) trained.pieces.push_back(spelling);
    }

    CountedWords counted;
    counted.begins.push_back(0);
    for (const auto& [word, count] : words_->counts) {
        for (const char byte : word) counted.symbols.push_back(ids[static_cast<unsigned char>(byte)]);
        counted.begins.push_back(counted.symbols.size());
        counted.counts.push_back(count);
    }
    LearnedMerges learned = learn_merges(std::move(counted), std::move(trained.pieces), settings_.vocabulary,
                                         settings_.least_frequency, progress, cancellation);
    trained.pieces = std::move(learned.pieces);
    trained.merges = std::move(learned.merges);
    return trained;
}

TrainedBpe byte_vocabulary(const std::vector<std::string>& special_tokens) {
    TrainedBpe bytes;
    for (unsigned byte = 0; byte < 256; ++byte)
        bytes.pieces.emplace_back(byte_spelling(static_cast<unsigned char>(byte)));
    for (const std::string& token : without_repetition(special_tokens)) {
        bytes.special_tokens.push_back(static_cast<std::int32_t>(bytes.pieces.size()));
        bytes.pieces.push_back(token);
    }
    return bytes;
}

std::string byte_level_json(const TrainedBpe& model, bool split_words) {
    using Json = nlohmann::ordered_json;
    Json::object_t vocabulary;
    for (std::size_t id = 0; id < model.pieces.size(); ++id) vocabulary.emplace_back(model.pieces[id], id);
    Json added = Json::array();
    for (const std::int32_t id : model.special_tokens) {
        added.push_back({{"id", id},
                         {"content", model.pieces[static_cast<std::size_t>(id)]},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", true}});
    }
    Json merges = Json::array();
    for (const auto& [left, right] : model.merges) {
        merges.push_back({model.pieces[static_cast<std::size_t>(left)], model.pieces[static_cast<std::size_t>(right)]});
    }
    const Json byte_level = {
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", split_words}};
    const Json document = {{"version", "1.0"},
                           {"truncation", nullptr},
                           {"padding", nullptr},
                           {"added_tokens", added},
                           {"normalizer", nullptr},
                           {"pre_tokenizer", byte_level},
                           {"post_processor", nullptr},
                           {"decoder", byte_level},
                           {"model",
                            {{"type", "BPE"},
                             {"dropout", nullptr},
                             {"unk_token", nullptr},
                             {"continuing_subword_prefix", nullptr},
                             {"end_of_word_suffix", nullptr},
                             {"fuse_unk", false},
                             {"byte_fallback", false},
                             {"ignore_merges", false},
                             {"vocab", std::move(vocabulary)},
                             {"merges", merges}}}};
    return document.dump(1) + "\n";
}

}  // namespace headscope::tokenizer
