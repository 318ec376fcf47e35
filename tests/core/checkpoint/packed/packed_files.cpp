// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/checkpoint/packed/packed_files.h"

#include "core/checkpoint/data_type.h"
#include "core/checkpoint/safetensors_header.h"

namespace headscope::test {

using namespace checkpoint;

std::optional<PackedWeights> PackedModel::find() const {
    const JsonView view(companion, companion_file);
    return find_packed(config, companion_file.empty() ? nullptr : &view, stored,
                       [this](const std::string& tensor) { return bytes.at(tensor); });
}

std::vector<std::span<const std::byte>> PackedModel::parts(const PackedTensor& tensor) const {
    std::vector<std::span<const std::byte>> spans;
    for (const PackedPart& part : tensor.parts()) spans.emplace_back(bytes.at(part.tensor));
    return spans;
}

std::vector<float> PackedModel::unpack(const PackedTensor& tensor, std::int64_t first, std::int64_t count) const {
    if (count < 0) count = tensor.rows();
    std::vector<float> values(static_cast<std::size_t>(count * tensor.columns()));
    tensor.unpack(parts(tensor), first, count, values.data());
    return values;
}

void PackedModel::check(const PackedTensor& tensor) const {
    tensor.check(parts(tensor));
}

void PackedModel::erase(const std::string& name) {
    stored.erase(name);
    bytes.erase(name);
}

void PackedModel::put(const std::string& name, DataType type, std::vector<std::int64_t> shape,
                      std::vector<std::byte> content) {
    TensorInfo info;
    info.name = name;
    info.type = type;
    info.bytes = checked_bits(shape, type, info.elements).value() / 8;
    info.shape = std::move(shape);
    content.resize(static_cast<std::size_t>(info.bytes));
    stored[name] = info;
    bytes[name] = std::move(content);
}

PackedModel read_packed_model(const std::string& name) {
    PackedModel model;
    const auto folder = packed_golden / name;
    model.config = read_json_file(folder / "config.json", 1U << 20U, "configuration");
    for (const char* file : {"quantize_config.json", "quant_config.json"}) {
        if (!std::filesystem::exists(folder / file)) continue;
        model.companion_file = file;
        model.companion = read_json_file(folder / file, 1U << 20U, "configuration");
    }
    const InputFile file(folder / "model.safetensors");
    model.stored = read_safetensors_header(file).tensors;
    for (const auto& [tensor, info] : model.stored) {
        auto& bytes = model.bytes[tensor];
        bytes.resize(static_cast<std::size_t>(info.bytes));
        file.read(info.begin, bytes.data(), bytes.size());
    }
    return model;
}

nlohmann::json packed_expectations() {
    return read_json_file(packed_golden / "expected.json", 1U << 20U, "golden data");
}

}  // namespace headscope::test
