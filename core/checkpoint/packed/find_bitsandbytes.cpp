// SPDX-License-Identifier: GPL-3.0-or-later
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/checkpoint/packed/finder.h"
#include "core/checkpoint/packed/flat_blocks.h"
#include "core/checkpoint/packed/part_checks.h"
#include "core/checkpoint/packed/scaled_codes.h"

namespace headscope::checkpoint {
namespace {

/// PartTypes that bnb_4bit_quant_storage may view the nibbles as.
constexpr DataType kStorage[] = {DataType::u8,  DataType::i8,  DataType::f16, DataType::bf16,
                                 DataType::f32, DataType::i16, DataType::i32, DataType::f64};
constexpr std::string_view kState = ".quant_state.bitsandbytes__";
constexpr std::uint64_t kLargestState = 1 << 16;

void add_four_bits(PackedFinder& finder, const JsonView& settings, const std::string& state_name) {
    const std::size_t at = state_name.find(kState);
    const std::string name = state_name.substr(0, at), type = state_name.substr(at + kState.size());
    const std::string of = "bitsandbytes " + type;
    const TensorInfo& state_info = finder.require(state_name, of);
    if (type != "nf4" && type != "fp4")
        refuse_tensor(state_info, ErrorCode::unsupported, "expected nf4 or fp4", "found \"" + escaped(type, 40) + '"');
    require_type(state_info, u8_type, of);
    const std::vector<std::byte> text = finder.read(state_info, kLargestState);
    const nlohmann::json document =
        parse_json({reinterpret_cast<const char*>(text.data()), text.size()}, packed_place(state_name));
    const JsonView state(document, packed_place(state_name));
    if (state.at("quant_type").string() != type) {
        refuse_contradiction(state.at("quant_type").where(), "expected \"" + type + "\", as the tensor's name",
                             "found \"" + escaped(state.at("quant_type").string(), 40) + '"');
    }
    if (const auto wanted = settings.find("bnb_4bit_quant_type"); wanted && wanted->string() != type) {
        refuse_contradiction(wanted->where(), "expected \"" + type + "\", as the weights have",
                             "found \"" + escaped(wanted->string(), 40) + '"');
    }

    FlatBlocks::Layout layout;
    layout.nf4 = type == "nf4";
    const std::vector<std::int64_t> shape = state.at("shape").integers({1});
    const auto elements = elements_of(shape);
    if (shape.size() < 2 || shape.size() > 3 || !elements)
        state.at("shape").refuse(ErrorCode::format, "expected the sizes of a matrix");
    const auto block_size = [&](const char* key) {
        const std::int64_t size = state.at(key).integer({32, 4096});
        if (!std::has_single_bit(static_cast<std::uint64_t>(size)))
            state.at(key).refuse(ErrorCode::unsupported, "expected a power of two");
        return size;
    };
    layout.block = block_size("blocksize");
    const std::int64_t blocks = blocks_of(*elements, layout.block);

    const TensorInfo& codes = finder.require(name, of);
    require_type(codes, kStorage, of);
    const std::int64_t bytes = blocks_of(*elements, 2);
    if (codes.bytes != static_cast<std::uint64_t>(bytes)) {
        refuse_tensor(codes, ErrorCode::mismatch,
                      "expected " + std::to_string(bytes) + " bytes for shape " + shape_text(shape) + " (" + of + ")",
                      "found " + std::to_string(codes.bytes));
    }
    const bool nested = state.has("nested_blocksize") || finder.find(name + ".nested_absmax") != nullptr;
    if (const auto twice = settings.find("bnb_4bit_use_double_quant"); twice && twice->boolean() != nested) {
        refuse_contradiction(twice->where(),
                             nested ? "expected true: the weights are quantized twice"
                                    : "expected false: the weights are quantized once",
                             nested ? "found false" : "found true");
    }
    const TensorInfo& map = finder.require(name + ".quant_map", of, f32_type, {16});
    const TensorInfo& absmax =
        finder.require(name + ".absmax", of, nested ? PartTypes(u8_type) : PartTypes(f32_type), {blocks});
    std::vector<PackedPart> parts{packed_part(codes), packed_part(absmax), packed_part(map)};
    if (nested) {
        layout.nested_block = block_size("nested_blocksize");
        require_word(state, "nested_dtype", "float32", {"float32"});
        const auto offset = static_cast<float>(state.at("nested_offset").number());
        if (!std::isfinite(offset)) state.at("nested_offset").refuse(ErrorCode::format, "expected a finite number");
        layout.nested_offset = offset;
        parts.push_back(packed_part(
            finder.require(name + ".nested_absmax", of, f32_type, {blocks_of(blocks, layout.nested_block)})));
        parts.push_back(packed_part(finder.require(name + ".nested_quant_map", of, f32_type, {256})));
    }
    finder.consume(state_name);
    const std::string module = name.ends_with(".weight") ? name.substr(0, name.size() - 7) : name;
    finder.add(module, name, std::make_shared<FlatBlocks>(shape, layout, std::move(parts)), of);
}

void add_eight_bits(PackedFinder& finder, const std::string& module) {
    const std::string of = "bitsandbytes int8";
    const TensorInfo& codes = finder.require(module + ".weight", of);
    require_type(codes, i8_type, of);
    require_rank(codes, 2, of);
    const TensorInfo& scales = finder.require(module + ".SCB", of, f32_type, {codes.shape[0]});
    if (const TensorInfo* order = finder.find(module + ".weight_format")) {
        require_type(*order, u8_type, of);
        if (order->bytes != 1 || finder.read(*order, 1)[0] != std::byte{0})
            refuse_tensor(*order, ErrorCode::unsupported, "expected 0: weights in rows", "found another order");
        finder.consume(order->name);
    }
    ScaledCodes::Layout layout;
    layout.codes = CodeType::int8;
    layout.block_columns = codes.shape[1];
    layout.factor = ScaledCodes::Factor::divide_by_127;
    finder.add(module, module + ".weight",
               std::make_shared<ScaledCodes>(codes.shape, layout,
                                             std::vector<PackedPart>{packed_part(codes), packed_part(scales)}),
               of);
}

}  // namespace

void find_bitsandbytes(PackedFinder& finder, const JsonView& settings) {
    const auto set = [&](const char* key, const char* internal) {
        const bool plain = settings.boolean_or(key, false), other = settings.boolean_or(internal, plain);
        if (settings.has(key) && plain != other)
            refuse_contradiction(settings.at(internal).where(), std::string("expected the value of ") + key,
                                 "found the opposite");
        return plain || other;
    };
    const bool four = set("load_in_4bit", "_load_in_4bit"), eight = set("load_in_8bit", "_load_in_8bit");
    if (four == eight) {
        refuse_contradiction(settings.where(), "expected one of load_in_4bit and load_in_8bit",
                             four ? "found both" : "found neither");
    }
    finder.exclude(settings, {"llm_int8_skip_modules", "modules_to_not_convert"});
    if (eight) {
        for (const std::string& module : finder.modules(".SCB")) add_eight_bits(finder, module);
        return;
    }
    for (const auto& [name, info] : finder.stored())
        if (name.find(kState) != std::string::npos) add_four_bits(finder, settings, name);
}

}  // namespace headscope::checkpoint
