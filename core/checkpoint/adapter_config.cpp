// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/adapter_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/base/json/json.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"

namespace headscope::checkpoint {
namespace {

constexpr std::int64_t largest_rank = 1 << 20;

/// Keys that say where the adapter came from, how it was trained, or which modules its tensors are of, which their
/// names say too.
constexpr std::string_view idle_keys[] = {"auto_mapping",      "base_model_name_or_path",
                                          "corda_config",      "eva_config",
                                          "exclude_modules",   "inference_mode",
                                          "layers_pattern",    "layers_to_transform",
                                          "loftq_config",      "lora_dropout",
                                          "megatron_core",     "peft_version",
                                          "qalora_group_size", "revision",
                                          "runtime_config",    "target_modules",
                                          "task_type"};
/// Keys that are read.
constexpr std::string_view read_keys[] = {"alpha_pattern",
                                          "bias",
                                          "ensure_weight_tying",
                                          "fan_in_fan_out",
                                          "init_lora_weights",
                                          "lora_alpha",
                                          "modules_to_save",
                                          "peft_type",
                                          "r",
                                          "rank_pattern",
                                          "use_rslora"};

template <class List>
bool is_in(const List& list, std::string_view word) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

/// Null, false, 0, "" and empty containers: a key that is there for completeness.
bool is_unset(const nlohmann::json& value) {
    return value.is_null() || value == false || value == 0 || value == "" || (value.is_structured() && value.empty());
}

/// Patterns are regular expressions in PEFT; written by people they are ends of modules' names.
void expect_plain(const JsonView& patterns, const std::string& key) {
    if (key.find_first_of("^$*+?()[]{}|\\") == std::string::npos) return;
    throw Error(ErrorCode::unsupported, patterns.where(), "expected plain names of modules",
                "found the pattern \"" + escaped(key) + '"');
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

}  // namespace

std::int64_t AdapterConfig::rank_of(const std::string& module) const {
    return of_pattern(ranks, module, rank, where + ": rank_pattern");
}

double AdapterConfig::scale_of(const std::string& module) const {
    const auto own = static_cast<double>(rank_of(module));
    return of_pattern(alphas, module, alpha, where + ": alpha_pattern") / (rank_stabilized ? std::sqrt(own) : own);
}

bool AdapterConfig::saves_whole(const std::string& module) const {
    return std::any_of(saved_whole.begin(), saved_whole.end(), [&module](const std::string& name) {
        return module == name || module.ends_with('.' + name) || name.ends_with('.' + module);
    });
}

AdapterConfig read_adapter_config(const std::filesystem::path& path) {
    const nlohmann::json document = read_python_json_file(path, largest_adapter_config, "adapter's configuration");
    AdapterConfig config;
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
    config.rank_stabilized = view.boolean_or("use_rslora", false);
    config.fan_in_fan_out = view.boolean_or("fan_in_fan_out", false);
    config.ties_weights = view.boolean_or("ensure_weight_tying", false);
    if (const auto saved = view.find("modules_to_save"))
        for (std::size_t n = 0; n < saved->array().size(); ++n) config.saved_whole.push_back(saved->at(n).string());
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

}  // namespace headscope::checkpoint
