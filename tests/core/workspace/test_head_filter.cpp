// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <limits>

#include "core/base/text/nearest_word.h"
#include "core/workspace/head_filter.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using namespace headscope::workspace;
using headscope::test::IsError;

namespace {

/// Two layers of three heads.
HeadTable table() {
    HeadTable t;
    t.columns = {"sink", "induction", "local_focus_1"};
    const double none = std::numeric_limits<double>::quiet_NaN();
    t.values = {0.9, 0.1, 0.0, /**/ 0.2, 0.5, 0.3, /**/ 0.3, none, 0.3,
                0.4, 0.0, 0.7, /**/ 0.3, 0.2, 0.1, /**/ 0.0, 0.9,  none};
    for (std::int32_t row = 0; row < 6; ++row)
        t.rows.push_back({row / 3, row / 3, row % 3, row % 3 / 2, std::to_string(row / 3), {}});
    return t;
}

std::vector<std::size_t> picked(const std::string& text) {
    const HeadTable t = table();
    return HeadFilter(text, t).rows(t);
}

void check_refused(const std::string& text, const std::string& message) {
    INFO(text);
    CHECK_THROWS_MATCHES(HeadFilter(text, table()), Error, IsError(ErrorCode::usage, message));
}

using Rows = std::vector<std::size_t>;

}  // namespace

TEST_CASE("A filter picks heads by comparisons", "[workspace][filter]") {
    CHECK(picked("sink > 0.3") == Rows{0, 3});
    CHECK(picked("sink >= 0.3") == Rows{0, 2, 3, 4});
    CHECK(picked("sink = 0.3") == Rows{2, 4});
    CHECK(picked("sink == .3") == Rows{2, 4});
    CHECK(picked("sink != 0.3") == Rows{0, 1, 3, 5});
    CHECK(picked("0.1<sink<=3e-1") == Rows{1, 2, 4});
    CHECK(picked("layer = 1 and head = 2") == Rows{5});
    CHECK(picked("site = 0 and key_value_head = 1") == Rows{2});
    CHECK(picked("induction > sink") == Rows{1, 5});
    CHECK(picked("sink > -1") == Rows{0, 1, 2, 3, 4, 5});
    CHECK(picked("") == Rows{0, 1, 2, 3, 4, 5});
    CHECK(picked("  ") == Rows{0, 1, 2, 3, 4, 5});
}

TEST_CASE("And binds closer than or; not and brackets do as they say", "[workspace][filter]") {
    CHECK(picked("layer = 0 and head = 0 or layer = 1 and head = 1") == Rows{0, 4});
    CHECK(picked("layer = 0 and (head = 0 or layer = 1) and head = 1").empty());
    CHECK(picked("not sink > 0.3") == Rows{1, 2, 4, 5});
    CHECK(picked("not (layer = 0 or head = 2)") == Rows{3, 4});
    CHECK(picked("not not head = 1") == Rows{1, 4});
    CHECK(picked("not(head=1)and layer=0") == Rows{0, 2});
}

TEST_CASE("A value that does not exist satisfies no comparison", "[workspace][filter]") {
    CHECK(picked("induction < 1") == Rows{0, 1, 3, 4, 5});
    CHECK(picked("induction != 0.1") == Rows{1, 3, 4, 5});
    CHECK(picked("local_focus_1 >= 0") == Rows{0, 1, 2, 3, 4});
}

TEST_CASE("A filter that cannot be read says where, what was expected and what is near", "[workspace][filter]") {
    check_refused("snik > 0.3", "character 1] expected the name of a column (sink?); found snik");
    check_refused("sink > ", "character 8] expected a name or a number; found the end");
    check_refused("sink", "expected one of < <=");
    check_refused("sink > 0.3 layer = 1", "character 12] expected and, or, or the end; found layer");
    check_refused("(sink > 0.3", "expected a closing bracket; found the end");
    check_refused("sink > 0.3)", "character 11]");
    check_refused("sink > 0.3x", "character 8] expected a name or a number");
    check_refused("loc > 1", "(local_focus_1?)");
    check_refused("entropy_of_everything > 1", "expected the name of a column; found");
    check_refused("sink > \x01", "character 8]");
    check_refused(std::string(5000, '('), "at most 100 brackets");
    std::string negations;
    for (int i = 0; i < 5000; ++i) negations += "not ";
    check_refused(negations + "head = 1", "at most 100");
}

TEST_CASE("The nearest word is near", "[workspace][filter]") {
    const std::vector<std::string> known{"sink", "entropy", "entropy_row_mean"};
    CHECK(nearest_word("entopy", known) == "entropy");
    CHECK(nearest_word("sin", known) == "sink");
    CHECK(nearest_word("xyz", known).empty());
    CHECK(nearest_word("", known).empty());
    CHECK(nearest_word(std::string(1 << 20, 'a'), known).empty());
}
