// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace headscope::test {
namespace {

/// -128 .. 127: splitmix64 of FNV-1a(name) + index, as `element` of models.py.
int element(std::uint64_t seed, std::uint64_t index) {
    std::uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return static_cast<int>((z ^ (z >> 31)) >> 56) - 128;
}

std::uint64_t fnv(const std::string& name) {
    std::uint64_t value = 0xCBF29CE484222325ULL;
    for (const char byte : name) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001B3ULL;
    return value;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

bool ends(const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

double value(const std::string& name, std::uint64_t index) {
    const double raw = element(fnv(name), index);
    if (ends(name, "_blocks")) return raw + 128;
    if (ends(name, "guide_ids")) return (static_cast<int>(raw) + 128) % 29;
    if (ends(name, "_scales")) return 121 + (static_cast<int>(raw) + 128) % 4;
    const bool norm = contains(name, "norm") || contains(name, "LayerNorm") || contains(name, "ln_");
    if (norm && (ends(name, ".weight") || ends(name, ".gamma"))) return 1 + std::floor(raw / 2) / 128;
    if (contains(name, "emb") || contains(name, "guide") || contains(name, "wte") || contains(name, "wpe"))
        return raw / 128;
    if (ends(name, ".offset")) return raw / 128 - 1;
    return raw / 512;
}

template <class T>
void append(std::string& bytes, T number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append(std::string& bytes, const std::string& type, double number) {
    if (type == "I64")
        append(bytes, static_cast<std::int64_t>(number));
    else if (type == "F64")
        append(bytes, number);
    else if (type == "F16")
        append(bytes, c10::Half(static_cast<float>(number)));
    else if (type == "BF16")
        append(bytes, c10::BFloat16(static_cast<float>(number)));
    else if (type == "U8")
        append(bytes, static_cast<std::uint8_t>(number));
    else if (type == "I32")
        append(bytes, static_cast<std::int32_t>(number));
    else
        append(bytes, static_cast<float>(number));
}

using Tensors = std::map<std::string, std::vector<std::int64_t>>;

using Names = std::map<std::string, std::string>;

void write_safetensors(const std::filesystem::path& path, const Tensors& tensors, const std::string& weight_type,
                       const Names& renamed) {
    nlohmann::json header = nlohmann::json::object();
    std::string data;
    for (const auto& [name, shape] : tensors) {
        std::uint64_t count = 1;
        for (const std::int64_t size : shape) count *= static_cast<std::uint64_t>(size);
        const std::size_t begin = data.size();
        const auto first_name = renamed.find(name);
        const std::string& numbers_of = first_name == renamed.end() ? name : first_name->second;
        const bool bytes = ends(name, "_blocks") || ends(name, "_scales");
        const std::string type = bytes ? "U8" : ends(name, "guide_ids") ? "I64" : weight_type;
        for (std::uint64_t i = 0; i < count; ++i) append(data, type, value(numbers_of, i));
        header[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::string file;
    append(file, static_cast<std::uint64_t>(text.size()));
    write_file(path, file + text + data);
}

at::Tensor numbers(const nlohmann::json& list, std::vector<std::int64_t> shape) {
    return at::tensor(list.get<std::vector<double>>(), at::kDouble).reshape(shape);
}

at::Tensor whole_numbers(const nlohmann::json& rows) {
    std::vector<std::int64_t> flat;
    for (const auto& row : rows) {
        for (const auto& item : row) flat.push_back(item.get<std::int64_t>());
    }
    return at::tensor(flat, at::kLong).reshape({static_cast<std::int64_t>(rows.size()), -1});
}

}  // namespace

void TinyCheckpoint::write(const std::filesystem::path& folder) const {
    write_file(folder / "config.json", config.dump());
    if (shards == 1) {
        write_safetensors(folder / "model.safetensors", tensors, file_type, renamed);
        return;
    }
    std::vector<Tensors> parts(static_cast<std::size_t>(shards));
    nlohmann::json map = nlohmann::json::object();
    const auto file = [this](std::size_t part) {
        char name[64];
        std::snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", static_cast<int>(part) + 1, shards);
        return std::string(name);
    };
    std::size_t next = 0;
    for (const auto& [name, shape] : tensors) {
        parts[next][name] = shape;
        map[name] = file(next);
        next = (next + 1) % parts.size();
    }
    for (std::size_t part = 0; part < parts.size(); ++part)
        write_safetensors(folder / file(part), parts[part], file_type, renamed);
    write_file(folder / "model.safetensors.index.json",
               nlohmann::json{{"metadata", nlohmann::json::object()}, {"weight_map", map}}.dump());
}

void TinyCheckpoint::rename(const std::string& from, const std::string& to) {
    auto node = tensors.extract(from);
    node.key() = to;
    tensors.insert(std::move(node));
    renamed[to] = from;
}

std::shared_ptr<model::Model> TinyCheckpoint::build(checkpoint::LoadAs precision, model::Residence residence) const {
    const TemporaryFolder folder;
    write(folder.path());
    return model::Model::build(*checkpoint::Checkpoint::open(folder.path()), precision, nullptr, nullptr, residence);
}

namespace {

nlohmann::json golden_json(const std::string& name) {
    std::ifstream file(headscope::test::golden_model_file(name));
    return nlohmann::json::parse(file);
}

TinyCheckpoint checkpoint_of(const nlohmann::json& json) {
    TinyCheckpoint checkpoint;
    checkpoint.config = json.at("config");
    checkpoint.tensors = json.at("tensors").get<Tensors>();
    checkpoint.file_type = json.at("file_type").get<std::string>();
    checkpoint.shards = json.at("shards").get<int>();
    return checkpoint;
}

}  // namespace

TinyCheckpoint golden_checkpoint(const std::string& name) {
    return checkpoint_of(golden_json(name));
}

model::Batch golden_batch(const std::string& name) {
    const nlohmann::json json = golden_json(name);
    model::Batch batch;
    batch.ids = whole_numbers(json.at("ids"));
    if (json.contains("token_types")) batch.token_types = whole_numbers(json.at("token_types"));
    batch.lengths = json.value("lengths", batch.lengths);
    if (json.contains("target")) batch.target = whole_numbers(json.at("target"));
    batch.target_lengths = json.value("target_lengths", batch.target_lengths);
    return batch;
}

GoldenModel golden_model(const std::string& name) {
    const nlohmann::json json = golden_json(name);
    GoldenModel golden;
    golden.checkpoint = checkpoint_of(json);
    golden.batch = golden_batch(name);
    const std::int64_t batch = golden.batch.ids.size(0), length = golden.batch.ids.size(1);
    if (json.contains("logits")) golden.logits = numbers(json.at("logits"), {batch, length, -1});
    if (json.contains("text_logits")) golden.text_logits = numbers(json.at("text_logits"), {batch, -1});
    for (const auto& layer : json.value("hidden", nlohmann::json::array())) {
        golden.hidden.push_back(numbers(layer, {batch, length, -1}));
    }
    for (const auto& layer : json.value("attention", nlohmann::json::array())) {
        golden.attention.push_back(numbers(layer, {batch, -1, length, length}));
    }
    return golden;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b, const std::vector<std::int64_t>& lengths) {
    if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
    const at::Tensor difference = (a.to(at::kDouble) - b.to(at::kDouble)).abs();
    double largest = 0;
    for (std::int64_t s = 0; s < a.size(0); ++s) {
        const std::int64_t real = lengths.empty() ? a.size(1) : lengths[static_cast<std::size_t>(s)];
        const double of_sequence = difference.select(0, s).narrow(0, 0, real).max().item<double>();
        if (std::isnan(of_sequence)) return std::numeric_limits<double>::infinity();
        largest = std::max(largest, of_sequence);
    }
    return largest;
}

double largest_value(const at::Tensor& a) {
    return a.abs().max().item<double>();
}

}  // namespace headscope::test
