// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/generation_config.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace headscope::training {

nlohmann::json generation_config(const Session& session, nlohmann::json& config) {
    using nlohmann::json;
    const bool fresh = session.job.model.from.empty();
    const bool own = fresh || session.job.data.tokenizer == standard_tokenizer(session.job);
    json generation = own && session.generation.is_object() ? session.generation : json::object();
    if (fresh) {
        generation["do_sample"] = true;
        generation["temperature"] = session.job.sample.temperature;
    }
    const auto said = config.find("eos_token_id");
    if (session.data->separator() >= 0 && (!own || said == config.end() || said->is_null()))
        config["eos_token_id"] = session.data->separator();
    if (config.contains("eos_token_id") && !generation.contains("eos_token_id"))
        generation["eos_token_id"] = config["eos_token_id"];
    const model::ModelConfig& model = std::as_const(session.learner->model()).model().config();
    if (model.encoder && model.decoder_start >= 0)
        config["decoder_start_token_id"] = generation["decoder_start_token_id"] = model.decoder_start;
    return generation;
}

}  // namespace headscope::training
