// SPDX-License-Identifier: GPL-3.0-or-later
// Every key that flash-linear-attention and PEFT write is read, harmless for a stated reason, or refused. The lists of
// keys come from those libraries (tests/oracle/generate/fla_keys.py, peft_models.py): a key that is missing below
// fails.
#include "tests/catch_with_torch.h"

#include <fstream>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/checkpoint/adapter_config.h"
#include "core/model/load/recipe.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/configs/family_config.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using nlohmann::json;
using test::IsError;

namespace {

/// Effect of a key at a value that is not its default.
struct Verdict {
    enum class Kind { read, refused, harmless } kind;
    json value;         ///< not the default
    std::string why;    ///< of a harmless one
    json with = {};     ///< other keys, without which the value would do nothing
    json refused = {};  ///< of one that is read: a value that is not built
};
using Verdicts = std::map<std::string, Verdict>;

Verdict is_read(const json& value, const json& with = json::object(), const json& refused = {}) {
    return {Verdict::Kind::read, value, "", with, refused};
}
Verdict is_refused(const json& value) {
    return {Verdict::Kind::refused, value, ""};
}
Verdict is_harmless(const json& value, const std::string& why) {
    return {Verdict::Kind::harmless, value, why};
}

json golden(const std::string& name) {
    std::ifstream file(test::golden_file(name));
    return json::parse(file);
}

/// The same keys on both sides.
void check_complete(const json& keys, const Verdicts& verdicts) {
    std::set<std::string> theirs, ours;
    for (const auto& [key, otherwise] : keys.items()) theirs.insert(key);
    for (const auto& [key, verdict] : verdicts) ours.insert(key);
    CHECK(theirs == ours);
}

json merged(json config, const json& more) {
    config.update(more);
    return config;
}

const std::string kTraining = "a matter of training, not of what weights compute";
const std::string kSpeed = "the same numbers by another kernel";
const std::string kTokens = "no part of the model: generation reads it";
const std::string kFresh = "what fresh weights begin with";

const json kAttention{{"attn", {{"layers", {1}}, {"num_heads", 16}}}};

/// Keys of all models but Mamba2.
Verdicts common() {
    return {{"hidden_size", is_read(4096)},
            {"num_hidden_layers", is_read(3)},
            {"hidden_ratio", is_read(3)},
            {"intermediate_size", is_read(77)},
            {"hidden_act", is_refused("powlu")},
            {"norm_eps", is_read(1e-3)},
            {"vocab_size", is_read(99)},
            {"tie_word_embeddings", is_read(true)},
            {"initializer_range", is_read(0.5)},
            {"attnres_block_size", is_refused(2)},
            {"use_cache", is_harmless(false, kSpeed)},
            {"fuse_norm", is_harmless(false, kSpeed)},
            {"fuse_swiglu", is_harmless(false, kSpeed)},
            {"fuse_cross_entropy", is_harmless(false, kTraining)},
            {"fuse_linear_cross_entropy", is_harmless(true, kTraining)},
            {"use_l2warp", is_harmless(true, kTraining)},
            {"pad_token_id", is_harmless(3, "its vector is zero in a fresh model alone")},
            {"bos_token_id", is_harmless(5, kTokens)},
            {"eos_token_id", is_harmless(5, kTokens)}};
}

Verdicts with_mixer(const Verdicts& own) {
    Verdicts all = common();
    all.insert({{"attn_mode", is_harmless("fused_recurrent", kSpeed)},
                {"attn", is_read(kAttention.at("attn"))},
                {"max_position_embeddings", is_read(4096, kAttention)}});
    all.insert(own.begin(), own.end());
    return all;
}

std::map<std::string, Verdicts> fla_verdicts() {
    const std::string unread = "the library's layers of this class do not read it";
    std::map<std::string, Verdicts> all;
    all["gated_deltanet"] = with_mixer({{"expand_v", is_read(1.0)},
                                        {"use_gate", is_read(false)},
                                        {"use_short_conv", is_read(false)},
                                        {"allow_neg_eigval", is_read(true)},
                                        {"conv_size", is_read(2)},
                                        {"head_dim", is_read(128)},
                                        {"num_heads", is_read(3)},
                                        {"num_v_heads", is_read(12)},
                                        {"output_gate_activation", is_read("sigmoid", json::object(), "tanh")}});
    all["delta_net"] = with_mixer({{"expand_k", is_read(0.5)},
                                   {"expand_v", is_read(0.5)},
                                   {"use_gate", is_read(true)},
                                   {"use_short_conv", is_read(false)},
                                   {"allow_neg_eigval", is_read(true)},
                                   {"conv_size", is_read(2)},
                                   {"use_beta", is_read(false)},
                                   {"use_output_norm", is_harmless(false, unread)},
                                   {"num_heads", is_read(8)},
                                   {"qk_norm", is_read("sum", json::object(), "l1")},
                                   {"qk_activation", is_read("relu", json::object(), "gelu")}});
    const Verdicts linear{{"expand_k", is_read(0.25)},
                          {"expand_v", is_read(0.5)},
                          {"num_heads", is_read(16)},
                          {"num_kv_heads", is_read(2)},
                          {"feature_map", is_read("relu", json::object(), "sigmoid")},
                          {"use_output_gate", is_read(false)},
                          {"elementwise_affine", is_refused(false)}};
    all["retnet"] = with_mixer(linear);
    all["retnet"].insert({{"use_short_conv", is_harmless(true, unread)}, {"conv_size", is_harmless(2, unread)}});
    all["gla"] = with_mixer(linear);
    all["gla"].insert({{"use_short_conv", is_read(true)},
                       {"conv_size", is_read(2, {{"use_short_conv", true}})},
                       {"clamp_min", is_read(-0.5, json::object(), 0.5)},
                       {"use_gk", is_harmless(false, unread)},
                       {"use_gv", is_harmless(true, unread)}});
    all["transformer"] = common();
    all["transformer"].insert({{"num_heads", is_read(16)},
                               {"num_kv_heads", is_read(4)},
                               {"qkv_bias", is_read(true)},
                               {"qk_norm", is_read(true)},
                               {"window_size", is_read(7)},
                               {"rope_theta", is_read(100.0)},
                               {"max_position_embeddings", is_read(4096)},
                               {"elementwise_affine", is_harmless(false, unread)}});
    Verdicts& mamba = all["mamba2"] = common();
    for (const char* key : {"hidden_ratio", "intermediate_size", "fuse_swiglu", "attnres_block_size"}) mamba.erase(key);
    mamba.at("hidden_act") = is_refused("gelu");
    mamba.insert({{"head_dim", is_read(32)},
                  {"state_size", is_read(64)},
                  {"expand", is_read(4)},
                  {"conv_kernel", is_read(2)},
                  {"n_groups", is_read(2)},
                  {"use_bias", is_read(true)},
                  {"use_conv_bias", is_read(false)},
                  {"conv_init", is_harmless(0.5, kFresh)},
                  {"A_init_range", is_harmless({1, 2}, kFresh)},
                  {"D_has_hdim", is_read(true)},
                  {"residual_in_fp32", is_harmless(false, "the residual stream has the model's type")},
                  {"dt_min", is_harmless(0.01, kFresh)},
                  {"dt_max", is_harmless(0.5, kFresh)},
                  {"dt_init_floor", is_harmless(0.01, kFresh)},
                  {"dt_limit", is_read({0.0, 0.5})},
                  {"rescale_prenorm_residual", is_harmless(false, kFresh)},
                  {"rmsnorm", is_read(false)},
                  {"norm_before_gate", is_read(true)},
                  {"chunk_size", is_harmless(64, kSpeed)}});
    return all;
}

}  // namespace

TEST_CASE("Every key of flash-linear-attention's configurations is read, harmless or refused", "[model][families]") {
    json keys = golden("fla_keys.json");
    keys.erase("attn");
    const auto verdicts = fla_verdicts();
    REQUIRE(keys.size() == verdicts.size());
    for (const auto& [kind, own] : verdicts) {
        INFO(kind);
        check_complete(keys.at(kind), own);
        for (const auto& [key, verdict] : own) {
            INFO(key);
            CHECK(verdict.value != keys.at(kind).at(key));
            const json before = merged({{"model_type", kind}}, verdict.with.is_null() ? json::object() : verdict.with);
            const json after = merged(before, {{key, verdict.value}});
            switch (verdict.kind) {
                case Verdict::Kind::read:
                    CHECK(test::read(after).to_json() != test::read(before).to_json());
                    break;
                case Verdict::Kind::harmless:
                    CHECK(test::read(after).to_json() == test::read(before).to_json());
                    CHECK_FALSE(verdict.why.empty());
                    break;
                case Verdict::Kind::refused:
                    CHECK_THROWS_MATCHES(test::read(after), Error, IsError(ErrorCode::unsupported, key + "]"));
                    break;
            }
            if (verdict.refused.is_null()) continue;
            CHECK_THROWS_MATCHES(test::read(merged(before, {{key, verdict.refused}})), Error,
                                 IsError(ErrorCode::unsupported, key + "]"));
        }
    }
}

TEST_CASE("Every key of an entry of attn is read", "[model][families]") {
    const Verdicts verdicts{{"layers", is_read({2, 3})}, {"num_heads", is_read(8)},      {"num_kv_heads", is_read(2)},
                            {"qkv_bias", is_read(true)}, {"rope_theta", is_read(100.0)}, {"window_size", is_read(7)}};
    check_complete(golden("fla_keys.json").at("attn"), verdicts);
    // Keys of the first entry, and of one whose heads are its own.
    const json first{{"layers", {0}}, {"num_heads", 16}}, entry{{"layers", {1}}, {"num_heads", 16}};
    for (const auto& [key, verdict] : verdicts) {
        INFO(key);
        const json changed = merged(entry, {{key, verdict.value}});
        const auto stored = [](const json& attn) { return test::read(test::with("gla", "attn", attn)).to_json(); };
        CHECK(stored(changed) != stored(entry));
        CHECK(stored(json::array({first, changed})) != stored(json::array({first, entry})));
    }
}

TEST_CASE("Every key of a LoRA adapter's configuration is read, harmless or refused", "[model][adapter]") {
    const std::string names = "the file's tensors say so by their names", begun = "how A and B began";
    const std::string unused = "its switch is refused";
    const Verdicts verdicts{{"alora_invocation_tokens", is_refused({1})},
                            {"alpha_pattern", is_read({{"q_proj", 2}})},
                            {"arrow_config", is_refused({{"top_k", 1}})},
                            {"auto_mapping", is_harmless({{"base_model_class", "Llama"}}, "where it came from")},
                            {"base_model_name_or_path", is_read("some/base")},
                            {"bias", is_harmless("all", names)},
                            {"corda_config", is_harmless({{"corda_method", "ipm"}}, begun)},
                            {"ensure_weight_tying", is_read(true)},
                            {"eva_config", is_harmless({{"rho", 2.0}}, begun)},
                            {"exclude_modules", is_harmless({"o_proj"}, names)},
                            {"fan_in_fan_out", is_read(true)},
                            {"inference_mode", is_harmless(true, kTraining)},
                            {"init_lora_weights", is_refused("pissa")},
                            {"kasa_config", is_refused({{"alpha", 1}})},
                            {"layer_replication", is_refused({{0, 2}})},
                            {"layers_pattern", is_harmless("layers", names)},
                            {"layers_to_transform", is_harmless({0}, names)},
                            {"loftq_config", is_harmless({{"loftq_bits", 4}}, begun)},
                            {"lora_alpha", is_read(3)},
                            {"lora_bias", is_refused(true)},
                            {"lora_dropout", is_harmless(0.5, kTraining)},
                            {"lora_ga_config", is_refused({{"direction", "ArB2r"}})},
                            {"megatron_config", is_refused({{"tensor_model_parallel_size", 2}})},
                            {"megatron_core", is_harmless("other.core", unused)},
                            {"modules_to_save", is_read({"lm_head"})},
                            {"monteclora_config", is_refused({{"samples", 2}})},
                            {"peft_type", is_refused("LOHA")},
                            {"peft_version", is_harmless("0.1", "which version wrote it")},
                            {"qalora_group_size", is_harmless(8, unused)},
                            {"r", is_read(3)},
                            {"rank_pattern", is_read({{"q_proj", 2}})},
                            {"revision", is_harmless("main", "of the base")},
                            {"target_modules", is_harmless({"q_proj"}, names)},
                            {"target_parameters", is_refused({"weight"})},
                            {"task_type", is_read("SEQ_CLS")},
                            {"trainable_token_indices", is_refused({1})},
                            {"use_bdlora", is_refused({{"nblocks", 2}})},
                            {"use_dora", is_refused(true)},
                            {"use_qalora", is_refused(true)},
                            {"use_rslora", is_read(true)},
                            {"velora_config", is_refused({{"rank", 1}})}};
    const json keys = golden("peft_keys.json");
    check_complete(keys, verdicts);
    const test::TemporaryFolder folder;
    const auto read = [&](const json& config) {
        test::write_file(folder / "adapter_config.json", config.dump());
        return checkpoint::read_adapter_config(folder / "adapter_config.json");
    };
    const checkpoint::AdapterConfig plain = read(keys);
    for (const auto& [key, verdict] : verdicts) {
        INFO(key);
        CHECK(verdict.value != keys.at(key));
        const json changed = merged(keys, {{key, verdict.value}});
        if (verdict.kind == Verdict::Kind::refused) {
            CHECK_THROWS_MATCHES(read(changed), Error, IsError(ErrorCode::unsupported, key + "]"));
            continue;
        }
        CHECK((read(changed) == plain) == (verdict.kind == Verdict::Kind::harmless));
        CHECK(verdict.why.empty() == (verdict.kind == Verdict::Kind::read));
    }
    CHECK_THROWS_MATCHES(read(merged(keys, {{"a_key_of_tomorrow", 1}})), Error,
                         IsError(ErrorCode::unsupported, "a_key_of_tomorrow]"));
}
