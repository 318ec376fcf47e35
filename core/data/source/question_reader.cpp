// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/source/question_reader.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/data/source/json_objects.h"
#include "core/tokenizer/template/python_text.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::data {
namespace {

/// Byte at which code point `number` of the text begins; its size for the one behind the last.
std::optional<std::size_t> byte_of(const std::string& text, std::int64_t number) {
    std::size_t at = 0;
    for (; number > 0 && at < text.size(); --number) at += tokenizer::utf8_length(text[at]);
    return number == 0 ? std::optional(at) : std::nullopt;
}

void add_answer(const JsonView& text, const JsonView& begin, Question& to) {
    std::string answer = text.string();
    const auto at = byte_of(to.context, begin.integer({0}));
    if (!at || answer.size() > to.context.size() - *at)
        begin.refuse(ErrorCode::format, "expected the place of \"" + escaped(answer, 40) + "\" in the context");
    to.answers.push_back(std::move(answer));
    to.begins.push_back(*at);
}

void read_answers(const JsonView& answers, Question& to) {
    if (answers.is_array()) {
        for (std::size_t i = 0; i < answers.size(); ++i)
            add_answer(answers.at(i).at("text"), answers.at(i).at("answer_start"), to);
        return;
    }
    const JsonView texts = answers.at("text").array(), begins = answers.at("answer_start").array();
    if (texts.size() != begins.size())
        begins.refuse(ErrorCode::format, "expected " + std::to_string(texts.size()) + " places, one for each text");
    for (std::size_t i = 0; i < texts.size(); ++i) add_answer(texts.at(i), begins.at(i), to);
}

Question question_of(const JsonView& record, std::string context) {
    Question one;
    one.id = record.string_or("id", "");
    one.text = tokenizer::chat::stripped(record.at("question").string(), nullptr, true, false);
    one.context = std::move(context);
    read_answers(record.at("answers"), one);
    return one;
}

}  // namespace

void take_questions(const JsonView& record, const TakeQuestion& take) {
    if (!record.object().has("data") || record.has("question")) {
        take(question_of(record, record.at("context").string()));
        return;
    }
    const JsonView articles = record.at("data").array();
    for (std::size_t a = 0; a < articles.size(); ++a) {
        const JsonView paragraphs = articles.at(a).at("paragraphs").array();
        for (std::size_t p = 0; p < paragraphs.size(); ++p) {
            const JsonView questions = paragraphs.at(p).at("qas").array();
            for (std::size_t q = 0; q < questions.size(); ++q)
                take(question_of(questions.at(q), paragraphs.at(p).at("context").string()));
        }
    }
}

void read_questions(const InputFile& file, SourceKind kind, const TakeQuestion& take,
                    const std::function<void(std::uint64_t)>& progress) {
    read_records(
        file, kind,
        [&](std::string_view text, std::uint64_t line) {
            const std::string where = shown(file.path()) + ":" + std::to_string(line);
            const nlohmann::json document = parse_json(text, where);
            take_questions(JsonView(document, where), take);
        },
        progress);
    file.check_unchanged();
    progress(file.size());
}

}  // namespace headscope::data
