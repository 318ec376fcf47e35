// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/child.h"
#include "app/commands/analyze/generation_description.h"
#include "app/commands/analyze/info_text.h"
#include "app/commands/analyze/run_description.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/loading.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "app/commands/tensor_list.h"
#include "core/ask/corpus/headvis_tree.h"
#include "core/base/class_names.h"
#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/base/machine/memory_room.h"
#include "core/base/text/text.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/special_weights.h"
#include "core/checkpoint/weights_format.h"
#include "core/checkpoint/weights_in.h"
#include "core/model/load/memory.h"
#include "core/model/load/open_checkpoint.h"
#include "core/model/load/presets.h"
#include "core/model/model.h"
#include "core/run/journal.h"
#include "core/run/run_history.h"
#include "core/store/analysis/analysis_file.h"
#include "core/store/ask/ask_file.h"
#include "core/store/evaluation/evaluation_file.h"
#include "core/store/hdf5/file_format.h"
#include "core/store/run/run_file.h"

namespace headscope::app {
namespace info_command {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// By HDF5's signature, or by our ending. A folder, a pipe or a device is none.
bool looks_like_analysis(const fs::path& path) {
    return store::looks_like_hdf5(path) || (path.native().ends_with(".headscope.h5") && ends_at_regular_file(path));
}

/// One of an encoder-decoder's two; its layers are numbered from `first_layer` on.
json tower_json(const model::ModelConfig& config, std::int64_t first_layer) {
    return {{"layers", config.layers},       {"first_layer", first_layer},
            {"heads", config.heads},         {"key_value_heads", config.key_value_heads},
            {"head_size", config.head_size}, {"feed_forward", config.feed_forward}};
}
/// Place of the chat template; null without one. A template that cannot be used is a note: the rest can.
json describe_chat_template(const checkpoint::Checkpoint& checkpoint, json& notes) {
    const auto chat = chat_template_of(checkpoint);
    if (!chat) return nullptr;
    const tokenizer::ChatMessage message{"user", "Hello"};
    try {
        tokenizer::apply_chat_template(*chat, {&message, 1});
    } catch (const Error& error) {
        notes.push_back(std::string("chat template: ") + error.what());
    }
    std::string text = chat->file;
    if (!chat->others.empty()) text += ", with others for " + list_text(chat->others);
    return text;
}

/// Bytes of the weights in memory by type, and whether they fit into what is free now.
json weights_json(const checkpoint::Checkpoint& checkpoint, const model::Inspection& inspection) {
    const double room = own_memory_room();
    json residences = json::object();
    for (const model::Residence one : model::kResidences) {
        const double bytes = model::listed_bytes(inspection, one);
        residences[std::string(name(one))] = {
            {"bytes", static_cast<std::uint64_t>(bytes)},
            {"fits", room <= 0 || model::resident_bytes(inspection, checkpoint::LoadAs::float32, one) <= room}};
    }
    return {{"format", checkpoint::weights_format(checkpoint)}, {"residences", residences}};
}

/// Describes a checkpoint without reading a weight. A reason why it is no model is listed as a problem: its tensors can
/// still be listed.
json describe_checkpoint(const checkpoint::Checkpoint& checkpoint) {
    json problems = json::array(), notes = checkpoint.notes(), files = json::array();
    std::uint64_t bytes = 0, elements = 0;
    for (const auto& [name, tensor] : checkpoint.tensors()) {
        bytes += tensor.bytes;
        elements += static_cast<std::uint64_t>(tensor.elements);
    }
    for (const auto& file : checkpoint.files()) files.push_back(file.filename().string());
    json document = {{"kind", "checkpoint"},
                     {"name", checkpoint.display_name()},
                     {"files", files},
                     {"tensor_count", checkpoint.tensors().size()},
                     {"stored_elements", elements},
                     {"bytes", bytes}};
    if (const auto* adapter = checkpoint.adapter()) {
        document["adapter"] = {{"path", adapter->path().string()}, {"name", adapter->display_name()},
                               {"base", adapter->base()},          {"rank", adapter->rank()},
                               {"alpha", adapter->alpha()},        {"merged", adapter->merged()},
                               {"replaced", adapter->replaced()},  {"left_out", adapter->left_out()}};
    }
    if (!checkpoint.has_config()) {
        problems.push_back("no config.json: the tensors can be listed, the model cannot be run");
        if (const auto special = checkpoint::special_weights(checkpoint))
            problems.push_back('[' + special->where + "] " + special->expected + "; " + special->found);
    } else {
        try {
            const auto inspection = model::inspect(checkpoint);
            document["family"] = inspection.config.family;
            document["layers"] = inspection.config.all_layers();
            document["heads"] = inspection.config.heads;
            document["key_value_heads"] = inspection.config.key_value_heads;
            document["head_size"] = inspection.config.head_size;
            if (inspection.config.experts > 0) {
                document["experts"] = inspection.config.experts;
                document["experts_per_token"] = inspection.config.experts_per_token;
            }
            document["hidden_size"] = inspection.config.hidden;
            document["vocabulary"] = inspection.config.vocabulary;
            document["max_positions"] = inspection.config.max_positions;
            document["causal"] = inspection.config.causal;
            if (inspection.config.has_classes() && inspection.config.head != model::HeadKind::spans)
                document["classes"] = all_class_names(inspection.config.original_json, inspection.config.classes);
            if (inspection.config.family == "headscope") {
                document["mixers"] = inspection.config.mixers;
                document["layout"] = model::layout_of(inspection.config.mixers);
            }
            if (inspection.config.encoder) {
                document["encoder"] = tower_json(*inspection.config.encoder, 0);
                document["decoder"] = tower_json(inspection.config, inspection.config.encoder->layers);
                document["decoder_start"] = inspection.config.decoder_start;
            }
            document["parameters"] = inspection.parameters;
            document["weights"] = weights_json(checkpoint, inspection);
            document["matched"] = inspection.report.matched;
            document["missing"] = inspection.report.missing;
            document["left_over"] = inspection.report.left_over;
            for (const auto& note : inspection.report.notes) notes.push_back(note);
        } catch (const Error& error) {
            problems.push_back(error.what());
        }
    }
    try {
        const auto tokenizer = tokenizer_of(checkpoint);
        document["tokenizer"] = tokenizer ? json(tokenizer->vocabulary_size()) : json();
    } catch (const Error& error) {
        problems.push_back(error.what());
    }
    try {
        document["chat_template"] = describe_chat_template(checkpoint, notes);
    } catch (const Error& error) {
        problems.push_back(error.what());
    }
    try {
        if (document.value("causal", true)) document["generation"] = describe_generation(checkpoint, notes);
    } catch (const Error& error) {
        problems.push_back(error.what());
    }
    document["notes"] = notes;
    document["problems"] = problems;
    return document;
}

json describe_analysis(const fs::path& path) {
    const auto file = store::AnalysisFile::open(path);
    file->check();  // as readers of its values do
    const auto& header = file->header();
    json sequences = json::array();
    for (const auto& sequence : header.sequences) sequences.push_back(sequence.ids.size());
    json pairs = json::array();
    for (const auto& sequence : header.sequences) {
        const auto count = [&](int region) {
            return std::count(sequence.regions.begin(), sequence.regions.end(), region);
        };
        if (!sequence.regions.empty())
            pairs.push_back(std::to_string(count(1)) + " tokens of A, " + std::to_string(count(2)) + " of B, " +
                            std::to_string(count(0)) + " inserted");
    }
    json targets = json::array();
    if (&header.output_sequences() != &header.sequences)
        for (const auto& target : header.output_sequences()) targets.push_back(target.ids.size());
    json document = {{"kind", "analysis"},
                     {"name", path.filename().string()},
                     {"model", header.model_name},
                     {"family", header.model_type},
                     {"created", header.created},
                     {"program_version", header.program_version},
                     {"complete", file->complete()},
                     {"layers", header.mixers.size()},
                     {"sites", header.sites.size()},
                     {"sites_done", file->done_sites().size()},
                     {"heads", header.most_heads()},
                     {"sequence_lengths", sequences},
                     {"record",
                      {{"maps", header.record.maps},
                       {"attention", header.record.attention},
                       {"norms", header.record.norms},
                       {"states", header.record.states},
                       {"logits", header.record.logits},
                       {"experts", header.record.experts},
                       {"implicit", header.record.implicit},
                       {"branch-weights", header.record.branches}}},
                     {"indicators", file->indicators()},
                     {"model_sha256", header.model_sha256},
                     {"problems", file->problems()}};
    if (header.classes > 0) document["classes"] = all_class_names(header.config_json, header.classes);
    if (!targets.empty()) document["target_lengths"] = targets;
    if (header.record.experts) {
        document["experts"] = header.experts;
        document["experts_per_token"] = header.experts_per_token;
    }
    if (!pairs.empty()) document["pairs"] = pairs;
    const json settings = parse_json(header.settings_json, path.filename().string() + ": settings");
    if (settings.is_object() && settings.contains("adapter")) document["adapter"] = settings["adapter"];
    describe_device(document, settings);
    return document;
}

/// Analyses, runs, evaluations and ask files, by the format that the file names.
json describe_hdf5(const fs::path& path) {
    const std::string format = store::hdf5_format(path);
    if (format == "headscope-run") return describe_run(store::read_run_file(path));
    if (format == "headscope-evaluation") {
        store::read_items(path);  // read here before the window reads them: a damaged file may end this process
        return describe_evaluation(store::read_evaluation(path), path.filename().string());
    }
    if (format == "headscope-ask") return describe_ask(store::read_ask(path), path.filename().string());
    return describe_analysis(path);
}
struct InfoOptions {
    std::vector<std::string> paths;
    std::string adapter;
    bool json = false, tensors = false;
};

/// A journal is read by code of ours; where it is gone, run.h5 by the HDF5 library.
std::vector<fs::path> hdf5_files(const std::vector<std::string>& paths) {
    std::vector<fs::path> files;
    for (const std::string& path : paths) {
        if (looks_like_analysis(path))
            files.emplace_back(path);
        else if (training::is_run_folder(path) && !ends_at_regular_file(fs::path(path) / training::kJournalName))
            files.push_back(fs::path(path) / "run.h5");
    }
    return files;
}

void print_checkpoint(const std::string& path, const InfoOptions& options) {
    // An adapter alone is no model, but it has tensors.
    const bool alone = options.adapter.empty() && checkpoint::adapter_alone(path);
    const auto checkpoint = alone ? checkpoint::Checkpoint::open(checkpoint::adapter_weights(path))
                                  : model::open_checkpoint(path, options.adapter);
    json document = describe_checkpoint(*checkpoint);
    if (alone) {
        document["kind"] = "adapter";
        document["adapter"] = checkpoint::adapter_text(path);
        document["problems"] = json::array({"an adapter is no model: open its base with --adapter " + path});
    }
    if (options.json) return print_json_with_tensors(document, *checkpoint);
    print_description(document);
    if (!options.tensors && document["problems"].empty()) return;
    print("\n");
    print_tensor_table(*checkpoint);
}

void print_info(const std::string& path, const InfoOptions& options) {
    if (ask::corpus::is_headvis_tree(path)) {
        const json tree = describe_ask(ask::corpus::read_headvis_tree(path), fs::path(path).filename().string());
        return options.json ? print_json(tree) : print_description(tree);
    }
    const bool analysis = looks_like_analysis(path);
    if (!analysis && !training::is_run_folder(path)) return print_checkpoint(path, options);
    const json document = analysis ? describe_hdf5(path) : describe_run(training::read_run(path, false));
    options.json ? print_json(document) : print_description(document);
}

}  // namespace
}  // namespace info_command

void add_info(CLI::App& app, Context& context) {
    using namespace info_command;
    auto* command =
        app.add_subcommand("info", "What a checkpoint, an analysis, a run, an evaluation or an ask file is");
    auto options = std::make_shared<InfoOptions>();
    add_option(*command, "path", options->paths,
               "A checkpoint folder, a weight file, an analysis file, a run folder, an evaluation file, an ask file, "
               "HeadVis's data tree; "
               "several are described in turn")
        ->required();
    add_option(*command, "--adapter", options->adapter,
               "A folder with a LoRA adapter (PEFT) to merge into a checkpoint");
    add_flag(*command, "--json", options->json, "One JSON document for each path");
    add_flag(*command, "--tensors", options->tensors, "List every tensor");
    command->callback([&context, options, command] {
        context.command = [&context, options, given = given_options(*command)] {
            const bool models = std::any_of(options->paths.begin(), options->paths.end(), [](const std::string& path) {
                return !looks_like_analysis(path) && !training::is_run_folder(path) &&
                       !ask::corpus::is_headvis_tree(path);
            });
            check_options("info", given, {models ? "checkpoints" : "other files"});
            if (!options->adapter.empty() && options->paths.size() > 1)
                throw UsageError("--adapter needs one checkpoint; found " + std::to_string(options->paths.size()));
            if (const auto files = hdf5_files(options->paths); !files.empty())
                continue_in_child(files, context.cancellation);
            for (const std::string& path : options->paths) {
                if (!options->json && &path != &options->paths.front()) print("\n");
                std::optional<OpeningLimits> limits;
                if (const auto files = hdf5_files({path}); !files.empty()) limits.emplace(files);
                print_info(path, *options);
            }
        };
    });
}

}  // namespace headscope::app
