// SPDX-License-Identifier: GPL-3.0-or-later
// Inputs that cannot be used: exit status 1, one line, no output file, no remains.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>

#include "expectations.h"
#include "files.h"
#include "program.h"

using namespace headscope::testing;
using nlohmann::json;

namespace {

/// Runs `analyze` and expects a refusal that names `part` and leaves nothing.
void refuse(const std::string& model, std::vector<std::string> input, const std::string& part = "") {
    TemporaryFolder out;
    std::vector<std::string> arguments{"analyze", model, "-o", (out / "x.headscope.h5").string()};
    arguments.insert(arguments.end(), input.begin(), input.end());
    const Outcome outcome = run_headscope(arguments, {.seconds = 30});
    check_refusal(outcome, part);
    CHECK(out.names().empty());
}

const std::string kText = "In the beginning God created the heaven and the earth.";

}  // namespace

TEST_CASE("token files that are not arrays of arrays of the model's ids are refused", "[app][input]") {
    TemporaryFolder folder;
    const std::vector<std::pair<std::string, std::string>> bad = {
        {"[[5, 2048]]", "2048"},
        {"[[5, -1]]", "-1"},
        {"[[5, 4294967301]]", "4294967301"},
        {"[[5, 1e400]]", ""},
        {"[[5, 1.5]]", ""},
        {"[[5, \"a\"]]", ""},
        {"[[5, null]]", ""},
        {"[[]]", ""},
        {"[]", ""},
        {"{\"ids\": [5]}", ""},
        {"[5, 6]", ""},
        {"[[5, 6]", ""},
        {"", ""},
        {"[[5]] [[6]]", ""},
        {std::string(200000, '['), ""},
    };
    for (const auto& [content, part] : bad) {
        INFO(content.substr(0, 60));
        const auto path = write_file(folder / "ids.json", content);
        refuse(sample().string(), {"--tokens", path.string()}, part);
    }
}

TEST_CASE("a text longer than the model's positions names the limit and the way past it", "[app][input]") {
    TemporaryFolder folder;
    const auto longer = write_tokens(folder / "longer.json", {1025});
    TemporaryFolder out;
    const Outcome outcome = run_headscope(
        {"analyze", sample().string(), "--tokens", longer.string(), "-o", (out / "x.headscope.h5").string()});
    check_refusal(outcome, "--beyond-positions");
    CHECK(outcome.err.find("1024") != std::string::npos);
    CHECK(outcome.err.find("1025") != std::string::npos);
    CHECK(out.names().empty());
    check_success(run_headscope({"analyze", sample().string(), "--tokens", longer.string(), "--beyond-positions", "-o",
                                 (out / "x.headscope.h5").string()}));
    CHECK(out.names() == std::vector<std::string>{"x.headscope.h5"});
}

TEST_CASE("a prompt longer than the model's positions is refused, and an empty one", "[app][input]") {
    std::string prompt;
    for (int i = 0; i < 1100; ++i) prompt += "the ";
    check_refusal(run_headscope({"generate", sample().string(), "--prompt", prompt}), "--beyond-positions");
    check_refusal(run_headscope({"generate", sample().string(), "--prompt", ""}));
}

TEST_CASE("empty texts and missing files are refused", "[app][input]") {
    TemporaryFolder folder;
    const auto empty = write_file(folder / "empty.txt", "");
    refuse(sample().string(), {"--text", ""});
    refuse(sample().string(), {"--file", empty.string()});
    refuse(sample().string(), {"--file", (folder / "none.txt").string()}, "none.txt");
    refuse(sample().string(), {"--tokens", (folder / "none.json").string()}, "none.json");
    refuse(sample().string(), {"--example", "no-such-example"}, "no-such-example");
    refuse((folder / "no-model").string(), {"--text", kText}, "no-model");
    refuse(sample().string(), {"--text", kText, "--layers", "9"}, "9");
}

TEST_CASE("a pipe or a folder as input is refused at once", "[app][input]") {
    TemporaryFolder folder;
    const auto fifo = folder / "pipe";
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    refuse(sample().string(), {"--tokens", fifo.string()});
    refuse(sample().string(), {"--file", fifo.string()});
    refuse(sample().string(), {"--file", folder.path().string()});
    refuse(fifo.string(), {"--text", kText});
    refuse(folder.path().string(), {"--text", kText});
}

TEST_CASE("truncated and lying weight files are refused", "[app][input]") {
    TemporaryFolder folder;
    const std::string whole = read_file(sample() / "model.safetensors");
    REQUIRE(whole.size() > 1000000);
    const std::string huge_header = std::string(7, '\xff') + '\x7f' + whole.substr(8, 5000);
    const std::string not_json = whole.substr(0, 8) + std::string(4088, 'x') + whole.substr(4096);
    const std::vector<std::pair<std::string, std::string>> bad = {
        {"empty", ""},
        {"seven bytes", whole.substr(0, 7)},
        {"inside the header", whole.substr(0, 100)},
        {"header without data", whole.substr(0, 4096)},
        {"inside the data", whole.substr(0, whole.size() / 2)},
        {"one byte short", whole.substr(0, whole.size() - 1)},
        {"one byte long", whole + 'x'},
        {"a header of 2^63 bytes", huge_header},
        {"a header that is not JSON", not_json},
    };
    int number = 0;
    for (const auto& [what, bytes] : bad) {
        INFO(what);
        const auto model = sample_with_weights(folder / ("model" + std::to_string(number++)), bytes);
        refuse(model.string(), {"--text", kText}, "model.safetensors");
    }
}

TEST_CASE("a configuration that disagrees with the tensors is refused", "[app][input]") {
    TemporaryFolder folder;
    const std::vector<std::pair<std::string, std::function<void(json&)>>> changes = {
        {"hidden size", [](json& c) { c["hidden_size"] = 264; }},
        {"more layers than tensors", [](json& c) { c["num_hidden_layers"] = 5; }},
        {"larger vocabulary", [](json& c) { c["vocab_size"] = 4096; }},
        {"wider feed-forward", [](json& c) { c["intermediate_size"] = 700; }},
        {"other heads", [](json& c) { c["num_attention_heads"] = 16; }},
        {"heads that are no multiple of the key-value heads", [](json& c) { c["num_key_value_heads"] = 3; }},
        {"no heads", [](json& c) { c["num_attention_heads"] = 0; }},
        {"negative size", [](json& c) { c["hidden_size"] = -256; }},
        {"a size that is a text", [](json& c) { c["hidden_size"] = "256"; }},
        {"absurd layers", [](json& c) { c["num_hidden_layers"] = 1e15; }},
        {"biases that the file lacks", [](json& c) { c["attention_bias"] = true; }},
        {"an unknown activation", [](json& c) { c["hidden_act"] = "frob"; }},
        {"an unknown rotary kind", [](json& c) { c["rope_parameters"]["rope_type"] = "frob"; }},
        {"an unknown family", [](json& c) { c["model_type"] = "frob"; }},
        {"no family", [](json& c) { c.erase("model_type"); }},
    };
    int number = 0;
    for (const auto& [what, change] : changes) {
        INFO(what);
        refuse(sample_with_config(folder / ("model" + std::to_string(number++)), change).string(), {"--text", kText});
    }
}

TEST_CASE("a configuration or tokenizer that is no JSON is refused with its name", "[app][input]") {
    TemporaryFolder folder;
    auto model = linked_sample(folder / "config", {"config.json"});
    write_file(model / "config.json", "{\"model_type\": \"llama\",");
    refuse(model.string(), {"--text", kText}, "config.json");
    model = linked_sample(folder / "tokenizer", {"tokenizer.json"});
    write_file(model / "tokenizer.json", "[]");
    refuse(model.string(), {"--text", kText}, "tokenizer.json");
    model = linked_sample(folder / "none", {"tokenizer.json", "tokenizer_config.json"});
    refuse(model.string(), {"--text", kText}, "tokenizer");
}

TEST_CASE("bad input of the other sub-commands is refused too", "[app][input]") {
    TemporaryFolder folder;
    const auto text = write_file(folder / "text.headscope.h5", "no HDF5 file");
    check_refusal(run_headscope({"export", text.string(), "--figure", "radar", "-o", (folder / "x.csv").string()}));
    check_refusal(run_headscope(
        {"export", (folder / "none.h5").string(), "--figure", "radar", "-o", (folder / "x.csv").string()}));
    check_refusal(run_headscope({"info", text.string()}));
    check_refusal(run_headscope({"info", (folder / "none").string()}));
    check_refusal(run_headscope({"tokenize", sample().string(), "--decode", "7", "-3"}), "found -3");
    check_refusal(run_headscope({"tokenize", (folder / "none").string(), "text"}));
    check_refusal(run_headscope({"convert", (folder / "none").string(), (folder / "copy").string()}));
    CHECK(folder.names() == std::vector<std::string>{"text.headscope.h5"});
}

TEST_CASE("an unknown kernel is refused and the known ones are named", "[app][input]") {
    TemporaryFolder folder;
    const std::vector<std::string> arguments{"analyze", sample().string(),         "--text", kText,
                                             "-o",      (folder / "x.h5").string()};
    check_refusal(run_headscope(arguments, {.environment = {"HEADSCOPE_KERNELS=frob"}}), "reference");
    CHECK(folder.names().empty());
}

TEST_CASE("NaN weights are reported with their consequences", "[app][input]") {
    TemporaryFolder folder;
    std::string bytes = read_file(sample() / "model.safetensors");
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    const std::string name = "model.layers.1.self_attn.q_proj.weight";
    const auto entry = json::parse(bytes.substr(8, length)).at(name);
    REQUIRE(entry.at("dtype") == "BF16");
    const auto at = 8 + length + entry.at("data_offsets").at(0).get<std::uint64_t>();
    bytes[at] = '\xC0';
    bytes[at + 1] = '\x7F';  // NaN
    const auto model = sample_with_weights(folder / "model", bytes).string();
    const std::string weights = "weights: 1 of 65 536 numbers of " + name + " are NaN or infinite";
    const auto analysis = (folder / "x.headscope.h5").string();
    const Outcome outcome = run_headscope({"analyze", model, "--text", "In the beginning", "-o", analysis});
    check_success(outcome);
    CHECK(outcome.out.find("problem: " + weights + "\n") != std::string::npos);
    CHECK(outcome.out.find("problem: scores: NaN or infinite, first in layer 1, head 0 of sequence 0") !=
          std::string::npos);
    CHECK(outcome.out.find("problem: activations: NaN or infinite, first in \"hidden\" of layer 1, token 0 of") !=
          std::string::npos);
    CHECK(outcome.out.find("problem: loss: NaN or infinite, first in token 0 of sequence 0\n") != std::string::npos);
    const Outcome info = run_headscope({"info", analysis, "--json"});
    check_success(info);
    const auto problems = json::parse(info.out).at("problems");
    REQUIRE(problems.size() == 4);
    CHECK(problems.at(0) == weights);
    const Outcome told = run_headscope({"analyze", model, "--text", "In the beginning", "-o", analysis, "--json"});
    check_success(told);
    CHECK(json::parse(told.out).at("problems") == problems);
    const Outcome generated = run_headscope({"generate", model, "--prompt", "In the", "--tokens", "2"});
    check_refusal(generated, weights);
    check_refusal(generated, "first in \"hidden\" of layer 1");

    const Outcome good = run_headscope({"analyze", sample().string(), "--text", "And", "-o", analysis, "--json"});
    check_success(good);
    CHECK(json::parse(good.out).at("problems").empty());
}
