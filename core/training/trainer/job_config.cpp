// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/job_config.h"

#include <cmath>

#include "core/base/error.h"
#include "core/data/objectives/list.h"
#include "core/model/load/native_config.h"
#include "core/model/load/native_head.h"
#include "core/model/load/presets.h"

namespace headscope::training {
namespace {

using nlohmann::json;

constexpr std::int64_t kFormatPositions = 2048;  ///< without a preset, as in the native format

/// The same for a configuration; without a head it gets the objective's.
std::string other_head(const JobFile& job, const json& config) {
    const json head = config.value("head", json{{"kind", "none"}});
    const model::NativeHead* named = model::find_native_head(head.value("kind", "language"));
    return other_head(job, named == nullptr ? model::HeadKind::vocabulary : named->head,
                      head.value("classes", std::int64_t{0}), !config.contains("embedding"));
}

json base_config(const JobFile& job) {
    if (!job.model.preset.empty()) {
        try {
            return model::preset_json(job.model.preset);
        } catch (const Error& error) {
            throw error_at_key(job, "model.preset", Error(error.code(), "", error.expected(), error.found()));
        }
    }
    for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"}) {
        if (!job.model.config.contains(key))
            throw error_at_key(
                job, std::string("model.") + key,
                Error(ErrorCode::usage, "", "expected a number, as model.preset is empty", "found none"));
    }
    return {{"model_type", model::kNativeFamily}, {"max_position_embeddings", kFormatPositions}};
}

/// Refuses keys of [model] that nothing of the configuration reads.
void check_config_use(const JobFile& job, const json& config) {
    const auto refuse = [&](const char* key, const std::string& expected, const std::string& found) {
        throw error_at_key(job, std::string("model.") + key,
                           Error(ErrorCode::usage, "", "expected " + expected, found));
    };
    const json& said = job.model.config;
    if (said.contains("layer_norm_eps") && config.value("norm", "rms") != "layer")
        refuse("layer_norm_eps", "norm = \"layer\" with it", "found norm = \"rms\"");
    const bool rotary = config.value("positions", config.value("rotary", true) ? "rotary" : "none") == "rotary";
    for (const char* key : {"rope_theta", "rope_parameters"})
        if (said.contains(key) && !rotary) refuse(key, "rotary positions with it", "found others");
    const json head = config.value("head", json::object());
    const bool language = !config.contains("embedding") && head.value("kind", "language") == "language";
    if (said.contains("head_bias") && !language)
        refuse("head_bias", "a head of kind \"language\" with it", "found another head");
}

/// Keys of the stack that follow other keys of the job where it does not have them.
void follow_stack(json& config, const json& changes) {
    const bool two = config.value("stack", "decoder") == "encoder_decoder";
    if (!two && !changes.contains("num_encoder_layers")) config.erase("num_encoder_layers");
    if (two && !config.contains("num_encoder_layers"))
        config["num_encoder_layers"] = config.value("num_hidden_layers", std::int64_t{2}) / 2;
    if (changes.contains("positions") && !changes.contains("rotary")) config.erase("rotary");
    if (changes.contains("rotary") && !changes.contains("positions")) config.erase("positions");
}

}  // namespace

std::string other_head(const JobFile& job, model::HeadKind head, std::int64_t classes, bool has_vocabulary) {
    const data::ObjectiveSettings& objective = job.data.objective;
    const data::ObjectiveKind& kind = data::kind_of(objective);
    const model::NativeHead* wanted = model::find_native_head(kind.head);
    if (wanted == nullptr || (wanted->head == model::HeadKind::vocabulary && !has_vocabulary)) return {};
    json keys{{"kind", kind.head}};
    if (wanted->has_classes()) keys["classes"] = kind.head_classes(objective);
    const bool same = head == wanted->head && (!wanted->has_classes() || classes == keys["classes"]);
    return same ? std::string() : keys.dump();
}

json preset_config(const JobFile& job) {
    json config = base_config(job);
    const json& changes = job.model.config;
    // Values derived from sizes follow the changed ones.
    if (changes.contains("hidden_size") || changes.contains("num_attention_heads")) config.erase("head_dim");
    if (changes.contains("num_attention_heads")) config.erase("num_key_value_heads");
    const auto changed = [&changes](const char* key) {
        return changes.contains(key) && changes.at(key).is_number_integer() ? changes.at(key).get<std::int64_t>() : 0;
    };
    if (config.value("embedding_scale", 1.0) != 1 && changed("hidden_size") > 0)
        config["embedding_scale"] = std::sqrt(static_cast<double>(changed("hidden_size")));
    if (config.contains("num_encoder_layers") && changed("num_hidden_layers") > 0)
        config["num_encoder_layers"] = changed("num_hidden_layers") / 2;
    config.update(changes);
    follow_stack(config, changes);
    // A table of the vocabulary is one kind of embedding; of another there is no vocabulary.
    if (config.value("embedding", json::object()).value("kind", json("table")) == "table") {
        config.erase("embedding");
    } else {
        for (const char* key : {"vocab_size", "tie_word_embeddings"})
            if (!changes.contains(key)) config.erase(key);
        config["tie_word_embeddings"] = config.value("tie_word_embeddings", false);
        if (!changes.contains("head")) config.erase("head");  // the preset's may be of a vocabulary
    }
    if (const std::string head = other_head(job, config); !head.empty()) {
        if (changes.contains("head"))
            throw error_at_key(job, "model.head",
                               Error(ErrorCode::usage, "",
                                     "expected the head of objective.kind = \"" + job.data.objective.kind + "\", " +
                                         head + ", or no such key",
                                     "found " + changes.at("head").dump()));
        config["head"] = json::parse(head);
    }
    check_config_use(job, config);
    return config;
}

}  // namespace headscope::training
