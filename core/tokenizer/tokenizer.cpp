// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/tokenizer/byte_tokenizer.h"
#include "core/tokenizer/document.h"
#include "core/tokenizer/files/gguf_files.h"
#include "core/tokenizer/files/older_files.h"
#include "core/tokenizer/files/sentencepiece_files.h"
#include "core/tokenizer/files/settings_keys.h"
#include "core/tokenizer/files/token_types.h"
#include "core/tokenizer/files/word_vocabulary_files.h"
#include "core/tokenizer/hashed/word_tokenizer.h"
#include "core/tokenizer/kind.h"
#include "core/tokenizer/pipeline.h"

namespace headscope::tokenizer {

namespace {

// The largest tokenizers of 2026 have 260 000 pieces in 35 MB.
constexpr std::uint64_t largest_file = 256'000'000;

// Components of one kind, those in sequences counted: each may go over the whole text. Real files have some ten.
constexpr std::size_t most_components = 200;

std::size_t count_components(const JsonView& component) {
    std::size_t count = 1;
    if (!component.is_object()) return count;
    for (const std::string_view members : {"normalizers", "pretokenizers", "processors", "decoders"}) {
        const auto list = component.find(members);
        if (!list || !list->is_array()) continue;
        if (list->size() > most_components) return count + list->size();
        for (std::size_t i = 0; i < list->size(); ++i) count += count_components(list->at(i));
    }
    return count;
}

void check_components(const std::optional<JsonView>& component) {
    if (!component) return;
    const std::size_t count = count_components(*component);
    if (count <= most_components) return;
    throw Error(ErrorCode::limit, component->where(),
                "expected at most " + std::to_string(most_components) + " components",
                "found " + std::to_string(count));
}

bool is_sentencepiece(const std::filesystem::path& path) {
    return path.extension() == ".model" || path.extension() == ".spm";
}

[[noreturn]] void refuse_sentencepiece(const std::filesystem::path& path) {
    throw Error(ErrorCode::unsupported, escaped(path.string()),
                "expected a tokenizer.json, which transformers makes of it (AutoTokenizer, save_pretrained)",
                "found a sentencepiece model");
}

/// Makes lists of tokens.
class EncodingMaker final : public TokenSink {
public:
    explicit EncodingMaker(std::size_t text) {
        // A token for some four bytes; of what is not used, no memory is touched.
        encoding.ids.reserve(text / 4 + 4);
        encoding.offsets.reserve(text / 4 + 4);
        encoding.special.reserve(text / 4 + 4);
    }
    void add(const FoundToken& token) override {
        if (encoding.ids.size() == encoding.ids.capacity()) grow();
        if (token.respelled) {
            encoding.respelled.push_back(
                {static_cast<std::int64_t>(encoding.ids.size()), std::string(*token.respelled)});
        }
        encoding.ids.push_back(token.id);
        encoding.offsets.push_back({token.begin, token.end});
        encoding.special.push_back(token.special ? 1 : 0);
    }
    Encoding encoding;

private:
    // A quarter more at a time, not as much again: these are large lists.
    void grow() {
        const std::size_t size = encoding.ids.capacity() + encoding.ids.capacity() / 4 + 4;
        encoding.ids.reserve(size);
        encoding.offsets.reserve(size);
        encoding.special.reserve(size);
    }
};

PipelineParts read_parts(const JsonView& root) {
    PipelineParts parts;
    if (root.has("version") && root.at("version").string() != "1.0") {
        root.at("version").refuse(ErrorCode::unsupported, "expected tokenizer.json of version 1.0");
    }
    const auto normalizer = root.find("normalizer");
    const auto pre_tokenizer = root.find("pre_tokenizer");
    const auto post_processor = root.find("post_processor");
    const auto decoder = root.find("decoder");
    for (const auto& component : {normalizer, pre_tokenizer, post_processor, decoder}) check_components(component);
    parts.model = make_model(root.at("model"));
    if (normalizer) parts.normalizer = make_normalizer(*normalizer);
    if (pre_tokenizer) parts.pre_tokenizer = make_pre_tokenizer(*pre_tokenizer);
    if (post_processor) parts.post_processor = make_post_processor(*post_processor);
    if (decoder) parts.decoder = make_decoder(*decoder);
    if (const auto added = root.find("added_tokens")) {
        parts.added = AddedTokens(*added, parts.model->vocabulary(), parts.normalizer.get());
    }
    parts.spells_byte_level =
        find_type(decoder, "ByteLevel") || find_type(pre_tokenizer, "ByteLevel") || find_type(normalizer, "ByteLevel");
    const std::string_view lower_block = "\xE2\x96\x81";  // U+2581, sentencepiece's space
    parts.space = std::string(lower_block);
    for (const auto& component : {pre_tokenizer, decoder}) {
        if (const auto metaspace = find_type(component, "Metaspace")) {
            parts.space = metaspace->string_or("replacement", parts.space);
            break;
        }
    }
    return parts;
}

/// Settings of a folder's files other than its tokenizer.json.
PipelineChoices choices_of(const JsonView& own, const JsonView& config, const nlohmann::json& document) {
    PipelineChoices choices;
    choices.types = gives_token_types(own, config);
    if (!own.is_object() || !own.boolean_or("clean_up_tokenization_spaces", false)) return choices;
    // transformers cleans no BPE's text unless it is asked for by this name.
    const auto model = JsonView(document, "tokenizer.json").find("model");
    const bool bpe = model && model->is_object() && model->value().value("type", nlohmann::json()) == "BPE";
    const char* const forced = "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output";
    choices.cleans_answers = !bpe || own.boolean_or(forced, false);
    return choices;
}

}  // namespace

Tokenizer::~Tokenizer() = default;

Encoding Tokenizer::encode(std::string_view text, bool add_special_tokens, const Cancellation* cancellation) const {
    EncodingMaker maker(text.size());
    encode_into(maker, text, add_special_tokens, cancellation);
    return std::move(maker.encoding);
}

std::vector<std::string> Tokenizer::pieces(const Encoding& encoding) const {
    return pieces(encoding, 0, encoding.ids.size());
}

std::vector<std::string> Tokenizer::pieces(const Encoding& encoding, std::size_t first, std::size_t count) const {
    std::vector<std::string> result;
    result.reserve(count);
    for (const std::int32_t id : std::span(encoding.ids).subspan(first, count)) result.push_back(piece(id));
    auto respelled =
        std::lower_bound(encoding.respelled.begin(), encoding.respelled.end(), static_cast<std::int64_t>(first),
                         [](const Encoding::Respelled& entry, std::int64_t token) { return entry.token < token; });
    for (; respelled != encoding.respelled.end(); ++respelled) {
        const std::size_t place = static_cast<std::size_t>(respelled->token) - first;
        if (place >= count) break;
        result[place] = respelled->piece;
    }
    return result;
}

namespace {

std::shared_ptr<const Tokenizer> from_gguf(const std::filesystem::path& path) {
    const auto documents = gguf_documents(path);
    if (!documents)
        throw Error(ErrorCode::usage, escaped(path.string()), "expected a GGUF file with a tokenizer", "found none");
    return Tokenizer::from_documents(documents->tokenizer, documents->settings, path.string());
}

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::from_file(const std::filesystem::path& path) {
    if (may_be_gguf(path)) return from_gguf(path);
    if (is_sentencepiece(path)) refuse_sentencepiece(path);
    const std::string text = read_small_file(path, largest_file, "tokenizer");
    if (path.filename() != "tokenizer.json") return from_json(text, path.string(), false);
    const FolderSettings settings(path.parent_path());
    nlohmann::json document = read_document(text, path.string());
    apply_settings(settings.tokenizer_config(), settings.config(), document);
    return make_pipeline(document, path.string(), choices_of(settings.tokenizer_config(), settings.config(), document));
}

std::shared_ptr<const Tokenizer> Tokenizer::from_documents(const nlohmann::json& tokenizer,
                                                           const nlohmann::json& settings, const std::string& where) {
    const nlohmann::json no_config = nlohmann::json::object();
    return make_pipeline(tokenizer, where,
                         choices_of(JsonView(settings, where), JsonView(no_config, where), tokenizer));
}

std::shared_ptr<const Tokenizer> Tokenizer::from_json(std::string_view json, const std::string& where, bool types) {
    return make_pipeline(read_document(json, where), where, {types, false});
}

std::shared_ptr<const Tokenizer> make_pipeline(const nlohmann::json& document, const std::string& where,
                                               PipelineChoices choices, std::shared_ptr<const Tokenizer> target) {
    PipelineParts parts = read_parts(JsonView(document, where));
    parts.types = choices.types;
    parts.cleans_answers = choices.cleans_answers;
    return std::make_shared<Pipeline>(std::move(parts), std::move(target));
}

bool Tokenizer::is_in(const std::filesystem::path& folder) {
    return ends_at_regular_file(folder / "tokenizer.json") || has_word_vocabulary(folder) || has_older_files(folder) ||
           reads_sentencepiece_files(folder) || hash_settings_in(folder);
}

std::shared_ptr<const Tokenizer> Tokenizer::from_folder(const std::filesystem::path& folder) {
    if (const auto settings = hash_settings_in(folder)) return read_word_tokenizer(folder, *settings);
    if (const auto file = folder / "tokenizer.json"; ends_at_regular_file(file)) return from_file(file);
    const std::string where = escaped(folder.string());
    const FolderSettings settings(folder);
    const auto made = [&](const nlohmann::json& document, std::shared_ptr<const Tokenizer> target = nullptr) {
        return make_pipeline(document, where, choices_of(settings.tokenizer_config(), settings.config(), document),
                             std::move(target));
    };
    if (has_word_vocabulary(folder)) return made(document_of_word_vocabulary(folder));
    if (has_older_files(folder)) return made(document_of_older_files(folder));
    if (has_sentencepiece_files(folder)) {
        std::shared_ptr<const Tokenizer> target;
        if (target_differs(folder)) target = made(document_of_sentencepiece_files(folder, Side::target));
        return made(document_of_sentencepiece_files(folder), std::move(target));
    }
    if (may_be_gguf(folder)) return from_gguf(folder);
    throw Error(ErrorCode::io, escaped(folder.string()),
                "expected a tokenizer.json, or vocab.json with merges.txt, or vocab.txt, or a sentencepiece model, or "
                "Transformer-XL's vocab.bin in this folder",
                "found none");
}

std::shared_ptr<const Tokenizer> Tokenizer::bytes() {
    return std::make_shared<ByteTokenizer>();
}

}  // namespace headscope::tokenizer
