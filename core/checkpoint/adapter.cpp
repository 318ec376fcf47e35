// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/adapter.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/json.h"
#include "core/base/os_error.h"
#include "core/base/text.h"
#include "core/checkpoint/shards.h"
#include "core/checkpoint/tensor_reader.h"
#include "core/checkpoint/torch_types.h"

namespace headscope::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t largest_config = 16U << 20U;
constexpr std::int64_t largest_rank = 1 << 20;
constexpr const char* weight_names[] = {"adapter_model.safetensors", "adapter_model.bin"};

/// Keys that say where the adapter came from, how it was trained, or which modules its tensors are of, which their
/// names say too.
constexpr std::string_view idle_keys[] = {"auto_mapping",
                                          "base_model_name_or_path",
                                          "corda_config",
                                          "ensure_weight_tying",
                                          "eva_config",
                                          "exclude_modules",
                                          "inference_mode",
                                          "layers_pattern",
                                          "layers_to_transform",
                                          "loftq_config",
                                          "lora_dropout",
                                          "megatron_core",
                                          "modules_to_save",
                                          "peft_version",
                                          "qalora_group_size",
                                          "revision",
                                          "runtime_config",
                                          "target_modules",
                                          "task_type"};
/// Keys that are read.
constexpr std::string_view read_keys[] = {"alpha_pattern", "bias", "fan_in_fan_out", "init_lora_weights", "lora_alpha",
                                          "peft_type",     "r",    "rank_pattern",   "use_rslora"};

template <class List>
bool is_in(const List& list, std::string_view word) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

/// Null, false, 0, "" and empty containers: a key that is there for completeness.
bool is_unset(const nlohmann::json& value) {
    return value.is_null() || value == false || value == 0 || value == "" || (value.is_structured() && value.empty());
}

struct Config {
    std::string base, task;
    std::int64_t rank = 8;
    double alpha = 8;
    bool stabilised = false, fan_in_fan_out = false;
    std::map<std::string, std::int64_t> ranks;
    std::map<std::string, double> alphas;
    std::string where;
};

/// Patterns are regular expressions in PEFT; written by people they are ends of modules' names.
void expect_plain(const JsonView& patterns, const std::string& key) {
    if (key.find_first_of("^$*+?()[]{}|\\") == std::string::npos) return;
    throw Error(ErrorCode::unsupported, patterns.where(), "expected plain names of modules",
                "found the pattern \"" + escaped(key) + '"');
}

Config read_config(const fs::path& path) {
    const nlohmann::json document = read_python_json_file(path, largest_config, "adapter's configuration");
    Config config;
    config.where = shown(path);
    const JsonView view(document, config.where);
    view.object();
    const std::string type = view.string_or("peft_type", "");
    if (type != "LORA") {
        throw Error(ErrorCode::unsupported, config.where + ": peft_type", "expected LORA",
                    type.empty() ? "found none" : "found " + escaped(type, 60));
    }
    for (const std::string& key : view.keys()) {
        if (is_in(idle_keys, key) || is_in(read_keys, key) || is_unset(document.at(key))) continue;
        view.at(key).refuse(ErrorCode::unsupported, "expected none, for this changes the computation and is not built");
    }
    config.base = view.string_or("base_model_name_or_path", "");
    config.task = view.string_or("task_type", "");
    config.rank = view.integer_or("r", 8, {1, largest_rank});
    config.alpha = view.number_or("lora_alpha", 8);
    config.stabilised = view.boolean_or("use_rslora", false);
    config.fan_in_fan_out = view.boolean_or("fan_in_fan_out", false);
    const std::string bias = view.string_or("bias", "none");
    if (bias != "none" && bias != "all" && bias != "lora_only")
        view.at("bias").refuse(ErrorCode::unsupported, "expected none, all or lora_only");
    if (const auto begin = view.find("init_lora_weights")) {
        // The others take a part of the base's weights into the adapter, so that it fits another base than it names.
        const bool text = begin->is_string();
        if (!begin->value().is_boolean() &&
            !(text && is_in(std::initializer_list<std::string_view>{"gaussian", "orthogonal", "eva"}, begin->string())))
            begin->refuse(ErrorCode::unsupported, "expected true, false, gaussian, orthogonal or eva");
    }
    if (const auto patterns = view.find("rank_pattern")) {
        for (const std::string& key : patterns->object().keys()) {
            expect_plain(*patterns, key);
            config.ranks[key] = patterns->at(key).integer({1, largest_rank});
        }
    }
    if (const auto patterns = view.find("alpha_pattern")) {
        for (const std::string& key : patterns->object().keys()) {
            expect_plain(*patterns, key);
            config.alphas[key] = patterns->at(key).number();
        }
    }
    return config;
}

/// The value of the pattern that a module's name is or ends with. `where` names the key.
template <class Value>
Value of_pattern(const std::map<std::string, Value>& patterns, const std::string& module, Value otherwise,
                 const std::string& where) {
    std::optional<Value> found;
    for (const auto& [key, value] : patterns) {
        if (module != key && !module.ends_with('.' + key)) continue;
        if (found && *found != value) {
            throw Error(ErrorCode::unsupported, where, "expected one pattern for " + escaped(module),
                        "found several that differ");
        }
        found = value;
    }
    return found.value_or(otherwise);
}

/// A tensor's name in the adapter's file, taken apart.
struct Part {
    enum class Kind { a, b, embedding_a, embedding_b, whole };
    std::string name;  ///< of the module; of `whole` ones of the tensor
    Kind kind = Kind::whole;
};

void erase_all(std::string& text, std::string_view part) {
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
        text.erase(at, part.size());
}

Part part_of(const std::string& written, const std::string& where) {
    std::string name = written;
    constexpr std::string_view before = "base_model.model.";
    if (name.starts_with(before)) name.erase(0, before.size());
    constexpr std::pair<std::string_view, Part::Kind> ends[] = {{".lora_A.weight", Part::Kind::a},
                                                                {".lora_B.weight", Part::Kind::b},
                                                                {".lora_A.default.weight", Part::Kind::a},
                                                                {".lora_B.default.weight", Part::Kind::b},
                                                                {".lora_embedding_A", Part::Kind::embedding_a},
                                                                {".lora_embedding_B", Part::Kind::embedding_b},
                                                                {".lora_embedding_A.default", Part::Kind::embedding_a},
                                                                {".lora_embedding_B.default", Part::Kind::embedding_b}};
    for (const auto& [end, kind] : ends) {
        if (!name.ends_with(end)) continue;
        name.resize(name.size() - end.size());
        return {name, kind};
    }
    for (const char* unknown : {".lora_", ".original_module.", ".token_adapter."}) {
        if (name.find(unknown) == std::string::npos) continue;
        throw Error(
            ErrorCode::unsupported, where + ", tensor \"" + escaped(written) + '"',
            "expected lora_A, lora_B, lora_embedding_A, lora_embedding_B, a bias or a module that was saved whole",
            unknown == std::string_view(".lora_") && name.find("magnitude") != std::string::npos
                ? "found DoRA's magnitudes, which are not built"
                : "found another");
    }
    for (const char* wrapped : {".modules_to_save.default", ".modules_to_save", ".base_layer"})
        erase_all(name, wrapped);
    return {name, Part::Kind::whole};
}

/// Members that models are wrapped in; files have more or fewer of them than the module that was adapted.
constexpr std::string_view wrappers[] = {"model",  "transformer", "language_model", "backbone", "bert",      "roberta",
                                         "albert", "distilbert",  "gpt_neox",       "decoder",  "text_model"};
constexpr std::string_view added[] = {
    "",         "model.",  "transformer.", "language_model.", "language_model.model.", "model.language_model.", "bert.",
    "roberta.", "albert.", "distilbert.",  "gpt_neox."};

/// The base's name of a tensor: its own, or with other wrappers around the model. Empty: there is none.
std::string find_tensor(const std::map<std::string, TensorInfo>& tensors, const std::string& wanted) {
    std::size_t start = 0;
    while (true) {
        for (const std::string_view before : added) {
            std::string name = std::string(before) + wanted.substr(start);
            if (tensors.count(name) != 0) return name;
        }
        const std::size_t dot = wanted.find('.', start);
        if (dot == std::string::npos || !is_in(wrappers, std::string_view(wanted).substr(start, dot - start)))
            return "";
        start = dot + 1;
    }
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

bool is_real(DataType type) {
    return type == DataType::f16 || type == DataType::bf16 || type == DataType::f32 || type == DataType::f64;
}

fs::path folder_of(const fs::path& path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return path;
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

fs::path adapter_weights(const fs::path& folder) {
    for (const char* name : weight_names)
        if (ends_at_regular_file(folder / name)) return folder / name;
    throw Error(ErrorCode::io, shown(folder), "expected adapter_model.safetensors or adapter_model.bin",
                "found neither");
}

struct Adapter::Impl {
    /// Adapter parts of one tensor of the base.
    struct Change {
        std::string module;
        const TensorInfo* a = nullptr;  ///< or what takes the tensor's place
        const TensorInfo* b = nullptr;
        const TensorInfo* weight = nullptr;  ///< in place of the base's, below A and B
        double scale = 0;
        bool embedding = false, transposed = false;  ///< transposed: W is [in, out]
    };

    fs::path path;
    Config config;
    std::string base;  ///< for errors
    Weights weights;
    std::map<std::string, Change> changes;
    std::vector<std::string> left_out;
    std::optional<bool> open_direction;

    std::string where(const std::string& module) const { return shown(path) + ": " + escaped(module); }

    void add(const std::map<std::string, TensorInfo>& tensors, const Change& change) {
        const bool whole = change.b == nullptr;
        const std::string tensor = find_tensor(tensors, whole ? change.module : change.module + ".weight");
        if (tensor.empty()) {
            // The head of a task is the adapter's own, and no part of what is computed here.
            const bool task = config.task == "SEQ_CLS" || config.task == "TOKEN_CLS" || config.task == "QUESTION_ANS";
            if (whole && task) {
                left_out.push_back(change.module);
                return;
            }
            throw Error(ErrorCode::mismatch, where(change.module), "expected a tensor of that name in " + base,
                        "found none");
        }
        const TensorInfo& info = tensors.at(tensor);
        for (const TensorInfo* part : {&info, change.a, change.b == nullptr ? change.a : change.b}) {
            if (is_real(part->type)) continue;
            throw Error(ErrorCode::unsupported, where(change.module), "expected numbers of type F16, BF16, F32 or F64",
                        "found " + std::string(name(part->type)) + " in \"" + escaped(part->name) + '"');
        }
        if (const auto [there, fresh] = changes.emplace(tensor, change); !fresh) {
            // A table that is adapted may be saved beside its adapter, as it was below it.
            if (whole && there->second.b != nullptr && change.a->shape == info.shape &&
                std::exchange(there->second.weight, change.a) == nullptr)
                return;
            throw Error(ErrorCode::mismatch, where(change.module), "expected one change of \"" + escaped(tensor) + '"',
                        "found two");
        }
        if (whole) {
            if (change.a->shape != info.shape) refuse_shape(change, tensor, info, "expected " + shape_text(info.shape));
            return;
        }
        fit(tensor, info);
    }

    [[noreturn]] void refuse_shape(const Change& change, const std::string& tensor, const TensorInfo& info,
                                   const std::string& expected) const {
        throw Error(ErrorCode::mismatch, where(change.module),
                    expected + ", for \"" + escaped(tensor) + "\" of " + base + " is " + shape_text(info.shape),
                    "found " + shape_text(change.a->shape) +
                        (change.b == nullptr ? "" : " and " + shape_text(change.b->shape)) +
                        ": this is not its base, or its vocabulary was resized");
    }

    /// Sets rank, scale and direction of what has just been added.
    void fit(const std::string& tensor, const TensorInfo& info) {
        Change& change = changes.at(tensor);
        const std::int64_t rank = of_pattern(config.ranks, change.module, config.rank, config.where + ": rank_pattern");
        const double alpha = of_pattern(config.alphas, change.module, config.alpha, config.where + ": alpha_pattern");
        change.scale = alpha / (config.stabilised ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
        const std::string expected =
            "expected A [" + std::to_string(rank) + ", in] and B [out, " + std::to_string(rank) + "]";
        if (info.shape.size() != 2) refuse_shape(change, tensor, info, expected);
        const std::int64_t rows = info.shape[0], columns = info.shape[1];
        const auto fits = [&](std::int64_t in, std::int64_t out) {
            return change.a->shape == std::vector<std::int64_t>{rank, in} &&
                   change.b->shape == std::vector<std::int64_t>{out, rank};
        };
        if (change.embedding) {
            // W is [vocabulary, hidden], and its "in" the vocabulary.
            change.transposed = true;
            if (!fits(rows, columns)) refuse_shape(change, tensor, info, expected);
            return;
        }
        const bool straight = fits(columns, rows), turned = fits(rows, columns);
        if (!straight && !turned) refuse_shape(change, tensor, info, expected);
        // PEFT mends fan_in_fan_out where it is wrong for a layer: so do the shapes, unless both are the same.
        change.transposed = turned && (!straight || config.fan_in_fan_out);
        if (straight && turned) open_direction = config.fan_in_fan_out;
    }
};

std::string adapter_base(const fs::path& folder) {
    try {
        const auto document = read_python_json_file(folder / adapter_config_name, largest_config, "configuration");
        return JsonView(document, "").object().string_or("base_model_name_or_path", "");
    } catch (const Error&) {
        return "";
    }
}

std::string adapter_text(const fs::path& folder) {
    std::string type;
    try {
        const auto document = read_python_json_file(folder / adapter_config_name, largest_config, "configuration");
        type = JsonView(document, "").object().string_or("peft_type", "");
    } catch (const Error&) {
        return "an adapter (PEFT) without a configuration that can be read";
    }
    const std::string base = adapter_base(folder);
    const std::string kind = type == "LORA" ? "a LoRA adapter" : "an adapter (PEFT, " + escaped(type, 60) + ")";
    return kind + (base.empty() ? "" : " of \"" + escaped(base) + '"');
}

Adapter::Adapter(const fs::path& path, const std::map<std::string, TensorInfo>& tensors, const std::string& base)
    : impl_(std::make_unique<Impl>()) {
    try {
        impl_->path = folder_of(path);
        impl_->base = base;
        if (!ends_at_regular_file(impl_->path / adapter_config_name)) {
            throw Error(ErrorCode::io, shown(path), "expected a folder with adapter_config.json, as PEFT writes it",
                        "found none");
        }
        impl_->config = read_config(impl_->path / adapter_config_name);
        impl_->weights = open_single(adapter_weights(impl_->path));
        const std::string where = shown(impl_->weights.files.front().path());
        if (!impl_->weights.unreadable.empty()) {
            const auto& [name, why] = *impl_->weights.unreadable.begin();
            throw Error(ErrorCode::unsupported, where + ", tensor \"" + escaped(name) + '"', "expected a plain tensor",
                        why);
        }
        std::map<std::string, Impl::Change> modules;
        for (const auto& [written, info] : impl_->weights.tensors) {
            const Part part = part_of(written, where);
            const bool whole = part.kind == Part::Kind::whole;
            Impl::Change& change = modules[part.name + (whole ? "" : ".")];
            const bool first = part.kind != Part::Kind::b && part.kind != Part::Kind::embedding_b;
            if ((first ? change.a : change.b) != nullptr) {
                throw Error(ErrorCode::mismatch, where + ", tensor \"" + escaped(written) + '"',
                            "expected one of that meaning", "found two");
            }
            change.module = part.name;
            (first ? change.a : change.b) = &info;
            change.embedding =
                change.embedding || part.kind == Part::Kind::embedding_a || part.kind == Part::Kind::embedding_b;
        }
        for (const auto& [name, change] : modules) {
            const bool whole = !name.ends_with('.');
            if (change.a == nullptr || (!whole && change.b == nullptr)) {
                throw Error(ErrorCode::mismatch, impl_->where(change.module), "expected both lora_A and lora_B",
                            "found one of them");
            }
            if (!whole) impl_->add(tensors, change);
        }
        for (const auto& [name, change] : modules)
            if (!name.ends_with('.')) impl_->add(tensors, change);
        if (impl_->changes.empty()) {
            throw Error(ErrorCode::format, where, "expected tensors that change the base", "found none");
        }
    } catch (...) {
        throw current_error(shown(path));
    }
}

Adapter::~Adapter() = default;

const fs::path& Adapter::path() const {
    return impl_->path;
}
std::string Adapter::display_name() const {
    std::error_code error;
    const fs::path whole = fs::absolute(impl_->path, error).lexically_normal();
    return (whole.has_filename() ? whole.filename() : whole.parent_path().filename()).string();
}
const std::string& Adapter::base() const {
    return impl_->config.base;
}
std::int64_t Adapter::rank() const {
    return impl_->config.rank;
}
double Adapter::alpha() const {
    return impl_->config.alpha;
}
const std::vector<std::string>& Adapter::left_out() const {
    return impl_->left_out;
}
const InputFile& Adapter::file() const {
    return impl_->weights.files.front();
}
std::optional<bool> Adapter::open_direction() const {
    return impl_->open_direction;
}

std::vector<std::string> Adapter::merged() const {
    std::vector<std::string> names;
    for (const auto& [name, change] : impl_->changes)
        if (change.b != nullptr) names.push_back(name);
    return names;
}

std::vector<std::string> Adapter::replaced() const {
    std::vector<std::string> names;
    for (const auto& [name, change] : impl_->changes)
        if (change.b == nullptr) names.push_back(name);
    return names;
}

bool Adapter::changes(const std::string& tensor) const {
    return impl_->changes.count(tensor) != 0;
}

at::Tensor Adapter::load(const std::string& tensor, DataType type, const std::function<at::Tensor(DataType)>& weight,
                         const Cancellation& cancellation) const {
    const Impl::Change& change = impl_->changes.at(tensor);
    const auto read = [&](const TensorInfo& info, DataType as) { return load_tensor(file(), info, as, cancellation); };
    if (change.b == nullptr) return read(*change.a, type);
    const DataType exact = type == DataType::f64 ? DataType::f64 : DataType::f32;
    at::Tensor merged = change.weight == nullptr ? weight(exact) : read(*change.weight, exact);
    const at::Tensor update = at::mm(read(*change.b, exact), read(*change.a, exact));
    merged.add_(change.transposed ? update.t() : update, change.scale);
    return merged.to(torch_type(type).value());
}

}  // namespace headscope::checkpoint
