// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/job_model.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/io/sha256.h"
#include "core/base/json/json.h"
#include "core/base/option.h"
#include "core/base/process/free_memory.h"
#include "core/base/process/machine.h"
#include "core/base/text/text.h"
#include "core/data/tokenizer_choice.h"
#include "core/mixers/types/approximate.h"
#include "core/mixers/types/non_approximate.h"
#include "core/mixers/types/side_by_side.h"
#include "core/mixers/types/type.h"
#include "core/model/fresh/fresh_weights.h"
#include "core/model/load/model_device.h"
#include "core/model/load/presets.h"
#include "core/model/objectives/objective.h"
#include "core/tokenizer/files/gguf_files.h"
#include "core/tokenizer/hashed/word_tokenizer.h"
#include "core/tokenizer/tokenizer.h"
#include "core/training/trainer/job_config.h"

namespace headscope::training {
namespace {

constexpr const char *kTrained = "weights, gradients and optimizer",
                     *kLessTraining = "lower training.batch or train a smaller model";

using nlohmann::json;

constexpr std::size_t kNgrams = 50'000;  ///< of a job's text, at most
constexpr const char* kNgramsName = "ngrams.json";
constexpr const char* kPiecesName = "tokenizer.json";
constexpr std::uint64_t kLargestNgrams = 64'000'000;

void check_objective(const JobFile& job, const model::ModelConfig& config) {
    model::make_objective(job.data.objective.kind, job.data.objective.classes)->check(config);
}

/// Taylor series are sums over keys: their weights are never at hand.
bool has_weights(const std::string& mixer) {
    if (mixer == mixers::kApproximate.name || mixer == mixers::kNonApproximate.name) return false;
    const mixers::MixerType* type = mixers::find_type(mixer);
    return type != nullptr ? type->has_matrix : mixer == mixers::kSideBySide.name;
}

void check_mixer(const JobFile& job, const std::string& key, const std::string& name) {
    const std::vector<std::string> known = mixers::known_names();
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    throw error_at_key(job, key, choice_error(known, name, ""));
}

void check_mixers(const JobFile& job) {
    if (!job.model.mixer.empty()) check_mixer(job, "model.mixer", job.model.mixer);
    std::vector<std::string> layouts;
    for (const auto& layout : model::layouts()) layouts.emplace_back(layout.name);
    const std::string& layout = job.model.layout;
    if (!layout.empty() && std::find(layouts.begin(), layouts.end(), layout) == layouts.end()) {
        if (layout == "custom")
            throw error_at_key(job, "model.layout",
                               Error(ErrorCode::usage, "", "expected the mixer of each layer in model.layers beside it",
                                     "found none"));
        throw error_at_key(job, "model.layout", choice_error(layouts, layout, ""));
    }
    for (const std::string& layer : job.model.layers) check_mixer(job, "model.layers", layer);
    for (const auto& [name, options] : job.model.mixers.items()) check_mixer(job, "model.mixers." + name, name);
}

/// The mixer of each of `layers` layers, by the job; empty where it says nothing.
std::vector<std::string> mixers_of(const JobFile& job, std::int64_t layers) {
    if (!job.model.layers.empty()) {
        if (static_cast<std::int64_t>(job.model.layers.size()) != layers) {
            throw error_at_key(
                job, "model.layers",
                Error(ErrorCode::usage, "", "expected the mixers of " + std::to_string(layers) + " layers",
                      "found " + std::to_string(job.model.layers.size())));
        }
        return job.model.layers;
    }
    if (job.model.mixer.empty()) return {};
    return model::layout_mixers(job.model.layout, job.model.mixer, layers);
}

/// An error about a key of config.json, reported at the job's key that it came from: [job.toml: line 4, ...].
Error at_config_key(const JobFile& job, const Error& error) {
    constexpr std::string_view prefix = "config.json: ";
    const std::size_t at = error.where().find(prefix);
    if (at == std::string::npos) return error_at_key(job, "model", error);
    std::string path = error.where().substr(at + prefix.size());
    for (std::size_t colon = path.find(": "); colon != std::string::npos; colon = path.find(": "))
        path.replace(colon, 2, "/");
    std::replace(path.begin(), path.end(), '.', '/');
    for (std::string part = path; !part.empty(); part = part.substr(0, part.find_last_of('/'))) {
        if (job.places.contains("/model/" + part)) {
            std::replace(part.begin(), part.end(), '/', '.');
            return error_at_key(job, "model." + part, error);
        }
        if (part.find('/') == std::string::npos) break;
    }
    return error_at_key(job, "model", error);
}

tokenizer::HashSettings hash_settings(const json& config) {
    if (!config.contains("embedding")) return {};
    return tokenizer::read_hash_settings(JsonView(config["embedding"], "config.json: embedding"));
}

std::shared_ptr<const tokenizer::Tokenizer> pieces_of(const JobFile& job, const tokenizer::HashSettings& settings,
                                                      std::vector<data::TokenizerFile>& files) {
    if (!settings.tokenizer_pieces) return nullptr;
    if (!job.tokenizer_given || job.data.tokenizer == "bytes" || data::trained_size(job.data.tokenizer)) {
        throw error_at_key(
            job, "data.tokenizer",
            Error(ErrorCode::usage, "",
                  "expected the tokenizer whose pieces are hashed, a tokenizer.json or a folder with one",
                  "found " + escaped(job.data.tokenizer)));
    }
    data::ChosenTokenizer chosen = data::tokenizer_at(job.base / job.data.tokenizer);
    files = std::move(chosen.files);
    // Snapshots are read by it.
    if (std::none_of(files.begin(), files.end(), [](const auto& file) { return file.name == kPiecesName; })) {
        throw error_at_key(job, "data.tokenizer",
                           Error(ErrorCode::usage, "", "expected a tokenizer.json, whose pieces are hashed",
                                 "found none in " + escaped(job.data.tokenizer)));
    }
    return chosen.tokenizer;
}

/// Files of a checkpoint's folder besides its weights.
data::HashedWords words_in(const std::filesystem::path& folder, const tokenizer::HashSettings& settings) {
    data::HashedWords words;
    words.tokenizer =
        std::dynamic_pointer_cast<const tokenizer::WordTokenizer>(tokenizer::read_word_tokenizer(folder, settings));
    // In the order that a new job has them in, which the hash of its data follows.
    if (settings.hash == tokenizer::WordHashKind::lsh)
        words.files.push_back({kNgramsName, read_small_file(folder / kNgramsName, kLargestNgrams, "list of n-grams")});
    if (!settings.tokenizer_pieces) return words;
    const std::vector<data::TokenizerFile> files = data::tokenizer_at(folder / kPiecesName).files;
    words.files.insert(words.files.end(), files.begin(), files.end());
    return words;
}

std::unique_ptr<model::Trainable> open_model(const JobFile& job, Progress& progress, const Cancellation& cancellation) {
    const auto file = checkpoint::Checkpoint::open(job.base / job.model.from);
    std::map<int, std::string> swap;
    const model::ModelConfig config = model::inspect(*file).config;
    const std::vector<std::string> mixers = mixers_of(job, config.all_layers());
    for (std::size_t layer = 0; layer < mixers.size(); ++layer) swap[static_cast<int>(layer)] = mixers[layer];
    model::MixerSwap changes(swap, job.model.mixers.empty() ? std::string() : mixer_options(job).dump());
    const bool pairs = !config.encoder && data::kind_of(job.data.objective).pairs();
    if (!config.causal || pairs) changes.head = other_head(job, config.head, config.classes, config.hashed.is_table());
    return model::Trainable::open(*file, weight_type(job), changes, static_cast<std::uint64_t>(job.seed), &progress,
                                  &cancellation);
}

}  // namespace

std::vector<std::string> mixers_without_weights(const JobFile& job, const model::ModelConfig& config) {
    std::vector<std::string> without;
    if (job.training.attention_dropout <= 0) return without;
    bool any = config.mixers.empty() || config.encoder != nullptr;  // cross-attention has weights
    std::vector<std::string> all = config.mixers;
    if (config.encoder) all.insert(all.end(), config.encoder->mixers.begin(), config.encoder->mixers.end());
    for (const std::string& mixer : all) {
        if (has_weights(mixer))
            any = true;
        else if (mixer != model::kNoMixer && std::find(without.begin(), without.end(), mixer) == without.end())
            without.push_back(mixer);
    }
    if (any) return without;
    throw error_at_key(job, "training.attention_dropout",
                       Error(ErrorCode::unsupported, "", "expected 0, or a layer whose mixer has attention weights",
                             "found " + list_text(without, 40)));
}

data::HashedWords hashed_words(const tokenizer::HashSettings& settings, const std::string& ngrams,
                               const std::vector<float>& normal, std::shared_ptr<const tokenizer::Tokenizer> pieces) {
    using tokenizer::Ngrams;
    using tokenizer::WordHash;
    data::HashedWords words;
    std::shared_ptr<const WordHash> hash;
    if (settings.hash == tokenizer::WordHashKind::lsh) {
        auto list = parse_json(ngrams, kNgramsName).get<std::vector<std::string>>();
        hash = std::make_shared<WordHash>(settings, std::make_shared<Ngrams>(std::move(list), kNgramsName), normal);
        words.files.push_back({kNgramsName, ngrams});
    } else {
        hash = std::make_shared<WordHash>(settings);
    }
    words.tokenizer = std::make_shared<tokenizer::WordTokenizer>(std::move(hash), std::move(pieces));
    return words;
}

std::optional<data::HashedWords> hashed_words(const JobFile& job, const std::filesystem::path& folder,
                                              const data::DataPlaces& places, Progress& progress,
                                              const Cancellation& cancellation) {
    const std::filesystem::path own = folder.empty() && !job.model.from.empty() ? job.base / job.model.from : folder;
    if (!own.empty()) {
        const auto settings = tokenizer::hash_settings_in(own);
        return settings ? std::optional(words_in(own, *settings)) : std::nullopt;
    }
    tokenizer::HashSettings settings;
    try {
        settings = hash_settings(preset_config(job));
    } catch (const Error& error) {
        throw at_config_key(job, error);
    }
    if (settings.is_table()) return std::nullopt;
    std::vector<data::TokenizerFile> files;
    auto pieces = pieces_of(job, settings, files);
    std::string list;
    std::vector<float> normal;
    if (settings.hash == tokenizer::WordHashKind::lsh) {
        const std::vector<std::string> found =
            data::frequent_ngrams(job.data, places, kNgrams, progress, cancellation, pieces.get());
        if (found.empty()) {
            throw error_at_key(job, "data", Error(ErrorCode::usage, "", "expected text to train on", "found no words"));
        }
        settings.ngrams = static_cast<std::int64_t>(found.size());
        list = tokenizer::ngrams_json(found);
        normal = model::fresh_hash_normal(static_cast<std::uint64_t>(job.seed), settings.ngrams);
    }
    data::HashedWords words = hashed_words(settings, list, normal, std::move(pieces));
    words.files.insert(words.files.end(), files.begin(), files.end());
    return words;
}

std::string model_config(const JobFile& job, const OfData& data) {
    check_mixers(job);
    json config = preset_config(job);
    const bool hashes = config.contains("embedding");
    const std::vector<std::string> mixers = mixers_of(job, config.at("num_hidden_layers").get<std::int64_t>());
    if (!mixers.empty()) config["layers"] = mixers;
    if (!job.model.mixers.empty()) {
        if (!config.contains("mixers")) config["mixers"] = json::object();
        config["mixers"].merge_patch(mixer_options(job));  // a preset's other options stay
    }
    if (!hashes && !job.model.config.contains("vocab_size")) config["vocab_size"] = data.vocabulary;
    if (!hashes && config["vocab_size"].get<std::int64_t>() < data.vocabulary) {
        throw error_at_key(job, "model.vocab_size",
                           Error(ErrorCode::mismatch, "",
                                 "expected at least the tokenizer's " + std::to_string(data.vocabulary) + " tokens",
                                 "found " + config["vocab_size"].dump()));
    }
    if (data.ngrams > 0) config["embedding"]["ngrams"] = data.ngrams;
    if (data.decoder_start >= 0 && !config.contains("decoder_start_token_id"))
        config["decoder_start_token_id"] = data.decoder_start;
    if (!job.model.config.contains("max_position_embeddings")) {
        config["max_position_embeddings"] =
            std::max(config["max_position_embeddings"].get<std::int64_t>(), job.data.sequence_length);
    }
    model::Inspection inspection;
    try {
        inspection = model::inspect_config(config.dump());
        if (inspection.config.max_positions < job.data.sequence_length && inspection.config.max_positions > 0) {
            throw Error(ErrorCode::usage, "config.json: max_position_embeddings",
                        "expected at least the sequences' " + std::to_string(job.data.sequence_length) + " tokens",
                        "found " + std::to_string(inspection.config.max_positions));
        }
    } catch (const Error& error) {
        throw at_config_key(job, error);
    }
    try {
        check_objective(job, inspection.config);
    } catch (const Error& error) {
        throw error_at_key(job, "objective.kind", Error(error.code(), "", error.expected(), error.found()));
    }
    mixers_without_weights(job, inspection.config);
    check_memory(job, inspection.config, static_cast<double>(inspection.parameters));
    return json_text(config);
}

void check_from(const JobFile& job) {
    check_mixers(job);
    if (!job.model.config.empty()) {
        throw error_at_key(job, "model." + job.model.config.begin().key(),
                           Error(ErrorCode::usage, "", "expected the sizes of the checkpoint, with model.from",
                                 "found others in the job"));
    }
    std::optional<model::Inspection> inspection;
    try {
        const auto file = checkpoint::Checkpoint::open(job.base / job.model.from);
        if (file->has_config()) inspection = model::inspect(*file);
    } catch (const Error& error) {
        throw error_at_key(job, "model.from", error);
    }
    if (inspection) expect_free_memory(job, *inspection);
}

void check_tokenizer(const JobFile& job) {
    const data::DataSettings& settings = job.data;
    if (settings.generator || job.model.from.empty() || settings.tokenizer != standard_tokenizer(job)) return;
    std::filesystem::path folder = job.base / settings.tokenizer;
    if (tokenizer::may_be_gguf(folder) && tokenizer::gguf_documents(folder)) return;
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error))
        folder = folder.has_parent_path() ? folder.parent_path() : std::filesystem::path(".");
    if (tokenizer::Tokenizer::is_in(folder)) return;
    throw error_at_key(job, "data.tokenizer",
                       Error(ErrorCode::usage, "",
                             "expected the tokenizer that model.from was trained with to be named here (\"bytes\", a "
                             "tokenizer.json or a folder with one), for none that can be read lies beside its weights",
                             "found none"));
}

std::unique_ptr<model::Trainable> make_model(const JobFile& job, const OfData& data, Progress& progress,
                                             const Cancellation& cancellation) {
    if (job.model.from.empty()) {
        return model::Trainable::create(model_config(job, data), static_cast<std::uint64_t>(job.seed),
                                        weight_type(job));
    }
    check_from(job);
    std::unique_ptr<model::Trainable> model;
    try {
        model = open_model(job, progress, cancellation);
        check_objective(job, std::as_const(*model).model().config());
    } catch (const Error& error) {
        throw error_at_key(job, "model.from", error);
    }
    const auto& config = std::as_const(*model).model().config();
    mixers_without_weights(job, config);
    check_memory(job, config, static_cast<double>(model->weights().numel()));
    if (config.ids() < data.vocabulary) {
        throw error_at_key(job, "data.tokenizer",
                           Error(ErrorCode::mismatch, "",
                                 "expected a tokenizer of at most the model's " + std::to_string(config.ids()) +
                                     " tokens (that of model.from, say)",
                                 "found one of " + std::to_string(data.vocabulary)));
    }
    if (config.max_positions > 0 && job.data.sequence_length > config.max_positions) {
        throw error_at_key(job, "data.sequence_length",
                           Error(ErrorCode::limit, "",
                                 "expected at most the model's " + std::to_string(config.max_positions) + " positions",
                                 "found " + std::to_string(job.data.sequence_length)));
    }
    return model;
}

double state_bytes(const JobFile& job, double parameters) {
    const bool half = job.training.precision == "bfloat16", sums = half && job.training.several_passes();
    return parameters * (half ? 2 + 2 + 4 + 8 + (sums ? 4 : 0) : 4 + 4 + 8);
}

double least_pass_bytes(const JobFile& job, const model::ModelConfig& config) {
    // Ids and targets of a pass; four tensors as wide as the residual stream that each layer keeps for its backward
    // pass.
    const double tokens =
        static_cast<double>(job.training.pass_sequences()) * static_cast<double>(job.data.sequence_length);
    const double number = job.training.precision == "bfloat16" ? 2 : 4;
    return tokens * (2 * sizeof(std::int64_t) +
                     4 * number * static_cast<double>(config.layers) * static_cast<double>(config.hidden));
}

void expect_free_memory(const JobFile& job, const model::Inspection& inspection) {
    const double bytes =
        state_bytes(job, static_cast<double>(inspection.parameters)) + least_pass_bytes(job, inspection.config);
    expect_memory(kTrained, bytes, {}, kLessTraining);
    model::expect_device_memory(kTrained, bytes, kLessTraining);
}

void check_memory(const JobFile& job, const model::ModelConfig& config, double parameters) {
    const double memory = machine_memory(), state = state_bytes(job, parameters);
    const double pass = least_pass_bytes(job, config);
    model::expect_device_memory(kTrained, state + pass, kLessTraining);
    if (memory <= 0 || state + pass <= memory) return;
    const auto bytes = [](double value) { return size_text(static_cast<std::uint64_t>(std::min(value, 9e18))); };
    throw error_at_key(job, state > memory ? "model" : "training.batch",
                       Error(ErrorCode::limit, "", "expected a job that fits into the machine's " + bytes(memory),
                             "found one of at least " + bytes(state + pass) + ": weights and optimiser " +
                                 bytes(state) + ", a pass " + bytes(pass)));
}

at::ScalarType weight_type(const JobFile& job) {
    return job.training.precision == "bfloat16" ? at::kBFloat16 : at::kFloat;
}

std::string layout_hash(const model::Trainable& model) {
    Sha256 hash;
    for (const auto& parameter : model.parameters()) {
        if (!parameter.trained) continue;
        std::string line = parameter.name;
        for (const std::int64_t size : parameter.shape) line += " " + std::to_string(size);
        line += " at " + std::to_string(parameter.value.storage_offset()) + "\n";
        hash.update(line);
    }
    hash.update(std::to_string(model.weights().numel()) + " " + std::to_string(model.decayed()));
    return hash.finish();
}

}  // namespace headscope::training
