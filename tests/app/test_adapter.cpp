// SPDX-License-Identifier: GPL-3.0-or-later
// LoRA adapters on the command line, and what else lies around weights.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "core/store/analysis/analysis_file.h"
#include "expectations.h"
#include "files.h"
#include "program.h"
#include "tests/core/checkpoint/adapter_files.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;

namespace {

const std::string kStem = "base_model.model.model.layers.0.self_attn.q_proj.lora_";

/// Adapter of the sample's first query projection.
std::string sample_adapter(const TemporaryFolder& folder) {
    test::write_adapter(folder / "my-lora", {{kStem + "A.weight", {1, 256}}, {kStem + "B.weight", {256, 1}}},
                        R"("r": 1, "lora_alpha": 1e-5, "base_model_name_or_path": "some/base")");
    return (folder / "my-lora").string();
}

}  // namespace

TEST_CASE("analyze merges an adapter, reports it and stores it in the file", "[app][adapter]") {
    const TemporaryFolder folder;
    const std::string adapter = sample_adapter(folder), output = (folder / "a.headscope.h5").string();
    const auto with = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"analyze", sample().string(), "--text", "In the beginning", "-o", output};
        all.insert(all.end(), more.begin(), more.end());
        return run_headscope(all);
    };
    check_success(with({}));
    const auto plain = store::AnalysisFile::open(output);
    const double loss = plain->loss(0).data[1];
    const std::string hash = plain->header().model_sha256;
    const Outcome merged = with({"--adapter", adapter});
    check_success(merged);
    CHECK(merged.out.find("adapter my-lora: merged into 1 tensors\n") != std::string::npos);
    const auto file = store::AnalysisFile::open(output);
    CHECK(file->loss(0).data[1] != loss);
    CHECK(file->header().model_sha256 != hash);
    CHECK(file->header().model_name.find(" + my-lora") != std::string::npos);
    const json kept = json::parse(file->header().settings_json).at("adapter");
    CHECK(kept.at("path") == adapter);
    CHECK(kept.at("merged") == json::array({"model.layers.0.self_attn.q_proj.weight"}));

    const Outcome told = run_headscope({"info", output});
    check_success(told);
    CHECK(told.out.find("of some/base, rank 1, alpha 1e-05, merged into 1 tensors") != std::string::npos);
    CHECK(json::parse(run_headscope({"info", "--json", output}).out).at("adapter") == kept);
    check_usage_error(run_headscope(
        {"analyze", sample().string(), sample().string(), "--adapter", adapter, "--text", "In", "-o", output}));
}

TEST_CASE("info, generate and convert take an adapter", "[app][adapter]") {
    const TemporaryFolder folder;
    const std::string adapter = sample_adapter(folder), base = sample().string();
    const json info = json::parse(run_headscope({"info", "--json", base, "--adapter", adapter}).out);
    CHECK(info.at("adapter").at("merged").size() == 1);
    CHECK(info.at("problems").empty());
    CHECK(info.at("name").get<std::string>().ends_with(" + my-lora"));
    const std::vector<std::string> generate{"generate", "--prompt", "And God said", "--tokens", "8", "--json"};
    const auto generated = [&](std::vector<std::string> model) {
        model.insert(model.begin(), generate.begin(), generate.end());
        const Outcome outcome = run_headscope(model);
        check_success(outcome);
        return outcome.out;
    };
    const std::string written = (folder / "merged").string();
    check_success(run_headscope({"convert", base, written, "--adapter", adapter, "--dtype", "float32"}));
    CHECK(generated({base, "--adapter", adapter}) == generated({written}));
}

TEST_CASE("An adapter alone is recognized, and one that fits no tensor is refused", "[app][adapter]") {
    const TemporaryFolder folder;
    const std::string adapter = sample_adapter(folder), output = (folder / "a.headscope.h5").string();
    const Outcome alone = run_headscope({"info", adapter});
    check_success(alone);
    CHECK(alone.out.find("a LoRA adapter of \"some/base\"") != std::string::npos);
    CHECK(alone.out.find("open its base with --adapter") != std::string::npos);
    check_refusal(run_headscope({"analyze", adapter, "--text", "In", "-o", output}),
                  "found a LoRA adapter of \"some/base\": open its base with --adapter");
    test::write_adapter(folder / "other",
                        {{"base_model.model.x.lora_A.weight", {1, 2}}, {"base_model.model.x.lora_B.weight", {2, 1}}});
    check_refusal(
        run_headscope({"generate", sample().string(), "--prompt", "In", "--adapter", (folder / "other").string()}),
        "other: x] expected a tensor of that name");
    check_refusal(run_headscope({"info", sample().string(), "--adapter", sample().string()}), "adapter_config.json");
}

TEST_CASE("info lists family and tensors of a configuration with Infinity", "[app][adapter]") {
    const TemporaryFolder folder;
    write_file(folder / "model.safetensors", test::tiny_safetensors("backbone.a"));
    write_file(folder / "config.json", R"({"model_type": "rwkv7", "time_step_limit": [0.0, Infinity]})");
    const Outcome told = run_headscope({"info", folder.path().string()});
    check_success(told);
    CHECK(told.out.find("rwkv7") != std::string::npos);
    CHECK(told.out.find("backbone.a") != std::string::npos);
}
