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

/// Two texts of five tokens, four layers of four heads. `tool`: lens, patch, ablate or attribution.
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
    }
    return record;
}

}  // namespace headscope::test
