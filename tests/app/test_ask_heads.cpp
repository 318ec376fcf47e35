// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

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
