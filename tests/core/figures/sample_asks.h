// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Ask files that no model made, one for each tool that has views.

#include <cmath>
#include <string>
#include <vector>

#include "core/store/ask/ask_file.h"

namespace headscope::test {

/// The table's cells become a slow wave, so that signs differ and no two neighbors are equal.
inline void fill_ask_table(store::AskRecord& record, const std::string& path,
                           const std::vector<std::string>& dimensions, double scale = 1) {
    store::AskTable& table = record.add_table(path, dimensions, "numbers");
    for (std::size_t i = 0; i < table.values.size(); ++i)
        table.values[i] = scale * std::sin(0.7 * static_cast<double>(i + 1));
}

/// Two texts of five tokens, four layers of four heads. Circuits have no text.
inline store::AskRecord sample_ask(const std::string& tool) {
    store::AskRecord record;
    record.tool = tool;
    record.model_name = "made";
    record.model_sha256 = std::string(64, '0');
    record.complete = true;
    record.settings_json = R"({"metric": "logit_difference"})";
    for (std::int32_t layer = 0; layer < 4; ++layer) {
        Site site;
        site.layer = layer;
        site.heads = site.key_value_heads = 4;
        record.sites.push_back(site);
        record.mixers.emplace_back("standard");
    }
    for (int s = 0; s < 2; ++s) {
        store::SequenceTokens text;
        text.ids = {4, 5, 6, 7, 8};
        text.pieces = {"The", " king", " saw", " the", s == 0 ? " sea" : " hill"};
        record.sequences.push_back(text);
    }
    store::add_usual_dimensions(record);
    const std::string text = "/sequence", layer = "/layer", site = "/site", head = "/head", token = "/token";
    if (tool == "lens") {
        record.add_dimension("/boundary", 5, "boundary between blocks");
        record.add_dimension("/top", 2, "rank of the token");
        const std::vector<std::string> axes{text, "/boundary", token};
        for (const char* path : {"/lens/log_probability", "/lens/rank", "/lens/kl", "/lens/entropy"})
            fill_ask_table(record, path, axes, -1);
        fill_ask_table(record, "/lens/top_probability", {text, "/boundary", token, "/top"});
        fill_ask_table(record, "/lens/top_id", {text, "/boundary", token, "/top"});
        for (double& id : record.tables.back().values) id = 4;
    } else if (tool == "patch") {
        fill_ask_table(record, "/patch/clean", {text}, 4);
        fill_ask_table(record, "/patch/corrupted", {text}, -4);
        fill_ask_table(record, "/patch/value/hidden", {text, layer, token});
        fill_ask_table(record, "/patch/value/attention_output", {text, layer, token});
        fill_ask_table(record, "/patch/value/head_output", {text, site, head});
    } else if (tool == "ablate") {
        fill_ask_table(record, "/ablate/baseline", {text});
        fill_ask_table(record, "/ablate/head", {text, site, head});
        fill_ask_table(record, "/ablate/attention", {text, layer});
        fill_ask_table(record, "/ablate/feed_forward", {text, layer});
    } else if (tool == "attribution") {
        fill_ask_table(record, "/attribution/head", {text, site, head});
        for (const char* path : {"/attribution/attention", "/attribution/feed_forward", "/attribution/attention_bias"})
            fill_ask_table(record, path, {text, layer});
        for (const char* path :
             {"/attribution/embedding", "/attribution/position_embedding", "/attribution/final_norm_bias",
              "/attribution/unembedding_bias", "/attribution/total", "/attribution/logit"})
            fill_ask_table(record, path, {text});
    } else if (tool == "sinks") {
        record.settings_json = R"({"epsilon": 0.3})";
        record.add_dimension("/boundary", 5, "boundary between blocks");
        record.add_dimension("/key_value_head", 4, "key-value head, counted from 0");
        record.add_dimension("/threshold", 3, "threshold, counted from 0");
        record.add_table("/sinks/threshold", {"/threshold"}, "values of epsilon").values = {0.1, 0.3, 0.9};
        const auto positive = [&](const char* path, const std::vector<std::string>& axes, double scale) {
            fill_ask_table(record, path, axes, scale);
            for (double& value : record.tables.back().values) value = std::abs(value) + 0.01;
        };
        positive("/sinks/rate_by_threshold", {"/threshold"}, 0.9);
        positive("/sinks/rate_by_site", {site, token}, 0.9);
        positive("/sinks/column_mass", {text, site, head, token}, 0.9);
        positive("/sinks/value_norm", {text, site, "/key_value_head", token}, 3);
        positive("/sinks/activation_median", {text, "/boundary"}, 0.1);
        fill_ask_table(record, "/sinks/activation_maximum", {text, "/boundary"}, 400);
        fill_ask_table(record, "/sinks/token_maximum", {text, "/boundary", token}, 400);
        positive("/sinks/token_channel", {text, "/boundary", token}, 7);
        positive("/sinks/hidden_norm", {text, "/boundary", token}, 30);
    } else if (tool == "corpus") {
        record.add_dimension("/counter", 4, "counter");
        record.add_dimension("/histogram_cell", 10, "cell of a weight from 0 to 1");
        record.add_dimension("/distance", 4, "cell of distances");
        record.add_dimension("/top_token", 3, "place among the tokens, from 0");
        record.add_dimension("/slot", 2, "kept text");
        record.add_table("/corpus/progress", {"/counter"}, "counters").values = {0, 20, 4000, 0};
        record.add_table("/corpus/distance", {"/distance"}, "distance", "token", true).values = {0, 1, 2, 4};
        for (const char* path :
             {"/corpus/qk_distance", "/corpus/induction_score", "/corpus/mean/sink", "/corpus/std/sink"})
            fill_ask_table(record, path, {site, head});
        const auto row = [&](const char* path, const char* axis, double add, bool whole) {
            fill_ask_table(record, path, {site, head, axis}, whole ? 0 : 1);
            for (double& value : record.tables.back().values) value = std::abs(value) + add;
        };
        row("/corpus/maximum_histogram", "/histogram_cell", 0, false);
        row("/corpus/distance_histogram", "/distance", 0, false);
        row("/corpus/query_token", "/top_token", 5, true);
        row("/corpus/query_mass", "/top_token", 0, false);
        row("/corpus/key_token", "/top_token", 4, true);
        row("/corpus/key_mass", "/top_token", 0, false);
        row("/corpus/kept", "/slot", 7, true);
        row("/corpus/kept_sequence", "/slot", 1, true);
        row("/corpus/kept_maximum", "/slot", 0, false);
        row("/corpus/kept_query", "/slot", 3, true);
        row("/corpus/kept_key", "/slot", 1, true);
    } else if (tool == "cache") {
        record.add_dimension("/ratio", 2, "ratio, counted from 0");
        record.add_table("/cache/ratio", {"/ratio"}, "share of the keys that is removed").values = {0.5, 0.9};
        for (const char* path : {"/cache/h2o/error", "/cache/tova/error"}) {
            fill_ask_table(record, path, {text, "/ratio", site, head});
            for (double& error : record.tables.back().values) error = std::abs(error);
        }
    } else if (tool == "series") {
        record.add_dimension("/checkpoint", 3, "model, in the order of the command");
        record.add_table("/series/step", {"/checkpoint"}, "last number in the name", "", true).values = {10, 20, 40};
        fill_ask_table(record, "/series/loss", {"/checkpoint", text});
        for (const char* path : {"/series/sink", "/series/entropy_row_mean"})
            fill_ask_table(record, path, {"/checkpoint", text, site, head});
    } else if (tool == "knockout") {
        record.settings_json = R"({"metric": "loss", "queries": "3-4", "keys": "1"})";
        fill_ask_table(record, "/knockout/baseline", {text});
        fill_ask_table(record, "/knockout/value", {text}, 2);
        fill_ask_table(record, "/knockout/by_layer", {text, layer});
    } else if (tool == "steer") {
        record.add_dimension("/channel", 8, "channel of the residual stream, counted from 0");
        record.add_dimension("/factor", 4, "factor, counted from 0");
        record.add_table("/steer/factor", {"/factor"}, "factor of the vector").values = {-2, -1, 1, 2};
        fill_ask_table(record, "/steer/vector", {layer, "/channel"});
        fill_ask_table(record, "/steer/baseline", {text});
        fill_ask_table(record, "/steer/value", {text, layer, "/factor"});
    } else if (tool == "kinds") {
        for (const char* kind : {"previous", "duplicate", "induction", "self"}) {
            fill_ask_table(record, std::string("/kinds/") + kind, {text, site, head});
            for (double& score : record.tables.back().values) score = std::abs(score);
        }
    } else if (tool == "circuits") {
        record.add_dimension("/singular_value", 6, "singular value, the largest first");
        record.add_dimension("/later_site", 4, "site of the later head, counted from 0");
        record.add_dimension("/later_head", 4, "head that reads, counted from 0");
        for (const char* matrix : {"qk", "ov"}) {
            const std::string stem = std::string("/circuits/") + matrix;
            fill_ask_table(record, stem + "_eigenvalue_score", {site, head});
            fill_ask_table(record, stem + "_singular_values", {site, head, "/singular_value"});
            for (double& value : record.tables.back().values) value = std::abs(value) + 0.1;
        }
        fill_ask_table(record, "/circuits/copying_score", {site, head});
        for (const char* through : {"q", "k", "v"}) {
            fill_ask_table(record, std::string("/circuits/composition_") + through,
                           {site, head, "/later_site", "/later_head"});
            for (double& score : record.tables.back().values) score = std::abs(score);
        }
    } else if (tool == "generate") {
        record.add_dimension("/step", 3, "generated token, counted from 0");
        record.add_dimension("/top", 2, "place among the likeliest tokens, from 0");
        const auto whole = [&](const std::string& path, const std::vector<std::string>& axes) {
            store::AskTable& table = record.add_table(path, axes, "tokens", "", true);
            for (std::size_t i = 0; i < table.values.size(); ++i) table.values[i] = static_cast<double>(4 + i % 5);
        };
        whole("/generate/token", {text, "/step"});
        whole("/generate/top_id", {text, "/step", "/top"});
        fill_ask_table(record, "/generate/log_probability", {text, "/step"});
        for (double& value : record.tables.back().values) value = -std::abs(value);
        for (const char* path : {"/generate/entropy", "/generate/sink", "/generate/mean_distance"})
            fill_ask_table(record, path, {text, "/step", site, head});
        fill_ask_table(record, "/generate/top_probability", {text, "/step", "/top"});
        for (double& share : record.tables.back().values) share = std::abs(share);
    }
    if (tool == "circuits") record.sequences.clear();
    return record;
}

}  // namespace headscope::test
