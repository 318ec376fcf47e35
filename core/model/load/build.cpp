// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/build.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/special_weights.h"
#include "core/mixers/types/type.h"
#include "core/model/load/generation_settings.h"
#include "core/model/load/native_config.h"
#include "core/model/load/presets.h"

namespace headscope::model {
namespace {

/// Layers are made before tensors are checked one by one: their number must be one that the file's tensors justify.
void check_layers(const checkpoint::Checkpoint& file, const ConfigReader& reader, const ModelConfig& config,
                  const TensorNames& names) {
    const std::size_t layers =
        config.shared_layers.empty() ? static_cast<std::size_t>(config.layers) : names.listed_layers.size();
    if (layers > file.tensors().size()) {
        throw Error(ErrorCode::mismatch, reader.where(names.keys.layers),
                    "expected no more layers than the file has tensors (" + std::to_string(file.tensors().size()) + ")",
                    "found " + std::to_string(layers));
    }
}

void fill_mixers(ModelConfig& config) {
    if (config.mixers.empty()) config.mixers = mixers::standard_layers(config.layers);
}

bool has_embedding(const checkpoint::Checkpoint& file, const TensorNames& names, const std::string& prefix) {
    for (const std::string& table : {names.token_embedding, names.shared_embedding})
        if (!table.empty() && file.tensors().count(prefix + table + ".weight") != 0) return true;
    return false;
}

bool has_layers(const checkpoint::Checkpoint& file, const TensorNames& names, const std::string& prefix) {
    const std::string stem = prefix + (names.listed_layers.empty() ? names.layer.substr(0, names.layer.find("{}"))
                                                                   : names.listed_layers.front());
    const auto at = file.tensors().lower_bound(stem);
    return at != file.tensors().end() && at->first.compare(0, stem.size(), stem) == 0;
}

/// True if a tensor belongs to a layer of this tower, under any prefix.
bool has_layers(const checkpoint::Checkpoint& file, const TensorNames& names) {
    return std::any_of(names.prefixes.begin(), names.prefixes.end(),
                       [&](const std::string& prefix) { return has_layers(file, names, prefix); });
}

/// The prefix under which the embedding lies, else layers; of those without either, the first.
std::string find_prefix(const checkpoint::Checkpoint* file, const TensorNames& names) {
    for (const bool by_layers : {false, true}) {
        for (const std::string& prefix : names.prefixes) {
            if (file && (by_layers ? has_layers(*file, names, prefix) : has_embedding(*file, names, prefix)))
                return prefix;
        }
    }
    return names.prefixes.front();
}

bool is_in(const checkpoint::Checkpoint& file, const TensorNames& names, const std::string& before) {
    return std::any_of(names.prefixes.begin(), names.prefixes.end(), [&](const std::string& prefix) {
        return has_embedding(file, names, before + prefix) || has_layers(file, names, before + prefix);
    });
}

/// Prefix that training frameworks put before every name (the head's, too) when the model is a member of theirs;
/// empty if the names exist without it.
std::string find_nesting(const checkpoint::Checkpoint& file, const TensorNames& names) {
    for (const char* before : {"", "model.", "module.", "_orig_mod.", "module.model.", "model._orig_mod."})
        if (is_in(file, names, before)) return before;
    return "";
}

/// Chooses the layout of layer names that this file has, among those of the family.
void choose_layout(const checkpoint::Checkpoint& file, TensorNames& names, const std::string& before) {
    const auto fits = [&](const TensorNames& layout) {
        return std::any_of(layout.prefixes.begin(), layout.prefixes.end(),
                           [&](const std::string& prefix) { return has_layers(file, layout, before + prefix); });
    };
    if (fits(names)) return;
    const auto found = std::find_if(names.others.begin(), names.others.end(), fits);
    if (found != names.others.end()) names = TensorNames(*found);
}

void nest(TensorNames& names, const std::string& before) {
    for (std::string& prefix : names.prefixes) prefix.insert(0, before);
    for (std::string& bias : names.head_bias) bias.insert(0, before);
    for (std::string* name :
         {&names.head, &names.old_head, &names.logits_bias, &names.head_transform, &names.head_transform_norm}) {
        if (!name->empty()) name->insert(0, before);
    }
}

/// Fills in what a tied embedding is read from where the file lacks it: the first of `others` that it has.
void find_lone_embedding(const checkpoint::Checkpoint& file, TensorNames& names, const std::vector<std::string>& others,
                         std::vector<std::string>& notes) {
    if (has_embedding(file, names, names.prefix)) return;
    for (const std::string& other : others) {
        if (file.tensors().count(other + ".weight") == 0) continue;
        names.lone_embedding = other + ".weight";
        notes.push_back("the token embedding " + escaped(names.prefix + names.token_embedding) +
                        " is not in the file: what shares its numbers is, " + escaped(names.lone_embedding));
        return;
    }
}

/// The head's names where it is the embedding.
std::vector<std::string> tied_heads(const ModelConfig& config, const TensorNames& names) {
    if (!config.tied_head || names.head.empty()) return {};
    std::vector<std::string> heads{names.head};
    if (!names.old_head.empty()) heads.push_back(names.old_head);
    return heads;
}

void find_lone_embeddings(const checkpoint::Checkpoint& file, Blueprint& made) {
    std::vector<std::string> others = tied_heads(made.config, made.names);
    if (!made.encoder_names || made.config.own_embedding)
        return find_lone_embedding(file, made.names, others, made.notes);
    // Both towers' are one, and their second name is looked for first.
    const auto table_of = [](const TensorNames& names) { return names.prefix + names.token_embedding; };
    others.insert(others.begin(), table_of(made.names));
    find_lone_embedding(file, *made.encoder_names, others, made.notes);
    others.front() = table_of(*made.encoder_names);
    find_lone_embedding(file, made.names, others, made.notes);
}

/// True for a file that declares an encoder alone (T5EncoderModel), false for one that lost its decoder.
bool encoder_alone(const ConfigReader& reader) {
    if (!reader.boolean("is_encoder_decoder", true)) return true;
    const std::vector<std::string> classes = reader.texts("architectures");
    return std::any_of(classes.begin(), classes.end(), [](const std::string& name) {
        constexpr std::string_view end = "EncoderModel";
        return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
    });
}

/// The files' start token takes the place of the one that the family read: of config.json, or its class's.
void find_decoder_start(const checkpoint::Checkpoint& file, ModelConfig& config) {
    if (const auto start = decoder_start_token(file)) config.decoder_start = *start;
}

void check_decoder_start(const std::string& where, const ModelConfig& config) {
    if (config.decoder_start < config.vocabulary) return;
    throw Error(ErrorCode::mismatch, where + ": decoder_start_token_id",
                "expected a token below " + std::to_string(config.vocabulary),
                "found " + std::to_string(config.decoder_start));
}

/// Files of a class with a head that no recipe reads have no head for the vocabulary either, tied or not.
void leave_out_other_head(const ConfigReader& reader, Blueprint& made) {
    if (made.config.head != HeadKind::vocabulary || made.config.family == kNativeFamily) return;
    for (const std::string& name : reader.texts("architectures")) {
        for (const std::string_view end : {"ForSequenceClassification", "ForTokenClassification",
                                           "ForQuestionAnswering", "ForMultipleChoice", "ForNextSentencePrediction"}) {
            if (!std::string_view(name).ends_with(end)) continue;
            made.config.head = HeadKind::none;
            made.config.tied_head = made.config.head_transform = made.config.head_bias = false;
            made.names.head.clear();
            made.notes.push_back("the head of " + escaped(name) + " is not read");
            return;
        }
    }
}

/// `is_causal`, which transformers' masks obey for every decoder: embedding models are made of decoders so. A null is
/// false there. Windows then reach both ways, and one key further.
void read_is_causal(const ConfigReader& reader, const Family& family, ModelConfig& config) {
    // Configurations of models with images have the key in the text's part.
    const auto text = reader.has_object("text_config") ? reader.object("text_config") : std::nullopt;
    const ConfigReader& said = text ? *text : reader;
    if (!config.causal || (!said.is_null("is_causal") && said.boolean("is_causal", true))) return;
    if (config.encoder || family.name == kNativeFamily || !config.mixers.empty())
        reader.unsupported("is_causal", "true, for a decoder of this family sees no later token");
    config.causal = false;
    for (std::int64_t& window : config.windows) {
        if (window > 0) ++window;
    }
}

/// Refuses keys that transformers applies to any configuration and no recipe reads: names of other files, and its own
/// names of sizes, which override a family's.
void refuse_unread(const ConfigReader& reader, const SizeKeys& own, const ModelConfig& config) {
    for (const char* key : {"transformers_weights", "configuration_files"}) {
        if (reader.has(key)) reader.unsupported(key, "none: the files that lie here are opened");
    }
    const SizeKeys usual;
    const auto expect_same = [&reader](const std::string& name, const std::string& key, std::int64_t value) {
        if (key == name || !reader.has(name) || reader.count(name, value) == value) return;
        reader.unsupported(name, std::to_string(value) + ", what " + key + " is");
    };
    expect_same(usual.hidden, own.hidden, config.hidden);
    expect_same(usual.layers, own.layers, config.layers);
    expect_same(usual.heads, own.heads, config.heads);
    expect_same(usual.positions, own.positions, config.max_positions);
    if (own.head_size.find(' ') == std::string::npos) expect_same(usual.head_size, own.head_size, config.head_size);
}

/// Quantised, adapted or renamed weights: the cause, before names and shapes that miss because of it.
void refuse_special(const checkpoint::Checkpoint& file) {
    if (const auto special = checkpoint::special_weights(file))
        throw Error(special->code, special->where, special->expected, special->found);
}

/// Refuses an adapter that changes an embedding which is also the head: no merged table could serve as both, except a
/// table that replaces both.
void check_tied(const checkpoint::Adapter& adapter, const ModelConfig& config, const TensorNames& names) {
    if (!config.tied_head) return;
    std::vector<std::string> tables{names.lone_embedding};
    for (const std::string& stem : {names.token_embedding, names.shared_embedding})
        if (!stem.empty()) tables.push_back(names.prefix + stem + ".weight");
    for (const std::string& head : tied_heads(config, names)) tables.push_back(head + ".weight");
    for (const std::string& table : tables) {
        if (!adapter.changes(table) || table == adapter.shared_table()) continue;
        throw Error(ErrorCode::unsupported, escaped(adapter.display_name()),
                    "expected an adapter that leaves the embedding alone, which is the head too (tie_word_embeddings)",
                    "found one that changes \"" + escaped(table) + '"');
    }
}

void check_adapter(const checkpoint::Adapter& adapter, const Blueprint& made) {
    check_tied(adapter, made.config, made.names);
    if (made.encoder_names) check_tied(adapter, made.config, *made.encoder_names);
    if (const auto turned = adapter.open_direction(); turned && *turned != made.names.transposed) {
        throw Error(ErrorCode::mismatch, std::string(checkpoint::adapter_config_name) + ": fan_in_fan_out",
                    made.names.transposed ? "expected true, for linear weights of this family lie [in, out]"
                                          : "expected false, for linear weights of this family lie [out, in]",
                    *turned ? "found true" : "found false");
    }
}

/// A native stack stored under the names of a transformers class: that layout, and the native configuration with the
/// special tokens beside it.
struct NativeInside {
    std::string layout;
    nlohmann::json config;
};

NativeInside native_inside(const nlohmann::json& as_read) {
    const ConfigReader reader(as_read, "config.json");
    NativeInside found{reader.text("model_type", ""), as_read.at(kNativeInside)};
    for (const auto& [key, value] : as_read.items())
        if (key.ends_with("_token_id") && !found.config.contains(key)) found.config[key] = value;
    return found;
}

/// Names tensors of a native stack by `layout`, or, of a fresh one, by the transformers class that it equals.
void choose_native_layout(const std::string& layout, bool fresh, ModelConfig& config) {
    const std::string other = foreign_layout(config);
    if (!fresh && layout.empty()) return;
    if (!layout.empty() && layout != other) {
        throw Error(ErrorCode::mismatch, std::string("config.json: ") + kNativeInside,
                    "expected a stack that is " + escaped(layout) + " in transformers, as model_type says",
                    other.empty() ? "found one that is none" : "found " + other);
    }
    set_layout(config, other);
}

void expect_config(const checkpoint::Checkpoint& file) {
    if (file.has_config()) return;
    refuse_special(file);
    throw Error(ErrorCode::mismatch, escaped(file.display_name()), "expected config.json beside the weights",
                "found none");
}

}  // namespace

Blueprint make_blueprint(const checkpoint::Checkpoint& file) {
    expect_config(file);
    return make_blueprint(file.config(), &file);
}

Blueprint make_blueprint(const nlohmann::json& as_read, const checkpoint::Checkpoint* file) {
    if (file) refuse_special(*file);
    const bool inside = as_read.is_object() && as_read.contains(kNativeInside) && as_read.at(kNativeInside).is_object();
    NativeInside own = inside ? native_inside(as_read) : NativeInside{"", as_read};
    nlohmann::json& config = own.config;
    const ConfigReader reader(config, "config.json");
    const Family& family = find_family(reader);
    if (file && family.fill_in) family.fill_in(config, *file);
    if (!file) reader.positive("initializer_range", 0.02);  // of the weights that are about to be made
    Blueprint made;
    made.config = family.read(reader);
    made.config.family = family.name;
    const bool native = family.name == kNativeFamily;
    if (inside && !native) reader.unsupported("model_type", kNativeFamily);
    if (native) choose_native_layout(own.layout, !file, made.config);
    read_is_causal(reader, family, made.config);
    made.names = family.names(made.config);
    leave_out_other_head(reader, made);
    if (made.config.encoder)
        refuse_unread(reader, family.encoder_names(*made.config.encoder).keys, *made.config.encoder);
    else
        refuse_unread(reader, made.names.keys, made.config);
    const std::string nesting = file ? find_nesting(*file, made.names) : "";
    if (file) choose_layout(*file, made.names, nesting);
    if (!nesting.empty()) {
        nest(made.names, nesting);
        made.notes.push_back('"' + nesting + "\" stands before every name");
    }
    if (made.config.encoder) {
        auto encoder = std::make_shared<ModelConfig>(*made.config.encoder);
        encoder->family = family.name;
        made.encoder_names = family.encoder_names(*encoder);
        if (!nesting.empty()) nest(*made.encoder_names, nesting);
        made.encoder_names->prefix = find_prefix(file, *made.encoder_names);
        if (file) check_layers(*file, reader, *encoder, *made.encoder_names);
        fill_mixers(*encoder);
        made.config.encoder = encoder;
        if (file && !has_layers(*file, made.names) && encoder_alone(reader)) {
            made.config = *encoder;
            made.names = *std::exchange(made.encoder_names, std::nullopt);
            made.notes.push_back("the file holds an encoder alone");
        } else {
            if (file) find_decoder_start(*file, made.config);
            check_decoder_start(file ? generation_keys_of(*file).file : "config.json", made.config);
        }
    }
    if (reader.has("auto_map")) made.notes.push_back("config.json names code of its own (auto_map): none is run");
    made.names.prefix = find_prefix(file, made.names);
    if (file) find_lone_embeddings(*file, made);
    if (file && file->adapter()) check_adapter(*file->adapter(), made);
    if (file) check_layers(*file, reader, made.config, made.names);
    fill_mixers(made.config);
    made.config.name = file ? file->display_name() : "a new model";
    // Names of classes lie outside, where transformers has them.
    if (inside && as_read.contains("id2label")) config["id2label"] = as_read.at("id2label");
    made.config.original_json = config.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return made;
}

checkpoint::LoadAs choose_precision(const checkpoint::Checkpoint& file, checkpoint::LoadAs asked) {
    if (asked != checkpoint::LoadAs::stored) return asked;
    const auto all = [&file](checkpoint::DataType type) {
        return std::all_of(file.tensors().begin(), file.tensors().end(),
                           [type](const auto& tensor) { return tensor.second.type == type; });
    };
    if (all(checkpoint::DataType::bf16)) return checkpoint::LoadAs::bfloat16;
    return all(checkpoint::DataType::f64) ? checkpoint::LoadAs::float64 : checkpoint::LoadAs::float32;
}

}  // namespace headscope::model
