// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <set>
#include <string>
#include <vector>

#include "core/ask/cache/scorers.h"
#include "core/ask/metric.h"
#include "core/ask/options/tool_options.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;

TEST_CASE("Each option of ask is in the list once, with tools, help and a default of its kind", "[ask]") {
    std::set<std::string> names;
    for (const ask::ToolOption& option : ask::tool_options()) {
        INFO(option.name);
        CHECK(names.insert(option.name).second);
        CHECK(std::set<std::string>(option.tools.begin(), option.tools.end()).size() == option.tools.size());
        CHECK_FALSE(option.tools.empty());
        CHECK_FALSE(option.help.empty());
        const std::string standard = ask::standard_text(option);
        const bool number = option.kind == OptionKind::whole || option.kind == OptionKind::number;
        if (number && !standard.empty()) CHECK_NOTHROW(read_number(option, standard, option.name));
        if (option.kind == OptionKind::choice && !standard.empty())
            CHECK_NOTHROW(check_choice(option.choices, standard, option.name));
        CHECK(&ask::tool_option("--" + option.name) == &option);
    }
    CHECK_THROWS_MATCHES(ask::tool_option("--beauty"), Error, test::IsError(ErrorCode::internal, "--beauty"));
}

TEST_CASE("Choices are in the order of the enumerations that tools cast them to", "[ask]") {
    const std::vector<std::string>& metrics = ask::tool_option("--metric").choices;
    REQUIRE(std::ssize(metrics) == ask::kMetricKinds);
    for (std::size_t k = 0; k < metrics.size(); ++k) CHECK(ask::name(static_cast<ask::MetricKind>(k)) == metrics[k]);
    const std::vector<std::string>& scorers = ask::tool_option("--scorers").choices;
    REQUIRE(std::ssize(scorers) == ask::cache::kScorers);
    for (std::size_t k = 0; k < scorers.size(); ++k)
        CHECK(ask::cache::name(static_cast<ask::cache::Scorer>(k)) == scorers[k]);
}

TEST_CASE("Help names the tools of an option where these are few", "[ask]") {
    CHECK(ask::command_help(ask::tool_option("--top")).starts_with("lens, generate: likeliest tokens"));
    CHECK(ask::command_help(ask::tool_option("--text")) == "A text; may repeat");
    CHECK(ask::options_of_tool("circuits") == std::vector<std::string>{"--heads", "--norm", "--pairs"});
    CHECK(ask::standard_text(ask::tool_option("--epsilon")) == "0.3");
    CHECK(ask::standard_text(ask::tool_option("--correlation")).empty());
}
