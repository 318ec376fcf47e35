// SPDX-License-Identifier: GPL-3.0-or-later
// A model that reads a source and a target, from the command line.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/store/analysis/analysis_file.h"
#include "core/store/ask/ask_file.h"
#include "expectations.h"
#include "files.h"
#include "program.h"
#include "word_tokenizer.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;

namespace {

/// Bit for bit, as values that do not exist are no number.
bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](double one, double other) { return std::memcmp(&one, &other, sizeof one) == 0; });
}

/// An object with the texts "translation.en" and "translation.de".
std::string pair_line(const std::string& source, const std::string& target) {
    json line = json::object();
    line["id"] = 7;
    line["translation"]["en"] = source;
    line["translation"]["de"] = target;
    return line.dump();
}

}  // namespace

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

TEST_CASE("ask corpus reads pairs of JSON lines as it reads their ids", "[app][encoder-decoder][ask]") {
    const TemporaryFolder folder;
    const std::filesystem::path model = golden_sample(folder / "t5", "t5");
    write_word_tokenizer(model);
    const auto ask = [&](const std::string& name, const std::vector<std::string>& more) {
        std::vector<std::string> words{
            "ask", "corpus", model.string(), "-o", (folder / (name + ".ask.h5")).string(), "--two-passes"};
        words.insert(words.end(), more.begin(), more.end());
        return run_headscope(words);
    };
    const std::vector<std::vector<int>> sources{{3, 4, 5, 6, 7}, {9, 8, 7, 6}, {5, 6, 5}},
        targets{{4, 5, 6, 4, 5}, {7}, {8, 9, 8, 9}};
    std::vector<std::string> lines;
    for (std::size_t n = 0; n < sources.size(); ++n) {
        lines.push_back(pair_line(words_of(sources[n]), words_of(targets[n])));
        // Left out
        lines.push_back(pair_line(" \n", words_of(targets[n])));
        lines.push_back(pair_line(words_of(sources[n]), ""));
    }
    const auto text_of = [](const std::vector<std::string>& all, const std::string& between) {
        std::string text;
        for (const std::string& line : all) text += (text.empty() ? "" : between) + line;
        return text;
    };
    write_file(folder / "pairs.jsonl", text_of(lines, "\n") + "\n");
    write_file(folder / "pairs.txt", text_of(lines, "\n"));
    write_file(folder / "pairs.json", "[" + text_of(lines, ",\n") + "]");
    const std::string ids = write_file(folder / "sources.ids", json(sources).dump()).string();
    const std::string target_ids = write_file(folder / "targets.ids", json(targets).dump()).string();
    const std::vector<std::string> fields{"--field", "translation.en", "--target-field", "translation.de"};
    const auto of_lines = [&](const std::string& file, std::vector<std::string> more) {
        more.insert(more.end(), {"--json-lines", (folder / file).string()});
        return more;
    };
    check_success(ask("ids", {"--tokens", ids, "--target-tokens", target_ids}));
    const store::AskRecord wanted = store::read_ask(folder / "ids.ask.h5");
    const std::vector<double>& distances = wanted.table("/corpus/qk_distance").values;
    CHECK(std::any_of(distances.begin(), distances.end(), [](double distance) { return distance > 0; }));
    CHECK_FALSE(json::parse(wanted.settings_json).contains("target_field"));  // --resume takes older files
    for (const char* const file : {"pairs.jsonl", "pairs.txt", "pairs.json"}) {
        INFO(file);
        check_success(ask(file, of_lines(file, fields)));
        const store::AskRecord found = store::read_ask(folder / (std::string(file) + ".ask.h5"));
        CHECK(found.complete);
        CHECK(json::parse(found.settings_json).at("target_field") == "translation.de");
        CHECK(found.table("/corpus/progress").values.at(1) == 3);
        REQUIRE(found.tables.size() == wanted.tables.size());
        for (const store::AskTable& table : wanted.tables) {
            INFO(table.path);
            CHECK(same_bits(found.table(table.path).values, table.values));
        }
        REQUIRE(found.sequences.size() == wanted.sequences.size());
        for (std::size_t s = 0; s < found.sequences.size(); ++s) {
            CHECK(found.sequences[s].ids == wanted.sequences[s].ids);
            REQUIRE(found.sequences[s].target != nullptr);
            CHECK(found.sequences[s].target->ids == wanted.sequences[s].target->ids);
        }
    }
    std::vector<std::string> resumed = of_lines("pairs.jsonl", fields);
    resumed.emplace_back("--resume");
    check_success(ask("pairs.jsonl", resumed));
    CHECK(same_bits(store::read_ask(folder / "pairs.jsonl.ask.h5").table("/corpus/qk_distance").values, distances));
    // The last target alone is another.
    lines[6] = pair_line(words_of(sources[2]), words_of({8, 9, 8, 7}));
    write_file(folder / "pairs.jsonl", text_of(lines, "\n") + "\n");
    check_refusal(ask("pairs.jsonl", resumed), "found one with another documents_sha256");

    check_refusal(ask("a", of_lines("pairs.jsonl", {"--field", "translation.en"})),
                  "[--target-field] expected it with --json-lines");
    std::filesystem::create_directory(folder / "texts");
    write_file(folder / "texts" / "a.txt", words_of(sources[0]));
    check_refusal(ask("a", {"--folder", (folder / "texts").string()}),
                  "[--target-field] expected it with --json-lines");
    check_refusal(ask("a", of_lines("pairs.jsonl", {"--field", "translation.en", "--target-field", "translation.fr"})),
                  "and a \"translation.fr\"");
    check_usage_error(ask("a", {"--folder", (folder / "texts").string(), "--target-field", "translation.de"}));
    check_usage_error(ask("a", {"--tokens", ids, "--target-field", "translation.de"}));
    std::vector<std::string> decoder{"ask", "corpus", sample().string(), "-o", (folder / "a.ask.h5").string()};
    const std::vector<std::string> pairs = of_lines("pairs.jsonl", fields);
    decoder.insert(decoder.end(), pairs.begin(), pairs.end());
    check_refusal(run_headscope(decoder),
                  "[--target-field] expected a model with an encoder and a decoder; found llama");
}
