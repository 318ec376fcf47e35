// SPDX-License-Identifier: GPL-3.0-or-later
// A checkpoint's folder as a tokenizer of hashed words.
#include <bit>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/checkpoint/checkpoint.h"
#include "core/tokenizer/hashed/word_tokenizer.h"

namespace headscope::tokenizer {
namespace {

constexpr std::uint64_t kLargestConfig = 64'000'000;
constexpr const char* kNormal = "model.hash_normal";

/// The numbers of a tensor [n] of float32, without LibTorch.
std::vector<float> read_normal(const std::filesystem::path& folder) {
    const auto file = checkpoint::Checkpoint::open(folder);
    const checkpoint::TensorInfo& info = file->tensor(kNormal);
    const bool plain = info.type == checkpoint::DataType::f32 && info.shape.size() == 1 && info.strides.empty();
    if (!plain || file->files().at(info.file).extension() != ".safetensors") {
        throw Error(ErrorCode::unsupported, kNormal, "expected a vector of F32 in a safetensors file",
                    "found " + std::string(checkpoint::name(info.type)) + " of " + std::to_string(info.shape.size()) +
                        " dimensions in " + escaped(file->files().at(info.file).filename().string()));
    }
    static_assert(std::endian::native == std::endian::little);
    std::vector<float> numbers(static_cast<std::size_t>(info.elements));
    file->open_files().at(info.file).read(info.begin, numbers.data(), numbers.size() * sizeof(float));
    return numbers;
}

}  // namespace

std::optional<HashSettings> hash_settings_in(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / "config.json";
    if (!ends_at_regular_file(path)) return std::nullopt;
    nlohmann::json config;
    try {
        config = read_python_json_file(path, kLargestConfig, "configuration");
    } catch (const Error&) {
        return std::nullopt;  // opening the model reports the error
    }
    if (!config.is_object() || config.value("model_type", nlohmann::json()) != "headscope") return std::nullopt;
    const auto embedding = JsonView(config, "config.json").find("embedding");
    if (!embedding) return std::nullopt;
    const HashSettings settings = read_hash_settings(*embedding);
    return settings.is_table() ? std::nullopt : std::optional(settings);
}

std::shared_ptr<const Tokenizer> read_word_tokenizer(const std::filesystem::path& folder,
                                                     const HashSettings& settings) {
    std::shared_ptr<const Tokenizer> pieces;
    if (settings.tokenizer_pieces) pieces = Tokenizer::from_file(folder / "tokenizer.json");
    auto hash =
        settings.hash == WordHashKind::lsh
            ? std::make_shared<const WordHash>(settings, Ngrams::from_file(folder / "ngrams.json"), read_normal(folder))
            : std::make_shared<const WordHash>(settings);
    return std::make_shared<WordTokenizer>(std::move(hash), std::move(pieces));
}

}  // namespace headscope::tokenizer
