// SPDX-License-Identifier: GPL-3.0-or-later
// MLX's affine quantization (also as transformers' "metal" has it), and HQQ.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/checkpoint/packed/finder.h"
#include "core/checkpoint/packed/scaled_codes.h"
#include "core/checkpoint/packed/slab_groups.h"
#include "core/checkpoint/packed/stream_rows.h"

namespace headscope::checkpoint {
namespace {

struct MlxScheme {
    bool affine = true;
    unsigned bits = 4;
    std::int64_t group_size = 64;
};

/// `settings`: of all modules, or of one. A module's own inherit nothing, as in MLX: absent keys have its defaults.
MlxScheme read_mlx_scheme(const JsonView& settings, bool is_own) {
    MlxScheme scheme;
    scheme.affine = require_word(settings, "mode", "affine", {"affine", "mxfp4"}) == "affine";
    if (!scheme.affine) scheme.group_size = 32;
    if (!is_own || settings.has("bits")) scheme.bits = static_cast<unsigned>(settings.at("bits").integer({1, 32}));
    if (!is_own || settings.has("group_size")) scheme.group_size = settings.at("group_size").integer({1, 1 << 20});
    if (!scheme.affine) {
        if (scheme.bits != 4 || scheme.group_size != 32)
            refuse_contradiction(settings.where(), "expected 4 bits and groups of 32 for mode mxfp4",
                                 "found " + std::to_string(scheme.bits) + " and " + std::to_string(scheme.group_size));
        return scheme;
    }
    if (scheme.bits < 2 || scheme.bits > 8 || scheme.bits == 7)
        settings.at("bits").refuse(ErrorCode::unsupported, "expected 2, 3, 4, 5, 6 or 8 bits");
    if (scheme.group_size != 32 && scheme.group_size != 64 && scheme.group_size != 128)
        settings.at("group_size").refuse(ErrorCode::unsupported, "expected groups of 32, 64 or 128");
    return scheme;
}

void add_mlx(PackedFinder& finder, const std::string& module, const MlxScheme& scheme, const char* biases_name) {
    const std::string of = scheme.affine ? "MLX affine " + std::to_string(scheme.bits) + " bits" : std::string("MXFP4");
    const TensorInfo& codes = finder.require(module + ".weight", of);
    require_type(codes, u32_type, of);
    require_rank(codes, codes.shape.size() == 3 ? 3 : 2, of);
    std::vector<std::int64_t> shape = codes.shape, grouped = codes.shape;
    std::int64_t all_bits = 0;
    const bool whole = !__builtin_mul_overflow(shape.back(), std::int64_t{32}, &all_bits) &&
                       all_bits % scheme.bits == 0 && all_bits / scheme.bits % scheme.group_size == 0;
    if (!whole) {
        refuse_tensor(codes, ErrorCode::mismatch,
                      "expected rows of whole groups of " + std::to_string(scheme.group_size) + " (" + of + ")",
                      "found shape " + shape_text(shape));
    }
    shape.back() = all_bits / scheme.bits;
    grouped.back() = shape.back() / scheme.group_size;
    const TensorInfo& scales =
        finder.require(module + ".scales", of, scheme.affine ? PartTypes(scale_types) : PartTypes(u8_type), grouped);
    std::vector<PackedPart> parts{packed_part(codes), packed_part(scales)};
    std::shared_ptr<const PackedTensor> tensor;
    if (scheme.affine) {
        const TensorInfo& biases = finder.require(module + biases_name, of, scale_types, grouped);
        require_type(biases, std::span(&scales.type, 1), of + ", as its scales");
        parts.push_back(packed_part(biases));
        StreamRows::Layout layout;
        layout.rule = StreamRows::Rule::affine;
        layout.bits = scheme.bits;
        layout.group_size = scheme.group_size;
        layout.groups = grouped.back();
        layout.scales = scales.type;
        tensor = std::make_shared<StreamRows>(shape, layout, std::move(parts));
    } else {
        if (const TensorInfo* biases = finder.find(module + biases_name))
            refuse_tensor(*biases, ErrorCode::mismatch, "expected no biases (mode mxfp4)", "found some");
        ScaledCodes::Layout layout;
        layout.codes = CodeType::e2m1;
        layout.scales = DataType::f8_e8m0;
        layout.block_columns = 32;
        tensor = std::make_shared<ScaledCodes>(shape, layout, std::move(parts));
    }
    finder.add(module, module + ".weight", std::move(tensor), of);
}

/// Scalars and texts of a module of HQQ.
class HqqState {
public:
    HqqState(const PackedFinder& finder, std::string module) : finder_(finder), module_(std::move(module)) {}

    std::int64_t integer(const char* key) const {
        const TensorInfo& info = finder_.require(module_ + key, "HQQ");
        require_type(info, i32_type, "HQQ");
        if (!is_one_number(info)) require_shape(info, {}, "HQQ");
        std::int32_t value = 0;
        const std::vector<std::byte> bytes = finder_.read(info, 4);
        std::memcpy(&value, bytes.data(), 4);
        return value;
    }
    /// A flag; absent: `fallback`.
    bool flag(const char* key, bool fallback) const {
        const TensorInfo* info = finder_.find(module_ + key);
        if (info == nullptr) return fallback;
        require_type(*info, u8_type, "HQQ");
        if (!is_one_number(*info)) require_shape(*info, {}, "HQQ");
        return finder_.read(*info, 1)[0] != std::byte{0};
    }
    std::string text(const char* key) const {
        const TensorInfo& info = finder_.require(module_ + key, "HQQ");
        require_type(info, u8_type, "HQQ");
        const std::vector<std::byte> bytes = finder_.read(info, 64);
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    std::vector<std::int64_t> shape() const {
        const TensorInfo& info = finder_.require(module_ + ".shape", "HQQ", i64_type, {2});
        std::vector<std::int64_t> shape(2);
        const std::vector<std::byte> bytes = finder_.read(info, 16);
        std::memcpy(shape.data(), bytes.data(), 16);
        if (!elements_of(shape))
            refuse_tensor(info, ErrorCode::format, "expected two sizes above 0", "found " + shape_text(shape));
        return shape;
    }

private:
    const PackedFinder& finder_;
    std::string module_;
};

constexpr const char* kHqqScalars[] = {".nbits",
                                       ".group_size",
                                       ".shape",
                                       ".axis",
                                       ".packing",
                                       ".unpack_view_dtype",
                                       ".view_as_float",
                                       ".quant_scale",
                                       ".quant_zero",
                                       ".compute_dtype",
                                       ".offload_meta",
                                       ".encoded_state_dict",
                                       ".stores_quant_config",
                                       ".channel_wise",
                                       ".optimize",
                                       ".round_zero"};

struct HqqPacking {
    std::string_view name;
    unsigned bits, fields;
    bool words;
};
constexpr HqqPacking kHqqPackings[] = {{"8bit_u8", 8, 1, false},
                                       {"4bit_u8", 4, 2, false},
                                       {"3bit_32", 3, 10, true},
                                       {"2bit_u8", 2, 4, false},
                                       {"1bit_u8", 1, 8, false}};

/// The weight settings that the configuration has for a module: common ones, or by the name's end. Null: none.
std::optional<JsonView> hqq_settings(const JsonView& settings, const std::string& module) {
    const auto all = settings.find("quant_config");
    if (!all) return std::nullopt;
    if (all->has("weight_quant_params")) return all->at("weight_quant_params");
    for (const std::string& key : all->keys()) {
        const bool own = module == key || (module.ends_with(key) && module.size() > key.size() &&
                                           module[module.size() - key.size() - 1] == '.');
        if (own && all->at(key).has("weight_quant_params")) return all->at(key).at("weight_quant_params");
    }
    return std::nullopt;
}

void check_hqq_scales(const JsonView& quant_config) {
    for (const char* key : {"scale_quant_params", "zero_quant_params"})
        if (const auto value = quant_config.find(key))
            value->refuse(ErrorCode::unsupported, "expected scales and zero points that are not quantized");
}

void add_hqq(PackedFinder& finder, const JsonView& settings, const std::string& module) {
    const HqqState state(finder, module);
    const TensorInfo& codes = finder.require(module + ".W_q", "HQQ");
    const auto refuse_flag = [&](const char* key, bool value, bool wanted, const char* expected) {
        if (value != wanted)
            refuse_tensor(finder.require(module + key, "HQQ"), ErrorCode::unsupported, expected, "found the opposite");
    };
    refuse_flag(".view_as_float", state.flag(".view_as_float", false), false, "expected 0: codes stored as integers");
    refuse_flag(".quant_scale", state.flag(".quant_scale", false), false, "expected 0: scales that are not quantized");
    refuse_flag(".quant_zero", state.flag(".quant_zero", false), false,
                "expected 0: zero points that are not quantized");
    refuse_flag(".channel_wise", state.flag(".channel_wise", true), true, "expected 1: scales by groups");
    const std::int64_t bits = state.integer(".nbits"), axis = state.integer(".axis");
    const std::string of = "HQQ " + std::to_string(bits) + " bits";
    const std::string packing = state.text(".packing");
    const auto* known = std::find_if(std::begin(kHqqPackings), std::end(kHqqPackings),
                                     [&](const HqqPacking& one) { return one.name == packing; });
    if (known == std::end(kHqqPackings)) {
        refuse_tensor(finder.require(module + ".packing", "HQQ"), ErrorCode::unsupported,
                      "expected 8bit_u8, 4bit_u8, 3bit_32, 2bit_u8 or 1bit_u8",
                      "found \"" + escaped(packing, 40) + '"');
    }
    const bool agrees = known->bits == 8 ? bits == 8 || bits == 6 || bits == 5 : bits == known->bits;
    if (!agrees) {
        refuse_tensor(finder.require(module + ".nbits", "HQQ"), ErrorCode::mismatch,
                      "expected the bits of packing " + packing, "found " + std::to_string(bits));
    }
    if (axis != 0 && axis != 1) {
        refuse_tensor(finder.require(module + ".axis", "HQQ"), ErrorCode::unsupported, "expected 0 or 1",
                      "found " + std::to_string(axis));
    }
    const std::vector<std::int64_t> shape = state.shape();
    const std::int64_t elements = *elements_of(shape);
    // Without groups, the matrix itself.
    const bool by_groups = finder.find(module + ".group_size") != nullptr;
    const std::int64_t group = by_groups ? state.integer(".group_size") : axis == 1 ? shape[1] : shape[0];
    if (group < 1 || elements % group != 0) {
        refuse_tensor(finder.require(module + ".group_size", "HQQ"), ErrorCode::mismatch,
                      "expected a size that divides the weights of " + shape_text(shape),
                      "found " + std::to_string(group));
    }
    if (const auto params = hqq_settings(settings, module)) {
        const auto agree = [&](const char* key, std::int64_t value) {
            if (params->has(key) && params->at(key).integer() != value)
                refuse_contradiction(params->at(key).where(), "expected " + std::to_string(value) + ", as " + module,
                                     "found " + params->at(key).value().dump());
        };
        agree("nbits", bits);
        agree("axis", axis);
        if (by_groups) agree("group_size", group);
    }

    SlabGroups::Layout layout;
    layout.bits = known->bits;
    layout.fields = known->fields;
    layout.words = known->words;
    const std::int64_t rows = axis == 1 ? elements / group : group;
    layout.grouped_columns = elements / rows;
    layout.packed_rows = blocks_of(rows, layout.fields);
    layout.by_column = axis == 0;
    require_type(codes, layout.words ? PartTypes(i32_type) : PartTypes(u8_type), of);
    require_shape(codes, {layout.packed_rows, layout.grouped_columns}, of);
    if (!layout.words && rows % layout.fields != 0) {
        refuse_tensor(codes, ErrorCode::mismatch, "expected whole slabs of rows (" + of + ")",
                      "found " + std::to_string(rows) + " rows");
    }
    const std::vector<std::int64_t> scale_shape =
        axis == 1 ? std::vector<std::int64_t>{rows, 1} : std::vector<std::int64_t>{1, layout.grouped_columns};
    const TensorInfo& scale = finder.require(module + ".scale", of, scale_types, scale_shape);
    const TensorInfo& zero = finder.require(module + ".zero", of, scale_types, scale_shape);
    layout.scales = scale.type;
    layout.zeros = zero.type;
    for (const char* key : kHqqScalars)
        if (finder.find(module + key) != nullptr) finder.consume(module + key);
    finder.add(module, module + ".weight",
               std::make_shared<SlabGroups>(
                   shape, layout, std::vector<PackedPart>{packed_part(codes), packed_part(scale), packed_part(zero)}),
               of);
}

}  // namespace

void find_mlx(PackedFinder& finder, const JsonView& settings) {
    const bool metal = settings.string_or("quant_method", "") == "metal";
    const MlxScheme common = read_mlx_scheme(settings, false);
    finder.exclude(settings, {"modules_to_not_convert"});
    for (const std::string& module : finder.modules(".scales")) {
        MlxScheme scheme = common;
        if (const auto own = settings.find(module)) {
            if (own->value().is_boolean()) {
                if (!own->boolean())
                    refuse_contradiction(own->where(), "expected the settings of packed weights", "found false");
            } else {
                scheme = read_mlx_scheme(own->object(), true);
            }
        }
        add_mlx(finder, module, scheme, metal ? ".qbiases" : ".biases");
    }
}

void find_hqq(PackedFinder& finder, const JsonView& settings) {
    finder.exclude(settings, {"skip_modules", "modules_to_not_convert"});
    if (const auto all = settings.find("quant_config")) {
        check_hqq_scales(*all);
        for (const std::string& key : all->keys())
            if (all->has(key) && all->at(key).is_object()) check_hqq_scales(all->at(key));
    }
    std::set<std::string> modules;
    for (const char* ending : {".W_q", ".packing"})
        for (std::string& module : finder.modules(ending)) modules.insert(std::move(module));
    for (const std::string& module : modules) add_hqq(finder, settings, module);
}

}  // namespace headscope::checkpoint
