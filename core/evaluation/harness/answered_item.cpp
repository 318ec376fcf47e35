// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/harness/answered_item.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/class_names.h"

namespace headscope::evaluation {
namespace {

using json = nlohmann::ordered_json;

std::string text_of(const json& document) {
    return document.dump(-1, ' ', false, json::error_handler_t::replace);  // a token may be half a character
}

/// Float32 to six digits behind the point, which is what it is good for.
double rounded(float value) {
    return std::round(static_cast<double>(value) * 1e6) / 1e6;
}

/// Texts of the scored tokens of `requests`, each with its log-likelihood.
json pieces_of(std::span<const HarnessRequest> requests, const RequestScore& score,
               const tokenizer::Tokenizer& tokenizer) {
    json pieces = json::array();
    for (const HarnessRequest& request : requests) {
        for (std::size_t i = request.ids.size() - static_cast<std::size_t>(request.scored); i < request.ids.size(); ++i)
            pieces.push_back(
                {tokenizer.surface(static_cast<std::int32_t>(request.ids[i])), rounded(score.each[pieces.size()])});
    }
    return pieces;
}

/// Perplexities are no means over items.
std::string averaged_metrics(const AnsweredItem& answered) {
    json values = json::object();
    if (answered.kind != HarnessKind::page)
        for (const auto& [metric, value] : answered.score.metrics)
            if (metric != "perplexity") values[metric] = value;
    return values.empty() ? std::string() : text_of(values);
}

}  // namespace

std::string item_line(const AnsweredItem& answered, std::int64_t model, bool texts) {
    const HarnessItem& item = answered.item;
    const ItemScore& score = answered.score;
    json line = {{"model", model}, {"task", answered.task}, {"item", answered.number}};
    if (answered.kind == HarnessKind::said) {
        line["length"] = answered.length;  // of RULER's there are several
        if (texts) line["prompt"] = item.prompt;
        if (const AskedQuestion* question = answered.question) {
            line["id"] = question->id;
            if (question->windows > 0) line["windows"] = question->windows;
        }
        line["generated"] = score.generated;
        if (answered.question && answered.question->no_answer) line["no_answer"] = *answered.question->no_answer;
    } else {
        if (texts) {
            for (const TextPair& pair : item.requests) line["context"].push_back(pair.context);
            for (const TextPair& pair : item.requests) line["continuation"].push_back(pair.continuation);
        }
        for (const RequestScore& request : score.requests) {
            line["loglikelihood"].push_back(request.loglikelihood);
            line["greedy"].push_back(request.greedy);
            line["tokens"].push_back(request.each.size());
        }
        if (has_options(answered.kind)) line["gold"] = item.gold;
        if (!answered.classes.empty()) {
            line["gold_class"] = class_name(answered.classes, item.gold);
            line["chosen_class"] = class_name(answered.classes, score.chosen);
        }
    }
    for (const auto& [metric, value] : score.metrics) line[metric] = value;
    return text_of(line) + "\n";
}

store::EvaluatedItem evaluated_answer(const AnsweredItem& answered, std::int64_t model) {
    const HarnessItem& item = answered.item;
    const ItemScore& score = answered.score;
    store::EvaluatedItem row;
    row.model = model;
    row.task = answered.task;
    row.length = answered.length;
    row.shots = answered.shots;
    row.item = answered.number;
    row.gold = has_options(answered.kind) ? item.gold : -1;
    row.chosen = score.chosen;
    row.right = score.right;
    row.subset = item.subset;
    row.metrics = averaged_metrics(answered);
    row.texts = text_of({{"prompt", item.prompt}, {"generated", score.generated}, {"answers", item.answers}});
    return row;
}

store::EvaluatedItem evaluated_item(const AnsweredItem& answered, std::int64_t model,
                                    const tokenizer::Tokenizer& tokenizer) {
    store::EvaluatedItem row = evaluated_answer(answered, model);
    if (answered.kind == HarnessKind::said) return row;
    const HarnessItem& item = answered.item;
    const ItemScore& score = answered.score;
    json requests = json::array();
    for (std::size_t i = 0; i < item.requests.size(); ++i) {
        const auto of = answered.kind == HarnessKind::page ? answered.requests : answered.requests.subspan(i, 1);
        const RequestScore& one = score.requests[i];
        requests.push_back({{"context", item.requests[i].context},
                            {"continuation", item.requests[i].continuation},
                            {"loglikelihood", one.loglikelihood},
                            {"greedy", one.greedy},
                            {"pieces", pieces_of(of, one, tokenizer)}});
    }
    row.texts = text_of({{"requests", std::move(requests)}});
    return row;
}

}  // namespace headscope::evaluation
