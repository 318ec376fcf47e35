// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/console.h"
#include "app/context.h"
#include "app/loading.h"
#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/base/text.h"
#include "core/model/model.h"
#include "core/store/analysis_file.h"

namespace headscope::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// By HDF5's signature, at byte 0 in every file that we write. A folder, a pipe or a device is none.
bool looks_like_hdf5(const fs::path& path) {
    if (!is_regular_file(path)) return false;
    const InputFile file(path);
    std::array<char, 8> begin{};
    if (file.size() < begin.size()) return false;
    file.read(0, begin.data(), begin.size());
    return std::string_view(begin.data(), begin.size()) == "\x89HDF\r\n\x1a\n";
}

json shape_json(const checkpoint::TensorInfo& tensor) {
    return {{"name", tensor.name},
            {"type", checkpoint::name(tensor.type)},
            {"shape", tensor.shape},
            {"bytes", tensor.bytes}};
}

/// What a checkpoint is, without reading a weight. What cannot be opened as a model is told as a problem: its tensors
/// can still be listed.
json describe_checkpoint(const fs::path& path) {
    const auto checkpoint = checkpoint::Checkpoint::open(path);
    json problems = json::array(), notes = json::array(), tensors = json::array(), files = json::array();
    std::uint64_t bytes = 0, parameters = 0;
    for (const auto& [name, tensor] : checkpoint->tensors()) {
        tensors.push_back(shape_json(tensor));
        bytes += tensor.bytes;
        parameters += static_cast<std::uint64_t>(tensor.elements);
    }
    for (const auto& file : checkpoint->files()) files.push_back(file.filename().string());
    json document = {{"kind", "checkpoint"},           {"name", checkpoint->display_name()}, {"files", files},
                     {"tensor_count", tensors.size()}, {"stored_elements", parameters},      {"bytes", bytes}};
    if (!checkpoint->has_config()) {
        problems.push_back("no config.json: the tensors can be listed, the model cannot be run");
    } else {
        try {
            const auto inspection = model::inspect(*checkpoint);
            document["family"] = inspection.config.family;
            document["layers"] = inspection.config.layers;
            document["heads"] = inspection.config.heads;
            document["key_value_heads"] = inspection.config.key_value_heads;
            document["head_size"] = inspection.config.head_size;
            document["hidden_size"] = inspection.config.hidden;
            document["vocabulary"] = inspection.config.vocabulary;
            document["max_positions"] = inspection.config.max_positions;
            document["causal"] = inspection.config.causal;
            document["parameters"] = inspection.parameters;
            document["matched"] = inspection.report.matched;
            document["missing"] = inspection.report.missing;
            document["left_over"] = inspection.report.left_over;
            notes = inspection.report.notes;
        } catch (const Error& error) {
            problems.push_back(error.what());
        }
    }
    try {
        const auto tokenizer = tokenizer_of(*checkpoint);
        document["tokenizer"] = tokenizer ? json(tokenizer->vocabulary_size()) : json();
    } catch (const Error& error) {
        problems.push_back(error.what());
    }
    document["notes"] = notes;
    document["problems"] = problems;
    document["tensors"] = tensors;
    return document;
}

json describe_analysis(const fs::path& path) {
    const auto file = store::AnalysisFile::open(path);
    const auto& header = file->header();
    json sequences = json::array();
    for (const auto& sequence : header.sequences) sequences.push_back(sequence.ids.size());
    std::int64_t done = 0;
    for (std::size_t s = 0; s < header.sequences.size(); ++s)
        for (std::size_t n = 0; n < header.sites.size(); ++n)
            done += file->site_done(static_cast<std::int64_t>(s), static_cast<std::int64_t>(n)) ? 1 : 0;
    return {{"kind", "analysis"},
            {"name", path.filename().string()},
            {"model", header.model_name},
            {"family", header.model_type},
            {"created", header.created},
            {"program_version", header.program_version},
            {"complete", file->complete()},
            {"layers", header.mixers.size()},
            {"sites", header.sites.size()},
            {"sites_done", done},
            {"heads", header.most_heads()},
            {"sequence_lengths", sequences},
            {"record",
             {{"maps", header.record.maps},
              {"attention", header.record.attention},
              {"states", header.record.states},
              {"logits", header.record.logits}}},
            {"indicators", file->indicators()},
            {"model_sha256", header.model_sha256},
            {"problems", json::array()}};
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

void print_description(const json& document, bool tensors) {
    static const char* const kOrder[] = {"kind",
                                         "name",
                                         "model",
                                         "family",
                                         "created",
                                         "complete",
                                         "layers",
                                         "sites",
                                         "sites_done",
                                         "heads",
                                         "key_value_heads",
                                         "head_size",
                                         "hidden_size",
                                         "vocabulary",
                                         "max_positions",
                                         "causal",
                                         "parameters",
                                         "tensor_count",
                                         "bytes",
                                         "files",
                                         "tokenizer",
                                         "sequence_lengths",
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
        if (label == "tokenizer" && !document[key].is_null()) value += " tokens";
        text += label + std::string(label.size() < 18 ? 18 - label.size() : 1, ' ') + value + "\n";
    }
    if (tensors && document.contains("tensors")) {
        std::vector<std::vector<std::string>> rows;
        for (const auto& tensor : document["tensors"]) {
            std::string shape;
            for (const auto& size : tensor["shape"]) shape += (shape.empty() ? "" : " x ") + size.dump();
            rows.push_back({escaped(tensor["name"].get<std::string>()), tensor["type"],
                            shape.empty() ? "scalar" : shape, size_text(tensor["bytes"].get<std::uint64_t>())});
        }
        text += "\n" + format_table({"tensor", "type", "shape", "size"}, rows);
    }
    print(text);
}

}  // namespace

void add_info(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("info", "What a checkpoint or an analysis file is");
    struct Options {
        std::string path;
        bool json = false, tensors = false;
    };
    auto options = std::make_shared<Options>();
    command->add_option("path", options->path, "A checkpoint folder, a .safetensors file, an analysis file")
        ->required();
    command->add_flag("--json", options->json, "One JSON document");
    command->add_flag("--tensors", options->tensors, "List every tensor");
    command->callback([&context, options] {
        context.command = [options] {
            const json document =
                looks_like_hdf5(options->path) ? describe_analysis(options->path) : describe_checkpoint(options->path);
            if (options->json)
                print_json(document);
            else
                print_description(document, options->tensors || !document.value("problems", json::array()).empty());
        };
    });
}

}  // namespace headscope::app
