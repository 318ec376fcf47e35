// SPDX-License-Identifier: GPL-3.0-or-later
// GPTQ (AutoGPTQ, GPTQModel, AutoRound's export) and AWQ.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/checkpoint/packed/finder.h"
#include "core/checkpoint/packed/word_columns.h"

namespace headscope::checkpoint {
namespace {

std::int64_t require_group_size(const JsonView& settings, std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
        const auto value = settings.find(key);
        if (!value) continue;
        const std::int64_t size = value->integer({-1});
        if (size == 0) value->refuse(ErrorCode::limit, "expected -1 or a size of groups");
        return size;
    }
    return settings.at(*keys.begin()).integer();  // throws: the key is missing
}

/// size * by / per, which must be whole.
std::int64_t whole_number_of(const TensorInfo& info, std::int64_t size, std::int64_t by, std::int64_t per,
                             const std::string& of) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(size, by, &product) || product % per != 0) {
        refuse_tensor(info, ErrorCode::mismatch, "expected whole words of 32 bits (" + of + ")",
                      "found shape " + shape_text(info.shape));
    }
    return product / per;
}

void refuse_set(const JsonView& settings, std::initializer_list<const char*> keys, const char* expected) {
    for (const char* key : keys) {
        const auto value = settings.find(key);
        if (!value || (value->value().is_boolean() && !value->boolean()) ||
            ((value->is_object() || value->is_array()) && value->size() == 0))
            continue;
        value->refuse(ErrorCode::unsupported, expected);
    }
}

/// QuantizationSettings of single modules (GPTQModel's `dynamic`): entries that begin with "-:" exclude modules.
void check_dynamic(PackedFinder& finder, const JsonView& settings) {
    const auto dynamic = settings.find("dynamic");
    if (!dynamic || (dynamic->value().is_boolean() && !dynamic->boolean())) return;
    nlohmann::json excluded = nlohmann::json::object();
    for (const std::string& key : dynamic->keys()) {
        if (!key.starts_with("-:")) {
            const JsonView own = dynamic->at(key);
            for (const char* name : {"bits", "group_size", "desc_act"}) {
                if (own.has(name) && (!settings.has(name) || own.at(name).value() != settings.at(name).value()))
                    own.at(name).refuse(ErrorCode::unsupported, "expected the same setting for all modules");
            }
            continue;
        }
        excluded["dynamic"].push_back("re:" + key.substr(2));
    }
    finder.exclude(JsonView(excluded, settings.where()), {"dynamic"});
}

/// AutoRound's `extra_config`: modules of 16 bits and more are plain, others need the common settings.
void check_extra(PackedFinder& finder, const JsonView& settings) {
    const auto extra = settings.find("extra_config");
    if (!extra) return;
    nlohmann::json excluded = nlohmann::json::object();
    for (const std::string& key : extra->keys()) {
        const JsonView own = extra->at(key);
        if (own.integer_or("bits", 0) >= 16) {
            excluded["extra_config"].push_back(key);
            continue;
        }
        for (const char* name : {"bits", "group_size"})
            if (own.has(name) && own.at(name).value() != settings.at(name).value())
                own.at(name).refuse(ErrorCode::unsupported, "expected the same setting for all modules");
    }
    finder.exclude(JsonView(excluded, settings.where()), {"extra_config"});
}

std::string lower_case(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

}  // namespace

void find_gptq(PackedFinder& finder, const JsonView& settings) {
    GptqTensor::Layout layout;
    layout.bits = static_cast<unsigned>(settings.at("bits").integer({1, 64}));
    if (layout.bits != 2 && layout.bits != 3 && layout.bits != 4 && layout.bits != 8)
        settings.at("bits").refuse(ErrorCode::unsupported, "expected 2, 3, 4 or 8 bits");
    const std::int64_t group_size = require_group_size(settings, {"group_size"});
    const bool ordered = settings.boolean_or("desc_act", false);
    std::string format = require_word(settings, "checkpoint_format", "", {"", "gptq", "gptq_v2"});
    const std::string other = require_word(settings, "format", "", {"", "gptq", "gptq_v2"});
    if (!format.empty() && !other.empty() && format != other)
        refuse_contradiction(settings.at("format").where(), "expected \"" + format + "\", as checkpoint_format",
                             "found \"" + other + '"');
    layout.zeros_minus_one = format != "gptq_v2" && other != "gptq_v2";
    require_word(settings, "pack_dtype", "int32", {"int32"});
    refuse_set(settings, {"is_marlin_format"}, "expected checkpoint format gptq or gptq_v2");
    refuse_set(settings, {"rotation", "adapter"}, "expected weights that need no further operation");
    check_dynamic(finder, settings);
    check_extra(finder, settings);
    finder.exclude(settings, {"modules_to_not_convert"});

    const std::string of = "GPTQ " + std::to_string(layout.bits) + " bits";
    const std::int64_t bits = layout.bits;
    for (const std::string& module : finder.modules(".qweight")) {
        const TensorInfo& qweight = finder.require(module + ".qweight", of);
        require_type(qweight, i32_type, of);
        require_rank(qweight, 2, of);
        layout.in = whole_number_of(qweight, qweight.shape[0], 32, bits, of);
        layout.out = qweight.shape[1];
        layout.group_size = group_size < 0 ? layout.in : group_size;
        layout.groups = blocks_of(layout.in, layout.group_size);
        const TensorInfo& qzeros = finder.require(module + ".qzeros", of, i32_type,
                                                  {layout.groups, whole_number_of(qweight, layout.out, bits, 32, of)});
        const TensorInfo& scales = finder.require(module + ".scales", of, scale_types, {layout.groups, layout.out});
        layout.scales = scales.type;
        std::vector<PackedPart> parts{packed_part(qweight), packed_part(qzeros), packed_part(scales)};
        layout.indexed = finder.find(module + ".g_idx") != nullptr;
        if (layout.indexed || (ordered && layout.groups > 1))
            parts.push_back(packed_part(finder.require(module + ".g_idx", of, i32_type, {layout.in})));
        finder.add(module, module + ".weight", std::make_shared<GptqTensor>(layout, std::move(parts)), of);
    }
}

void find_awq(PackedFinder& finder, const JsonView& settings) {
    const JsonView bits = settings.has("bits") ? settings.at("bits") : settings.at("w_bit");
    if (bits.integer() != 4) bits.refuse(ErrorCode::unsupported, "expected 4 bits");
    const std::int64_t group_size = require_group_size(settings, {"group_size", "q_group_size"});
    for (const char* key : {"version", "format", "checkpoint_format"})
        if (const auto version = settings.find(key); version && lower_case(version->string()) != "gemm")
            version->refuse(ErrorCode::unsupported, "expected \"gemm\"");
    if (const auto zero = settings.find("zero_point"); zero && !zero->boolean())
        zero->refuse(ErrorCode::unsupported, "expected true");
    if (settings.string_or("backend", "") == "llm-awq")
        settings.at("backend").refuse(ErrorCode::unsupported, "expected a backend of version \"gemm\"");
    refuse_set(settings, {"is_marlin_format"}, "expected version \"gemm\"");
    finder.exclude(settings, {"modules_to_not_convert"});

    const std::string of = "AWQ 4 bits";
    for (const std::string& module : finder.modules(".qweight")) {
        const TensorInfo& qweight = finder.require(module + ".qweight", of);
        require_type(qweight, i32_type, of);
        require_rank(qweight, 2, of);
        const std::int64_t in = qweight.shape[0], words = qweight.shape[1],
                           out = whole_number_of(qweight, words, 8, 1, of);
        const std::int64_t group = group_size < 0 ? in : group_size;
        if (in % group != 0) {
            refuse_tensor(qweight, ErrorCode::mismatch,
                          "expected rows in whole groups of " + std::to_string(group) + " (" + of + ")",
                          "found shape " + shape_text(qweight.shape));
        }
        const TensorInfo& qzeros = finder.require(module + ".qzeros", of, i32_type, {in / group, words});
        const TensorInfo& scales = finder.require(module + ".scales", of, scale_types, {in / group, out});
        finder.add(module, module + ".weight",
                   std::make_shared<AwqTensor>(
                       out, in, group, scales.type,
                       std::vector<PackedPart>{packed_part(qweight), packed_part(qzeros), packed_part(scales)}),
                   of);
    }
}

}  // namespace headscope::checkpoint
