// SPDX-License-Identifier: GPL-3.0-or-later
// Prepares data for tests/oracle/accept/token_files.py. One JSON document a line, in and out:
//   {"text": ["a.txt"], "tokenizer": "bytes", "validation": 0.1 or ["b.txt"], "length": 32, "base": "folder",
//    "objective": "next_token", "shares": 0.1 (what shuffle_random shuffles and replaces)}
//   -> {"token_file": "...", "tokenizer": "tokenizer.json's text", "hash": "...", "windows": 12,
//       "ids": [[...]], "targets": [[...]], "reused": false, "peak": MiB}
// and {"error": "..."} for whatever is refused. Sequences are the first three of seed 1.
#include <sys/resource.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "core/data/data_set.h"

using nlohmann::json;
using namespace headscope;

namespace {

json answer(const json& request) {
    data::DataSettings settings;
    settings.text = request.value("text", std::vector<std::string>());
    settings.corpus = request.value("corpus", "");
    settings.tokenizer = request.at("tokenizer");
    settings.sequence_length = request.at("length");
    if (request.at("validation").is_array()) {
        settings.validation_files = request.at("validation").get<std::vector<std::string>>();
    } else {
        settings.validation = request.at("validation");
    }
    settings.objective.kind = request.value("objective", settings.objective.kind);
    settings.objective.shuffle = settings.objective.random = request.value("shares", settings.objective.random);
    NoProgress progress;
    const auto set =
        data::DataSet::prepare(settings, {request.at("base").get<std::string>(), {}}, progress, Cancellation());
    const auto source = set->source(data::Split::training, 1);
    json ids = json::array(), targets = json::array();
    for (std::int64_t i = 0; i < 3; ++i) {
        const auto batch = source->read(i, 1);
        ids.push_back(batch.ids);
        targets.push_back(batch.targets);
    }
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return {{"token_file", set->summary().token_file.string()},
            {"tokenizer", set->tokenizer_files().at(0).content},
            {"config", set->tokenizer_files().at(1).content},
            {"hash", set->hash()},
            {"windows", source->epoch()},
            {"ids", ids},
            {"targets", targets},
            {"reused", set->summary().reused},
            {"peak", used.ru_maxrss / 1024}};
}

}  // namespace

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        json result;
        try {
            result = answer(json::parse(line));
        } catch (const Error& error) {
            result = {{"error", error.what()}};
        }
        std::cout << result.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
    }
}
