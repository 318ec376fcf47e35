// SPDX-License-Identifier: GPL-3.0-or-later
// Tokenizes in bulk for tests/oracle/accept/tokenizer_differential.py. One JSON document a line, in and out:
//   {"load": "tokenizer.json or folder"}   -> {"size": 30522}
//   {"encode": "text", "add": true}        -> {"ids": [...], "offsets": [...], "pieces": [...], "special": [...]}
//   {"decode": [1, 2], "skip": false}      -> {"text": "..."}
// either with "target": true for the tokenizer of what a decoder reads and writes,
//   {"train": ["text", ...], "vocab_size": 300, "min_frequency": 0, "special_tokens": [], "all_bytes": true}
//                                          -> {"pieces": [...], "merges": [["a", "b"], ...], "json": "tokenizer.json"}
// and {"error": "..."} for whatever is refused.
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/training/bpe_trainer.h"

using nlohmann::json;
using namespace headscope;
using tokenizer::Tokenizer;

namespace {

json encoded(const Tokenizer& tokenizer, const json& request) {
    const auto encoding = tokenizer.encode(request.at("encode").get<std::string>(), request.at("add"));
    json offsets = json::array();
    for (const auto& [begin, end] : encoding.offsets) {
        offsets.push_back(begin);
        offsets.push_back(end);
    }
    return {{"ids", encoding.ids},
            {"offsets", offsets},
            {"pieces", tokenizer.pieces(encoding)},
            {"special", encoding.special}};
}

json trained(const json& request) {
    tokenizer::BpeSettings settings;
    settings.vocabulary = request.at("vocab_size");
    settings.least_frequency = request.at("min_frequency");
    settings.special_tokens = request.at("special_tokens").get<std::vector<std::string>>();
    settings.all_bytes = request.at("all_bytes");
    tokenizer::BpeTrainer trainer(settings);
    for (const json& text : request.at("train")) trainer.feed(text.get<std::string>());
    NoProgress progress;
    const auto model = trainer.train(progress, Cancellation());
    json merges = json::array();
    for (const auto& [left, right] : model.merges) {
        merges.push_back(
            json::array({model.pieces[static_cast<std::size_t>(left)], model.pieces[static_cast<std::size_t>(right)]}));
    }
    return {{"pieces", model.pieces}, {"merges", merges}, {"json", tokenizer::byte_level_json(model, true)}};
}

json answer(std::shared_ptr<const Tokenizer>& tokenizer, const json& request) {
    if (request.contains("load")) {
        const std::filesystem::path path = request.at("load").get<std::string>();
        tokenizer.reset();
        tokenizer = std::filesystem::is_directory(path) ? Tokenizer::from_folder(path) : Tokenizer::from_file(path);
        return {{"size", tokenizer->vocabulary_size()}};
    }
    if (request.contains("train")) return trained(request);
    if (!tokenizer) return {{"error", "nothing is loaded"}};
    const Tokenizer& asked = request.value("target", false) ? tokenizer->of_target() : *tokenizer;
    if (request.contains("encode")) return encoded(asked, request);
    const auto ids = request.at("decode").get<std::vector<std::int32_t>>();
    return {{"text", asked.decode(ids, request.at("skip"))}};
}

}  // namespace

int main() {
    std::ios::sync_with_stdio(false);
    std::shared_ptr<const Tokenizer> tokenizer;
    for (std::string line; std::getline(std::cin, line);) {
        json result;
        try {
            result = answer(tokenizer, json::parse(line));
        } catch (const Error& error) {
            result = {{"error", error.what()}};
        }
        std::cout << result.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
    }
}
