// SPDX-License-Identifier: GPL-3.0-or-later
// compressed-tensors: one scheme per group of modules, each with its format.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/checkpoint/packed/finder.h"
#include "core/checkpoint/packed/scaled_codes.h"
#include "core/checkpoint/packed/stream_rows.h"

namespace headscope::checkpoint {
namespace {

constexpr std::uint64_t kLargestZeroPoints = 1U << 28;
constexpr std::string_view kFormats[] = {"pack-quantized",  "int-quantized",        "float-quantized",
                                         "naive-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized",
                                         "mxfp8-quantized"};

struct CompressedScheme {
    std::string format, strategy, place;
    unsigned bits = 8;
    bool integers = true, symmetric = true, ordered = false;
    std::int64_t group_size = 0;
    std::vector<std::int64_t> block;
    ModuleList names;
    bool by_class = false, linear = false;
};

void check_format(const JsonView& format) {
    const std::string text = format.string();
    if (std::find(std::begin(kFormats), std::end(kFormats), text) == std::end(kFormats))
        format.refuse(ErrorCode::unsupported, "expected a format of compressed-tensors that is read");
}

/// [128, 128], or "128x128".
std::vector<std::int64_t> read_block_sizes(const JsonView& value) {
    if (value.is_array()) {
        std::vector<std::int64_t> block = value.integers({1, 1 << 30});
        if (block.size() == 2) return block;
    } else if (value.is_string()) {
        const std::string text = value.string();
        const auto cross = text.find('x');
        const auto number = [](const std::string& digits) -> std::int64_t {
            const bool good =
                !digits.empty() && digits.size() < 9 &&
                std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); });
            return good ? std::stoll(digits) : 0;
        };
        if (cross != std::string::npos) {
            const std::int64_t rows = number(text.substr(0, cross)), columns = number(text.substr(cross + 1));
            if (rows > 0 && columns > 0) return {rows, columns};
        }
    }
    value.refuse(ErrorCode::format, "expected two sizes of a block");
}

CompressedScheme read_scheme(const JsonView& group, const std::string& common) {
    CompressedScheme scheme;
    const JsonView weights = group.at("weights");
    scheme.place = weights.where();
    scheme.format = common;
    if (const auto own = group.find("format")) {
        check_format(*own);
        if (!common.empty() && own->string() != common)
            refuse_contradiction(own->where(), "expected the common format, \"" + common + '"',
                                 "found \"" + own->string() + '"');
        scheme.format = own->string();
    } else if (common.empty()) {
        group.at("format");  // throws: the key is missing
    }
    scheme.bits = static_cast<unsigned>(weights.at("num_bits").integer({1, 16}));
    scheme.integers = require_word(weights, "type", "int", {"int", "float"}) == "int";
    scheme.symmetric = weights.boolean_or("symmetric", true);
    if (weights.has("dynamic") && weights.at("dynamic").value() != nlohmann::json(false))
        weights.at("dynamic").refuse(ErrorCode::unsupported, "expected false");
    scheme.group_size = weights.integer_or("group_size", 0, {-1});
    const char* guess = scheme.group_size > 0 ? "group" : scheme.group_size < 0 ? "channel" : "tensor";
    scheme.strategy = require_word(weights, "strategy", guess, {"tensor", "channel", "group", "block", "tensor_group"});
    if (scheme.strategy == "group" || scheme.strategy == "tensor_group") {
        if (scheme.group_size < 1) weights.at("group_size").refuse(ErrorCode::mismatch, "expected a size of groups");
    } else if (scheme.group_size > 0) {
        weights.at("group_size")
            .refuse(ErrorCode::mismatch, "expected none with the strategy \"" + scheme.strategy + '"');
    }
    if (scheme.strategy == "block") scheme.block = read_block_sizes(weights.at("block_structure"));
    if (const auto order = weights.find("actorder"))
        scheme.ordered = (order->is_string() && (order->string() == "group" || order->string() == "dynamic")) ||
                         (order->value().is_boolean() && order->boolean());
    std::vector<std::string> names;
    for (const std::string& target : group.at("targets").strings()) {
        const bool name = target.starts_with("re:") || target.find('.') != std::string::npos || target.empty() ||
                          std::isupper(static_cast<unsigned char>(target[0])) == 0;
        scheme.linear = scheme.linear || target == "Linear";
        scheme.by_class = scheme.by_class || !name;
        if (name) names.push_back(target);
    }
    scheme.names = ModuleList(names, group.at("targets").where());
    return scheme;
}

/// The scheme of a module: by name, else by class; the only one in any case.
const CompressedScheme& scheme_of(PackedFinder& finder, const std::vector<CompressedScheme>& schemes,
                                  const std::string& module, const TensorInfo& stored) {
    if (schemes.size() == 1) return schemes[0];
    const CompressedScheme* named = nullptr;
    const CompressedScheme* classed = nullptr;
    std::size_t classes = 0;
    for (const CompressedScheme& scheme : schemes) {
        if (!scheme.names.covering(module, finder.steps()).empty()) {
            if (named != nullptr)
                refuse_tensor(stored, ErrorCode::mismatch, "expected one config group that names this module",
                              "found " + named->place + " and " + scheme.place);
            named = &scheme;
        }
        if (!scheme.by_class) continue;
        ++classes;
        if (classed == nullptr || (scheme.linear && !classed->linear)) classed = &scheme;
    }
    if (named != nullptr) return *named;
    if (classed == nullptr || (classes > 1 && !classed->linear))
        refuse_tensor(stored, ErrorCode::mismatch, "expected one config group for this module", "found none");
    return *classed;
}

void require_scheme(const CompressedScheme& scheme, bool good, const std::string& expected) {
    if (good) return;
    refuse_contradiction(scheme.place, "expected " + expected + " for " + scheme.format,
                         "found " + std::to_string(scheme.bits) + " bits, " + (scheme.integers ? "int" : "float") +
                             ", strategy " + scheme.strategy + ", group_size " + std::to_string(scheme.group_size) +
                             (scheme.symmetric ? "" : ", not symmetric"));
}

class CompressedReader {
public:
    CompressedReader(PackedFinder& finder, const CompressedScheme& scheme, std::string module)
        : finder_(finder), scheme_(scheme), module_(std::move(module)), of_("compressed-tensors " + scheme.format) {}

    void read() {
        const std::string& format = scheme_.format;
        if (format == "pack-quantized") return read_packed();
        if (format == "nvfp4-pack-quantized" || format == "mxfp4-pack-quantized")
            return read_four_bits(format[0] == 'n');
        if (format == "mxfp8-quantized") return read_mxfp8();
        read_eight_bits();
    }

private:
    const TensorInfo& codes(const char* ending, PartTypes types) {
        const TensorInfo& info = finder_.require(module_ + ending, of_);
        require_type(info, types, of_);
        require_rank(info, 2, of_);
        return info;
    }
    const TensorInfo& part(const char* ending, PartTypes types, const std::vector<std::int64_t>& shape) {
        return finder_.require(module_ + ending, of_, types, shape);
    }
    void add(std::shared_ptr<const PackedTensor> tensor) {
        finder_.add(module_, module_ + ".weight", std::move(tensor), of_);
    }

    /// Rows and columns that share a scale. Checks the scale's shape.
    std::pair<std::int64_t, std::int64_t> block_of(const TensorInfo& scale, std::int64_t out, std::int64_t in) {
        require_type(scale, scale_types, of_);
        const std::string& strategy = scheme_.strategy;
        const std::string of = of_ + ", strategy " + strategy;
        if (strategy == "tensor") {
            if (!is_one_number(scale)) require_shape(scale, {1}, of);
            return {out, in};
        }
        if (strategy == "channel") {
            require_shape(scale, {out, 1}, of);
            return {1, in};
        }
        if (strategy == "group") {
            require_shape(scale, {out, blocks_of(in, scheme_.group_size)}, of);
            return {1, scheme_.group_size};
        }
        require_scheme(scheme_, strategy == "block", "strategy tensor, channel, group or block");
        require_shape(scale, {blocks_of(out, scheme_.block[0]), blocks_of(in, scheme_.block[1])}, of);
        return {scheme_.block[0], scheme_.block[1]};
    }

    /// Older releases store zero points of symmetric schemes: all 0.
    void drop_zero_point() {
        const TensorInfo* zero = finder_.find(module_ + ".weight_zero_point");
        if (zero == nullptr) return;
        const std::vector<std::byte> bytes = finder_.read(*zero, kLargestZeroPoints);
        if (zero->type == DataType::i32 ||
            std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte != std::byte{0}; }))
            refuse_tensor(*zero, ErrorCode::mismatch, "expected none, or zeros: the scheme is symmetric",
                          "found others");
        finder_.consume(zero->name);
    }

    std::vector<std::int64_t> stored_shape() {
        const TensorInfo& info = part(".weight_shape", i64_type, {2});
        const std::vector<std::byte> bytes = finder_.read(info, 16);
        std::vector<std::int64_t> shape(2);
        std::memcpy(shape.data(), bytes.data(), 16);
        if (!elements_of(shape))
            refuse_tensor(info, ErrorCode::format, "expected two sizes above 0", "found " + shape_text(shape));
        finder_.consume(info.name);
        return shape;
    }

    void read_packed() {
        require_scheme(scheme_, scheme_.integers && scheme_.bits <= 8, "integers of 1 to 8 bits");
        const TensorInfo& packed = codes(".weight_packed", i32_type);
        const std::vector<std::int64_t> shape = stored_shape();
        const std::int64_t out = shape[0], in = shape[1], bits = scheme_.bits;
        StreamRows::Layout layout;
        layout.bits = scheme_.bits;
        // No overflow: the product of the sizes fits, and sizes near the limit cannot be those of stored words.
        const std::int64_t stream = in > INT64_MAX / 8 ? -1 : blocks_of(in * bits, 32);
        const std::int64_t whole = blocks_of(in, 32 / bits);
        const bool ambiguous = 32 % bits != 0 && stream == whole;
        layout.whole_words = stream != whole && packed.shape[1] == whole;
        if (packed.shape[0] != out || (packed.shape[1] != stream && packed.shape[1] != whole))
            require_shape(packed, {out, stream}, of_ + " of weight_shape " + shape_text(shape));
        if (ambiguous) {
            refuse_tensor(packed, ErrorCode::unsupported, "expected a width that names the packing",
                          "found one that both releases of compressed-tensors use: " + shape_text(packed.shape));
        }
        const TensorInfo& scale = finder_.require(module_ + ".weight_scale", of_);
        const auto [block_rows, block_columns] = block_of(scale, out, in);
        require_scheme(scheme_, scheme_.strategy != "block", "strategy tensor, channel or group");
        layout.scales = scale.type;
        layout.one_scale = scheme_.strategy == "tensor";
        layout.group_size = block_columns;
        layout.groups = blocks_of(in, block_columns);
        std::vector<PackedPart> parts{packed_part(packed), packed_part(scale)};
        if (scheme_.symmetric) {
            drop_zero_point();
        } else {
            require_scheme(scheme_, !layout.one_scale, "strategy channel or group");
            layout.rule = StreamRows::Rule::zero_points;
            const std::int64_t words = layout.whole_words ? blocks_of(out, 32 / bits) : blocks_of(out * bits, 32);
            parts.push_back(packed_part(part(".weight_zero_point", i32_type, {words, layout.groups})));
        }
        if (finder_.find(module_ + ".weight_g_idx") != nullptr || scheme_.ordered) {
            parts.push_back(packed_part(part(".weight_g_idx", i32_type, {in})));
            layout.indexed = true;
        }
        add(std::make_shared<StreamRows>(shape, layout, std::move(parts)));
    }

    void read_eight_bits() {
        require_scheme(scheme_, scheme_.bits == 8, "8 bits");
        const std::string& format = scheme_.format;
        require_scheme(scheme_, format == "naive-quantized" || scheme_.integers == (format == "int-quantized"),
                       format == "int-quantized" ? "type int" : "type float");
        const TensorInfo& weight = scheme_.integers ? codes(".weight", i8_type) : codes(".weight", e4m3_type);
        const TensorInfo& scale = finder_.require(module_ + ".weight_scale", of_);
        ScaledCodes::Layout layout;
        layout.codes = scheme_.integers ? CodeType::int8 : CodeType::e4m3;
        std::tie(layout.block_rows, layout.block_columns) = block_of(scale, weight.shape[0], weight.shape[1]);
        layout.scales = scale.type;
        std::vector<PackedPart> parts{packed_part(weight), packed_part(scale)};
        if (scheme_.symmetric) {
            drop_zero_point();
        } else {
            require_scheme(scheme_, scheme_.integers, "a symmetric scheme");
            layout.zero_points = true;
            parts.push_back(packed_part(part(".weight_zero_point", i8_type, scale.shape)));
        }
        add(std::make_shared<ScaledCodes>(weight.shape, layout, std::move(parts)));
    }

    void read_four_bits(bool nvfp4) {
        const std::int64_t group = nvfp4 ? 16 : 32;
        require_scheme(scheme_,
                       !scheme_.integers && scheme_.bits == 4 && scheme_.symmetric && scheme_.group_size == group,
                       "float, 4 bits, symmetric, group_size " + std::to_string(group));
        const TensorInfo& packed = codes(".weight_packed", u8_type);
        const std::int64_t out = packed.shape[0], bytes = packed.shape[1];
        if (bytes % (group / 2) != 0) {
            refuse_tensor(packed, ErrorCode::mismatch,
                          "expected rows of whole groups of " + std::to_string(group / 2) + " bytes (" + of_ + ")",
                          "found shape " + shape_text(packed.shape));
        }
        const TensorInfo& scale =
            part(".weight_scale", nvfp4 ? PartTypes(e4m3_type) : PartTypes(u8_type), {out, bytes / (group / 2)});
        drop_zero_point();
        std::vector<PackedPart> parts{packed_part(packed), packed_part(scale)};
        ScaledCodes::Layout layout;
        layout.codes = CodeType::e2m1;
        layout.scales = nvfp4 ? DataType::f8_e4m3 : DataType::f8_e8m0;
        layout.block_columns = group;
        if (nvfp4) {
            const TensorInfo& global = finder_.require(module_ + ".weight_global_scale", of_);
            require_type(global, f32_type, of_);
            if (!is_one_number(global)) require_shape(global, {1}, of_);
            parts.push_back(packed_part(global));
            layout.factor = ScaledCodes::Factor::divide;
        }
        add(std::make_shared<ScaledCodes>(std::vector<std::int64_t>{out, bytes * 2}, layout, std::move(parts)));
    }

    void read_mxfp8() {
        require_scheme(scheme_, !scheme_.integers && scheme_.bits == 8 && scheme_.symmetric && scheme_.group_size == 32,
                       "float, 8 bits, symmetric, group_size 32");
        const TensorInfo& weight = codes(".weight", e4m3_type);
        const TensorInfo& scale = part(".weight_scale", u8_type, {weight.shape[0], blocks_of(weight.shape[1], 32)});
        drop_zero_point();
        ScaledCodes::Layout layout;
        layout.scales = DataType::f8_e8m0;
        layout.block_columns = 32;
        add(std::make_shared<ScaledCodes>(weight.shape, layout,
                                          std::vector<PackedPart>{packed_part(weight), packed_part(scale)}));
    }

    PackedFinder& finder_;
    const CompressedScheme& scheme_;
    std::string module_, of_;
};

/// Keys whose operations are not read: sparsity, transforms of activations.
void check_extras(const JsonView& settings) {
    if (const auto sparsity = settings.find("sparsity_config"); sparsity && sparsity->size() != 0)
        require_word(*sparsity, "format", "dense", {"dense"});
    if (const auto transform = settings.find("transform_config"); transform && transform->size() != 0) {
        const auto groups = transform->find("config_groups");
        if (!groups || groups->size() != 0) transform->refuse(ErrorCode::unsupported, "expected no transforms");
    }
    require_word(settings, "quantization_status", "compressed", {"compressed"});
}

}  // namespace

void find_compressed_tensors(PackedFinder& finder, const JsonView& settings) {
    const JsonView format = settings.at("format");
    const bool mixed = format.string() == "mixed-precision";
    if (!mixed) check_format(format);
    check_extras(settings);
    std::vector<CompressedScheme> schemes;
    const JsonView groups = settings.at("config_groups");
    for (const std::string& key : groups.keys())
        if (groups.at(key).has("weights")) schemes.push_back(read_scheme(groups.at(key), mixed ? "" : format.string()));
    if (schemes.empty()) groups.refuse(ErrorCode::mismatch, "expected a group with weights");
    finder.exclude(settings, {"ignore"});
    finder.ignore({".input_scale", ".input_zero_point", ".input_global_scale", ".output_scale", ".output_zero_point",
                   ".output_global_scale", ".k_scale", ".v_scale", ".q_scale", ".k_zero_point", ".v_zero_point"});
    std::set<std::string> modules;
    for (const char* ending : {".weight_packed", ".weight_scale"})
        for (std::string& module : finder.modules(ending)) modules.insert(std::move(module));
    for (const std::string& module : finder.modules(".weight")) {
        const DataType type = finder.find(module + ".weight")->type;
        if (type == DataType::i8 || type == DataType::f8_e4m3) modules.insert(module);
    }
    for (const std::string& module : modules) {
        const TensorInfo* stored = nullptr;
        for (const char* ending : {".weight_packed", ".weight", ".weight_scale"})
            if (stored == nullptr) stored = finder.find(module + ending);
        CompressedReader(finder, scheme_of(finder, schemes, module, *stored), module).read();
    }
    finder.set_format("compressed-tensors " + format.string());
}

}  // namespace headscope::checkpoint
