// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/harness/harness_records.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>

#include "core/base/text/text.h"
#include "core/evaluation/harness/longbench.h"
#include "core/evaluation/metrics/python_text.h"

namespace headscope::evaluation {
namespace {

constexpr std::string_view delimiter = " ";

std::string text_of(const JsonView& record, std::string_view column) {
    return record.at(column).string();
}
std::string trimmed_of(const JsonView& record, std::string_view column) {
    return std::string(trimmed(text_of(record, column)));
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    std::string out;
    std::size_t at = 0;
    for (std::size_t found = text.find(from); found != std::string::npos; found = text.find(from, at)) {
        out.append(text, at, found - at).append(to);
        at = found + from.size();
    }
    text = out.append(text, at);
}

/// Bytes of the last `count` characters, of all where there are fewer.
std::size_t size_of_last(std::string_view text, std::int64_t count) {
    std::size_t begin = text.size();
    for (; count > 0 && begin > 0; --count) {
        do --begin;
        while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U);
    }
    return text.size() - begin;
}

[[noreturn]] void refuse_label(const JsonView& label, const std::string& expected, bool unlabelled) {
    label.refuse(ErrorCode::format, expected + (unlabelled ? " (is this a split without labels?)" : ""));
}

/// A class label: the index of an option behind `first`.
std::int64_t index_of(const JsonView& label, std::int64_t number, std::int64_t first, std::int64_t options) {
    if (number < first || number - first >= options)
        refuse_label(label,
                     "expected a label from " + std::to_string(first) + " to " + std::to_string(first + options - 1),
                     number == -1);
    return number - first;
}
std::int64_t label_of(const JsonView& record, std::int64_t options) {
    const JsonView label = record.at("label");
    return index_of(label, label.integer(), 0, options);
}
/// The same of a label that the data set spells as text.
std::int64_t spelled_label_of(const JsonView& record, std::int64_t first, std::int64_t options) {
    const JsonView label = record.at("label");
    if (!label.is_string()) return index_of(label, label.integer(), first, options);
    const std::string text = label.string();
    const std::string_view digits = trimmed(text);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size())
        refuse_label(label, "expected a label that is a number", digits.empty());
    return index_of(label, number, first, options);
}

HarnessItem choice_item(const std::string& context, const std::vector<std::string>& options, std::int64_t gold) {
    HarnessItem item;
    for (const std::string& option : options) {
        item.requests.push_back({context, std::string(delimiter) + option});
        item.characters.push_back(code_points(option));
    }
    item.gold = gold;
    return item;
}

std::string question_answer(const std::string& question) {
    return "Question: " + question + "\nAnswer:";
}

/// The options of choices {text, label}, and which of them answerKey names.
HarnessItem keyed_item(const JsonView& record, const std::string& context, bool trim_key) {
    const JsonView choices = record.at("choices"), key = record.at("answerKey");
    const std::vector<std::string> texts = choices.at("text").strings(), labels = choices.at("label").strings();
    if (texts.size() != labels.size())
        choices.at("label").refuse(ErrorCode::format,
                                   "expected " + std::to_string(texts.size()) + " labels, one a text");
    const std::string spelled = key.string();
    const std::string_view wanted = trim_key ? trimmed_left(spelled) : spelled;
    const auto found = std::find(labels.begin(), labels.end(), wanted);
    if (found == labels.end())
        refuse_label(key, "expected one of the labels " + list_text(labels), trimmed(spelled).empty());
    return choice_item(context, texts, found - labels.begin());
}

HarnessItem arc(const JsonView& record) {
    return keyed_item(record, question_answer(text_of(record, "question")), false);
}

HarnessItem openbookqa(const JsonView& record) {
    return keyed_item(record, text_of(record, "question_stem"), true);
}

HarnessItem boolq(const JsonView& record) {
    return choice_item(text_of(record, "passage") + "\nQuestion: " + text_of(record, "question") + "?\nAnswer:",
                       {"no", "yes"}, label_of(record, 2));
}

HarnessItem copa(const JsonView& record) {
    std::string premise = trimmed_of(record, "premise");
    premise.erase(premise.size() - size_of_last(premise, 1));  // the full stop
    const JsonView question = record.at("question");
    const std::string asked = question.string();
    if (asked != "cause" && asked != "effect") question.refuse(ErrorCode::format, "expected \"cause\" or \"effect\"");
    const std::vector<std::string> options = {" " + lowered_first(text_of(record, "choice1")),
                                              " " + lowered_first(text_of(record, "choice2"))};
    const std::int64_t label = label_of(record, 2);
    return choice_item(premise + (asked == "cause" ? " because" : " therefore"), options,
                       options[0] == options[1] ? 0 : label);
}

HarnessItem piqa(const JsonView& record) {
    return choice_item(question_answer(text_of(record, "goal")), {text_of(record, "sol1"), text_of(record, "sol2")},
                       label_of(record, 2));
}

HarnessItem sciq(const JsonView& record) {
    const std::string support = text_of(record, "support");
    return choice_item(std::string(trimmed_left(support)) + "\n" + question_answer(text_of(record, "question")),
                       {text_of(record, "distractor1"), text_of(record, "distractor2"), text_of(record, "distractor3"),
                        text_of(record, "correct_answer")},
                       3);
}

HarnessItem entailment(const JsonView& record, std::string_view text, std::string_view claim) {
    return choice_item(text_of(record, text) + "\nQuestion: " + text_of(record, claim) + " True or False?\nAnswer:",
                       {"True", "False"}, label_of(record, 2));
}
HarnessItem rte(const JsonView& record) {
    return entailment(record, "sentence1", "sentence2");
}
HarnessItem sglue_rte(const JsonView& record) {
    return entailment(record, "premise", "hypothesis");
}

/// Without what HellaSwag's texts have of the pages that they come from.
std::string tidy(const std::string& untidy) {
    std::string text(trimmed(untidy));
    replace_all(text, " [title]", ". ");
    for (std::size_t begin = text.find('['); begin != std::string::npos; begin = text.find('[', begin)) {
        const std::size_t end = text.find_first_of("]\n", begin);
        if (end == std::string::npos) break;
        if (text[end] == ']')
            text.erase(begin, end + 1 - begin);
        else
            begin = end;
    }
    replace_all(text, "  ", " ");
    return text;
}

HarnessItem hellaswag(const JsonView& record) {
    std::vector<std::string> endings = record.at("endings").strings();
    std::transform(endings.begin(), endings.end(), endings.begin(), tidy);
    const std::string context = text_of(record, "activity_label") + ": " + text_of(record, "ctx_a") + " " +
                                capitalized(text_of(record, "ctx_b"));
    return choice_item(tidy(context), endings, spelled_label_of(record, 0, std::ssize(endings)));
}

HarnessItem winogrande(const JsonView& record) {
    const std::string sentence = text_of(record, "sentence");
    const std::size_t gap = sentence.find('_');
    if (gap == std::string::npos)
        record.at("sentence").refuse(ErrorCode::format, "expected a sentence with a gap, \"_\"");
    const JsonView answer = record.at("answer");
    const std::string number = answer.string();
    if (number != "1" && number != "2") refuse_label(answer, "expected \"1\" or \"2\"", number.empty());
    const std::string rest = std::string(delimiter).append(trimmed(std::string_view(sentence).substr(gap + 1)));
    HarnessItem item;
    for (const std::string_view option : {"option1", "option2"})
        item.requests.push_back({sentence.substr(0, gap) + text_of(record, option), rest});
    item.gold = number == "1" ? 0 : 1;
    return item;
}

HarnessItem social_iqa(const JsonView& record) {
    return choice_item("Q: " + text_of(record, "context") + " " + text_of(record, "question") + "\nA:",
                       {text_of(record, "answerA"), text_of(record, "answerB"), text_of(record, "answerC")},
                       spelled_label_of(record, 1, 3));
}

HarnessItem lambada(const JsonView& record) {
    const std::string text = text_of(record, "text");
    const std::size_t space = text.rfind(' ');
    HarnessItem item;
    if (space == std::string::npos)
        item.requests = {{"", " " + text}};
    else
        item.requests = {{text.substr(0, space), text.substr(space)}};
    return item;
}

/// Trims the text between `open` and the next `close`.
void tidy_between(std::string& text, char open, char close) {
    std::string out;
    std::size_t at = 0;
    for (;;) {
        const std::size_t begin = text.find(open, at);
        const std::size_t end = begin == std::string::npos ? begin : text.find(close, begin + 1);
        if (end == std::string::npos) break;
        out.append(text, at, begin + 1 - at);
        out.append(trimmed(std::string_view(text).substr(begin + 1, end - begin - 1))).push_back(close);
        at = end + 1;
    }
    text = out.append(text, at);
}

/// A rule of lm-eval's that is no pattern of what it was meant for: it finds "/' 7/" and writes itself.
void odd_contractions(std::string& text) {
    constexpr std::string_view found = "/' ", itself = "/'[0-9]/";
    for (std::size_t at = text.find(found); at != std::string::npos; at = text.find(found, at)) {
        const std::size_t digit = at + found.size();
        if (digit + 1 < text.size() && text[digit] >= '0' && text[digit] <= '9' && text[digit + 1] == '/') {
            text.replace(at, digit + 2 - at, itself);
            at += itself.size();
        } else {
            ++at;
        }
    }
}

std::string detokenized(std::string text) {
    using Pair = std::array<std::string_view, 2>;
    replace_all(text, "s '", "s'");
    odd_contractions(text);
    for (const auto& [from, to] : {Pair{" @-@ ", "-"},
                                   {" @,@ ", ","},
                                   {" @.@ ", "."},
                                   {" : ", ": "},
                                   {" ; ", "; "},
                                   {" . ", ". "},
                                   {" ! ", "! "},
                                   {" ? ", "? "},
                                   {" , ", ", "}})
        replace_all(text, from, to);
    tidy_between(text, '(', ')');
    tidy_between(text, '[', ']');
    tidy_between(text, '{', '}');
    tidy_between(text, '"', '"');
    tidy_between(text, '\'', '\'');
    for (const auto& [from, to] : {Pair{"= = = =", "===="},
                                   {"= = =", "==="},
                                   {"= =", "=="},
                                   {" \u00B0 ", "\u00B0"},
                                   {" \n", "\n"},
                                   {"\n ", "\n"},
                                   {" N ", " 1 "},
                                   {" 's", "'s"}})
        replace_all(text, from, to);
    return text;
}

/// Pieces between runs of white space, of which empty ones at the ends count.
std::int64_t count_words(std::string_view text) {
    std::int64_t words = 1;
    bool within = false;
    while (!text.empty()) {
        char32_t point = 0;
        const std::size_t size = std::max<std::size_t>(decode_utf8(text, point), 1);
        const bool space = point == ' ' || (!(point > ' ' && point < 0x7F) && trimmed(text.substr(0, size)).empty());
        words += space && !within ? 1 : 0;
        within = space;
        text.remove_prefix(size);
    }
    return words;
}

HarnessItem wikitext(const JsonView& record) {
    const std::string page = text_of(record, "page");
    HarnessItem item;
    item.requests = {{"", detokenized(page)}};
    item.words = count_words(page);
    item.bytes = std::ssize(page);
    return item;
}

HarnessItem completion(const JsonView& record) {
    HarnessItem item;
    item.prompt = trimmed_of(record, "text");
    item.answers = {trimmed_of(record, "value")};
    return item;
}

/// The question moves from the context's end, where it may stand already, behind a full stop.
HarnessItem passage(const JsonView& record, bool marked, bool any_case) {
    std::string context = trimmed_of(record, "context");
    const std::string question = trimmed_of(record, "question");
    if (marked)
        for (const std::string_view mark : {"[PAR]", "[DOC]", "[TLE]"}) replace_all(context, mark, "");
    if (any_case) {
        const std::string wanted = lowered(question);
        while (!question.empty() && lowered(context).ends_with(wanted))
            context.erase(context.size() - size_of_last(context, code_points(question)));
    } else if (context.ends_with(question)) {
        context.erase(context.size() - question.size());
    }
    std::string_view text = trimmed(context);
    text.remove_prefix(std::min(text.find_first_not_of('.'), text.size()));
    text = text.substr(0, text.find_last_not_of('.') + 1);
    HarnessItem item;
    item.prompt = std::string(text) + ". " + question;
    item.answers = record.at("answers").strings();
    if (item.answers.empty()) record.at("answers").refuse(ErrorCode::format, "expected at least one answer");
    return item;
}
HarnessItem based_nq(const JsonView& record) {
    return passage(record, false, false);
}
HarnessItem based_drop(const JsonView& record) {
    return passage(record, false, true);
}
HarnessItem based_triviaqa(const JsonView& record) {
    return passage(record, true, true);
}

using Read = HarnessItem (*)(const JsonView& record);

const std::map<std::string_view, Read>& readers() {
    static const std::map<std::string_view, Read> all = {
        {"arc_easy", arc},
        {"arc_challenge", arc},
        {"boolq", boolq},
        {"copa", copa},
        {"piqa", piqa},
        {"sciq", sciq},
        {"rte", rte},
        {"sglue_rte", sglue_rte},
        {"hellaswag", hellaswag},
        {"winogrande", winogrande},
        {"openbookqa", openbookqa},
        {"social_iqa", social_iqa},
        {"lambada_openai", lambada},
        {"lambada_standard", lambada},
        {"wikitext", wikitext},
        {"fda", completion},
        {"swde", completion},
        {"squad_completion", completion},
        {"based_triviaqa", based_triviaqa},
        {"based_nq", based_nq},
        {"based_drop", based_drop},
    };
    return all;
}

}  // namespace

HarnessItem read_record(const HarnessTask& task, const JsonView& record) {
    HarnessItem item = is_longbench(task) ? longbench_item(task, record) : readers().at(task.name)(record);
    item.place = record.where();
    return item;
}

std::string example_text(const HarnessTask& task, const HarnessItem& item) {
    const TextPair& right = item.requests[static_cast<std::size_t>(item.gold)];
    // lm-eval takes a sentence without a rest for one without an answer, and puts nothing behind it.
    if (task.kind == HarnessKind::partial && right.continuation == delimiter) return right.context;
    return right.context + right.continuation + "\n\n";
}

}  // namespace headscope::evaluation
