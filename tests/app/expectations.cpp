// SPDX-License-Identifier: GPL-3.0-or-later
#include "expectations.h"

#include <catch2/catch.hpp>

#include <regex>

namespace headscope::testing {

void check_refusal(const Outcome& outcome) {
    INFO("standard error:\n" << outcome.err);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    const auto messages = outcome.messages();
    CHECK(messages.size() == 1);
    static const std::regex form("headscope: \\[[^\\]]+.*\\] .+; .+");
    for (const auto& message : messages) {
        CAPTURE(message);
        CHECK(std::regex_match(message, form));
        CHECK(message.find("terminate called") == std::string::npos);
    }
}

void check_refusal(const Outcome& outcome, const std::string& part) {
    check_refusal(outcome);
    INFO("standard error:\n" << outcome.err);
    CHECK(outcome.err.find(part) != std::string::npos);
}

void check_usage_error(const Outcome& outcome) {
    INFO("standard error:\n" << outcome.err);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    const auto messages = outcome.messages();
    CHECK(messages.size() == 1);
    if (!messages.empty()) CHECK(messages.front().compare(0, 11, "headscope: ") == 0);
}

void check_success(const Outcome& outcome) {
    INFO("standard error:\n" << outcome.err << "\nstandard output:\n" << outcome.out);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.status == 0);
    CHECK(outcome.messages().empty());
}

}  // namespace headscope::testing
