// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <set>

#include "core/base/error.h"
#include "core/checkpoint/data_type.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/checkpoint/packed/packed_files.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;

namespace {

/// Stored tensors whose absence is legal: flags with a default, scales of inputs, g_idx of files that are in order.
bool is_optional(const std::string& name) {
    for (const char* ending :
         {".input_scale", ".input_scale_ub", ".input_global_scale", ".weight_format", ".view_as_float", ".quant_scale",
          ".quant_zero", ".channel_wise", ".optimize", ".round_zero", ".offload_meta", ".encoded_state_dict",
          ".stores_quant_config", ".bias", "norm.weight", "m.channel.weight_zero_point", "m.b8.group_size"})
        if (name.ends_with(ending)) return true;
    return false;
}

/// Changes that the model must refuse: by find() or by check().
bool is_refused(const PackedModel& model) {
    try {
        const auto found = model.find();
        if (!found) return false;
        for (const auto& [name, tensor] : found->tensors) {
            model.check(*tensor);
            model.unpack(*tensor);
        }
    } catch (const Error& error) {
        CHECK(error.code() != ErrorCode::internal);
        CHECK(std::string(error.what()).find('\n') == std::string::npos);
        return true;
    }
    return false;
}

template <class Change>
void for_each_part(Change&& change) {
    const nlohmann::json all = packed_expectations();
    for (const auto& [name, expected] : all.items()) {
        const PackedModel model = read_packed_model(name);
        for (const auto& [tensor, info] : model.stored) {
            if (is_optional(tensor)) continue;
            INFO(name << ' ' << tensor);
            PackedModel changed = model;
            change(changed, tensor, info);
            CHECK(is_refused(changed));
        }
    }
}

void set_bytes(std::vector<std::byte>& bytes, std::size_t at, std::initializer_list<unsigned> values) {
    for (const unsigned value : values) bytes.at(at++) = static_cast<std::byte>(value);
}

/// The first check that throws, as text.
std::string refusal(const PackedModel& model) {
    try {
        const auto found = model.find();
        if (!found) return "not quantized";
        for (const auto& [name, tensor] : found->tensors) model.check(*tensor);
    } catch (const Error& error) {
        return error.what();
    }
    return "none";
}

}  // namespace

TEST_CASE("A packed model without one of its parts is refused", "[checkpoint][packed][hostile]") {
    for_each_part([](PackedModel& model, const std::string& tensor, const TensorInfo& info) {
        // Experts without both parts of a matrix are a model without that matrix.
        model.erase(tensor);
        static_cast<void>(info);
    });
}

TEST_CASE("Parts of another shape are refused", "[checkpoint][packed][hostile]") {
    for (const int change : {1, -1, 0, 2}) {
        for_each_part([&](PackedModel& model, const std::string& tensor, const TensorInfo& info) {
            std::vector<std::int64_t> shape = info.shape;
            // Nothing else states the columns of codes of 8 bits, and other releases pack 3 and 5 bits in more words.
            const bool free = info.type == DataType::i8 || info.type == DataType::f8_e4m3 ||
                              tensor.ends_with("b3.weight_packed") || tensor.ends_with("b5.weight_packed");
            // Rows of words: a group that is not whole may have more.
            const bool rows = change == 2 && tensor.ends_with(".qweight");
            if ((free && change != 0) || rows) return model.erase(tensor);
            if (change == 0 && shape.size() > 1)
                shape.insert(shape.begin(), 2);
            else if (change == 2 && !shape.empty())
                shape[0] += 1;
            else if (shape.empty())
                shape = {2, 2};
            else
                shape.back() += change == 0 ? 3 : change;
            model.put(tensor, info.type, shape, model.bytes[tensor]);
        });
    }
}

TEST_CASE("Parts of another type are refused", "[checkpoint][packed][hostile]") {
    for (const DataType type : {DataType::f64, DataType::i16, DataType::boolean, DataType::f8_e5m2}) {
        for_each_part([&](PackedModel& model, const std::string& tensor, const TensorInfo& info) {
            // The nibbles of bitsandbytes may be viewed as any type.
            if (tensor == "m.fc1.weight" && model.stored.count("m.fc1.SCB") == 0) return model.erase(tensor);
            model.put(tensor, type, info.shape, model.bytes[tensor]);
        });
    }
}

TEST_CASE("Parts with other bytes than their shape has are refused", "[checkpoint][packed][hostile]") {
    for_each_part([](PackedModel& model, const std::string& tensor, const TensorInfo&) {
        model.stored[tensor].bytes += 1;
        model.bytes[tensor].push_back(std::byte{0});
    });
    for_each_part([](PackedModel& model, const std::string& tensor, const TensorInfo& info) {
        model.stored[tensor].strides.assign(info.shape.size() + 1, 1);
        // Shapes, flags and texts are read whole by the checkpoint, whatever their strides.
        if (info.bytes < 64) model.erase(tensor);
    });
}

TEST_CASE("Scales that are NaN or infinite are refused", "[checkpoint][packed][hostile]") {
    const std::set<std::string> scales{".scales",         ".weight_scale",  ".weight_scale_inv", ".weight_global_scale",
                                       ".absmax",         ".nested_absmax", ".nested_quant_map", ".SCB",
                                       ".scale",          ".zero",          ".biases",           ".qbiases",
                                       ".weight_scale_2", "_scales",        ".quant_map"};
    const nlohmann::json all = packed_expectations();
    int changed_parts = 0;
    for (const auto& [name, expected] : all.items()) {
        const PackedModel model = read_packed_model(name);
        for (const auto& [tensor, info] : model.stored) {
            const bool is_scale = std::any_of(scales.begin(), scales.end(),
                                              [&](const std::string& ending) { return tensor.ends_with(ending); });
            if (!is_scale || (tensor.ends_with(".absmax") && info.type == DataType::u8)) continue;
            INFO(name << ' ' << tensor);
            PackedModel changed = model;
            auto& bytes = changed.bytes[tensor];
            const std::size_t size = static_cast<std::size_t>(bits(info.type)) / 8, last = bytes.size() - size;
            if (info.type == DataType::f32) set_bytes(bytes, last, {0, 0, 0x80, 0x7F});
            if (info.type == DataType::f16) set_bytes(bytes, last, {0, 0xFC});
            if (info.type == DataType::bf16) set_bytes(bytes, last, {0xC0, 0x7F});
            if (info.type == DataType::f8_e4m3) set_bytes(bytes, last, {0xFF});
            if (info.type == DataType::u8 || info.type == DataType::f8_e8m0) set_bytes(bytes, last, {0xFF});
            const std::string text = refusal(changed);
            CHECK(text.find("tensor \"" + tensor + '"') != std::string::npos);
            ++changed_parts;
        }
    }
    CHECK(changed_parts > 60);
}

TEST_CASE("Indices past the groups are refused, also where nothing checked them", "[checkpoint][packed][hostile]") {
    for (const char* name : {"gptq_act_order", "ct_pack_order"}) {
        const bool gptq = std::string(name) == "gptq_act_order";
        const std::string index = gptq ? "model.layers.0.mlp.down_proj.g_idx" : "m.q.weight_g_idx";
        for (const unsigned low : {3U, 0xFFU}) {
            PackedModel model = read_packed_model(name);
            const unsigned high = low == 3 ? 0 : 0xFF;
            set_bytes(model.bytes[index], 8, {low, high, high, high});
            CHECK(refusal(model).find(low == 3 ? "found 3 at element 2" : "found -1 at element 2") !=
                  std::string::npos);
            const auto found = model.find();
            CHECK_THROWS_AS(
                model.unpack(*found->tensors.at(gptq ? "model.layers.0.mlp.down_proj.weight" : "m.q.weight")), Error);
        }
    }
}

TEST_CASE("A divisor of 0 is refused, and a scale of 0 is not", "[checkpoint][packed][hostile]") {
    PackedModel model = read_packed_model("ct_nvfp4");
    model.bytes["m.fc.weight_global_scale"].assign(4, std::byte{0});
    CHECK(refusal(model).find("expected a divisor other than 0") != std::string::npos);
    for (const char* name : {"modelopt_nvfp4", "fp8_tensor"}) {
        model = read_packed_model(name);
        const std::string scale = std::string(name) == "fp8_tensor" ? "m.fc.weight_scale" : "m.fc.weight_scale_2";
        std::fill(model.bytes[scale].begin(), model.bytes[scale].end(), std::byte{0});
        CHECK(refusal(model) == "none");
        const auto found = model.find();
        for (const float value : model.unpack(*found->tensors.begin()->second)) CHECK(value == 0.0F);
    }
}

TEST_CASE("Declared sizes that the bytes do not justify are refused", "[checkpoint][packed][hostile]") {
    const auto with_shape = [](const char* name, const char* tensor, std::int64_t rows, std::int64_t columns) {
        PackedModel model = read_packed_model(name);
        std::memcpy(model.bytes[tensor].data(), &rows, 8);
        std::memcpy(model.bytes[tensor].data() + 8, &columns, 8);
        return refusal(model);
    };
    for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{0, 4},
                                        {-1, 4},
                                        {INT64_MAX, INT64_MAX},
                                        {24, INT64_MAX / 24},
                                        {INT64_MAX / 72, 72},
                                        {25, 72},
                                        {24, 73},
                                        {24, 0}}) {
        INFO(rows << ' ' << columns);
        CHECK(with_shape("ct_pack", "m.q_proj.weight_shape", rows, columns) != "none");
        CHECK(with_shape("hqq_4", "m.q_proj.shape", rows, columns) != "none");
    }
    const auto with_state = [](const std::string& from, const std::string& to) {
        PackedModel model = read_packed_model("bnb_nf4_double");
        const std::string tensor = "m.fc1.weight.quant_state.bitsandbytes__nf4";
        std::string text(reinterpret_cast<const char*>(model.bytes[tensor].data()), model.bytes[tensor].size());
        const auto at = text.find(from);
        REQUIRE(at != std::string::npos);
        text.replace(at, from.size(), to);
        const auto* begin = reinterpret_cast<const std::byte*>(text.data());
        model.put(tensor, DataType::u8, {static_cast<std::int64_t>(text.size())}, {begin, begin + text.size()});
        return refusal(model);
    };
    CHECK(with_state("[41, 63]", "[63, 41]") == "none");
    for (const char* shape : {"[41, 64]", "[41]", "[]", "7", "[9223372036854775807, 9223372036854775807]", "[-41, -63]",
                              "[1, 1, 41, 63]", "[41, 0]"})
        CHECK(with_state("[41, 63]", shape) != "none");
    CHECK(with_state("\"blocksize\": 64", "\"blocksize\": 128") != "none");
    CHECK(with_state("\"blocksize\": 64", "\"blocksize\": 0") != "none");
    CHECK(with_state("\"blocksize\": 64", "\"blocksize\": 96") != "none");
    CHECK(with_state("\"nested_blocksize\": 32", "\"nested_blocksize\": 64") != "none");
    CHECK(with_state("\"nested_blocksize\"", "\"nested\"") != "none");
    CHECK(with_state("\"nested_offset\"", "\"offset\"") != "none");
    CHECK(with_state("\"nf4\"", "\"fp4\"") != "none");
    CHECK(with_state("{", "[") != "none");
    CHECK(with_state("0.03", "1e300") != "none");
}

TEST_CASE("Tables of bitsandbytes must be those of the type", "[checkpoint][packed][hostile]") {
    PackedModel model = read_packed_model("bnb_nf4");
    set_bytes(model.bytes["m.fc1.weight.quant_map"], 4, {0, 0, 0, 0xBF});
    CHECK(refusal(model).find("expected the 16 values of nf4") != std::string::npos);
    model = read_packed_model("bnb_int8");
    model.bytes["m.fc1.weight_format"][0] = std::byte{1};
    CHECK(refusal(model).find("weights in rows") != std::string::npos);
}

TEST_CASE("Two forms of one matrix are refused", "[checkpoint][packed][hostile]") {
    PackedModel model = read_packed_model("gptq_4");
    model.put("model.layers.0.mlp.down_proj.weight", DataType::f32, {16, 96});
    CHECK(refusal(model).find("expected one stored form") != std::string::npos);
    model = read_packed_model("fp8_block");
    model.put("model.layers.0.q_proj.weight_scale", DataType::f32, {1});
    CHECK(refusal(model).find("expected one scale") != std::string::npos);
}

TEST_CASE("Parts of a wrong size never reach the loops", "[checkpoint][packed][hostile]") {
    const nlohmann::json all = packed_expectations();
    for (const auto& [name, expected] : all.items()) {
        const PackedModel model = read_packed_model(name);
        const auto found = model.find();
        for (const auto& [tensor, packed] : found->tensors) {
            auto parts = model.parts(*packed);
            std::vector<float> values(static_cast<std::size_t>(packed->rows() * packed->columns()));
            CHECK_THROWS_AS(packed->unpack(parts, 0, packed->rows() + 1, values.data()), Error);
            CHECK_THROWS_AS(packed->unpack(parts, -1, 1, values.data()), Error);
            CHECK_THROWS_AS(packed->unpack(parts, INT64_MAX, 1, values.data()), Error);
            for (auto& part : parts) {
                const auto whole = part;
                part = part.first(part.size() - 1);
                CHECK_THROWS_AS(packed->unpack(parts, 0, 1, values.data()), Error);
                CHECK_THROWS_AS(packed->check(parts), Error);
                part = whole;
            }
            parts.pop_back();
            CHECK_THROWS_AS(packed->check(parts), Error);
        }
    }
}
