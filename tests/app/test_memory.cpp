// SPDX-License-Identifier: GPL-3.0-or-later
// Models that do not fit into the memory that this process may take: refused before a weight is read, in one line with
// the numbers. The limit is `ulimit -v`; the weights are holes in a file.
#include <catch2/catch.hpp>

#include <regex>

#include <nlohmann/json.hpp>

#include "expectations.h"
#include "files.h"
#include "program.h"
#include "tests/core/checkpoint/adapter_files.h"

using namespace headscope::testing;
namespace test = headscope::test;
using nlohmann::json;

// A sanitizer's own address space is larger than any limit.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

constexpr std::int64_t kVocabulary = 128'256, kHidden = 4096, kInner = 14'336, kKeys = 1024;

/// Llama 3 of 8 billion parameters in bfloat16, with `layers` of its layers. Takes no space on the disk.
std::string big_llama(const std::filesystem::path& folder, int layers) {
    json header, config{{"model_type", "llama"},           {"vocab_size", kVocabulary},
                        {"hidden_size", kHidden},          {"intermediate_size", kInner},
                        {"num_hidden_layers", layers},     {"num_attention_heads", 32},
                        {"num_key_value_heads", 8},        {"head_dim", 128},
                        {"max_position_embeddings", 8192}, {"tie_word_embeddings", false},
                        {"rope_theta", 500000.0},          {"rms_norm_eps", 1e-5}};
    std::int64_t bytes = 0;
    const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
        std::int64_t count = 2;
        for (const std::int64_t size : shape) count *= size;
        header[name] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {bytes, bytes + count}}};
        bytes += count;
    };
    add("model.embed_tokens.weight", {kVocabulary, kHidden});
    for (int layer = 0; layer < layers; ++layer) {
        const std::string stem = "model.layers." + std::to_string(layer) + ".";
        for (const char* name : {"q", "o"}) add(stem + "self_attn." + name + "_proj.weight", {kHidden, kHidden});
        for (const char* name : {"k", "v"}) add(stem + "self_attn." + name + "_proj.weight", {kKeys, kHidden});
        for (const char* name : {"gate", "up"}) add(stem + "mlp." + name + "_proj.weight", {kInner, kHidden});
        add(stem + "mlp.down_proj.weight", {kHidden, kInner});
        for (const char* name : {"input", "post_attention"}) add(stem + name + "_layernorm.weight", {kHidden});
    }
    add("model.norm.weight", {kHidden});
    add("lm_head.weight", {kVocabulary, kHidden});
    std::filesystem::create_directories(folder);
    write_file(folder / "config.json", config.dump());
    const std::string begin = test::safetensors_bytes(header.dump(), "");
    write_file(folder / "model.safetensors", begin);
    std::filesystem::resize_file(folder / "model.safetensors", begin.size() + static_cast<std::uintmax_t>(bytes));
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
        std::filesystem::create_symlink(sample() / name, folder / name);
    return folder.string();
}

Outcome limited(const std::vector<std::string>& arguments, int gigabytes = 5) {
    return run_headscope(arguments,
                         {.shell_prefix = "ulimit -v " + std::to_string(gigabytes) + "000000;", .seconds = 60});
}

/// One line, no output; `expected` is a regular expression.
void check_memory_refusal(const Outcome& outcome, const std::string& expected) {
    INFO(outcome.err);
    check_refusal(outcome);
    CHECK(std::regex_search(outcome.err, std::regex(expected)));
    CHECK(outcome.seconds < 20 * kSlowness);
    CHECK(outcome.megabytes < 600);  // no weight was read
}

}  // namespace

TEST_CASE("Two layers of 8B do not fit in float32 under 5 GB, and the residence that fits is named", "[app][memory]") {
    const TemporaryFolder folder;
    const std::string model = big_llama(folder / "two", 2), output = (folder / "a.headscope.h5").string();
    const std::string refused =
        R"(^headscope: \[memory\] expected [56]\.\d+ GB for weights in float32; found [34]\.\d+ GB free: )"
        R"(--weights (file|stream) needs [1-4]\.\d+ GB\n$)";
    check_memory_refusal(
        limited({"analyze", model, "--text", "In the beginning", "-o", output, "--weights", "float32"}), refused);
    CHECK_FALSE(std::filesystem::exists(output));
    check_memory_refusal(limited({"generate", model, "--prompt", "In the beginning", "--weights", "float32"}), refused);
    write_file(folder / "text.txt", "In the beginning God created the heaven and the earth.");
    check_memory_refusal(limited({"evaluate", model, "--task", "perplexity", "--batch-tokens", "64", "--length", "64",
                                  "--data", (folder / "text.txt").string(), "--weights", "float32"}),
                         refused);
}

TEST_CASE("8B that does not fit in memory is read from the disk, or says what helps", "[app][memory]") {
    const TemporaryFolder folder;
    const std::string model = big_llama(folder / "all", 32), output = (folder / "a.headscope.h5").string();
    const auto analyze = [&](const char* weights, int gigabytes) {
        return limited({"analyze", model, "--text", "In the beginning", "-o", output, "--weights", weights}, gigabytes);
    };
    check_memory_refusal(analyze("float32", 5),
                         R"(expected 32\.\d GB for weights in float32; found [34]\.\d+ GB free: )"
                         R"(--weights stream needs 1\.\d+ GB\n$)");
    check_memory_refusal(analyze("file", 5), R"(expected 17\.\d GB for weights as stored; found)");
    check_memory_refusal(analyze("auto", 2),
                         R"(expected 1\.\d+ GB for weights of two layers; found \d+(\.\d+)? [MG]B free: )"
                         R"(nothing fits: shorten --length or record less\n$)");
    const json info = json::parse(limited({"info", "--json", model}).out);
    const json& residences = info.at("weights").at("residences");
    CHECK(residences.at("float32").at("bytes") == 4 * info.at("parameters").get<std::int64_t>());
    CHECK(residences.at("file").at("bytes") == 2 * info.at("parameters").get<std::int64_t>());
    CHECK(residences.at("stream").at("fits").get<bool>());
    CHECK(info.at("weights").at("format") == "bfloat16");
    CHECK_FALSE(residences.at("float32").at("fits").get<bool>());
    CHECK(limited({"info", model}).out.find("float32   32.1 GB (more than is free)") != std::string::npos);
}

TEST_CASE("Training from a checkpoint and merging count what they take", "[app][memory]") {
    const TemporaryFolder folder;
    const std::string model = big_llama(folder / "two", 2);
    write_file(folder / "text.txt", std::string(4000, 'a'));
    write_file(folder / "job.toml",
               "[model]\nfrom = \"two\"\n[data]\ntext = [\"text.txt\"]\nsequence_length = 32\n"
               "[training]\nsteps = 1\nbatch = 1\n");
    // Weights, gradients and two means, 16 bytes a parameter.
    check_memory_refusal(limited({"train", (folder / "job.toml").string(), "-o", (folder / "run").string()}),
                         R"(\[memory\] expected 2[34]\.\d GB for weights, gradients and optimizer; found )");
    CHECK_FALSE(std::filesystem::exists(folder / "run" / "snapshots"));
    const std::string stem = "base_model.model.lm_head.lora_";
    test::write_adapter(folder / "lora", {{stem + "A.weight", {1, 4096}}, {stem + "B.weight", {128256, 1}}});
    check_memory_refusal(
        limited({"convert", model, (folder / "merged").string(), "--adapter", (folder / "lora").string()}),
        R"(\[memory\] expected 5\.\d+ GB for the tensor lm_head\.weight; found )");
}

TEST_CASE("What fits under the limit runs", "[app][memory]") {
    const TemporaryFolder folder;
    const Outcome streamed = limited({"analyze", big_llama(folder / "two", 2), "--text", "In the beginning", "-o",
                                      (folder / "b.headscope.h5").string(), "--weights", "stream"});
    check_success(streamed);
    CHECK(streamed.megabytes < 3000);
    check_success(limited(
        {"analyze", sample().string(), "--text", "In the beginning", "-o", (folder / "a.headscope.h5").string()}));
}

#endif
