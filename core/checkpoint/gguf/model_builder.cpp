// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf/model_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/gguf/block_tensor.h"
#include "core/checkpoint/packed/packed_source.h"

namespace headscope::checkpoint::gguf {
namespace {

constexpr std::int64_t kMostBuilderLayers = 4096;

/// Keys that say nothing at this value.
struct NeutralKey {
    const char* name;
    double value;
};
constexpr std::array<NeutralKey, 25> kNeutralKeys = {{
    {"expert_count", 0},
    {"expert_used_count", 0},
    {"expert_shared_count", 0},
    {"expert_group_count", 0},
    {"expert_group_count", 1},
    {"expert_group_used_count", 0},
    {"expert_group_used_count", 1},
    {"expert_weights_scale", 0},
    {"expert_weights_scale", 1},
    {"expert_gating_func", 1},
    {"leading_dense_block_count", 0},
    {"nextn_predict_layers", 0},
    {"interleave_moe_layer_step", 1},
    {"logit_scale", 1},
    {"residual_scale", 1},
    {"embedding_scale", 1},
    {"attn_logit_softcapping", 0},
    {"final_logit_softcapping", 0},
    {"attention.causal", 1},
    {"attention.clamp_kqv", 0},
    {"attention.max_alibi_bias", 0},
    {"attention.sliding_window", 0},
    {"attention.scale", 0},
    {"rope.scaling.attn_factor", 1},
    {"rope.scaling.yarn_log_multiplier", 0},
}};
/// Keys that change no hidden state and no logit.
constexpr std::array<const char*, 4> kHarmlessKeys = {"pooling_type", "rope.scaling.finetuned", "context_length",
                                                      "vocab_size"};

double as_number(const Value& value) {
    if (const auto* flag = std::get_if<bool>(&value.value)) return *flag ? 1 : 0;
    if (const auto* real = std::get_if<double>(&value.value)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(&value.value)) return static_cast<double>(*whole);
    if (const auto* more = std::get_if<std::uint64_t>(&value.value)) return static_cast<double>(*more);
    return std::nan("");
}

/// A stored tensor as bytes of its file.
TensorInfo bytes_of(const Tensor& stored) {
    TensorInfo bytes;
    bytes.name = stored.name;
    bytes.type = DataType::u8;
    bytes.elements = static_cast<std::int64_t>(stored.bytes);
    bytes.shape = {bytes.elements};
    bytes.file = stored.file;
    bytes.begin = stored.begin;
    bytes.bytes = stored.bytes;
    return bytes;
}

}  // namespace

std::string block(std::int64_t layer) {
    return "blk." + std::to_string(layer) + ".";
}

ModelBuilder::ModelBuilder(GgufModel& model, std::string architecture)
    : model_(model),
      architecture_(std::move(architecture)),
      keys_(model.metadata),
      place_(shown(model.files.front().path())) {
    layers_ = keys_.integer(key("block_count"), 1, kMostBuilderLayers);
    if (static_cast<std::size_t>(layers_) > model.stored.size()) {
        keys_.refuse(ErrorCode::mismatch, key("block_count"),
                     "expected no more layers than the file has tensors (" + std::to_string(model.stored.size()) + ")");
    }
}

std::int64_t ModelBuilder::size(const std::string& name) {
    return keys_.integer(key(name), 1, kLargestSize);
}

std::int64_t ModelBuilder::size(const std::string& name, std::int64_t otherwise) {
    const std::int64_t found = keys_.integer_or(key(name), 0, 0, kLargestSize);
    return found == 0 ? otherwise : found;
}

double ModelBuilder::number(const std::string& name, double otherwise) {
    return keys_.number_or(key(name), otherwise);
}

bool ModelBuilder::flag(const std::string& name, bool otherwise) {
    return keys_.boolean_or(key(name), otherwise);
}

std::string ModelBuilder::text(const std::string& name, const std::string& otherwise) {
    return keys_.text_or(key(name), otherwise);
}

std::vector<std::int64_t> ModelBuilder::each_layer(const std::string& name, std::int64_t lowest) {
    return keys_.integers(key(name), layers_, lowest, kLargestSize);
}

const Tensor* ModelBuilder::find(const std::string& stored) const {
    const auto found = model_.stored.find(stored);
    return found == model_.stored.end() ? nullptr : &found->second;
}

bool ModelBuilder::has_in_layers(const std::string& stored) const {
    for (std::int64_t layer = 0; layer < layers_; ++layer)
        if (has_tensor(block(layer) + stored)) return true;
    return false;
}

PackedPointer ModelBuilder::take(const std::string& stored) {
    const Tensor* tensor = find(stored);
    if (tensor == nullptr) refuse_tensor(stored, "expected this tensor", "found none");
    taken_.insert(stored);
    return block_tensor(*tensor, shown(model_.files[tensor->file].path()));
}

std::vector<float> ModelBuilder::read_numbers(const std::string& stored) {
    constexpr std::int64_t kMost = 65'536;
    const PackedPointer packed = take(stored);
    const Tensor& tensor = *find(stored);
    const std::int64_t count = packed->rows() * packed->columns();
    if (count > kMost)
        refuse_tensor(stored, "expected at most " + count_text(kMost) + " numbers", "found " + std::to_string(count));
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
    model_.files[tensor.file].read(tensor.begin, bytes.data(), bytes.size());
    std::vector<float> numbers(static_cast<std::size_t>(count));
    packed->check({bytes});
    packed->unpack({bytes}, 0, packed->rows(), numbers.data());
    return numbers;
}

void ModelBuilder::leave_all(const std::string& begin) {
    for (auto at = model_.stored.lower_bound(begin); at != model_.stored.end() && at->first.starts_with(begin); ++at)
        leave(at->first);
}

void ModelBuilder::put(const std::string& name, PackedPointer packed, bool transposed) {
    PackedSource source{std::move(packed), transposed, "", {}};
    std::uint64_t most = 0;
    for (const PackedPart& part : source.tensor->parts()) {
        const Tensor& stored = *find(part.tensor);
        source.parts.push_back(bytes_of(stored));
        if (!source.type.empty() && part.bytes <= most) continue;
        most = part.bytes;
        source.type = gguf::name(stored.type);
    }
    if (!model_.tensors.try_emplace(name, packed_info(name, std::move(source))).second) {
        throw Error(ErrorCode::mismatch, place_, "expected one tensor for \"" + escaped(name) + '"',
                    "found two that become it");
    }
}

PackedPointer ModelBuilder::changed(const std::string& stored, PackedPointer packed, const Change& change) const {
    if (!change) return packed;
    std::string sizes;
    for (const std::int64_t one : packed->shape()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(one);
    try {
        return change(std::move(packed));
    } catch (const std::invalid_argument& why) {
        refuse_tensor(stored, "expected a shape that the keys of " + architecture_ + " say",
                      "found [" + sizes + "]: " + why.what());
    }
}

PackedPointer ModelBuilder::take_scaled(const std::string& stored) {
    constexpr std::string_view kEnd = ".weight";
    PackedPointer packed = take(stored);
    const std::string stem = stored.substr(0, stored.size() - kEnd.size());
    if (has_tensor(stem + ".input_scale")) leave(stem + ".input_scale");
    if (!has_tensor(stem + ".scale")) return packed;
    const PackedPointer factors = take(stem + ".scale");
    return changed(stem + ".scale", factors, [&](const PackedPointer& found) { return with_factors(packed, found); });
}

void ModelBuilder::module(const std::string& stored, const std::string& name, const Change& change, bool transposed) {
    const std::string weight = stored + ".weight", bias = stored + ".bias";
    if (has_tensor(weight)) put(name + ".weight", changed(weight, take_scaled(weight), change), transposed);
    if (has_tensor(bias)) put(name + ".bias", changed(bias, take(bias), change));
}

void ModelBuilder::tensor(const std::string& stored, const std::string& name, const Change& change) {
    if (has_tensor(stored)) put(name, changed(stored, take(stored), change));
}

void ModelBuilder::refuse_tensor(const std::string& stored, const std::string& expected,
                                 const std::string& found) const {
    throw Error(ErrorCode::mismatch, place_ + ", tensor \"" + escaped(stored) + '"', expected, found);
}

void ModelBuilder::finish() {
    for (const auto& [name, value] : kNeutralKeys) {
        const auto found = model_.metadata.values.find(key(name));
        if (found != model_.metadata.values.end() && as_number(found->second) == value) ignore(name);
    }
    for (const char* name : kHarmlessKeys) ignore(name);
    const std::vector<std::string> unread = keys_.unread(architecture_ + ".");
    if (!unread.empty()) {
        keys_.refuse(ErrorCode::unsupported, unread.front(),
                     "expected a key that is read for " + escaped(architecture_));
    }
    std::vector<std::string> extra;
    for (const auto& [name, tensor] : model_.stored)
        if (taken_.count(name) == 0) extra.push_back(name);
    if (extra.empty()) return;
    throw Error(ErrorCode::unsupported, place_, "expected tensors that are read for " + escaped(architecture_),
                "found " + list_text(extra));
}

PackedPointer minus_one(PackedPointer packed) {
    return with_numbers(std::move(packed), [](float* numbers, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) numbers[i] -= 1.0F;
    });
}

PackedPointer log_of_minus(PackedPointer packed) {
    return with_numbers(std::move(packed), [](float* numbers, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i)
            numbers[i] = static_cast<float>(std::log(-static_cast<double>(numbers[i])));
    });
}

Change pairs_to_halves(std::int64_t heads, std::int64_t head_size) {
    return [heads, size = head_size](const PackedPointer& packed) {
        const std::int64_t rows = packed->shape().empty() ? 0 : packed->shape().front();
        if (rows % heads != 0 || rows / heads != size || size % 2 != 0)
            throw std::invalid_argument("not whole heads of pairs");
        return reordered(packed, [size](std::int64_t row) {
            const std::int64_t place = row % size, half = size / 2;
            return row - place + 2 * (place % half) + place / half;
        });
    };
}

PackedPointer rows_of(const PackedPointer& packed, std::int64_t first, std::int64_t count) {
    std::vector<std::int64_t> shape = packed->shape();
    if (shape.size() != 1) {
        shape.front() = count;
        const std::int64_t inner = packed->rows() / packed->shape().front();
        return with_rows({packed}, shape, [begin = first * inner](std::int64_t row) {
            return SourceRow{0, begin + row};
        });
    }
    std::vector<std::int64_t> columns;
    for (std::int64_t i = 0; i < count; ++i) columns.push_back(first + i);
    return with_columns(packed, std::move(columns));
}

Change to_shape(std::vector<std::int64_t> shape) {
    return [shape = std::move(shape)](const PackedPointer& packed) { return with_shape(packed, shape); };
}

}  // namespace headscope::checkpoint::gguf
