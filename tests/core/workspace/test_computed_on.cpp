// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/workspace/computed_on.h"

using namespace headscope;

namespace {

workspace::ComputedOn of_settings(const std::string& settings) {
    store::AnalysisHeader header;
    header.settings_json = settings;
    return workspace::computed_on(header);
}

}  // namespace

TEST_CASE("Device and kernels of an analysis come from its settings", "[workspace]") {
    const auto gpu = of_settings(
        R"({"device": "cuda:0 A\nCard sm_90", "kernels": "cuda", "device_requested": "auto", "kernels_requested": "auto"})");
    CHECK(gpu.device == "cuda:0 A\\x0ACard sm_90");
    CHECK(gpu.kernels == "cuda");
    for (const char* other : {"", "{}", "[]", "7", R"({"device": "cpu", "kernels": "auto"})",
                              R"({"device": 3, "kernels": [], "device_requested": "cpu"})"}) {
        INFO(other);
        CHECK(of_settings(other).device.empty());
        CHECK(of_settings(other).kernels.empty());
    }
}
