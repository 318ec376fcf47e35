// SPDX-License-Identifier: GPL-3.0-or-later
// A model that reads a source and a target, from the command line.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/store/analysis/analysis_file.h"
#include "core/store/ask/ask_file.h"
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

TEST_CASE("ask takes what the decoder reads, and resumes with the same alone", "[app][encoder-decoder][ask]") {
    const TemporaryFolder folder;
    const std::string model = golden_sample(folder / "t5", "t5").string();
    const std::string tokens = write_file(folder / "source.json", "[[3, 4, 5, 6, 7], [9, 8, 7, 6]]").string();
    const std::string other = write_file(folder / "other.json", "[[3, 4, 9, 6, 7], [9, 8, 2, 6]]").string();
    const std::string one = write_file(folder / "one.json", "[[4, 5, 6]]").string();
    const std::string two = write_file(folder / "two.json", "[[4, 5], [5, 6]]").string();
    const auto ask = [&](const std::string& tool, const std::vector<std::string>& more) {
        std::vector<std::string> words{"ask", tool, model, "-o", (folder / (tool + ".ask.h5")).string()};
        words.insert(words.end(), more.begin(), more.end());
        return run_headscope(words);
    };
    const std::vector<std::string> pair{"--clean-tokens", tokens, "--corrupted-tokens", other,
                                        "--answer",       "5",    "--against",          "6"};
    const auto joined = [](std::vector<std::string> all, const std::vector<std::string>& more) {
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    const std::vector<std::string> patching =
        joined(pair, {"--target-tokens", one, "--sites", "hidden,attention_output,head_output"});
    check_success(ask("patch", patching));
    check_success(ask("patch", joined(patching, {"--resume"})));
    const store::AskRecord patch = store::read_ask(folder / "patch.ask.h5");
    CHECK(patch.complete);
    REQUIRE(patch.sequences.size() == 2);
    CHECK(patch.sequences[1].target->ids == std::vector<std::int32_t>{0, 4, 5, 6});
    CHECK(patch.shape_of(patch.table("/patch/value/hidden")) == std::vector<std::int64_t>{2, 3, 5});
    CHECK(patch.shape_of(patch.table("/patch/value/attention_output")) == std::vector<std::int64_t>{2, 4, 5});
    write_file(folder / "one.json", "[[4, 5, 7]]");
    check_refusal(ask("patch", joined(patching, {"--resume"})), "expected a file of the same command, texts and model");
    check_refusal(
        ask("patch", joined(pair, {"--target-tokens", one, "--corrupted-target-tokens", two, "--sites", "hidden"})),
        "[targets of pair 0] 4 and 3 tokens; use --align edges");
    check_success(ask("ablate", {"--tokens", tokens, "--target-tokens", two}));
    check_success(ask("knockout", {"--tokens", tokens, "--target-tokens", one, "--attention", "cross", "--queries",
                                   "0-3", "--keys", "1", "--window", "1"}));
    check_success(ask("steer", {"--tokens", tokens, "--target-tokens", one, "--positive-tokens", tokens,
                                "--negative-tokens", other, "--factors=1"}));
    check_success(ask("circuits", {}));
    check_success(ask("sinks", {"--tokens", tokens, "--target-tokens", one}));
    check_success(ask("generate", {"--tokens", tokens, "--target-tokens", one, "--generate", "2", "--record", "maps"}));
    check_success(
        ask("cache", {"--tokens", tokens, "--target-tokens", one, "--context", "3", "--scorers", "h2o,tova"}));
    check_success(ask("corpus", {"--tokens", tokens, "--target-tokens", one, "--two-passes"}));
    check_success(ask("kinds", {"--half", "6", "--seed", "3"}));
    const store::AskRecord kinds = store::read_ask(folder / "kinds.ask.h5");
    REQUIRE(kinds.sequences.size() == 4);
    for (const store::SequenceTokens& text : kinds.sequences) {
        REQUIRE(text.target != nullptr);
        const std::vector<std::int32_t>&source = text.ids, &target = text.target->ids;
        REQUIRE(target.size() == 13);  // the start token, and 6 drawn tokens twice
        CHECK(target.front() == 0);
        CHECK(std::equal(target.begin() + 1, target.begin() + 7, target.begin() + 7));
        CHECK(!std::equal(target.end() - 6, target.end(), source.end() - 6));
    }
    for (const auto& [tool, figure] :
         {std::pair("patch", "patch-layers"), std::pair("patch", "patch-heads"), std::pair("ablate", "ablation-heads"),
          std::pair("knockout", "knockout"), std::pair("steer", "steering"), std::pair("circuits", "circuits"),
          std::pair("sinks", "sink-rate"), std::pair("sinks", "massive-activations"), std::pair("sinks", "value-norms"),
          std::pair("kinds", "head-kinds"), std::pair("generate", "generation"), std::pair("cache", "cache-error"),
          std::pair("corpus", "corpus-scatter")}) {
        INFO(figure);
        const auto output = folder / (std::string(figure) + ".csv");
        check_success(run_headscope({"export", (folder / (std::string(tool) + ".ask.h5")).string(), "--figure", figure,
                                     "-o", output.string()}));
        CHECK(std::filesystem::file_size(output) > 20);
    }
    check_usage_error(ask("kinds", {"--target-tokens", one}));
    check_refusal(ask("corpus", {"--tokens", tokens}), "expected a text of at least 2 tokens");
    check_refusal(
        ask("corpus", {"--tokens", tokens, "--target-tokens", one, "--headvis-tree", (folder / "t").string()}),
        "[--headvis-tree] expected a decoder; found an encoder-decoder");
    check_usage_error(ask("corpus", {"--folder", folder.path().string(), "--target-tokens", one}));
    check_refusal(ask("ablate", {"--tokens", tokens}), "at least 2 tokens for loss; found 1 in text 0");
    check_refusal(ask("steer", {"--tokens", tokens, "--target-tokens", one, "--positive-tokens", tokens,
                                "--negative-tokens", other, "--save-vector", (folder / "v.gguf").string()}),
                  "[--save-vector] expected a model of one stack");
    check_refusal(run_headscope({"ask", "ablate", sample().string(), "--text", "In the beginning", "--target-tokens",
                                 one, "-o", (folder / "a.ask.h5").string()}),
                  "[--target-tokens] expected a model with an encoder and a decoder; found llama");
}
