// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/figures/figure_inputs.h"

#include <fnmatch.h>

#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "app/child.h"
#include "app/commands/console.h"
#include "core/ask/corpus/headvis_tree.h"
#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/base/text/nearest_word.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/tensor_summary.h"
#include "core/cost/cost_table.h"
#include "core/cost/measure.h"
#include "core/figures/make_figure.h"
#include "core/model/load/presets.h"
#include "core/run/run_history.h"
#include "core/store/analysis/analysis_file.h"
#include "core/store/ask/ask_file.h"
#include "core/store/evaluation/evaluation_file.h"
#include "core/store/hdf5/file_format.h"
#include "core/store/run/run_file.h"
#include "core/tokenizer/hashed/sample_hash.h"
#include "core/tokenizer/hashed/word_tokenizer.h"
#include "core/training/job/job_name.h"

namespace headscope::app {
namespace {

namespace fs = std::filesystem;
using checkpoint::Checkpoint;
using figures::CostModel;
using figures::FigureInputs;
using nlohmann::json;

constexpr std::size_t kMostTensors = 256;  ///< of a figure: more panels are not readable

/// The names in the checkpoint that an option's name or pattern means. Throws Error.
std::vector<std::string> tensors_like(const Checkpoint& checkpoint, const std::string& wanted) {
    if (checkpoint.tensors().contains(wanted)) return {wanted};
    if (checkpoint.unreadable().contains(wanted)) checkpoint.tensor(wanted);  // says why
    std::vector<std::string> names, known;
    for (const auto& [name, tensor] : checkpoint.tensors()) {
        known.push_back(name);
        if (::fnmatch(wanted.c_str(), name.c_str(), 0) == 0) names.push_back(name);
    }
    if (!names.empty()) return names;
    const std::string near = nearest_word(wanted, known);
    throw Error(ErrorCode::mismatch, checkpoint.path().string(),
                "expected a tensor named, or named like, " + escaped(wanted),
                "found " + std::to_string(known.size()) + " others" +
                    (near.empty() ? ", see headscope info --tensors" : "; did you mean " + escaped(near) + "?"));
}

/// Sizes and mixers of a configuration: ours as analyses keep it, or a config.json.
struct Sizes {
    std::int64_t hidden = 0, heads = 0, positions = 0;
    std::vector<std::string> mixers{};
};

constexpr const char* kAllMixers = "all";

Sizes sizes_of(const std::string& config_json, const std::string& where) {
    const json config = parse_json(config_json, where);
    const JsonView view(config, where);
    const auto number = [&](const char* ours, const char* theirs, std::int64_t least) {
        const std::string key = view.has(ours) ? ours : theirs;
        return view.at(key).integer({least, std::int64_t{1} << 32U});
    };
    Sizes sizes{number("hidden", "hidden_size", 1), number("heads", "num_attention_heads", 1), 0};
    if (view.has("max_positions") || view.has("max_position_embeddings"))
        sizes.positions = number("max_positions", "max_position_embeddings", 0);
    return sizes;
}

/// A native configuration of these sizes, for stacks that are measured.
std::string native_config(const Sizes& sizes) {
    json config = model::preset_json(model::presets().front().name);
    config["hidden_size"] = sizes.hidden;
    config["num_attention_heads"] = sizes.heads;
    config["num_key_value_heads"] = sizes.heads;
    config["head_dim"] = sizes.hidden / sizes.heads;
    config["intermediate_size"] = 2 * sizes.hidden;
    return config.dump();
}

class Opener {
public:
    Opener(const figures::FigureRequest& request, const Cancellation& cancellation)
        : request_(request), cancellation_(cancellation) {}

    void add(const fs::path& path) {
        cancellation_.check();
        if (store::looks_like_hdf5(path)) {
            add_hdf5(path);
        } else if (training::is_run_folder(path)) {
            add_run(training::read_run(path));
        } else if (is_of(figures::RecipeInputs::asks) && ask::corpus::is_headvis_tree(path)) {
            inputs_.asks.push_back(std::make_shared<store::AskRecord>(ask::corpus::read_headvis_tree(path)));
        } else if (is_of(figures::RecipeInputs::tensors)) {
            add_tensors_of(path);
        } else if (wants_sizes()) {
            add_checkpoint(path);
        } else if (is_of(figures::RecipeInputs::hashes)) {
            add_hash(path);
        } else {
            inputs_.analyses.push_back(store::AnalysisFile::open(path));  // says what it is not
        }
    }

    /// Reads the numbers of tensors. Not part of opening: they may be gigabytes.
    void read_tensors() {
        for (auto& [checkpoint, spread] : unread_) {
            spread.numbers = std::make_shared<checkpoint::TensorSummary>(checkpoint::summarise_tensor(
                *checkpoint, spread.tensor, checkpoint::kUsualBins, [](double) {}, cancellation_));
            inputs_.tensors.push_back(std::move(spread));
        }
        unread_.clear();
    }

    /// After all files, as a figure compares the mixers of all of them. Measuring takes minutes.
    void count_costs() {
        std::vector<std::string> mixers = request_.options.mixers;
        if (mixers == std::vector<std::string>{kAllMixers}) {
            mixers.clear();
        } else if (mixers.empty()) {
            std::vector<std::string> own;
            for (const auto& [name, sizes] : sizes_) own.insert(own.end(), sizes.mixers.begin(), sizes.mixers.end());
            mixers = cost::shown_mixers(own);
        }
        for (const auto& [name, sizes] : sizes_) count_costs(name, sizes, mixers);
        sizes_.clear();
    }

    FigureInputs take() { return std::move(inputs_); }

private:
    struct Unread {
        std::shared_ptr<const Checkpoint> checkpoint;
        figures::TensorSpread spread;  ///< without its numbers
    };

    bool is_of(figures::RecipeInputs inputs) const {
        const figures::Recipe* recipe = figures::find_recipe(request_.recipe);
        return recipe != nullptr && recipe->is_of(inputs);
    }
    bool wants_sizes() const { return is_of(figures::RecipeInputs::models); }

    void add_tensors_of(const fs::path& path) {
        if (request_.options.tensors.empty()) {
            throw Error(ErrorCode::usage, "--tensor",
                        "expected the name of a tensor, or a pattern (headscope info --tensors lists them)",
                        "found none");
        }
        const auto checkpoint = Checkpoint::open(path);
        std::string title = checkpoint->display_name();
        const auto taken = [&] {
            return std::any_of(unread_.begin(), unread_.end(),
                               [&](const Unread& other) { return other.spread.model == title; });
        };
        for (int number = 2; taken(); ++number)
            title = checkpoint->display_name() + " (" + std::to_string(number) + ")";
        std::vector<std::string> names;
        const auto check_count = [](std::size_t count) {
            if (count <= kMostTensors) return;
            throw Error(ErrorCode::usage, "--tensor", "expected at most " + std::to_string(kMostTensors) + " tensors",
                        "found " + std::to_string(count));
        };
        for (const auto& wanted : request_.options.tensors) {
            std::vector<std::string> like = tensors_like(*checkpoint, wanted);
            check_count(like.size());  // before half a million names are compared with each other
            for (auto& name : like)
                if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
            check_count(unread_.size() + names.size());
        }
        for (auto& name : names) {
            const auto& info = checkpoint->tensor(name);
            unread_.push_back({checkpoint, {title, std::move(name), checkpoint::stored_type(info), info.shape, {}}});
        }
    }

    /// "md5" and "lsh" are the program's own, where there is no such file.
    void add_hash(const fs::path& path) {
        using tokenizer::WordHashKind;
        std::error_code ignored;
        const bool there = fs::exists(path, ignored);
        for (const auto& [name, kind] : {std::pair("md5", WordHashKind::md5), std::pair("lsh", WordHashKind::lsh)}) {
            if (there || path.native() != name) continue;
            inputs_.hashes.push_back({"", tokenizer::sample_hash(kind)});
            return;
        }
        const fs::path folder = fs::is_directory(path, ignored) ? path : path.parent_path();
        const auto settings = there ? tokenizer::hash_settings_in(folder) : std::nullopt;
        if (!settings || !settings->has_bits()) {
            throw Error(ErrorCode::usage, path.string(),
                        "expected md5, lsh, or a checkpoint with a hash embedding whose words have bits",
                        !there     ? "found no such file"
                        : settings ? "found a hash embedding without bits"
                                   : "found none");
        }
        const auto words = tokenizer::read_word_tokenizer(folder, *settings);
        // The hash lives as long as its tokenizer.
        inputs_.hashes.push_back({Checkpoint::open(path)->display_name(),
                                  std::shared_ptr<const tokenizer::WordHash>(words, words->word_hash())});
    }

    void add_hdf5(const fs::path& path) {
        const std::string format = store::hdf5_format(path);
        if (format == "headscope-run") {
            add_run(store::read_run_file(path));
        } else if (format == "headscope-evaluation") {
            auto evaluation = std::make_shared<store::Evaluation>(store::read_evaluation(path));
            if (!request_.options.significance.empty()) evaluation->items = store::read_items(path);
            inputs_.evaluations.push_back(std::move(evaluation));
        } else if (format == "headscope-ask") {
            inputs_.asks.push_back(std::make_shared<store::AskRecord>(store::read_ask(path)));
        } else {
            auto file = store::AnalysisFile::open(path);
            if (!wants_sizes()) return inputs_.analyses.push_back(std::move(file));
            Sizes sizes = sizes_of(file->header().config_json, path.filename().string());
            sizes.mixers = file->header().mixers;
            sizes_.emplace_back(file->header().model_name, std::move(sizes));
        }
    }

    void add_run(store::RunRecord record) {
        record.title = training::job_name(record.job);
        if (wants_sizes()) {
            const std::string& name = record.title.empty() ? record.name : record.title;
            Sizes sizes = sizes_of(record.config_json, record.name);
            sizes.mixers = record.mixers;
            sizes_.emplace_back(name, std::move(sizes));
            return;
        }
        inputs_.runs.push_back(std::make_shared<store::RunRecord>(std::move(record)));
    }

    void add_checkpoint(const fs::path& path) {
        const auto& presets = model::presets();
        const auto preset = std::find_if(presets.begin(), presets.end(),
                                         [&](const model::Preset& known) { return path.native() == known.name; });
        std::error_code ignored;
        if (preset != presets.end() && !fs::exists(path, ignored))
            return static_cast<void>(
                sizes_.emplace_back(preset->name, Sizes{preset->hidden, preset->heads, preset->positions}));
        const auto checkpoint = Checkpoint::open(path);
        const auto config = model::inspect(*checkpoint).config;
        sizes_.emplace_back(checkpoint->display_name(),
                            Sizes{config.hidden, config.heads, config.max_positions, config.mixers});
    }

    void count_costs(const std::string& name, const Sizes& sizes, const std::vector<std::string>& mixers) {
        const figures::FigureOptions& options = request_.options;
        cost::CostSetting setting;
        setting.hidden = sizes.hidden;
        setting.heads = sizes.heads;
        setting.batch = options.batch.value_or(setting.batch);
        setting.tensor_parallel = options.tensor_parallel.value_or(setting.tensor_parallel);
        setting.bytes = options.bytes.value_or(setting.bytes);
        std::vector<std::int64_t> lengths;
        for (std::int64_t length = 64; length <= std::max<std::int64_t>(16384, 4 * sizes.positions); length *= 2)
            lengths.push_back(length);
        if (options.length && *options.length > 0) lengths.push_back(*options.length);
        if (sizes.positions > 0) lengths.push_back(sizes.positions);
        std::sort(lengths.begin(), lengths.end());
        lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
        auto table = std::make_shared<cost::CostTable>(cost::paper_table(setting, lengths, mixers));
        if (options.measure) measure(*table, sizes, mixers);
        inputs_.models.push_back({name, sizes.positions, std::move(table)});
    }

    /// At a few lengths that a laptop does in a minute, and the one asked for.
    void measure(cost::CostTable& table, const Sizes& sizes, const std::vector<std::string>& mixers) const {
        constexpr std::int64_t longest = 1024;
        std::vector<std::int64_t> lengths;
        for (std::int64_t length = 64; length <= longest; length *= 4) lengths.push_back(length);
        const auto asked = request_.options.length;
        if (asked && std::find(lengths.begin(), lengths.end(), *asked) == lengths.end()) lengths.push_back(*asked);
        cost::CostTable some = cost::paper_table(table.setting, lengths, mixers);
        ConsoleProgress progress;
        cost::measure_table(some, native_config(sizes), progress, cancellation_);
        for (auto& row : table.rows) {
            const auto it = std::find_if(some.rows.begin(), some.rows.end(), [&](const cost::CostRow& measured) {
                return measured.mixer == row.mixer && measured.length == row.length;
            });
            if (it == some.rows.end()) continue;
            row.measured = it->measured;
            row.guide_flops = it->guide_flops;
        }
    }

    const figures::FigureRequest& request_;
    const Cancellation& cancellation_;
    FigureInputs inputs_;
    std::vector<Unread> unread_;
    std::vector<std::pair<std::string, Sizes>> sizes_;  ///< of models by name, whose costs are not counted yet
};

}  // namespace

FigureInputs open_figure_inputs(const std::vector<fs::path>& paths, const figures::FigureRequest& request,
                                const Cancellation& cancellation) {
    Opener opener(request, cancellation);
    {
        // Measuring is no opening: it takes what it takes.
        const auto limits = request.options.measure ? nullptr : std::make_unique<OpeningLimits>(paths);
        for (const auto& path : paths) opener.add(path);
    }
    opener.read_tensors();
    opener.count_costs();
    return opener.take();
}

}  // namespace headscope::app
