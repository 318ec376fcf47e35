// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/generated_answers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json_records.h"
#include "core/model/generate/generate.h"

namespace headscope::evaluation {
namespace {

AskedItem read_item(const JsonView& row, const data::RulerTask& task, std::optional<std::int64_t> length) {
    constexpr IntegerRange lengths{1, std::int64_t{1} << 40U};
    const std::string input = row.at("input").string();
    AskedItem item;
    item.outputs = row.at("outputs").strings();
    if (item.outputs.empty()) row.at("outputs").refuse(ErrorCode::format, "expected at least one answer");
    // NVIDIA's prefix begins with the white space that it wants.
    item.prompt = row.has("answer_prefix") && !row.has("gen_prefix")
                      ? input + row.at("answer_prefix").string()
                      : data::ruler_prompt(task, input, row.string_or("gen_prefix", ""));
    item.max_length = row.has("max_length") || !length ? row.at("max_length").integer(lengths) : *length;
    return item;
}

model::GenerateOptions greedy_options(const GeneratedAnswers& said, std::int64_t tokens, const ScoreOptions& options) {
    model::GenerateOptions generate;
    generate.tokens = tokens;
    generate.end_tokens = said.end_tokens;
    generate.settings = said.settings;
    generate.beyond_positions = options.beyond_positions;
    generate.skip_layers = options.skip_layers;
    generate.cancellation = options.cancellation;
    return generate;
}

}  // namespace

std::vector<std::int64_t> prompt_ids(const GeneratedAnswers& said, const std::string& prompt) {
    bool begun = false;
    if (said.prefix) {
        const std::int32_t id = static_cast<std::int32_t>(*said.prefix);
        const std::string first = said.tokenizer->decode({&id, 1});
        begun = !first.empty() && prompt.starts_with(first);
    }
    const auto encoding = said.tokenizer->encode(prompt, !begun);
    return {encoding.ids.begin(), encoding.ids.end()};
}

data::RulerMaker ruler_maker(const GeneratedAnswers& said, const data::RulerTask& task, std::int64_t length,
                             std::uint64_t seed) {
    return {task, length, seed, said.essays,
            [&said](const std::string& prompt) { return std::ssize(prompt_ids(said, prompt)); }};
}

GeneratedAnswer generated_answer(model::Model& model, const GeneratedAnswers& said, const std::string& prompt,
                                 std::int64_t tokens, std::int64_t most, const ScoreOptions& options,
                                 const std::vector<std::string>& stops) {
    GeneratedAnswer answer;
    std::vector<std::int64_t> ids = prompt_ids(said, prompt);
    const bool encoder = model.config().encoder != nullptr;
    if (most > 0) {
        const std::int64_t room = encoder ? most : most - tokens;
        if (room <= 0)
            throw Error(ErrorCode::limit, "answer",
                        "expected a model that reads more than the " + std::to_string(tokens) + " tokens of an answer",
                        "found " + std::to_string(most));
        const std::int64_t over = std::ssize(ids) - room;
        answer.cut = over > 0;
        if (answer.cut) ids.erase(ids.begin(), ids.begin() + over);
    }
    const tokenizer::Tokenizer& spoken = said.tokenizer->of_target();
    std::vector<std::int32_t> said_ids;
    model::GenerateOptions generate = greedy_options(said, tokens, options);
    generate.enough = [&](std::int64_t id) {
        said_ids.push_back(static_cast<std::int32_t>(id));
        if (stops.empty()) return false;
        const std::string text = spoken.answer(said_ids);
        return std::any_of(stops.begin(), stops.end(),
                           [&](const std::string& stop) { return text.find(stop) != std::string::npos; });
    };
    model::generate(model, ids, generate);
    answer.text = spoken.answer(said_ids);
    for (const std::string& stop : stops) answer.text.resize(std::min(answer.text.size(), answer.text.find(stop)));
    return answer;
}

GeneratedAnswer whole_answer(model::Model& model, const GeneratedAnswers& said, const std::string& prompt,
                             std::int64_t tokens, std::int64_t most, bool line_ends, const ScoreOptions& options) {
    GeneratedAnswer answer;
    std::vector<std::int64_t> ids = prompt_ids(said, prompt);
    answer.cut = most > 0 && std::ssize(ids) > most;
    if (answer.cut) {
        const std::int64_t half = most / 2;
        const std::vector<std::int32_t> all(ids.begin(), ids.end()), first(all.begin(), all.begin() + half);
        // Python's [-0:] is all of it.
        const std::vector<std::int32_t> last(half > 0 ? all.end() - half : all.begin(), all.end());
        ids = prompt_ids(said, said.tokenizer->answer(first) + said.tokenizer->answer(last));
    }
    model::GenerateOptions generate = greedy_options(said, tokens, options);
    if (line_ends) {
        const auto line = said.tokenizer->encode("\n", false).ids;
        if (!line.empty()) generate.end_tokens.push_back(line.back());
        auto& never = generate.settings.suppressed_first;
        never.insert(never.end(), generate.end_tokens.begin(), generate.end_tokens.end());
    }
    const std::vector<std::int64_t> made = model::generate(model, ids, generate);
    answer.text = said.tokenizer->of_target().answer(std::vector<std::int32_t>(made.begin(), made.end()));
    return answer;
}

AnswerScore mean_score(const std::vector<double>& scores) {
    AnswerScore result;
    const auto n = static_cast<double>(scores.size());
    result.items = std::ssize(scores);
    for (const double score : scores) result.mean += score;
    result.mean /= n;
    double deviations = 0;
    for (const double score : scores) deviations += (score - result.mean) * (score - result.mean);
    result.error = scores.size() > 1 ? std::sqrt(deviations / (n - 1) / n) : std::numeric_limits<double>::quiet_NaN();
    return result;
}

std::filesystem::path ruler_items_file(const std::filesystem::path& folder, const std::string& task) {
    return folder / task / "test.jsonl";
}

std::vector<AskedItem> read_ruler_items(const std::filesystem::path& folder, const data::RulerTask& task,
                                        std::optional<std::int64_t> length) {
    std::vector<AskedItem> items;
    read_json_records(ruler_items_file(folder, task.name), "items of " + std::string(task.name),
                      [&](const JsonView& row) {
                          items.push_back(read_item(row, task, length));
                          return true;
                      });
    return items;
}

std::string ruler_item_line(const data::RulerItem& item) {
    const nlohmann::ordered_json line = {{"index", item.index},           {"input", item.input},
                                         {"outputs", item.outputs},       {"length", item.length},
                                         {"max_length", item.max_length}, {"gen_prefix", item.gen_prefix}};
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace headscope::evaluation
