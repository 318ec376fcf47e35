// SPDX-License-Identifier: GPL-3.0-or-later
// Wrong usage: exit status 2, one line, and nothing done.
#include <catch2/catch.hpp>

#include "expectations.h"
#include "files.h"
#include "program.h"

using namespace headscope::testing;

TEST_CASE("arguments that cannot be exit with 2 and one line", "[app][usage]") {
    TemporaryFolder folder;
    const std::string model = sample().string(), out = (folder / "x.headscope.h5").string();
    const std::vector<std::vector<std::string>> wrong = {
        {"frobnicate"},
        {"analyze"},
        {"analyze", model, "--text", "In the beginning"},
        {"analyze", model, "-o", out},
        {"analyze", model, "--text", "In the beginning", "-o", out, "--no-such-option"},
        {"analyze", model, "--text", "In the beginning", "-o", out, "--record", "maps,everything"},
        {"analyze", model, "--text", "In the beginning", "-o", out, "--layers", "two"},
        {"analyze", model, "--text", "In the beginning", "-o", out, "--dtype", "int8"},
        {"analyze", model, "--text", "In the beginning", "-o", out, "--threads", "-1"},
        {"analyze", model, "--text", "In the beginning", "-o", out, "--length", "0"},
        {"analyze", model, "--text", "In the beginning", "-o", out, "--bos", "perhaps"},
        {"analyze", model, "--text", "In the beginning", "-o", out, "--windows"},
        {"export", "--figure", "radar", "-o", (folder / "x.pdf").string()},
        {"export", out, "-o", (folder / "x.pdf").string()},
        {"export", out, "--figure", "radar", "-o", (folder / "x.docx").string()},
        {"export", out, "--figure", "radar", "-o", (folder / "x.pdf").string(), "--layer", "first"},
        {"tokenize", model},
        {"tokenize", model, "a text", "--decode", "5"},
        {"generate", model},
        {"convert", model},
        {"convert", model, (folder / "copy").string(), "--dtype", "float8"},
        {"list", "nonsense"},
        {"info"},
    };
    for (const auto& arguments : wrong) {
        std::string line;
        for (const auto& argument : arguments) line += " " + argument;
        INFO("headscope" << line);
        check_usage_error(run_headscope(arguments));
    }
    CHECK(folder.names().empty());
}

TEST_CASE("help and version go to standard output with status 0", "[app][usage]") {
    for (const auto& arguments : std::vector<std::vector<std::string>>{
             {"--help"}, {"--version"}, {"analyze", "--help"}, {"export", "--help"}, {"info", "--help"}}) {
        INFO(arguments.front());
        const Outcome outcome = run_headscope(arguments);
        check_success(outcome);
        CHECK_FALSE(outcome.out.empty());
        CHECK(outcome.err.empty());
    }
    CHECK(run_headscope({"--version"}).out.compare(0, 10, "headscope ") == 0);
    CHECK(run_headscope({"analyze", "--help"}).out.find("--beyond-positions") != std::string::npos);
}

TEST_CASE("control characters of an argument do not reach the terminal", "[app][usage]") {
    const Outcome outcome = run_headscope({"info", "no\nsuch\x1b[31mfile"});
    check_refusal(outcome);
    CHECK(outcome.err.find('\x1b') == std::string::npos);
}

TEST_CASE("what computes has threads that wait asleep, unless the environment says otherwise", "[app][usage]") {
    TemporaryFolder folder;
    const auto spins = [&](const std::vector<std::string>& arguments, const std::string& prefix) {
        const Outcome outcome =
            run_headscope(arguments, {.environment = {"OMP_DISPLAY_ENV=verbose"},
                                      .shell_prefix = "unset GOMP_SPINCOUNT OMP_WAIT_POLICY; " + prefix});
        CHECK(outcome.status == 0);
        // Each beginning of the program prints it; the last one counts.
        const std::string name = "GOMP_SPINCOUNT = '";
        const auto at = outcome.err.rfind(name);
        if (at == std::string::npos) return std::string();
        const auto begin = at + name.size();
        return outcome.err.substr(begin, outcome.err.find('\'', begin) - begin);
    };
    const auto analyze = [&] {
        return std::vector<std::string>{
            "analyze", sample().string(), "--text", "And", "-o", (folder / "x.headscope.h5").string()};
    };
    if (spins({"list", "kernels"}, "").empty()) return;  // another OpenMP than GCC's
    CHECK(spins(analyze(), "") == "200");
    CHECK(spins(analyze(), "export GOMP_SPINCOUNT=77;") == "77");
    CHECK(spins(analyze(), "export OMP_WAIT_POLICY=passive;") == "0");
    CHECK(spins({"list", "kernels"}, "") != "200");
}
