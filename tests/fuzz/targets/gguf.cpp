// SPDX-License-Identifier: GPL-3.0-or-later
// A GGUF file, whole: header, configuration, every tensor's rows, tokenizer.
#include "core/checkpoint/gguf/gguf.h"
#include "core/checkpoint/packed/packed_source.h"

#include "tests/fuzz/check.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {
namespace {

void unpack(const checkpoint::GgufModel& model, const checkpoint::TensorInfo& tensor, std::size_t file_size) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<std::span<const std::byte>> parts;
    for (const checkpoint::PackedPart& part : tensor.packed->tensor->parts()) {
        const checkpoint::gguf::Tensor& stored = model.stored.at(part.tensor);
        expect(stored.bytes == part.bytes && stored.bytes <= file_size, "a part within the file");
        bytes.emplace_back(static_cast<std::size_t>(stored.bytes));
        model.files[stored.file].read(stored.begin, bytes.back().data(), bytes.back().size());
    }
    for (const auto& one : bytes) parts.emplace_back(one);
    const std::int64_t rows = tensor.packed->tensor->rows(), columns = tensor.packed->tensor->columns();
    expect(rows > 0 && columns > 0, "rows and columns");
    if (refusal([&] { tensor.packed->tensor->check(parts); })) return;
    std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
    tensor.packed->tensor->unpack(parts, 0, rows, numbers.data());
    tensor.packed->tensor->unpack(parts, rows - 1, 1, numbers.data());
}

}  // namespace

void run_gguf(std::string_view input) {
    static MemoryFile memory;
    memory.set(input);
    const auto error = refusal([&] {
        const checkpoint::GgufModel model = checkpoint::open_gguf(memory.path());
        for (const auto& [name, tensor] : model.tensors) unpack(model, tensor, input.size());
    });
    (void)error;
    (void)refusal([&] {
        const InputFile file(memory.path(), "weight file");
        (void)checkpoint::gguf_tokenizer(checkpoint::gguf::read_header(file).metadata);
    });
}

}  // namespace headscope::fuzz
