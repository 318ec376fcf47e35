// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/analyze/info_text.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/commands/analyze/generation_description.h"
#include "app/commands/console.h"
#include "core/base/text/text.h"
#include "core/model/load/residence.h"

namespace headscope::app {
namespace {

using nlohmann::json;

std::string tower_text(const json& tower) {
    const auto number = [&](const char* key) { return tower.at(key).get<std::int64_t>(); };
    const std::int64_t first = number("first_layer"), last = first + number("layers") - 1;
    return std::to_string(number("layers")) + " layers (" + std::to_string(first) + " to " + std::to_string(last) +
           "), " + std::to_string(number("heads")) + " heads of " + std::to_string(number("head_size")) +
           ", feed-forward " + std::to_string(number("feed_forward"));
}

/// Format and bytes of each residence, a line each.
std::string weights_text(const json& weights) {
    std::string text = weights.at("format").get<std::string>() + "; in memory, by --weights:";
    for (const model::Residence residence : model::kResidences) {
        const std::string name(model::name(residence));
        const json& one = weights.at("residences").at(name);
        const std::string size = size_text(one.at("bytes").get<std::uint64_t>());
        text += "\n" + std::string(20, ' ') + name + std::string(10 - name.size(), ' ') + size +
                (one.at("fits").get<bool>() ? "" : " (more than is free)");
    }
    return text;
}

std::string value_text(const json& value) {
    if (value.is_string()) return escaped(value.get<std::string>());
    if (value.is_array()) {
        std::vector<std::string> items;
        for (const auto& item : value) items.push_back(item.is_string() ? item.get<std::string>() : item.dump());
        if (items.empty()) return "none";
        if (!value[0].is_string()) {
            std::string text;
            for (std::size_t i = 0; i < items.size() && i < 12; ++i) text += (i > 0 ? ", " : "") + items[i];
            return items.size() > 12 ? text + ", ... (" + std::to_string(items.size()) + ")" : text;
        }
        return list_text(items);
    }
    if (value.is_object()) {
        std::string text;
        for (const auto& [key, item] : value.items())
            if (item.is_boolean() && item.get<bool>()) text += (text.empty() ? "" : ", ") + key;
        return text.empty() ? "none" : text;
    }
    if (value.is_null()) return "none";
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    return value.dump();
}

/// 'my-lora of "meta-llama/...", rank 8, alpha 16, merged into 64 tensors': `adapter` may come from any file.
std::string adapter_text(const json& adapter) {
    if (!adapter.is_object()) return value_text(adapter);
    const auto text = [&](const char* key) { return adapter.contains(key) ? value_text(adapter[key]) : "none"; };
    const auto count = [&](const char* key) { return adapter.contains(key) ? adapter[key].size() : 0; };
    std::string all = text("path") + " of " + text("base") + ", rank " + text("rank") + ", alpha " + text("alpha") +
                      ", merged into " + std::to_string(count("merged")) + " tensors";
    if (count("replaced") > 0) all += ", in place of " + std::to_string(count("replaced"));
    return all;
}

/// Whole sentences, unlike list_text's short items.
std::string sentences(const json& items) {
    std::string text;
    for (const auto& item : items) text += (text.empty() ? "" : "; ") + escaped(item.get<std::string>(), 4096);
    return text.empty() ? "none" : text;
}
}  // namespace

void print_description(const json& document) {
    static const char* const kOrder[] = {"kind",
                                         "name",
                                         "tool",
                                         "model",
                                         "family",
                                         "adapter",
                                         "created",
                                         "complete",
                                         "state",
                                         "state_text",
                                         "step",
                                         "planned_steps",
                                         "tokens",
                                         "seconds",
                                         "loss",
                                         "validation_loss",
                                         "validation_step",
                                         "tokens_per_second",
                                         "layers",
                                         "encoder",
                                         "decoder",
                                         "decoder_start",
                                         "sites",
                                         "sites_done",
                                         "heads",
                                         "key_value_heads",
                                         "head_size",
                                         "experts",
                                         "experts_per_token",
                                         "hidden_size",
                                         "vocabulary",
                                         "max_positions",
                                         "causal",
                                         "classes",
                                         "parameters",
                                         "weights",
                                         "mixers",
                                         "layout",
                                         "machine",
                                         "device",
                                         "on_device",
                                         "kernels",
                                         "device_requested",
                                         "kernels_requested",
                                         "threads",
                                         "processes",
                                         "resumed",
                                         "probes",
                                         "snapshots",
                                         "models",
                                         "tasks",
                                         "metrics",
                                         "lengths",
                                         "results",
                                         "items",
                                         "tensor_count",
                                         "bytes",
                                         "files",
                                         "tokenizer",
                                         "chat_template",
                                         "generation",
                                         "sequence_lengths",
                                         "target_lengths",
                                         "tables",
                                         "interventions",
                                         "pairs",
                                         "record",
                                         "indicators",
                                         "matched",
                                         "missing",
                                         "left_over",
                                         "notes",
                                         "problems"};
    std::string text;
    for (const char* key : kOrder) {
        if (!document.contains(key)) continue;
        std::string label = key, value = value_text(document[key]);
        std::replace(label.begin(), label.end(), '_', ' ');
        if (label == "bytes") value = size_text(document[key].get<std::uint64_t>());
        if (label == "parameters") value = count_text(document[key].get<std::uint64_t>());
        if (label == "weights") value = weights_text(document[key]);
        if (label == "max positions" && value == "0") value = "no limit";
        if (label == "problems" || label == "notes") value = sentences(document[key]);
        if (label == "tokenizer" && !document[key].is_null()) value += " tokens";
        if (label == "adapter") value = adapter_text(document[key]);
        if (label == "generation") value = generation_text(document[key]);
        if (label == "encoder" || label == "decoder") value = tower_text(document[key]);
        text += label + std::string(label.size() < 18 ? 18 - label.size() : 1, ' ') + value + "\n";
    }
    print(text);
}
}  // namespace headscope::app
