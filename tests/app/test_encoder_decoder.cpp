// SPDX-License-Identifier: GPL-3.0-or-later
// A model that reads a source and a target, from the command line.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

#include "core/store/analysis/analysis_file.h"
#include "expectations.h"
#include "files.h"
#include "program.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;

TEST_CASE("info lists both towers of an encoder-decoder", "[app][encoder-decoder]") {
    const TemporaryFolder folder;
    const Outcome outcome = run_headscope({"info", golden_sample(folder / "t5", "t5").string(), "--json"});
    check_success(outcome);
    const json info = json::parse(outcome.out);
    CHECK(info.at("family") == "t5");
    CHECK(info.at("layers") == 3);
    CHECK(info.at("encoder").at("layers") == 2);
    CHECK(info.at("decoder").at("layers") == 1);
    CHECK(info.at("decoder").at("first_layer") == 2);
    CHECK(info.at("decoder_start") == 0);
    CHECK(info.at("problems").empty());
}

TEST_CASE("analyze takes what the decoder reads, one for all or one for each", "[app][encoder-decoder]") {
    const TemporaryFolder folder;
    const std::string model = golden_sample(folder / "t5", "t5").string();
    const std::string tokens = write_file(folder / "source.json", "[[3, 4, 5, 6, 7], [9, 8, 7, 6]]").string();
    const std::string one = write_file(folder / "one.json", "[[4, 5, 6]]").string();
    const std::string two = write_file(folder / "two.json", "[[4], [5, 6]]").string();
    const std::filesystem::path output = folder / "a.headscope.h5";
    const auto lengths = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments{"analyze", model, "--tokens", tokens, "-o", output.string(), "--json"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Outcome outcome = run_headscope(arguments);
        check_success(outcome);
        const auto file = store::AnalysisFile::open(output);
        CHECK(file->header().sites.size() == 4);
        std::vector<std::size_t> found;
        for (const auto& target : file->header().streams.at("target")) {
            CHECK(target.ids.front() == 0);
            found.push_back(target.ids.size());
        }
        return found;
    };
    CHECK(lengths({}) == std::vector<std::size_t>{1, 1});
    CHECK(lengths({"--target-tokens", one}) == std::vector<std::size_t>{4, 4});
    CHECK(lengths({"--target-tokens", two}) == std::vector<std::size_t>{2, 3});
    CHECK(lengths({"--target-tokens", one, "--length", "3"}) == std::vector<std::size_t>{3, 3});
    const Outcome three = run_headscope(
        {"analyze", model, "--tokens", tokens, "-o", output.string(), "--target-tokens", one, "--target-tokens", two});
    check_refusal(three, "one for each of 2 sequences; found 3");
}

TEST_CASE("A target is refused where there is no decoder beside an encoder", "[app][encoder-decoder]") {
    const TemporaryFolder folder;
    const Outcome outcome = run_headscope(
        {"analyze", sample().string(), "--text", "a", "--target", "b", "-o", (folder / "a.headscope.h5").string()});
    check_refusal(outcome, "[--target] expected a model with an encoder and a decoder; found llama");
}
