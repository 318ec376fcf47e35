// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/finder.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/checkpoint/data_type.h"
#include "core/checkpoint/packed/part_checks.h"

namespace headscope::checkpoint {
namespace {

constexpr std::string_view kPartEndings[] = {".qweight",
                                             ".qzeros",
                                             ".g_idx",
                                             ".scales",
                                             ".absmax",
                                             ".quant_map",
                                             ".nested_absmax",
                                             ".nested_quant_map",
                                             ".SCB",
                                             ".weight_format",
                                             ".weight_packed",
                                             ".weight_scale",
                                             ".weight_scale_2",
                                             ".weight_scale_inv",
                                             ".weight_global_scale",
                                             ".weight_shape",
                                             ".weight_zero_point",
                                             ".weight_g_idx",
                                             ".W_q",
                                             ".qbiases",
                                             ".pre_quant_scale"};

bool is_below_a_byte_or_float8(DataType type) {
    switch (type) {
        case DataType::f4:
        case DataType::f6_e2m3:
        case DataType::f6_e3m2:
        case DataType::f8_e5m2:
        case DataType::f8_e4m3:
        case DataType::f8_e8m0:
        case DataType::f8_e4m3fnuz:
        case DataType::f8_e5m2fnuz:
            return true;
        default:
            return false;
    }
}

bool looks_packed(const TensorInfo& info) {
    for (const std::string_view ending : kPartEndings)
        if (info.name.ends_with(ending)) return true;
    if (info.name.find(".quant_state.bitsandbytes__") != std::string::npos) return true;
    if (is_below_a_byte_or_float8(info.type)) return true;
    return info.name.ends_with(".weight") && (info.type == DataType::i8 || info.type == DataType::u8 ||
                                              info.type == DataType::i32 || info.type == DataType::u32);
}

std::string types_text(std::span<const DataType> types) {
    std::string text;
    for (std::size_t i = 0; i < types.size(); ++i)
        text += (i == 0 ? "" : i + 1 == types.size() ? " or " : ", ") + std::string(name(types[i]));
    return text;
}

}  // namespace

void refuse_tensor(const TensorInfo& info, ErrorCode code, const std::string& expected, const std::string& found) {
    throw Error(code, packed_place(info.name), expected, found);
}

void refuse_contradiction(const std::string& where, const std::string& expected, const std::string& found) {
    throw Error(ErrorCode::mismatch, where, expected, found);
}

PackedPart packed_part(const TensorInfo& info) {
    return {info.name, info.shape, info.bytes};
}

void require_type(const TensorInfo& info, std::span<const DataType> types, const std::string& of) {
    if (std::find(types.begin(), types.end(), info.type) == types.end()) {
        refuse_tensor(info, ErrorCode::mismatch, "expected " + types_text(types) + " (" + of + ")",
                      "found " + std::string(name(info.type)));
    }
    std::int64_t elements = 0;
    const auto bits = checked_bits(info.shape, info.type, elements);
    if (!bits || *bits / 8 != info.bytes || *bits % 8 != 0) {
        refuse_tensor(info, ErrorCode::format, "expected the bytes of shape " + shape_text(info.shape),
                      "found " + std::to_string(info.bytes));
    }
    if (!info.strides.empty()) {
        refuse_tensor(info, ErrorCode::unsupported, "expected a packed tensor stored in order", "found a view of one");
    }
}

void require_shape(const TensorInfo& info, const std::vector<std::int64_t>& shape, const std::string& of) {
    if (info.shape == shape) return;
    refuse_tensor(info, ErrorCode::mismatch, "expected shape " + shape_text(shape) + " (" + of + ")",
                  "found " + shape_text(info.shape));
}

void require_rank(const TensorInfo& info, std::size_t rank, const std::string& of) {
    const bool empty = std::any_of(info.shape.begin(), info.shape.end(), [](std::int64_t size) { return size < 1; });
    if (info.shape.size() == rank && !empty) return;
    refuse_tensor(info, ErrorCode::mismatch, "expected " + std::to_string(rank) + " dimensions (" + of + ")",
                  "found shape " + shape_text(info.shape));
}

bool is_one_number(const TensorInfo& info) {
    return info.shape.empty() || info.shape == std::vector<std::int64_t>{1};
}

std::int64_t blocks_of(std::int64_t size, std::int64_t block) {
    return (size - 1) / block + 1;
}

std::optional<std::int64_t> elements_of(const std::vector<std::int64_t>& shape) {
    std::int64_t product = 1;
    for (const std::int64_t size : shape)
        if (size < 1 || __builtin_mul_overflow(product, size, &product)) return std::nullopt;
    return product;
}

std::string require_word(const JsonView& settings, std::string_view key, const std::string& fallback,
                         std::initializer_list<std::string_view> values) {
    const auto value = settings.find(key);
    const std::string word = value ? value->string() : fallback;
    if (std::find(values.begin(), values.end(), word) != values.end()) return word;
    std::string known;
    for (const std::string_view one : values)
        known += (known.empty() ? "" : ", ") + std::string("\"") + std::string(one) + '"';
    settings.at(key).refuse(ErrorCode::unsupported, "expected " + known);
}

void PackedFinder::exclude(const JsonView& settings, std::initializer_list<const char*> keys) {
    for (const char* key : keys)
        if (const auto list = settings.find(key)) excluded_.emplace_back(list->strings(), list->where());
}

std::vector<std::string> PackedFinder::modules(std::string_view ending) const {
    std::vector<std::string> names;
    for (const auto& [name, info] : stored_)
        if (name.ends_with(ending)) names.push_back(name.substr(0, name.size() - ending.size()));
    return names;
}

const TensorInfo* PackedFinder::find(const std::string& name) const {
    const auto found = stored_.find(name);
    return found == stored_.end() ? nullptr : &found->second;
}

const TensorInfo& PackedFinder::require(const std::string& name, const std::string& of) const {
    if (const TensorInfo* info = find(name)) return *info;
    throw Error(ErrorCode::mismatch, packed_place(name), "expected this tensor (" + of + ")", "found none");
}

const TensorInfo& PackedFinder::require(const std::string& name, const std::string& of, std::span<const DataType> types,
                                        const std::vector<std::int64_t>& shape) const {
    const TensorInfo& info = require(name, of);
    require_type(info, types, of);
    require_shape(info, shape, of);
    return info;
}

std::vector<std::byte> PackedFinder::read(const TensorInfo& info, std::uint64_t most) const {
    if (info.bytes > most) {
        refuse_tensor(info, ErrorCode::limit, "expected at most " + std::to_string(most) + " bytes",
                      "found " + std::to_string(info.bytes));
    }
    std::vector<std::byte> bytes = read_(info.name);
    if (bytes.size() != info.bytes) {
        refuse_tensor(info, ErrorCode::mismatch, "expected " + std::to_string(info.bytes) + " bytes",
                      "found " + std::to_string(bytes.size()));
    }
    return bytes;
}

void PackedFinder::add(const std::string& module, const std::string& logical,
                       std::shared_ptr<const PackedTensor> tensor, const std::string& format) {
    for (const ModuleList& list : excluded_) {
        if (const std::string_view entry = list.covering(module, steps_); !entry.empty()) {
            throw Error(ErrorCode::mismatch, packed_place(tensor->parts()[0].tensor),
                        "expected plain weights: the configuration excludes \"" + escaped(entry, 60) + '"',
                        "found packed ones");
        }
    }
    bool own_name = false;
    for (const PackedPart& part : tensor->parts()) {
        own_name = own_name || part.tensor == logical;
        bytes_[format] += part.bytes;
        consume(part.tensor);
    }
    if ((!own_name && stored_.count(logical) != 0) || found_.tensors.count(logical) != 0) {
        throw Error(ErrorCode::mismatch, packed_place(tensor->parts()[0].tensor),
                    "expected one stored form of \"" + escaped(logical) + '"', "found two");
    }
    found_.tensors.emplace(logical, std::move(tensor));
}

void PackedFinder::ignore(std::initializer_list<std::string_view> endings) {
    for (const auto& [name, info] : stored_) {
        for (const std::string_view ending : endings)
            if (name.ends_with(ending)) consume(name);
    }
}

PackedWeights PackedFinder::finish(const std::string& method) {
    for (const auto& [name, info] : stored_) {
        if (consumed(name) || !looks_packed(info)) continue;
        refuse_tensor(info, ErrorCode::mismatch, "expected a plain tensor, or one with all parts of " + method,
                      "found " + std::string(checkpoint::name(info.type)) + " " + shape_text(info.shape));
    }
    if (found_.format.empty()) {
        const auto most = std::max_element(bytes_.begin(), bytes_.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
        if (most != bytes_.end()) found_.format = most->first;
    }
    return std::move(found_);
}

}  // namespace headscope::checkpoint
