// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/loading.h"

#include <map>
#include <mutex>
#include <utility>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "app/commands/device.h"
#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/io/sha256.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/gguf/tokenizer_documents.h"
#include "core/model/model.h"
#include "core/store/ask/ask_file.h"
#include "core/tokenizer/files/gguf_files.h"
#include "core/tokenizer/files/token_types.h"
#include "core/tokenizer/hashed/word_tokenizer.h"
#include "core/training/job/job_name.h"
#include "kernels/parallel.h"

namespace headscope::app {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMostShared = std::uint64_t{256} << 20U;  ///< bytes of a tokenizer.json

/// `path` itself, or the folder that it lies in.
fs::path folder_of(const fs::path& path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return path;
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// The adapter's folder where that resizes the vocabulary and holds the tokenizer of it, else the base's.
fs::path tokenizer_folder(const checkpoint::Checkpoint& checkpoint) {
    const checkpoint::Adapter* adapter = checkpoint.adapter();
    if (adapter && adapter->vocabulary() && tokenizer::Tokenizer::is_in(adapter->path())) return adapter->path();
    return folder_of(checkpoint.path());
}

}  // namespace

std::shared_ptr<const tokenizer::Tokenizer> load_tokenizer(const fs::path& path) {
    const fs::path folder = folder_of(path);
    if (folder == path) return tokenizer::Tokenizer::from_folder(path);
    for (const char* name : {"config.json", "vocab.json", "merges.txt", "vocab.txt", "vocab.bin", "vocab.pkl",
                             "vocab.pt", "source.spm", "sentencepiece.bpe.model", "spiece.model", "ngrams.json"})
        if (path.filename() == name) return tokenizer::Tokenizer::from_folder(folder);
    for (const char* end : {".safetensors", ".index.json", ".bin", ".pt", ".pth"})
        if (path.string().ends_with(end)) return tokenizer::Tokenizer::from_folder(folder);
    return tokenizer::Tokenizer::from_file(path);
}

std::shared_ptr<const tokenizer::Tokenizer> tokenizer_of(const checkpoint::Checkpoint& checkpoint) {
    if (const auto own = checkpoint.own_tokenizer())
        return tokenizer::Tokenizer::from_documents(own->tokenizer, own->settings, checkpoint.path().string());
    if (checkpoint.packed_format().starts_with("GGUF")) return nullptr;  // files beside it are another model's
    const fs::path folder = tokenizer_folder(checkpoint);
    return tokenizer::Tokenizer::is_in(folder) ? tokenizer::Tokenizer::from_folder(folder) : nullptr;
}

std::shared_ptr<const tokenizer::Tokenizer> shared_tokenizer_of(const checkpoint::Checkpoint& checkpoint) {
    if (checkpoint.own_tokenizer()) return tokenizer_of(checkpoint);
    // With this file only these two count.
    const fs::path file = tokenizer_folder(checkpoint) / "tokenizer.json";
    // But of a model that hashes words.
    if (!ends_at_regular_file(file) || tokenizer::hash_settings_in(folder_of(checkpoint.path())))
        return tokenizer_of(checkpoint);
    static std::mutex mutex;
    static std::map<std::string, std::weak_ptr<const tokenizer::Tokenizer>> known;
    const InputFile input(file, "tokenizer");
    if (input.size() > kMostShared) return tokenizer_of(checkpoint);
    const tokenizer::FolderSettings settings(file.parent_path());
    const std::string content = sha256_hex(input, Cancellation()) + settings.tokenizer_config().value().dump() +
                                tokenizer::chosen_tokenizer_class(settings.tokenizer_config(), settings.config());
    const std::lock_guard lock(mutex);
    std::erase_if(known, [](const auto& one) { return one.second.expired(); });
    if (const auto place = known.find(content); place != known.end())
        if (auto there = place->second.lock()) return there;
    auto read = tokenizer_of(checkpoint);
    known[content] = read;
    return read;
}

std::vector<fs::path> files_of(const checkpoint::Checkpoint& checkpoint) {
    std::vector<fs::path> files = checkpoint.files();
    for (const char* side :
         {"config.json", "tokenizer.json", "vocab.json", "merges.txt", "vocab.txt", "vocab.bin", "vocab.pkl",
          "vocab.pt", "source.spm", "target.spm", "target_vocab.json", "sentencepiece.bpe.model", "spiece.model",
          "ngrams.json", "tokenizer_config.json", "chat_template.jinja", "chat_template.json"})
        if (const auto file = checkpoint.side_file(side)) files.push_back(*file);
    if (const auto* adapter = checkpoint.adapter()) {
        files.push_back(adapter->file().path());
        files.push_back(adapter->path() / checkpoint::adapter_config_name);
    }
    return files;
}

std::string model_title(const fs::path& path, const checkpoint::Checkpoint& checkpoint) {
    std::string title = training::snapshot_title(path);
    if (!title.empty() && checkpoint.adapter() != nullptr) title += " + " + checkpoint.adapter()->display_name();
    return title;
}

void describe_model(store::AskRecord& record, const fs::path& path, const checkpoint::Checkpoint& checkpoint,
                    const model::Model& model, std::string sha256) {
    record.model_name = model_title(path, checkpoint);
    if (record.model_name.empty()) record.model_name = checkpoint.display_name();
    record.model_type = model.config().family;
    record.model_sha256 = std::move(sha256);
    record.config_json = model.config().to_json();
    record.mixers = model.mixers();
    record.sites = model.sites();
}

tokenizer::ChatTemplate load_chat_template(const fs::path& path) {
    auto chat = tokenizer::find_chat_template(tokenizer::may_be_gguf(path) ? path : folder_of(path));
    if (!chat)
        throw Error(ErrorCode::usage, "--chat",
                    "expected a checkpoint with a chat template (chat_template.jinja, or in tokenizer_config.json)",
                    "found none");
    return *std::move(chat);
}

std::optional<tokenizer::ChatTemplate> chat_template_of(const checkpoint::Checkpoint& checkpoint) {
    if (const auto own = checkpoint.own_tokenizer())
        return tokenizer::find_chat_template(own->settings, checkpoint.path().string());
    return tokenizer::find_chat_template(folder_of(checkpoint.path()));
}

void configure_compute(int threads, const std::string& kernels, const std::string& device, const std::string& place,
                       const MachineShare& share) {
    // LibTorch and our kernels share one OpenMP team on this thread: they must agree on its size.
    kernels::set_threads(threads);
    const int given = kernels::startable_threads(kernels::threads());
    if (given < kernels::threads()) kernels::set_threads(given);
    // The team lives from here on: refused later, its threads would be the end of the program.
    kernels::parallel_for(kernels::threads(), [](std::int64_t, int) {});
    at::set_num_threads(kernels::threads());
    choose_kernels(kernels, device, place, share);
}

int compute_threads() {
    return kernels::threads();
}

}  // namespace headscope::app
