// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/training/job_estimate.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/checkpoint/checkpoint.h"
#include "core/cost/mixer_cost.h"
#include "core/data/catalog.h"
#include "core/mixers/types/standard.h"
#include "core/model/load/presets.h"
#include "core/training/job/job_keys.h"
#include "core/training/job/run_end.h"
#include "core/training/job/schedule.h"
#include "core/training/trainer/job_model.h"
#include "widgets/training/facts.h"
#include "widgets/training/mixer_style.h"

namespace headscope::app {
namespace {

QString text(const std::string& utf8) {
    return QString::fromStdString(utf8);
}

constexpr std::int64_t kBytes = 257;  ///< bytes and the end of a text

/// The model has a hash embedding: there is no vocabulary.
bool hashes_words(const training::JobFile& job) {
    nlohmann::json config = nlohmann::json::object();
    for (const auto& preset : model::presets())
        if (job.model.preset == preset.name) config = model::preset_json(preset.name);
    if (job.model.config.is_object()) config.update(job.model.config);
    if (!config.contains("embedding")) return false;
    const nlohmann::json& embedding = config.at("embedding");
    return embedding.is_object() && embedding.contains("kind") && embedding.at("kind") != "table";
}

/// Tokens of the job's tokenizer, as far as that is known before it is read or made; then the preset's.
std::int64_t vocabulary_of(const training::JobFile& job) {
    if (hashes_words(job)) return 0;
    if (job.data.generator)
        return std::ssize(data::make_generator(*job.data.generator, job.data.sequence_length).pieces);
    const std::string& name = job.data.tokenizer;
    constexpr std::string_view prefix = "train:";
    std::int64_t size = kBytes;
    if (name.starts_with(prefix)) {
        std::from_chars(name.data() + prefix.size(), name.data() + name.size(), size);
    } else if (name != "bytes") {
        for (const auto& preset : model::presets())
            if (job.model.preset == preset.name) size = preset.vocabulary;
    }
    return size;
}

struct Sizes {
    model::Inspection model;
    std::vector<std::string> mixers;
};

Sizes sizes_of(const training::JobFile& job) {
    Sizes sizes;
    if (job.model.from.empty()) {
        sizes.model = model::inspect_config(config_of_job(job));
    } else {
        const std::filesystem::path from(job.model.from);
        sizes.model = model::inspect(*checkpoint::Checkpoint::open(from.is_absolute() ? from : job.base / from));
    }
    const auto& config = sizes.model.config;
    // An encoder-decoder's layers are numbered through, the encoder's first.
    const auto add = [&](const model::ModelConfig& tower) {
        auto mixers = tower.mixers;
        mixers.resize(static_cast<std::size_t>(tower.layers), mixers::kStandard.name);
        sizes.mixers.insert(sizes.mixers.end(), mixers.begin(), mixers.end());
    };
    if (config.encoder) add(*config.encoder);
    add(config);
    if (!job.model.from.empty() && !job.model.layers.empty()) sizes.mixers = job.model.layers;
    if (!job.model.from.empty() && job.model.layers.empty() && !job.model.mixer.empty())
        sizes.mixers = model::layout_mixers(job.model.layout, job.model.mixer, config.all_layers());
    return sizes;
}

/// About what a pass keeps for its backward pass: per token and layer the normed inputs, projections, what mixers keep
/// beside them and the three parts of the feed-forward; the residual stream; a chunk of logits.
double activation_bytes(const training::JobFile& job, const model::ModelConfig& config) {
    const double number = job.training.precision == "bfloat16" ? 2 : 4;
    const double tokens = static_cast<double>(job.training.pass_sequences() * job.data.sequence_length);
    const auto d = static_cast<double>(config.hidden), ff = static_cast<double>(config.feed_forward);
    const auto layers = static_cast<double>(config.all_layers());
    return number * tokens * (layers * (9 * d + 3 * ff) + 4 * d) + 64e6;
}

/// Operations of forward and backward for one token: two for each weight that multiplies it and those of the mixers
/// besides their maps, and twice that for the backward pass.
double flops_per_token(const training::JobFile& job, const Sizes& sizes) {
    const auto& config = sizes.model.config;
    const auto d = static_cast<double>(config.hidden), length = static_cast<double>(job.data.sequence_length);
    const double embedding = static_cast<double>(config.ids()) * d;
    double forward = 2 * (static_cast<double>(sizes.model.parameters) - embedding);
    cost::CostSetting setting;
    setting.batch = 1;
    setting.length = job.data.sequence_length;
    setting.hidden = config.hidden;
    setting.heads = config.heads;
    setting.head_size = config.head_size;
    setting.options = config.mixer_options;
    for (const std::string& mixer : sizes.mixers) {
        if (!cost::has_cost(mixer)) continue;
        const cost::CostNumbers own = cost::evaluate(cost::mixer_cost(mixer), setting);
        forward += own.prefill / length - 2 * own.parameters;
    }
    return 3 * forward;
}

void add_length(widgets::JobEstimate& estimate, const training::JobFile& job, double tokens_per_second) {
    const auto step_tokens = static_cast<double>(job.step_tokens());
    if (job.training.steps) {
        estimate.steps = static_cast<double>(*job.training.steps);
    } else if (job.training.tokens) {
        estimate.steps = static_cast<double>(training::updates_for_tokens(*job.training.tokens, job.step_tokens()));
    } else if (job.training.minutes && tokens_per_second > 0) {
        estimate.steps = *job.training.minutes * 60 * tokens_per_second / step_tokens;
    }
    if (estimate.steps >= 1) {
        const bool held_out = job.data.generator || job.data.validation > 0 || !job.data.validation_files.empty();
        for (const std::string& warning : training::unreached_intervals(
                 job, training::run_lengths(job), 0, static_cast<std::int64_t>(estimate.steps), held_out))
            estimate.warnings << text(warning);
    }
    estimate.tokens = estimate.steps * step_tokens;
    estimate.tokens_per_second = tokens_per_second;
    if (job.training.minutes)
        estimate.seconds = *job.training.minutes * 60;
    else if (tokens_per_second > 0)
        estimate.seconds = estimate.tokens / tokens_per_second;
}

/// "70M", "1.7B" of a preset of the paper's.
double printed(const std::string& preset) {
    for (const auto& known : model::presets()) {
        if (preset != known.name) continue;
        const std::string words = known.printed;
        if (words.empty()) return 0;
        return std::stod(words) * (words.back() == 'B' ? 1e9 : 1e6);
    }
    return 0;
}

}  // namespace

widgets::JobChoices job_choices() {
    widgets::JobChoices choices;
    for (const auto& preset : model::presets())
        choices.presets.push_back(
            {{text(preset.name),
              QObject::tr("%1 – %2 wide, %3 layers").arg(text(preset.name)).arg(preset.hidden).arg(preset.layers),
              text(preset.summary)},
             preset.hidden,
             preset.heads});
    for (const auto* mixer : mixers::known_types())
        choices.mixers.push_back({text(mixer->name), widgets::mixer_title(mixer->name), text(mixer->summary)});
    for (const auto& layout : model::layouts()) {
        const std::string name = layout.name;
        choices.layouts.push_back({text(name), QObject::tr("Standard layers: %1").arg(text(layout.standard_layers)),
                                   [name](std::int64_t layers) {
                                       std::vector<bool> standard;
                                       for (const std::string& mixer : model::layout_mixers(name, "mlp", layers))
                                           standard.push_back(mixers::is_standard(mixer));
                                       return standard;
                                   }});
    }
    for (const auto& dataset : data::datasets())
        (dataset.is_generator ? choices.generators : choices.corpora)
            .push_back({text(dataset.name), text(dataset.name), text(dataset.description)});
    return choices;
}

widgets::JobEstimate estimate_job(const training::JobFile& job, double tokens_per_second,
                                  const Cancellation& cancellation) {
    widgets::JobEstimate estimate;
    add_length(estimate, job, tokens_per_second);
    try {
        const Sizes sizes = sizes_of(job);
        training::check_tokenizer(job);
        if (cancellation.requested()) throw Stopped();
        const auto& config = sizes.model.config;
        estimate.layers = sizes.mixers;
        estimate.hidden = config.hidden;
        estimate.heads = config.heads;
        estimate.parameters = static_cast<double>(sizes.model.parameters);
        estimate.printed_parameters = job.model.config.empty() ? printed(job.model.preset) : 0;
        estimate.memory = training::state_bytes(job, estimate.parameters) + activation_bytes(job, config);
        estimate.flops_per_token = flops_per_token(job, sizes);
    } catch (const Stopped&) {
        throw;
    } catch (...) {
        estimate.problem = widgets::job_problem(current_error("job"), {});
        if (estimate.problem->key.isEmpty())
            estimate.problem->key =
                job.model.from.empty() ? QStringLiteral("model.preset") : QStringLiteral("model.from");
    }
    return estimate;
}

std::string config_of_job(const training::JobFile& job) {
    return training::model_config(job, vocabulary_of(job));
}

std::string speed_key(const training::JobFile& job) {
    std::string key;
    for (const auto& one : training::job_keys()) {
        const std::string name = one.full_name();
        const bool matters = one.section == "model" || name == "data.sequence_length" || name == "data.tokenizer" ||
                             (one.section == "training" && name != "training.steps" && name != "training.tokens" &&
                              name != "training.minutes" && name != "training.epochs" && name != "training.clip");
        if (matters) key += name + "=" + one.get(job).dump() + ";";
    }
    return key;
}

}  // namespace headscope::app
