// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers of 8 and 4 bits with scales: fp8 (blocks, tensors, channels), MXFP8, MXFP4 experts, modelopt's NVFP4.
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/checkpoint/packed/finder.h"
#include "core/checkpoint/packed/scaled_codes.h"

namespace headscope::checkpoint {
namespace {

constexpr DataType kFp8Scales[] = {DataType::f32, DataType::f16, DataType::bf16, DataType::f8_e8m0, DataType::u8};

/// Modules whose weight has a type of 8 bits, or a scale.
std::set<std::string> fp8_modules(const PackedFinder& finder, std::initializer_list<const char*> scales) {
    std::set<std::string> modules;
    for (const char* scale : scales)
        for (std::string& module : finder.modules(scale)) modules.insert(std::move(module));
    for (std::string& module : finder.modules(".weight")) {
        const DataType type = finder.find(module + ".weight")->type;
        if (type == DataType::f8_e4m3 || type == DataType::f8_e5m2 || type == DataType::f8_e4m3fnuz ||
            type == DataType::f8_e5m2fnuz)
            modules.insert(std::move(module));
    }
    return modules;
}

const TensorInfo& require_codes(const PackedFinder& finder, const std::string& module, const std::string& of) {
    const TensorInfo& codes = finder.require(module + ".weight", of);
    require_type(codes, e4m3_type, of);
    require_rank(codes, 2, of);
    return codes;
}

void add_scaled(PackedFinder& finder, const std::string& module, const std::vector<std::int64_t>& shape,
                const ScaledCodes::Layout& layout, std::initializer_list<const TensorInfo*> stored,
                const std::string& format) {
    std::vector<PackedPart> parts;
    for (const TensorInfo* info : stored) parts.push_back(packed_part(*info));
    finder.add(module, module + ".weight", std::make_shared<ScaledCodes>(shape, layout, std::move(parts)), format);
}

}  // namespace

void find_fp8(PackedFinder& finder, const JsonView& settings) {
    std::vector<std::int64_t> block;
    if (const auto size = settings.find("weight_block_size")) {
        block = size->integers({1, 1 << 30});
        if (block.size() != 2) size->refuse(ErrorCode::format, "expected two sizes");
    }
    const bool exponents = require_word(settings, "scale_fmt", "", {"", "ue8m0", "float"}) == "ue8m0";
    require_word(settings, "fmt", "e4m3", {"e4m3", "float8_e4m3fn"});
    finder.exclude(settings, {"modules_to_not_convert", "ignored_layers"});
    finder.ignore({".input_scale", ".activation_scale", ".k_scale", ".v_scale"});
    const bool microscaling = block == std::vector<std::int64_t>{1, 32};
    const std::string of = "fp8";
    for (const std::string& module : fp8_modules(finder, {".weight_scale", ".weight_scale_inv"})) {
        const TensorInfo& codes = require_codes(finder, module, of);
        const TensorInfo* inverse = finder.find(module + ".weight_scale_inv");
        const TensorInfo* direct = finder.find(module + ".weight_scale");
        if (inverse != nullptr && direct != nullptr)
            refuse_tensor(*inverse, ErrorCode::mismatch, "expected one scale (fp8)", "found weight_scale as well");
        const char* wanted = direct != nullptr || block.empty() ? ".weight_scale" : ".weight_scale_inv";
        const TensorInfo& scale = inverse != nullptr ? *inverse : finder.require(module + wanted, of);
        require_type(scale, kFp8Scales, of);
        const std::int64_t out = codes.shape[0], in = codes.shape[1];
        ScaledCodes::Layout layout;
        layout.scales = scale.type == DataType::u8 ? DataType::f8_e8m0 : scale.type;
        std::string format;
        if (!block.empty()) {
            require_shape(scale, {blocks_of(out, block[0]), blocks_of(in, block[1])},
                          "fp8 in blocks of " + shape_text(block));
            layout.block_rows = block[0];
            layout.block_columns = block[1];
            format = microscaling && layout.scales == DataType::f8_e8m0 ? "MXFP8" : "fp8 block";
        } else if (is_one_number(scale)) {
            layout.block_rows = out;
            layout.block_columns = in;
            format = "fp8 tensor";
        } else {
            if (scale.shape != std::vector<std::int64_t>{out}) require_shape(scale, {out, 1}, "fp8 without blocks");
            layout.block_columns = in;
            format = "fp8 channel";
        }
        if (layout.scales == DataType::f8_e8m0 && !exponents && !microscaling) {
            refuse_tensor(scale, ErrorCode::mismatch, "expected scales of a floating-point type, or scale_fmt ue8m0",
                          "found " + std::string(name(scale.type)));
        }
        add_scaled(finder, module, codes.shape, layout, {&codes, &scale}, format);
    }
}

void find_fbgemm_fp8(PackedFinder& finder, const JsonView& settings) {
    const std::string of = "fp8 channel";
    finder.exclude(settings, {"modules_to_not_convert"});
    finder.ignore({".input_scale_ub"});
    for (const std::string& module : fp8_modules(finder, {".weight_scale"})) {
        const TensorInfo& codes = require_codes(finder, module, of);
        const TensorInfo& scale = finder.require(module + ".weight_scale", of);
        require_type(scale, scale_types, of);
        if (scale.shape != std::vector<std::int64_t>{codes.shape[0]}) require_shape(scale, {codes.shape[0], 1}, of);
        ScaledCodes::Layout layout;
        layout.scales = scale.type;
        layout.block_columns = codes.shape[1];
        add_scaled(finder, module, codes.shape, layout, {&codes, &scale}, of);
    }
}

void find_mxfp4(PackedFinder& finder, const JsonView* settings) {
    const std::string of = "MXFP4";
    if (settings != nullptr) finder.exclude(*settings, {"modules_to_not_convert"});
    for (const std::string& name : finder.modules("_blocks")) {
        const TensorInfo& blocks = finder.require(name + "_blocks", of);
        const TensorInfo* scales = finder.find(name + "_scales");
        if (scales == nullptr && blocks.type != DataType::u8) continue;  // a plain tensor of that name
        require_type(blocks, u8_type, of);
        require_rank(blocks, 4, of);
        const std::vector<std::int64_t> shape{blocks.shape[0], blocks.shape[1], blocks.shape[2]};
        require_shape(blocks, {shape[0], shape[1], shape[2], 16}, of);
        finder.require(name + "_scales", of, u8_type, shape);
        ScaledCodes::Layout layout;
        layout.codes = CodeType::e2m1;
        layout.scales = DataType::f8_e8m0;
        layout.block_columns = 32;
        // Fits: the blocks have half as many bytes.
        finder.add(name, name,
                   std::make_shared<ScaledCodes>(std::vector<std::int64_t>{shape[0], shape[1], shape[2] * 32}, layout,
                                                 std::vector<PackedPart>{packed_part(blocks), packed_part(*scales)}),
                   of);
    }
    if (settings == nullptr) return;
    for (const std::string& name : finder.modules("_scales")) {
        const TensorInfo& scales = finder.require(name + "_scales", of);
        if (scales.type == DataType::u8) finder.require(name + "_blocks", of);
    }
}

void find_modelopt(PackedFinder& finder, const JsonView& settings) {
    if (settings.at("quant_algo").string() != "NVFP4")
        settings.at("quant_algo").refuse(ErrorCode::unsupported, "expected \"NVFP4\"");
    if (settings.integer_or("group_size", 16) != 16)
        settings.at("group_size").refuse(ErrorCode::unsupported, "expected 16");
    finder.exclude(settings, {"ignore", "exclude_modules"});
    finder.ignore({".input_scale", ".k_scale", ".v_scale"});
    const std::string of = "NVFP4";
    for (const std::string& module : finder.modules(".weight_scale_2")) {
        const TensorInfo& codes = finder.require(module + ".weight", of);
        require_type(codes, u8_type, of);
        require_rank(codes, 2, of);
        const TensorInfo& scale = finder.require(module + ".weight_scale", of);
        require_type(scale, e4m3_type, of);
        if (codes.shape[1] % 8 != 0) {
            refuse_tensor(codes, ErrorCode::mismatch, "expected rows of whole groups of 8 bytes (NVFP4)",
                          "found shape " + shape_text(codes.shape));
        }
        require_shape(scale, {codes.shape[0], codes.shape[1] / 8}, of);
        const TensorInfo& global = finder.require(module + ".weight_scale_2", of);
        require_type(global, f32_type, of);
        if (!is_one_number(global)) require_shape(global, {1}, of);
        ScaledCodes::Layout layout;
        layout.codes = CodeType::e2m1;
        layout.scales = DataType::f8_e4m3;
        layout.block_columns = 16;
        layout.factor = ScaledCodes::Factor::multiply;
        add_scaled(finder, module, {codes.shape[0], codes.shape[1] * 2}, layout, {&codes, &scale, &global}, of);
    }
}

}  // namespace headscope::checkpoint
