// SPDX-License-Identifier: GPL-3.0-or-later
// Texts of chat templates against those that transformers makes (tests/oracle/generate/chat_templates.py).
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/tokenizer/chat_template.h"
#include "core/tokenizer/template/render.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::tokenizer;
using headscope::test::IsError;
using nlohmann::ordered_json;

namespace {

const ordered_json& golden() {
    static const ordered_json document = [] {
        std::ifstream file(test::golden_file("tokenizer/chat_templates.json"));
        return ordered_json::parse(file);
    }();
    return document;
}

std::tm golden_date() {
    std::tm date{};
    date.tm_year = 126;
    date.tm_mon = 2;
    date.tm_mday = 7;
    date.tm_hour = 9;
    date.tm_min = 5;
    date.tm_sec = 2;
    date.tm_wday = 6;
    date.tm_yday = 65;
    return date;
}

chat::Value value_of(const ordered_json& json, chat::Budget& budget) {
    if (json.is_null()) return chat::None{};
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_integer()) return json.get<std::int64_t>();
    if (json.is_number()) return json.get<double>();
    if (json.is_string()) return json.get<std::string>();
    if (json.is_array()) {
        std::vector<chat::Value> items;
        for (const auto& item : json) items.push_back(value_of(item, budget));
        return chat::Value::list(std::move(items));
    }
    std::vector<std::pair<chat::Value, chat::Value>> entries;
    for (const auto& [key, item] : json.items()) entries.emplace_back(key, value_of(item, budget));
    return chat::Value::dict(std::move(entries), budget);
}

std::string render(const std::string& source, const ordered_json& context = ordered_json::object()) {
    chat::Budget budget(0);
    chat::Evaluator::Variables variables;
    for (const auto& [key, item] : context.items()) variables[key] = value_of(item, budget);
    return chat::render(source, "t.jinja", variables, golden_date(), budget);
}

/// null where it is refused with an Error.
ordered_json rendered(const std::string& source, const ordered_json& context) {
    try {
        return render(source, context);
    } catch (const Error& error) {
        UNSCOPED_INFO(error.what());
        return nullptr;
    }
}

std::string filled(std::string pattern, std::size_t times) {
    std::string text;
    for (std::size_t i = 0; i < times; ++i) text += pattern;
    return text;
}

ChatTemplate chat_of(std::string text) {
    ChatTemplate chat;
    chat.text = std::move(text);
    chat.where = "t.jinja";
    return chat;
}

}  // namespace

TEST_CASE("Expressions and statements are worth what they are in Jinja", "[chat_template][golden]") {
    const ordered_json& context = golden().at("context");
    std::size_t texts = 0;
    for (const auto& row : golden().at("table")) {
        const std::string source = row[0];
        INFO(source);
        CHECK(rendered(source, context) == row[1]);
        texts += row[1].is_string() ? 1 : 0;
    }
    REQUIRE(texts > 300);
}

TEST_CASE("Chats in the manner of families read as transformers writes them", "[chat_template][golden]") {
    for (const auto& row : golden().at("chat_results")) {
        const std::string name = row[0];
        ChatTemplate chat = chat_of(golden().at("templates").at(name));
        for (const auto& [token, text] : golden().at("tokens").items()) chat.special_tokens[token] = text;
        std::vector<ChatMessage> messages;
        for (const auto& message : golden().at("chats").at(row[1].get<std::size_t>()))
            messages.push_back({message[0], message[1]});
        ChatOptions options;
        options.add_generation_prompt = row[2];
        options.now = golden_date();
        INFO(name << ", chat " << row[1]);
        ordered_json found;
        try {
            found = apply_chat_template(chat, messages, options);
        } catch (const Error& error) {
            UNSCOPED_INFO(error.what());
        }
        CHECK(found == row[3]);
    }
}

TEST_CASE("Templates with tools and calls read as in Jinja", "[chat_template][golden]") {
    for (const auto& row : golden().at("full_results")) {
        const std::string name = row[0];
        INFO(name);
        CHECK(rendered(golden().at("templates").at(name), golden().at("context")) == row[1]);
    }
}

TEST_CASE("A bad template is refused with line and column", "[chat_template]") {
    const auto fails = [](const std::string& source, ErrorCode code, const std::string& part) {
        INFO(source);
        REQUIRE_THROWS_MATCHES(render(source), Error, IsError(code, part));
    };
    fails("a\n {{ 1 + }}", ErrorCode::format, "t.jinja, line 2, column 9");
    fails("é{{ x.y }}", ErrorCode::format, "line 1, column 6");
    fails("é{{ x.y }}", ErrorCode::format, "\"x\", which is not defined");
    fails("{% if x %}", ErrorCode::format, "expected {% endif %}");
    fails("\n\n{% call f() %}{% endcall %}", ErrorCode::unsupported, "line 3, column 4");
    fails("{{ 'a' | shuffle }}", ErrorCode::unsupported,
          "column 10] expected a filter that is known; found \"shuffle\"");
    fails("{% macro f(x) %}{{ x.a.b }}{% endmacro %}\n{{ f({}) }}", ErrorCode::format, "line 1, column 23");
    fails("{{ raise_exception('only\nusers') }}", ErrorCode::usage, "found: \"only\\x0Ausers\"");
    fails("{% for i in [1] recursive %}{% endfor %}", ErrorCode::unsupported, "recursive");
    fails("{% for i in [1] %}{% macro f() %}{% endmacro %}{% endfor %}", ErrorCode::unsupported, "macros outside");
    fails("{{ 9223372036854775807 + 1 }}", ErrorCode::limit, "2^63");
    fails("{{ 99999999999999999999 }}", ErrorCode::limit, "2^63");
    fails("{{ '\\ud800' }}", ErrorCode::format, "number of a character");
    fails("{{ [1].append(2) }}", ErrorCode::format, "do not change");
}

TEST_CASE("A hostile template ends at a limit", "[chat_template][limits]") {
    const auto stops = [](const std::string& source) {
        INFO(source.substr(0, 100));
        REQUIRE_THROWS_MATCHES(render(source), Error, IsError(ErrorCode::limit));
    };
    stops("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}");
    stops("{% set ns = namespace(s='abcdefgh') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}");
    stops("{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}");
    stops("{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}");
    stops("{% set ns = namespace(l=[1]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% endfor %}");
    stops("{{ 'a' * 9999999999 }}");
    stops("{{ [1] * 9223372036854775807 }}");
    stops("{{ ('a' * 60000000) ~ ('b' * 60000000) }}");
    stops("{{ ('a' * 1000000).replace('a', 'b' * 1000) }}");
    stops("{{ ('a ' * 9000000).split() }}");
    stops("{{ '%999999s' % 1 }}");
    stops("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}");
    stops("{{ " + filled("(", 5000) + "1" + filled(")", 5000) + " }}");
    stops("{{ " + filled("[", 5000) + filled("]", 5000) + " }}");
    stops("{{ 1" + filled("+1", 5000) + " }}");
    stops("{{ x" + filled("|list", 5000) + " }}");
    stops("{{ x" + filled(".a", 5000) + " }}");
    stops("{{ " + filled("not ", 5000) + "1 }}");
    stops("{{ " + filled("-", 5000) + "1 }}");
    stops("{{ 'a'|map(" + filled("'map',", 300) + "'list') }}");
    stops(filled("{% if 1 %}", 5000) + filled("{% endif %}", 5000));
    stops("{{ " + filled("1 if 1 else ", 5000) + "2 }}");
    stops("{% set " + filled("(", 5000) + "a" + filled(")", 5000) + " = 1 %}");
    // Things that hold each other are let go of.
    REQUIRE(render("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}{% set a.l = [a, b] %}ok") ==
            "ok");
}

TEST_CASE("A long message passes through a template", "[chat_template][limits]") {
    const auto chat =
        chat_of("{% for m in messages %}{{ '<' + m.content.strip().split('</t>')[-1][1:] | trim + '>' }}{% endfor %}");
    const std::string text(20'000'000, 'x');
    const std::vector<ChatMessage> messages = {{"user", text}};
    REQUIRE(apply_chat_template(chat, messages).size() == text.size() + 1);
}

TEST_CASE("Messages and templates must be UTF-8", "[chat_template]") {
    const std::vector<ChatMessage> messages = {{"user", "a\xFF"}};
    REQUIRE_THROWS_MATCHES(apply_chat_template(chat_of("{{ messages }}"), messages), Error,
                           IsError(ErrorCode::format, "byte 1"));
}

TEST_CASE("A checkpoint's template is found where transformers keeps it", "[chat_template][files]") {
    const test::TemporaryFolder folder;
    const std::vector<ChatMessage> messages = {{"user", "Hi"}};
    const auto text = [&] { return apply_chat_template(find_chat_template(folder.path()).value(), messages); };
    REQUIRE_FALSE(find_chat_template(folder.path()).has_value());

    test::write_file(folder / "chat_template.json", R"({"chat_template": "old"})");
    REQUIRE(text() == "old");
    test::write_file(folder / "tokenizer_config.json",
                     R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>",
                         "chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"})");
    REQUIRE(text() == "<s>Hi</s>");
    test::write_file(
        folder / "tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]})");
    REQUIRE(text() == "d");
    REQUIRE(find_chat_template(folder.path())->others == std::vector<std::string>{"tool_use"});
    test::write_file(folder / "chat_template.jinja", "{% if add_generation_prompt %}j{% endif %}\n");
    REQUIRE(text() == "j");
    REQUIRE(find_chat_template(folder.path())->file == "chat_template.jinja");

    test::write_file(folder / "chat_template.jinja", "\xFF");
    REQUIRE_THROWS_MATCHES(find_chat_template(folder.path()), Error, IsError(ErrorCode::format, "UTF-8"));
    std::filesystem::remove(folder / "chat_template.jinja");
    test::write_file(folder / "tokenizer_config.json", R"({"chat_template": 5})");
    REQUIRE_THROWS_MATCHES(find_chat_template(folder.path()), Error, IsError(ErrorCode::format, "chat_template"));
    test::write_file(folder / "tokenizer_config.json",
                     R"({"chat_template": [{"name": "a", "template": "t"}, {"name": "b", "template": "d"}]})");
    REQUIRE_THROWS_MATCHES(find_chat_template(folder.path()), Error, IsError(ErrorCode::format, "default"));
}
