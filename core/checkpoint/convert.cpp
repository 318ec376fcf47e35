// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json/json.h"
#include "core/base/process/free_memory.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/convert.h"
#include "core/checkpoint/gguf/tokenizer_documents.h"
#include "core/checkpoint/save.h"
#include "core/checkpoint/tensor_reader.h"
#include "core/checkpoint/torch_types.h"

namespace headscope::checkpoint {
namespace {

/// Files of a model besides weights and configuration.
constexpr const char* side_file_names[] = {
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "ngrams.json",
    "vocab.txt",
    "vocab.bin",
    "vocab.pkl",
    "vocab.pt",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "source.spm",
    "target.spm",
    "target_vocab.json",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
    "LICENSE",
    "preprocessor_config.json",
    "README.md",
};

const char* dtype_name(LoadAs as) {
    switch (as) {
        case LoadAs::float32:
            return "float32";
        case LoadAs::bfloat16:
            return "bfloat16";
        case LoadAs::float64:
            return "float64";
        case LoadAs::float16:
            return "float16";
        case LoadAs::stored:
            break;
    }
    return nullptr;
}

/// Sets every dtype that a configuration names, that of its parts (text_config, ...) too.
void set_dtype(nlohmann::json& config, const std::string& name) {
    for (const char* key : {"dtype", "torch_dtype"}) {
        if (config.contains(key)) config[key] = name;
    }
    for (auto& [key, part] : config.items()) {
        if (part.is_object() && key.ends_with("_config")) set_dtype(part, name);
    }
}

/// A tensor that is merged or unpacked, as `type`.
at::Tensor made_tensor(const Checkpoint& source, const TensorInfo& info, DataType type,
                       const Cancellation& cancellation) {
    const LoadAs exact = type == DataType::f64 ? LoadAs::float64 : LoadAs::float32;
    const at::Tensor numbers = source.load(info.name, exact, cancellation);
    const at::Tensor made = numbers.to(torch_type(type).value()).contiguous();
    expect_in_range(shown(source.path()) + ", tensor \"" + escaped(info.name) + '"', numbers, made, type);
    return made;
}

std::vector<OutputTensor> converted_tensors(const Checkpoint& source, LoadAs as, const ConvertChanges& changes,
                                            const Cancellation& cancellation) {
    std::vector<const TensorInfo*> order;  // as they lie in the files, so that each file is read from front to back
    for (const auto& [name, info] : source.tensors())
        if (changes.left_out.count(name) == 0) order.push_back(&info);
    std::sort(order.begin(), order.end(), [](const TensorInfo* a, const TensorInfo* b) {
        return std::tie(a->file, a->begin, a->name) < std::tie(b->file, b->begin, b->name);
    });
    std::vector<OutputTensor> tensors;
    for (const TensorInfo* info : order) {
        const DataType type = loaded_type(info->type, as);
        if (source.is_made(info->name)) {
            tensors.push_back({{info->name, type, info->shape}, [&source, info, type, &cancellation](const auto& sink) {
                                   const at::Tensor made = made_tensor(source, *info, type, cancellation);
                                   sink(made.const_data_ptr(), static_cast<std::size_t>(made.nbytes()));
                               }});
            continue;
        }
        tensors.push_back({{info->name, type, info->shape}, [&source, info, type, &cancellation](const auto& sink) {
                               stream_tensor(source.open_files().at(info->file), *info, type, cancellation, sink);
                           }});
    }
    tensors.insert(tensors.end(), changes.added.begin(), changes.added.end());
    return tensors;
}

/// Tensors that are merged or unpacked are made whole, one at a time: as stored, in float32 or float64, as written.
void expect_memory_to_make(const Checkpoint& source, LoadAs as) {
    const TensorInfo* largest = nullptr;
    for (const auto& [name, info] : source.tensors())
        if (source.is_made(name) && (!largest || info.elements > largest->elements)) largest = &info;
    if (!largest) return;
    const double exact = largest->type == DataType::f64 ? 8 : 4, written = bits(loaded_type(largest->type, as)) / 8.0;
    expect_memory("the tensor " + escaped(largest->name),
                  static_cast<double>(largest->elements) * (2 * exact + written), {}, "");
}

/// Further files of a model whose weight file holds its tokenizer.
void add_own_tokenizer(const Checkpoint& source, SaveRequest& request) {
    const auto own = source.own_tokenizer();
    if (!own) return;
    request.texts["tokenizer.json"] = own->tokenizer.dump();
    request.texts["tokenizer_config.json"] = json_text(own->settings);
}

}  // namespace

LoadAs written_as(const Checkpoint& source, LoadAs asked) {
    return asked == LoadAs::stored && !source.packed_format().empty() ? LoadAs::float32 : asked;
}

void convert(const Checkpoint& source, const std::filesystem::path& destination, LoadAs as, Progress& progress,
             const Cancellation& cancellation, std::uint64_t shard_bytes) {
    convert(source, destination, as, {}, progress, cancellation, shard_bytes);
}

void convert(const Checkpoint& source, const std::filesystem::path& destination, LoadAs asked,
             const ConvertChanges& changes, Progress& progress, const Cancellation& cancellation,
             std::uint64_t shard_bytes) {
    try {
        if (const Error* fault = source.has_config() ? source.quantization_fault() : nullptr) throw Error(*fault);
        const LoadAs as = written_as(source, asked);
        nlohmann::json config = changes.config ? *changes.config : source.config();
        if (const char* name = dtype_name(as); name != nullptr && source.has_config()) {
            set_dtype(config, name);
            // The name that every version of transformers reads.
            if (!config.contains("dtype") && !config.contains("torch_dtype")) config["torch_dtype"] = name;
        }
        SaveRequest request;
        request.destination = destination;
        if (source.has_config()) request.config = &config;
        request.tensors = converted_tensors(source, as, changes, cancellation);
        for (const char* name : side_file_names) {
            if (const auto file = source.side_file(name)) request.side_files.push_back(*file);
        }
        add_own_tokenizer(source, request);
        request.input_folders = {source.path()};
        if (source.adapter() != nullptr) request.input_folders.push_back(source.adapter()->path());
        for (const std::filesystem::path& file : source.files()) request.input_folders.push_back(file.parent_path());
        request.shard_bytes = shard_bytes;
        expect_memory_to_make(source, as);
        save_checkpoint(request, progress, cancellation);
    } catch (...) {
        throw current_error(shown(destination));
    }
}

}  // namespace headscope::checkpoint
