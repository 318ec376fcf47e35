// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "core/store/analysis/analysis_file.h"
#include "expectations.h"
#include "files.h"
#include "program.h"

using namespace headscope;
using namespace headscope::testing;

TEST_CASE("analyze switches heads off, reports it and stores it in the file", "[app][switched]") {
    const TemporaryFolder folder;
    const auto output = folder / "a.headscope.h5";
    const auto with = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"analyze", sample().string(), "--text", "In the beginning", "-o", output.string()};
        all.insert(all.end(), more.begin(), more.end());
        return run_headscope(all);
    };
    check_success(with({}));
    const double plain = store::AnalysisFile::open(output)->loss(0).data[1];
    const Outcome zero = with({"--switch-off", "0.1,2.0"});
    check_success(zero);
    CHECK(zero.out.find("heads switched off (zero): 0.1,2.0\n") != std::string::npos);
    const auto file = store::AnalysisFile::open(output);
    CHECK(file->loss(0).data[1] != plain);
    const auto settings = nlohmann::json::parse(file->header().settings_json);
    CHECK(settings.at("switch_off") == "0.1,2.0");
    CHECK(settings.at("switch_off_how") == "zero");
    check_success(with({"--switch-off", "0.1,2.0", "--switch-off-how", "mean"}));
    const auto mean = store::AnalysisFile::open(output);
    CHECK(mean->loss(0).data[1] != file->loss(0).data[1]);

    check_refusal(with({"--switch-off", "99.0"}), "[--switch-off] expected a layer from 0 to ");
    check_refusal(with({"--switch-off", "3"}), "layer.head");
    check_usage_error(with({"--switch-off", "0.1", "--switch-off-how", "half"}));
    check_usage_error(with({"--switch-off-how", "mean"}));
    CHECK(folder.names() == std::vector<std::string>{"a.headscope.h5"});
}
