// SPDX-License-Identifier: GPL-3.0-or-later
// Chat templates on the command line.
#include <catch2/catch.hpp>

#include "expectations.h"
#include "files.h"
#include "program.h"

using namespace headscope::testing;
using nlohmann::json;

namespace {

/// The sample with this template beside it.
std::filesystem::path chat_sample(const std::filesystem::path& folder, const std::string& text) {
    const auto made = linked_sample(folder, {});
    write_file(made / "chat_template.jinja", text);
    return made;
}

}  // namespace

TEST_CASE("a message goes through the checkpoint's chat template", "[app][chat]") {
    TemporaryFolder folder;
    const std::string model = chat_sample(folder / "model",
                                          "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n"
                                          "{% endfor %}{% if add_generation_prompt %}so:{% endif %}")
                                  .string();
    const Outcome info = run_headscope({"info", model, "--json"});
    check_success(info);
    CHECK(json::parse(info.out).at("chat_template") == "chat_template.jinja");

    const Outcome chat = run_headscope({"tokenize", model, "--chat", "Let there be light", "--json"});
    const Outcome plain = run_headscope({"tokenize", model, "--plain", "<s>user: Let there be light\nso:", "--json"});
    check_success(chat);
    check_success(plain);
    CHECK(json::parse(chat.out) == json::parse(plain.out));
    CHECK(json::parse(chat.out).at("pieces").at(0) == "<s>");
    CHECK(json::parse(chat.out).at("pieces").at(1) != "<s>");

    const Outcome analysis = run_headscope({"analyze", model, "--chat", "--text", "Let there be light", "-o",
                                            (folder / "a.headscope.h5").string(), "--json"});
    check_success(analysis);
    CHECK(json::parse(analysis.out).at("tokens") == json::parse(chat.out).at("ids").size());
    CHECK(json::parse(analysis.out).at("settings").at("first_token") == "as the chat template does");
}

TEST_CASE("what is wrong with a chat template is one line", "[app][chat]") {
    TemporaryFolder folder;
    const std::string none = linked_sample(folder / "none", {}).string();
    check_refusal(run_headscope({"tokenize", none, "--chat", "x"}), "[--chat]");
    const Outcome info = run_headscope({"info", none, "--json"});
    CHECK(json::parse(info.out).at("chat_template").is_null());

    const std::string wrong = chat_sample(folder / "wrong", "a\n{{ x.y }}").string();
    check_refusal(run_headscope({"tokenize", wrong, "--chat", "x"}), "line 2, column 5");
    const Outcome noted = run_headscope({"info", wrong, "--json"});
    check_success(noted);
    CHECK(json::parse(noted.out).at("problems").empty());
    CHECK(json::parse(noted.out).at("notes").dump().find("line 2, column 5") != std::string::npos);

    const std::string endless =
        chat_sample(folder / "endless",
                    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")
            .string();
    check_refusal(run_headscope({"tokenize", endless, "--chat", "x"}), "4 000 000 steps");
    check_refusal(run_headscope({"analyze", wrong, "--chat", "--bos", "no", "--text", "x", "-o",
                                 (folder / "a.headscope.h5").string()}),
                  "[--bos]");
}
