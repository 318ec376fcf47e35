// SPDX-License-Identifier: GPL-3.0-or-later
// gguf_unpack MODEL.gguf FOLDER: the model as transformers has it, config.json and model.safetensors of float32, and
// the tokenizer where there is one. For comparisons in Python (tests/oracle/generate/gguf_files.py).
#include <cstdio>
#include <exception>
#include <fstream>

#include "core/checkpoint/gguf/gguf.h"
#include "core/checkpoint/packed/packed_source.h"

using namespace headscope;
using namespace headscope::checkpoint;

namespace {

/// All numbers, in the model's order.
std::vector<float> numbers_of(const GgufModel& model, const TensorInfo& tensor) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<std::span<const std::byte>> parts;
    for (const PackedPart& part : tensor.packed->tensor->parts()) {
        const gguf::Tensor& stored = model.stored.at(part.tensor);
        bytes.emplace_back(static_cast<std::size_t>(stored.bytes));
        model.files[stored.file].read(stored.begin, bytes.back().data(), bytes.back().size());
    }
    for (const auto& one : bytes) parts.emplace_back(one);
    const std::int64_t rows = tensor.packed->tensor->rows(), columns = tensor.packed->tensor->columns();
    std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
    tensor.packed->tensor->check(parts);
    tensor.packed->tensor->unpack(parts, 0, rows, numbers.data());
    if (!tensor.packed->transposed) return numbers;
    const std::vector<std::int64_t> shape = tensor.shape;
    const std::int64_t in = shape[shape.size() - 2], out = shape.back();
    std::vector<float> turned(numbers.size());
    for (std::int64_t matrix = 0; matrix < rows / out; ++matrix)
        for (std::int64_t i = 0; i < in; ++i)
            for (std::int64_t o = 0; o < out; ++o)
                turned[static_cast<std::size_t>((matrix * in + i) * out + o)] =
                    numbers[static_cast<std::size_t>((matrix * out + o) * in + i)];
    return turned;
}

void write_text(const std::filesystem::path& path, const nlohmann::json& document) {
    std::ofstream(path) << document.dump(1);
}

void unpack(const std::filesystem::path& path, const std::filesystem::path& folder) {
    const GgufModel model = open_gguf(path);
    std::filesystem::create_directories(folder);
    write_text(folder / "config.json", model.config);
    if (const auto tokenizer = gguf_tokenizer(model.metadata)) {
        write_text(folder / "tokenizer.json", tokenizer->tokenizer);
        write_text(folder / "tokenizer_config.json", tokenizer->settings);
    }
    nlohmann::json header = nlohmann::json::object();
    std::string data;
    for (const auto& [name, tensor] : model.tensors) {
        const std::vector<float> numbers = numbers_of(model, tensor);
        const std::size_t begin = data.size();
        data.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
        header[name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
    }
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    std::ofstream file(folder / "model.safetensors", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file << text << data;
    std::printf("%s, %zu tensors\n", model.format.c_str(), model.tensors.size());
}

}  // namespace

int main(int count, char** words) {
    if (count != 3) return std::puts("gguf_unpack MODEL.gguf FOLDER"), 2;
    try {
        unpack(words[1], words[2]);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
