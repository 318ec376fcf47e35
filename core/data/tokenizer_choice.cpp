// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/tokenizer_choice.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/io/sha256.h"
#include "core/base/json/json.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/data/text_data.h"
#include "core/tokenizer/files/gguf_files.h"
#include "core/tokenizer/files/token_types.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/training/bpe_trainer.h"

namespace headscope::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t least_trained = 257;  // the bytes and end_of_text
constexpr std::int64_t most_trained = 1000000;
constexpr std::uint64_t largest_file = 256'000'000;
constexpr auto settings_file = "tokenizer_config.json";

/// All that may lie beside tokenizer.json or stand for it.
constexpr const char* file_names[] = {"tokenizer.json",    settings_file,        "special_tokens_map.json",
                                      "added_tokens.json", "vocab.json",         "merges.txt",
                                      "vocab.txt",         "chat_template.jinja"};
/// The same where there is no tokenizer.json.
constexpr const char* sentencepiece_names[] = {"source.spm", "target.spm", "target_vocab.json",
                                               "sentencepiece.bpe.model", "spiece.model"};

std::string hash_of(const std::vector<TokenizerFile>& files) {
    Sha256 hash;
    for (const TokenizerFile& file : files) {
        hash.update(file.name + "\n" + std::to_string(file.content.size()) + "\n");
        hash.update(file.content);
    }
    return hash.finish();
}

/// A string, or an object with "content".
std::optional<std::string> token_text(const TokenizerFile& file, const char* key, const std::string& where) {
    const nlohmann::json document = parse_json(file.content, where);
    if (!document.is_object() || !document.contains(key)) return std::nullopt;
    const nlohmann::json& token = document.at(key);
    if (token.is_string()) return token.get<std::string>();
    if (token.is_object() && token.contains("content") && token.at("content").is_string()) {
        return token.at("content").get<std::string>();
    }
    return std::nullopt;
}

std::int64_t find_separator(const ChosenTokenizer& chosen, const fs::path& folder) {
    if (const auto id = named_token(*chosen.tokenizer, chosen.files, "eos_token", folder)) return *id;
    for (const char* token : {end_of_text, "<|end_of_text|>", "</s>", "<eos>", "[SEP]"}) {
        if (const auto id = chosen.tokenizer->id_of(token)) return *id;
    }
    return -1;
}

/// Feeds a trainer.
class Feeder final : public PartSink {
public:
    explicit Feeder(tokenizer::BpeTrainer& trainer) : trainer_(trainer) {}
    void begin_document() override {}
    void part(std::string_view text) override { trainer_.feed(text); }
    void end_document() override {}

private:
    tokenizer::BpeTrainer& trainer_;
};

}  // namespace

std::optional<std::int64_t> named_token(const tokenizer::Tokenizer& tokenizer, const std::vector<TokenizerFile>& files,
                                        const char* key, const fs::path& folder) {
    for (const TokenizerFile& file : files) {
        if (file.name != settings_file) continue;
        const auto token = token_text(file, key, shown(folder / file.name));
        if (const auto id = token ? tokenizer.id_of(*token) : std::nullopt) return *id;
    }
    return std::nullopt;
}

void state_token_types(std::vector<TokenizerFile>& files, bool types) {
    auto file = std::find_if(files.begin(), files.end(), [](const auto& one) { return one.name == settings_file; });
    nlohmann::ordered_json settings = nlohmann::ordered_json::object();
    if (file != files.end()) settings = nlohmann::ordered_json::parse(file->content, nullptr, false);
    if (!settings.is_object() || settings.contains("model_input_names")) return;
    const nlohmann::json plain = settings, model = nlohmann::json::object();
    if (settings.contains("tokenizer_class") &&
        tokenizer::gives_token_types(JsonView(plain, settings_file), JsonView(model, "config.json")) == types)
        return;
    settings["model_input_names"] = types ? nlohmann::ordered_json{"input_ids", "token_type_ids", "attention_mask"}
                                          : nlohmann::ordered_json{"input_ids", "attention_mask"};
    if (file == files.end()) file = files.insert(file, {settings_file, ""});
    file->content = settings.dump(1) + "\n";
}

std::optional<std::int64_t> trained_size(const std::string& setting) {
    constexpr std::string_view prefix = "train:";
    if (!setting.starts_with(prefix)) return std::nullopt;
    const std::string digits = setting.substr(prefix.size());
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (error != std::errc() || end != digits.data() + digits.size() || size < least_trained || size > most_trained) {
        throw Error(
            ErrorCode::usage, "data.tokenizer",
            "expected \"train:N\" with N from " + std::to_string(least_trained) + " to " + std::to_string(most_trained),
            "found \"" + escaped(setting, 60) + '"');
    }
    return size;
}

std::optional<std::int64_t> special_id(const tokenizer::Tokenizer& tokenizer, const std::vector<TokenizerFile>& files,
                                       std::initializer_list<const char*> keys,
                                       std::initializer_list<const char*> usual) {
    for (const char* key : keys)
        if (const auto id = named_token(tokenizer, files, key, "")) return id;
    for (const char* text : usual)
        if (const auto id = tokenizer.id_of(text)) return *id;
    return std::nullopt;
}

ChosenTokenizer tokenizer_from(const std::string& json, const std::string& where) {
    const nlohmann::ordered_json settings = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                             {"eos_token", end_of_text},
                                             {"clean_up_tokenization_spaces", false}};
    return tokenizer_from(json, settings.dump(1) + "\n", where);
}

ChosenTokenizer tokenizer_from(const std::string& json, const std::string& config, const std::string& where) {
    ChosenTokenizer chosen;
    const nlohmann::json settings = parse_json(config, where), model = nlohmann::json::object();
    const bool types = tokenizer::gives_token_types(JsonView(settings, settings_file), JsonView(model, "config.json"));
    chosen.tokenizer = tokenizer::Tokenizer::from_json(json, where, types);
    chosen.files = {{"tokenizer.json", json}, {settings_file, config}};
    chosen.sha256 = hash_of(chosen.files);
    chosen.separator = find_separator(chosen, "");
    return chosen;
}

ChosenTokenizer byte_tokenizer() {
    return tokenizer_from(tokenizer::byte_level_json(tokenizer::byte_vocabulary({end_of_text}), false), "bytes");
}

ChosenTokenizer tokenizer_at(const fs::path& path) {
    std::error_code error;
    const bool is_folder = fs::is_directory(path, error);
    if (!is_folder && !fs::exists(path, error)) {
        throw Error(ErrorCode::usage, "data.tokenizer",
                    "expected \"bytes\", \"train:N\", a tokenizer.json or a folder with a tokenizer",
                    "found no " + shown(path));
    }
    for (const char* end : {".safetensors", ".index.json", ".bin", ".pt", ".pth"})
        if (!is_folder && path.string().ends_with(end))
            return tokenizer_at(path.has_parent_path() ? path.parent_path() : fs::path("."));
    const bool other = is_folder && ends_at_regular_file(path / file_names[0]);
    if (!other && tokenizer::may_be_gguf(path)) {
        const auto documents = tokenizer::gguf_documents(path);
        if (documents)
            return tokenizer_from(documents->tokenizer.dump(), documents->settings.dump(1) + "\n", shown(path));
    }
    ChosenTokenizer chosen;
    chosen.tokenizer = is_folder ? tokenizer::Tokenizer::from_folder(path) : tokenizer::Tokenizer::from_file(path);
    const fs::path folder = is_folder ? path : path.parent_path();
    if (is_folder || path.filename() == file_names[0]) {
        const auto add = [&](const char* name) {
            if (ends_at_regular_file(folder / name))
                chosen.files.push_back({name, read_small_file(folder / name, largest_file, "tokenizer file")});
        };
        for (const char* name : file_names) add(name);
        if (!ends_at_regular_file(folder / file_names[0]))
            for (const char* name : sentencepiece_names) add(name);
    } else {
        chosen.files.push_back({file_names[0], read_small_file(path, largest_file, "tokenizer file")});
    }
    chosen.sha256 = hash_of(chosen.files);
    chosen.separator = find_separator(chosen, folder);
    return chosen;
}

std::string train_tokenizer(std::int64_t size, const std::vector<SourceFile>& sources,
                            const ObjectiveSettings& objective, Progress& progress, const Cancellation& cancellation) {
    const CancellationScope scope(cancellation);
    tokenizer::BpeSettings settings;
    settings.vocabulary = size;
    settings.special_tokens = {end_of_text};
    tokenizer::BpeTrainer trainer(settings);
    Feeder feeder(trainer);
    read_texts(sources, objective, feeder, progress, "count words for the tokenizer");
    return tokenizer::byte_level_json(trainer.train(progress, cancellation), true);
}

}  // namespace headscope::data
