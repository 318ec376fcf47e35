// SPDX-License-Identifier: GPL-3.0-or-later
// Both generations of rotary configuration, and what is wrong with them.
#include "tests/catch_with_torch.h"

#include <nlohmann/json.hpp>

#include "core/model/load/config_reader.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using model::RopeConfig;
using test::IsError;

namespace {

RopeConfig read(const char* text) {
    const auto json = nlohmann::json::parse(text);
    return model::read_rope(model::ConfigReader(json, "config.json"), 4096, 64);
}

void refuses(const char* text, ErrorCode code, const std::string& part) {
    CAPTURE(text);
    CHECK_THROWS_MATCHES(read(text), Error, IsError(code, part));
}

}  // namespace

TEST_CASE("Rotary settings are read from files of both generations", "[model][rope]") {
    CHECK(read("{}").theta == 10000);
    CHECK(read("{}").type == "default");
    CHECK(read(R"({"rope_theta": 500000.0})").theta == 500000);
    CHECK(read(R"({"rope_theta": 5, "rope_parameters": {"rope_theta": 7, "rope_type": "default"}})").theta == 7);
    CHECK(read(R"({"rope_theta": 5, "rope_scaling": null})").theta == 5);
    const RopeConfig old = read(R"({"rope_theta": 5, "rope_scaling": {"type": "linear", "factor": 2}})");
    CHECK(old.type == "linear");
    CHECK(old.factor == 2);
    CHECK(old.theta == 5);
    CHECK(read(R"({"partial_rotary_factor": 0.5})").partial == 0.5);
}

TEST_CASE("What a stretched kind leaves out follows from the positions", "[model][rope]") {
    const RopeConfig yarn =
        read(R"({"rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 1024}})");
    CHECK(yarn.factor == 4);
    CHECK(yarn.beta_fast == 32);
    CHECK(yarn.truncate);
    CHECK(read(R"({"rope_scaling": {"rope_type": "llama3", "factor": 8}})").original_positions == 4096);
    // Phi-3 has it outside, and that place comes first.
    CHECK(read(R"({"original_max_position_embeddings": 512,
                   "rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 1024}})")
              .factor == 8);
}

TEST_CASE("A family's own length comes before what the object says", "[model][rope]") {
    const auto json =
        nlohmann::json::parse(R"({"rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 1024}})");
    model::RopeDefaults defaults;
    defaults.original_positions = 2048;
    CHECK(model::read_rope(model::ConfigReader(json, "config.json"), 4096, 64, defaults).factor == 2);
}

TEST_CASE("Rotary settings that cannot be are refused by their key", "[model][rope]") {
    refuses(R"({"rope_scaling": {"rope_type": "spiral"}})", ErrorCode::unsupported,
            "rope_type] expected default, linear");
    refuses(R"({"rope_scaling": {"type": "linear"}})", ErrorCode::mismatch, "rope_scaling: factor] expected a number");
    refuses(R"({"rope_scaling": {"type": "linear", "factor": -1}})", ErrorCode::mismatch, "found -1");
    refuses(R"({"rope_scaling": [1]})", ErrorCode::mismatch, "rope_scaling] expected an object");
    refuses(R"({"rope_theta": 0})", ErrorCode::mismatch, "rope_theta");
    refuses(R"({"partial_rotary_factor": 1.5})", ErrorCode::mismatch, "partial_rotary_factor");
    refuses(R"({"partial_rotary_factor": 0.02})", ErrorCode::mismatch, "even number of rotated dimensions");
    refuses(R"({"rope_scaling": {"rope_type": "longrope", "factor": 2, "short_factor": [1], "long_factor": [1]}})",
            ErrorCode::mismatch, "short_factor] expected a list of 32");
    refuses(R"({"rope_parameters": {"full_attention": {"rope_theta": 5}}})", ErrorCode::unsupported, "for all layers");
}
