// SPDX-License-Identifier: GPL-3.0-or-later
// `reproduce`: replays of papers within minutes, stopped ones, and plans that they refuse to change.
#include <catch2/catch.hpp>

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/app/expectations.h"
#include "tests/app/files.h"
#include "tests/app/program.h"

using namespace headscope::testing;

namespace {

void write_two_words(const std::filesystem::path& path, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += std::string(i % 7 == 0 ? "light" : "dark") + (i % 13 == 0 ? ".\n" : " ");
    write_file(path, text);
}

/// A replay keeps to its minutes; not checked with HEADSCOPE_UNTIMED, for machines with other work.
void check_minutes(const Outcome& outcome, int minutes) {
    if (std::getenv("HEADSCOPE_UNTIMED") == nullptr) CHECK(outcome.seconds < minutes * 60 * kSlowness);
}

/// Success; so few minutes may bring the warning that most claims stay undecided.
void check_replayed(const Outcome& outcome) {
    INFO(outcome.err);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.status == 0);
    for (const std::string& message : outcome.messages())
        CHECK(message.find("minutes give each run") != std::string::npos);
}

/// Replays a paper in six minutes: its report has these parts, and each figure was drawn.
void check_replay(const std::string& paper, const std::vector<std::string>& parts,
                  const std::vector<std::string>& figures) {
    const TemporaryFolder folder;
    write_two_words(folder / "text.txt", 40'000);
    Settings settings;
    settings.seconds = 900;
    const Outcome outcome = run_headscope({"reproduce", paper, "-o", (folder / "replay").string(), "--minutes", "6",
                                           "--data", (folder / "text.txt").string()},
                                          settings);
    check_replayed(outcome);
    check_minutes(outcome, 6);
    const std::string report = read_file(folder / "replay" / "report.md");
    CHECK(report.find("Which of its claims held here") != std::string::npos);
    for (const std::string& words : parts) CHECK(report.find(words) != std::string::npos);
    for (const char* words : {"Failed: ", "could not be drawn", "could not be timed"})
        CHECK(report.find(words) == std::string::npos);
    for (const std::string& name : figures)
        CHECK(std::filesystem::exists(folder / "replay" / "figures" / (name + ".csv")));
}

}  // namespace

TEST_CASE("A replay that goes on refuses fewer minutes, and other seeds, than its plan has", "[app][reproduce]") {
    const TemporaryFolder folder;
    write_file(folder / "plan.json", R"({"paper": "lazy", "minutes": 40, "seeds": 2, "threads": 1, "data": []})");
    const auto resumed = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"reproduce", "lazy", "-o", folder.path().string(), "--resume"};
        all.insert(all.end(), more.begin(), more.end());
        return run_headscope(all);
    };
    check_refusal(resumed({"--minutes", "39"}), "expected at least what the plan in ");
    check_refusal(resumed({"--seeds", "3"}), "expected what the plan in ");
    check_refusal(resumed({"--threads", "2"}), "expected what the plan in ");
    CHECK(folder.names() == std::vector<std::string>{"plan.json"});
}

TEST_CASE("A reproduction ends within its minutes with a report, and goes on after a stop", "[.slow][app][deconattn]") {
    const TemporaryFolder folder;
    write_two_words(folder / "text.txt", 20'000);
    Settings settings;
    settings.seconds = 900;
    const std::vector<std::string> words{"reproduce", "deconattn", "-o",     (folder / "replay").string(),
                                         "--minutes", "4",         "--data", (folder / "text.txt").string()};
    {
        Process process(words, settings);
        for (int i = 0; i < 1200 && !std::filesystem::exists(folder / "replay" / "plan.json"); ++i) ::usleep(100'000);
        ::sleep(5);
        process.signal(SIGINT);
        CHECK(process.wait().status == 130);
    }
    CHECK(run_headscope(words, settings).status == 1);  // not without --resume
    std::vector<std::string> again = words;
    again.emplace_back("--resume");
    const Outcome outcome = run_headscope(again, settings);
    check_replayed(outcome);
    check_minutes(outcome, 4);
    const std::string report = read_file(folder / "replay" / "report.md");
    CHECK(report.find("Which of its claims held here") != std::string::npos);
    CHECK(report.find("| hybrid | Approximate |") != std::string::npos);
    // Needs no training.
    CHECK(report.find("| All models have the same number of parameters | **held** |") != std::string::npos);
    CHECK(std::filesystem::exists(folder / "replay" / "figures" / "context-perplexity.csv"));
}

TEST_CASE("A replay stopped before its plan resumes with its minutes and text", "[app][reproduce]") {
    const TemporaryFolder folder;
    write_two_words(folder / "text.txt", 20'000);
    const auto replay = folder / "replay";
    Settings settings;
    settings.seconds = 120;
    Process process(
        {"reproduce", "deconattn", "-o", replay.string(), "--minutes", "3", "--data", (folder / "text.txt").string()},
        settings);
    for (int i = 0; i < 600 && !std::filesystem::exists(replay / "log.txt"); ++i) ::usleep(100'000);
    process.signal(SIGINT);
    const Outcome outcome = process.wait();
    CHECK(outcome.status == 130);
    REQUIRE_FALSE(std::filesystem::exists(replay / "plan.json"));
    INFO(outcome.out);
    for (const std::string words : {"--resume --minutes 3", "--data ", "/text.txt"})
        CHECK(outcome.out.find(words) != std::string::npos);
}

TEST_CASE("NAtS-L's reproduction ends within its minutes with a report", "[.slow][app][natsl]") {
    check_replay("natsl", {"## Retrieval", "## Latency", "## Token types"},
                 {"position-perplexity", "recall", "latency", "token-types-hybrid", "loss"});
}

TEST_CASE("Lazy Attention's reproduction ends within its minutes with a report", "[.slow][app][lazy]") {
    check_replay(
        "lazy",
        {"## Perplexity", "## Seven formulations", "## Lazy Attention by layer", "Not tried in so few minutes: RetNet"},
        {"context-perplexity", "mass", "bias", "offsets", "thumbnails", "released", "loss"});
}

TEST_CASE("The reproduction of the thesis's chapter 3 ends within its minutes with a report",
          "[.slow][app][thesis-mhe]") {
    check_replay("thesis-mhe",
                 {"## Encoders (Table 3.1)", "## Decoders (Table 3.2)", "## Encoder-decoders (Table 3.3)"},
                 {"retention-encoder", "retention-decoder", "retention-translation", "loss-encoder", "cost-sublayer",
                  "cost-stacks", "head-embeddings-mul", "head-embeddings-add", "attention-mul"});
}

TEST_CASE("The reproduction of the thesis's chapter 2 ends within its minutes with a report",
          "[.slow][app][thesis-hash]") {
    check_replay("thesis-hash",
                 {"## Memory and performance (Tables 2.1 and 2.2)", "## Speed (Table 2.3)", "| ProFormer |"},
                 {"retention-encoder", "loss-encoder", "hash"});
}
