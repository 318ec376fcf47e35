// SPDX-License-Identifier: GPL-3.0-or-later
// Which head's chunks a head of NAtS-L follows.
#include <catch2/catch.hpp>

#include "core/figures/token_types.h"
#include "tests/core/store/synthetic_recurrent.h"

using namespace headscope;
using namespace headscope::figures;

TEST_CASE("Softmax heads have the types of their group's linear head", "[figures][token_types]") {
    auto header = tests::recurrent_header({});
    header.sites[tests::kSoftmaxBranch].heads = 8;
    CHECK(typed_sites(header) == std::vector<std::int64_t>{tests::kLinearBranch});
    CHECK(typed_head(header, tests::kSoftmaxBranch, 0) == TypedHead{tests::kLinearBranch, 0});
    CHECK(typed_head(header, tests::kSoftmaxBranch, 3) == TypedHead{tests::kLinearBranch, 1});
    CHECK(typed_head(header, tests::kSoftmaxBranch, 7) == TypedHead{tests::kLinearBranch, 3});
    CHECK(typed_head(header, tests::kLinearBranch, 2) == TypedHead{tests::kLinearBranch, 2});
    CHECK_FALSE(typed_head(header, tests::kRecurrentSite, 0));
    CHECK_FALSE(typed_head(header, tests::kSoftmaxSite, 0));
    // Another layer's branch is none of this one's.
    header.sites[tests::kLinearBranch].layer = 1;
    CHECK_FALSE(typed_head(header, tests::kSoftmaxBranch, 0));
    CHECK(typed_sites(tests::synthetic_header({})).empty());
}

TEST_CASE("Tokens have the type of their chunk, those past the chunks none", "[figures][token_types]") {
    const store::Values types{{2, 2}, {0, 1, 1, -1}};
    CHECK(types_of_tokens(types, 0, 2, 5) == std::vector<std::int32_t>{0, 0, 1, 1, -1});
    CHECK(types_of_tokens(types, 1, 3, 5) == std::vector<std::int32_t>{1, 1, 1, -1, -1});
    CHECK(types_of_tokens(types, 2, 2, 2) == std::vector<std::int32_t>{-1, -1});
}
