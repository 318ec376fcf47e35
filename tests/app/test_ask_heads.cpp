// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

#include "core/store/ask/ask_file.h"
#include "expectations.h"
#include "files.h"
#include "program.h"

using namespace headscope;
using namespace headscope::testing;

namespace {

const char* const kVerse = "In the beginning God created the heaven and the earth";

Outcome ask_heads(const std::string& tool, const std::filesystem::path& output, const std::vector<std::string>& more) {
    std::vector<std::string> all{"ask", tool, sample().string(), "-o", output.string()};
    all.insert(all.end(), more.begin(), more.end());
    return run_headscope(all);
}

void check_figures(const std::filesystem::path& file, const TemporaryFolder& folder,
                   const std::vector<std::vector<std::string>>& figures) {
    for (const std::vector<std::string>& figure : figures) {
        INFO(figure.front());
        const auto output = folder / (figure.front() + ".csv");
        std::vector<std::string> all{"export", file.string(), "-o", output.string(), "--figure"};
        all.insert(all.end(), figure.begin(), figure.end());
        check_success(run_headscope(all));
        CHECK(std::filesystem::file_size(output) > 20);
    }
}

}  // namespace

TEST_CASE("ask sinks writes rates, activations and norms, and export draws them", "[app][ask]") {
    const TemporaryFolder folder;
    const auto file = folder / "sinks.ask.h5";
    check_success(
        ask_heads("sinks", file, {"--text", kVerse, "--epsilon", "0.25", "--csv", (folder / "sinks.csv").string()}));
    const store::AskRecord sinks = store::read_ask(file);
    CHECK(sinks.complete);
    const std::vector<double>& mass = sinks.table("/sinks/column_mass").values;
    const std::vector<double>& first = sinks.table("/sinks/sink").values;
    const auto tokens = static_cast<std::size_t>(sinks.size_of("/token"));
    // The mean weight of the first key is the indicator.
    for (std::size_t head = 0; head < first.size(); ++head)
        CHECK(mass[head * tokens] == Approx(first[head]).margin(1e-5));
    CHECK(std::filesystem::file_size(folder / "sinks.csv") > 20);
    check_figures(file, folder, {{"sink-rate"}, {"massive-activations"}, {"value-norms", "--sequence", "0"}});
    check_refusal(run_headscope({"export", file.string(), "--figure", "lens", "-o", (folder / "x.csv").string()}),
                  "expected a file of headscope ask lens");
    check_usage_error(ask_heads("sinks", folder / "a.ask.h5", {"--text", kVerse, "--epsilon", "2"}));
    check_usage_error(ask_heads("sinks", folder / "a.ask.h5", {"--text", kVerse, "--metric", "loss"}));
}

TEST_CASE("ask corpus reads a folder or JSON lines, resumes, and export draws heads", "[app][ask]") {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "texts");
    const std::vector<std::string> verses{kVerse, "And the earth was without form, and void",
                                          "and darkness was upon the face of the deep",
                                          "And God said, Let there be light: and there was light"};
    std::ofstream lines(folder / "verses.jsonl");
    for (std::size_t i = 0; i < verses.size(); ++i) {
        std::ofstream(folder / "texts" / (std::to_string(i) + ".txt")) << verses[i];
        lines << R"({"verse": ")" << verses[i] << "\"}\n";
    }
    lines.close();
    const auto file = folder / "corpus.ask.h5", other = folder / "lines.ask.h5";
    const std::vector<std::string> options{"--two-passes", "--intervals", "2", "--length", "16"};
    const auto with = [&](std::vector<std::string> all) {
        all.insert(all.end(), options.begin(), options.end());
        return all;
    };
    check_success(ask_heads("corpus", file, with({"--folder", (folder / "texts").string()})));
    check_success(
        ask_heads("corpus", other, with({"--json-lines", (folder / "verses.jsonl").string(), "--field", "verse"})));
    const store::AskRecord one = store::read_ask(file), two = store::read_ask(other);
    CHECK(one.complete);
    CHECK(one.table("/corpus/progress").values.at(1) == 4);
    CHECK(one.sequences.size() == 4);
    CHECK(one.table("/corpus/qk_distance").values == two.table("/corpus/qk_distance").values);
    CHECK(one.table("/corpus/kept").values == two.table("/corpus/kept").values);
    check_success(ask_heads("corpus", file, with({"--resume", "--folder", (folder / "texts").string()})));
    CHECK(store::read_ask(file).table("/corpus/kept").values == one.table("/corpus/kept").values);
    check_figures(
        file, folder,
        {{"corpus-scatter", "--x", "sink", "--y", "std/sink"}, {"corpus-head", "--layer", "0", "--head", "1"}});
    check_refusal(run_headscope({"export", file.string(), "--figure", "corpus-scatter", "--x", "beauty", "-o",
                                 (folder / "x.csv").string()}),
                  "expected a measure of heads: self_attention_score");
    std::ofstream(folder / "texts" / "3.txt") << "And God saw the light, that it was good";  // not the first text
    check_refusal(ask_heads("corpus", file, with({"--resume", "--folder", (folder / "texts").string()})),
                  "expected a file of the same command, texts and model");
    check_refusal(ask_heads("corpus", folder / "a.ask.h5", {}),
                  "expected one of --folder, --json-lines and --tokens; found none");
    check_usage_error(ask_heads("corpus", folder / "a.ask.h5", {"--text", kVerse}));
}

TEST_CASE("ask corpus writes HeadVis's tree, which info and export read", "[app][ask]") {
    const TemporaryFolder folder;
    const auto file = folder / "corpus.ask.h5", tree = folder / "tree", tokens = folder / "tokens.json";
    write_tokens(tokens, {9, 12, 1, 7});
    const std::vector<std::string> options{"--tokens", tokens.string(), "--two-passes", "--intervals", "2"};
    const auto with = [&](std::vector<std::string> all) {
        all.insert(all.end(), options.begin(), options.end());
        return all;
    };
    check_success(ask_heads("corpus", file, with({"--headvis-tree", tree.string()})));
    const store::AskRecord record = store::read_ask(file);
    CHECK(std::filesystem::exists(tree / "config.json"));
    CHECK(std::filesystem::exists(tree / "scatter_data.json"));
    CHECK(std::filesystem::exists(tree / "heads" / "L0H0.json"));
    const Outcome info = run_headscope({"info", tree.string(), "--json"});
    check_success(info);
    CHECK(info.out.find(record.model_name) != std::string::npos);
    // A file that is complete gives the tree without another run over the corpus.
    check_success(ask_heads("corpus", file, with({"--resume", "--headvis-tree", (folder / "again").string()})));
    CHECK(read_file(tree / "scatter_data.json") == read_file(folder / "again" / "scatter_data.json"));
    CHECK(read_file(tree / "heads" / "L1H1.json") == read_file(folder / "again" / "heads" / "L1H1.json"));
    check_figures(tree, folder,
                  {{"corpus-scatter", "--x", "qk_distance", "--y", "pattern_entropy"},
                   {"corpus-head", "--layer", "0", "--head", "1"}});
    check_refusal(ask_heads("corpus", file, with({"--headvis-tree", tree.string()})), "a new or an empty folder");
    std::filesystem::create_directory(folder / "empty");
    check_refusal(
        ask_heads("corpus", folder / "empty" / "x.ask.h5", with({"--headvis-tree", (folder / "empty").string()})),
        "expected a file outside of");
    check_refusal(ask_heads("corpus", folder / "empty", with({"--headvis-tree", (folder / "empty").string()})),
                  "found the same file as --output");
    CHECK(std::filesystem::is_empty(folder / "empty"));
    std::ofstream(tree / "scatter_data.json") << "[{}]";
    check_refusal(run_headscope({"info", tree.string()}), "scatter_data.json");
}

TEST_CASE("ask cache writes kept keys and errors, and export draws them", "[app][ask]") {
    const TemporaryFolder folder;
    const auto file = folder / "cache.ask.h5";
    check_success(ask_heads("cache", file,
                            {"--text", kVerse, "--context", "7", "--scorers", "h2o,snapkv,key_norm", "--ratios",
                             "0,0.5", "--window", "3", "--csv", (folder / "cache.csv").string()}));
    const store::AskRecord cache = store::read_ask(file);
    CHECK(cache.complete);
    CHECK(cache.table("/cache/keys").values == std::vector<double>{7, 3});
    const std::vector<double>& errors = cache.table("/cache/h2o/error").values;
    for (std::size_t head = 0; head < errors.size() / 2; ++head) CHECK(errors[head] == Approx(0).margin(1e-5));
    CHECK(*std::max_element(errors.begin(), errors.end()) > 1e-3);
    CHECK(std::filesystem::file_size(folder / "cache.csv") > 20);
    check_figures(file, folder, {{"cache-error"}});
    check_refusal(ask_heads("cache", folder / "a.ask.h5", {"--text", kVerse}), "--context");
    check_refusal(ask_heads("cache", folder / "a.ask.h5",
                            {"--text", kVerse, "--context", "7", "--scorers", "snapkv", "--window", "5"}),
                  "ratios that keep 5 keys or more");
    check_usage_error(
        ask_heads("cache", folder / "a.ask.h5", {"--text", kVerse, "--context", "7", "--scorers", "random"}));
}
