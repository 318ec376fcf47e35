// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of a table from the TOML of interventions, and back.
#include <catch2/catch.hpp>

#include "core/base/error.h"
#include "core/workspace/intervention_list.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using test::IsError;
using workspace::edited_interventions;
using workspace::intervention_rows;
using workspace::InterventionRow;

namespace {

const std::string kPlan = R"(# silence, then take from another run
[[intervention]]
point = "head_output"
layer = 3
heads = [1, 4]
positions = "2-5"
what = "zero"

[[intervention]]
point = "hidden"
what = "run"
text = "clean"
shift = 1

[[text]]
name = "clean"
tokens = [4, 5]
)";

const std::vector<InterventionRow> kRows{{"head_output", "3", "1,4", "2-5", "zero", ""},
                                         {"hidden", "", "", "", "run", "shift = 1, text = \"clean\""}};

}  // namespace

TEST_CASE("Interventions are rows in the order of the file", "[workspace][interventions]") {
    CHECK(intervention_rows(kPlan, "plan.toml") == kRows);
    CHECK(intervention_rows("", "plan.toml").empty());
    CHECK(intervention_rows("[[intervention]]\npoint = \"value\"\nwhat = \"mean\"\npositions = -1\n", "p") ==
          std::vector<InterventionRow>{{"value", "", "", "-1", "mean", ""}});
}

TEST_CASE("Rows become a text with the same rows, and its other texts stay", "[workspace][interventions]") {
    const std::string text = edited_interventions(kPlan, kRows, "plan.toml");
    CHECK(intervention_rows(text, "plan.toml") == kRows);
    CHECK(text.find("[[text]]\nname = \"clean\"\ntokens = [4, 5]\n") != std::string::npos);
    CHECK(text.find("layer = [3]\nheads = [1, 4]\n") != std::string::npos);
    CHECK(edited_interventions(text, kRows, "plan.toml") == text);
    CHECK(edited_interventions("", {}, "plan.toml").empty());
    const std::string ranges = edited_interventions("", {{"pattern", " 1, 3-5 ", "", "", "uniform", ""}}, "p");
    CHECK(ranges.find("layer = [1, 3, 4, 5]\n") != std::string::npos);
}

TEST_CASE("A cell that is wrong is refused with its row and column", "[workspace][interventions]") {
    const auto edit = [](const InterventionRow& row) {
        return edited_interventions("", {InterventionRow{}, row}, "plan.toml");
    };
    for (const char* heads : {"x", "1,", "3-1", "-1", "1;2", "0-9999999"})
        CHECK_THROWS_MATCHES(edit({"head_output", "", heads, "", "zero", ""}), Error,
                             IsError(ErrorCode::usage, "intervention 2: heads"));
    CHECK_THROWS_MATCHES(edit({"head_output", "", "", "", "zero", "heads = [1]"}), Error,
                         IsError(ErrorCode::usage, "intervention 2: more"));
    CHECK_THROWS_AS(edit({"head_output", "", "", "", "zero", "factor"}), Error);
    CHECK_THROWS_MATCHES(intervention_rows("[model]\na = 1\n", "plan.toml"), Error,
                         IsError(ErrorCode::usage, "plan.toml"));
    CHECK_THROWS_AS(intervention_rows("[[intervention\n", "plan.toml"), Error);
}
