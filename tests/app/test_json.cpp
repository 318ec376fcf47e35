// SPDX-License-Identifier: GPL-3.0-or-later
// With --json one document goes to standard output and nothing else; and what the sub-commands say is true.
#include <catch2/catch.hpp>
#include <sstream>

#include "expectations.h"
#include "files.h"
#include "program.h"

using namespace headscope::testing;
using nlohmann::json;

namespace {

const std::string kText = "And God said, Let there be light: and there was light.";

json document(const std::vector<std::string>& arguments, Settings settings = {}) {
    const Outcome outcome = run_headscope(arguments, std::move(settings));
    check_success(outcome);
    CAPTURE(outcome.out);
    json parsed;
    REQUIRE_NOTHROW(parsed = json::parse(outcome.out));  // refuses a second document, too
    return parsed;
}

}  // namespace

TEST_CASE("info lists the sample's family, sizes and tensors", "[app][json]") {
    const json info = document({"info", sample().string(), "--json"});
    CHECK(info.at("kind") == "checkpoint");
    CHECK(info.at("family") == "llama");
    CHECK(info.at("layers") == 4);
    CHECK(info.at("heads") == 8);
    CHECK(info.at("key_value_heads") == 4);
    CHECK(info.at("vocabulary") == 2048);
    CHECK(info.at("problems").empty());
    CHECK(info.at("missing").empty());
    CHECK(info.at("left_over").empty());
    const auto parameters = info.at("parameters").get<std::int64_t>();
    CHECK(parameters > 3'300'000);
    CHECK(parameters < 3'500'000);
}

TEST_CASE("info lists several paths in order, and stops at one it cannot read", "[app][json]") {
    TemporaryFolder folder;
    const std::string analysis = (folder / "a.headscope.h5").string();
    check_success(run_headscope({"analyze", sample().string(), "--text", kText, "-o", analysis}));
    const Outcome both = run_headscope({"info", "--json", "--", analysis, sample().string(), analysis});
    check_success(both);
    std::istringstream text(both.out);
    std::vector<std::string> kinds;
    for (json one; kinds.size() < 3 && text >> one;) kinds.push_back(one.at("kind"));
    CHECK(kinds == std::vector<std::string>{"analysis", "checkpoint", "analysis"});
    CHECK((text >> std::ws).eof());

    const std::string broken = write_file(folder / "b.headscope.h5", "no analysis").string();
    const Outcome outcome = run_headscope({"info", analysis, broken, sample().string()});
    CHECK(outcome.status == 1);
    CHECK(outcome.out.find("analysis") != std::string::npos);
    CHECK(outcome.out.find("checkpoint") == std::string::npos);
    REQUIRE(outcome.messages().size() == 1);
    CHECK(outcome.messages()[0].find("b.headscope.h5") != std::string::npos);
}

TEST_CASE("tokenize gives ids, pieces and byte offsets, and takes ids back", "[app][json]") {
    const std::string text = kText + " \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80";
    const json tokens = document({"tokenize", sample().string(), text, "--json"});
    const auto ids = tokens.at("ids").get<std::vector<int>>();
    REQUIRE_FALSE(ids.empty());
    REQUIRE(tokens.at("pieces").size() == ids.size());
    REQUIRE(tokens.at("offsets").size() == ids.size());
    std::size_t reached = 0;
    for (const auto& offset : tokens.at("offsets")) {
        const auto begin = offset.at(0).get<std::size_t>(), end = offset.at(1).get<std::size_t>();
        CHECK(begin <= end);
        CHECK(end <= text.size());
        reached = std::max(reached, end);
    }
    CHECK(reached == text.size());
    std::vector<std::string> arguments{"tokenize", sample().string(), "--skip-special", "--decode"};
    for (const int id : ids) arguments.push_back(std::to_string(id));
    const Outcome decoded = run_headscope(arguments);
    check_success(decoded);
    CHECK(decoded.out == text + "\n");
    // Ids that stand for nothing are left out, as PyPI's package does.
    for (const char* none : {"2048", "4294967295", "1099511627776"}) arguments.emplace_back(none);
    CHECK(run_headscope(arguments).out == text + "\n");
}

TEST_CASE("tokenize reads a file and standard input alike", "[app][json]") {
    TemporaryFolder folder;
    const auto file = write_file(folder / "text.txt", kText);
    const json direct = document({"tokenize", sample().string(), kText, "--json"});
    CHECK(document({"tokenize", sample().string(), "--file", file.string(), "--json"}) == direct);
    CHECK(document({"tokenize", sample().string(), "--file", "-", "--json"}, {.standard_input = file}) == direct);
}

TEST_CASE("analyze prints one document, and info reads the file that it left", "[app][json]") {
    TemporaryFolder folder;
    const auto output = folder / "x.headscope.h5";
    const Outcome outcome = run_headscope(
        {"analyze", sample().string(), "--text", kText, "--text", "Amen.", "-o", output.string(), "--json"});
    check_success(outcome);
    const json result = json::parse(outcome.out);
    CHECK(result.is_object());
    CHECK(result.at("seconds").get<double>() > 0);
    const std::string tokens = std::to_string(result.at("tokens").get<std::int64_t>());
    CHECK(outcome.err.find("headscope: 100 %  " + tokens + " tokens in ") != std::string::npos);
    CHECK(outcome.err.find(" tokens/s\n") != std::string::npos);
    const json info = document({"info", output.string(), "--json"});
    CHECK(info.at("kind") == "analysis");
    CHECK(info.at("complete") == true);
    CHECK(info.at("sites") == 4);
    CHECK(info.at("sites_done") == 8);  // of two sequences
    CHECK(info.at("heads") == 8);
    CHECK(info.at("sequence_lengths").size() == 2);
}

TEST_CASE("lists are documents", "[app][json]") {
    CHECK(document({"list", "families", "--json"}).size() >= 4);
    CHECK(document({"list", "figures", "--json"}).size() >= 10);
    CHECK(document({"list", "colour-maps", "--json"}).size() == 8);
    CHECK(document({"list", "kernels", "--json"}).size() >= 2);
    CHECK(document({"list", "mixers", "--json"}).is_array());
    CHECK(document({"list", "papers", "--json"}).size() == 5);
    CHECK(document({"list", "tasks", "--json"}).at(0).at("metrics").is_string());
    const json option = document({"list", "figure-options", "--json"}).at(0);
    CHECK(option.at("name") == "--layer");
    CHECK(option.at("values") == "N");
    CHECK(option.at("figures").get<std::string>().starts_with("radar, scores"));
    const json key = document({"list", "job-keys", "--json"}).at(1);
    CHECK(key.at("name") == "seed");
    CHECK(key.at("default") == "1");
    CHECK(key.at("values") == "a whole number from 0 to 1e+15");
}

TEST_CASE("greedy generation is the same every time and as long as asked", "[app][json]") {
    const std::vector<std::string> arguments{
        "generate", sample().string(), "--prompt", "In the beginning", "--tokens", "7", "--temperature", "0", "--json"};
    const json first = document(arguments);
    CHECK(first.at("ids").size() == 7);
    CHECK(document(arguments).at("ids") == first.at("ids"));
}

TEST_CASE("HEADSCOPE_KERNELS chooses the kernel that runs", "[app][json]") {
    TemporaryFolder folder;
    const std::vector<std::string> arguments{
        "analyze", sample().string(), "--text", kText, "--json", "-o", (folder / "x.headscope.h5").string()};
    CHECK(document(arguments, {.environment = {"HEADSCOPE_KERNELS=reference"}}).at("kernels") == "reference");
    CHECK(document(arguments).at("kernels") != "reference");
}

TEST_CASE("convert writes a checkpoint that says the same", "[app][json]") {
    TemporaryFolder folder;
    const auto copy = folder / "copy";
    check_success(run_headscope({"convert", sample().string(), copy.string(), "--dtype", "float16"}));
    const json before = document({"info", sample().string(), "--json"}),
               after = document({"info", copy.string(), "--json"});
    CHECK(after.at("problems").empty());
    CHECK(after.at("parameters") == before.at("parameters"));
    CHECK(after.at("matched") == before.at("matched"));
    CHECK(after.at("tensors").at(0).at("type") != before.at("tensors").at(0).at("type"));
}

TEST_CASE("export writes the numbers of a figure as CSV", "[app][export]") {
    TemporaryFolder folder;
    const auto output = folder / "x.headscope.h5";
    check_success(run_headscope({"analyze", sample().string(), "--text", kText, "-o", output.string()}));
    for (const std::string figure : {"radar", "indicators", "logits", "thumbnails", "text", "loss"}) {
        INFO(figure);
        const auto table = folder / (figure + ".csv");
        check_success(run_headscope({"export", output.string(), "--figure", figure, "-o", table.string()}));
        const std::string text = read_file(table);
        CHECK(text.find(',') != std::string::npos);
        CHECK(std::count(text.begin(), text.end(), '\n') > 2);
    }
    check_refusal(run_headscope({"export", output.string(), "--figure", "frob", "-o", (folder / "frob.csv").string()}),
                  "frob");
}
