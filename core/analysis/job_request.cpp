// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/job_request.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/analysis/switched_heads.h"
#include "core/analysis/text_sources.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/weights_format.h"
#include "core/model/load/model_device.h"
#include "core/model/model.h"

namespace headscope::analysis {
namespace {

std::string text_of(const nlohmann::json& settings) {
    return settings.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);  // paths are bytes
}

std::string settings_json(const AnalysisJob& job, const Input& input, const checkpoint::Checkpoint& file) {
    const checkpoint::Adapter* adapter = file.adapter();
    nlohmann::json settings = to_json(job);
    model::store_device(settings, job.dtype);
    settings["weights_format"] = checkpoint::weights_format(file);
    settings["first_token"] = input.first_token.empty() ? "as given" : input.first_token;
    if (adapter != nullptr) {
        settings["adapter"] = {{"path", adapter->path().string()}, {"name", adapter->display_name()},
                               {"base", adapter->base()},          {"rank", adapter->rank()},
                               {"alpha", adapter->alpha()},        {"merged", adapter->merged()},
                               {"replaced", adapter->replaced()}};
    }
    return text_of(settings);
}

}  // namespace

InputOptions input_options(const AnalysisJob& job, const JobModel& model) {
    InputOptions input;
    input.texts = job.texts;
    input.pairs = job.pairs;
    input.files.assign(job.files.begin(), job.files.end());
    input.token_files.assign(job.tokens.begin(), job.tokens.end());
    input.examples = job.examples;
    input.first_token = job.bos == "yes" ? FirstToken::yes : job.bos == "no" ? FirstToken::no : FirstToken::automatic;
    if (model.tokenizer != nullptr) input.first_token_id = beginning_token(model.checkpoint, *model.tokenizer);
    input.length = job.length;
    input.windows = job.windows;
    input.repeat_token = job.repeat_token;
    input.vocabulary = model.inspection.config.source_vocabulary();
    return input;
}

TargetOptions target_options(const AnalysisJob& job, const model::ModelConfig& config) {
    TargetOptions target;
    target.texts = job.targets;
    target.token_files.assign(job.target_tokens.begin(), job.target_tokens.end());
    target.start = static_cast<std::int32_t>(config.decoder_start);
    target.vocabulary = config.ids();
    target.length = job.windows ? 0 : job.length;
    target.repeat_token = job.repeat_token;
    return target;
}

std::string with_residence(const std::string& settings_json, model::Residence residence) {
    nlohmann::json settings = nlohmann::json::parse(settings_json);
    settings["weights"] = model::name(residence);
    return text_of(settings);
}

std::string with_interventions(const std::string& settings_json, const std::string& toml) {
    nlohmann::json settings = nlohmann::json::parse(settings_json);
    settings["interventions"] = toml;
    return text_of(settings);
}

AnalysisRequest make_request(const AnalysisJob& job, const JobModel& model, Input& input,
                             const Cancellation& cancellation) {
    const model::Inspection& inspection = model.inspection;
    AnalysisRequest request;
    request.settings_json = settings_json(job, input, model.checkpoint);
    request.sequences = std::move(input.sequences);
    if (inspection.config.encoder) {
        request.targets = read_targets(target_options(job, inspection.config), request.sequences.size(),
                                       model.tokenizer, &cancellation);
    }
    if (!job.labels.empty()) request.labels = read_label_file(job.labels);
    request.record = record_levels(job.record);
    const auto how = job.switch_off_how == "mean" ? model::Action::mean : model::Action::zero;
    request.interventions = parse_switched_off(job.switch_off, how, inspection.sites);
    request.segments = {job.segment, job.memory};
    request.beyond_positions = job.beyond_positions;
    request.all_rows = job.all_rows;
    request.maps_int16 = job.maps_int16;
    return request;
}

}  // namespace headscope::analysis
