// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/model/load/presets.h"

using namespace headscope;

TEST_CASE("The paper's presets have its sizes and, counted by hand, its parameters", "[presets]") {
    // Untied embeddings 2 V d; a layer: four d x d maps, biases 3 d or norms 2 d_h, 3 d f, two gains; a final gain.
    const std::map<std::string, std::int64_t> counted{
        {"deconattn-70m", 2 * 50304 * 512 + 6 * (4 * 512 * 512 + 3 * 512 + 3 * 512 * 2048 + 2 * 512) + 512},
        {"deconattn-160m", 2 * 50304 * 768 + 12 * (4 * 768 * 768 + 3 * 768 + 3 * 768 * 3072 + 2 * 768) + 768},
        {"deconattn-500m", 2 * 50304 * 896 + 24 * (4 * 896 * 896 + 3 * 896 + 3 * 896 * 4864 + 2 * 896) + 896},
        {"deconattn-1.7b", 2 * 50304 * 2048 + 28 * (4 * 2048 * 2048 + 2 * 128 + 3 * 2048 * 6144 + 2 * 2048) + 2048},
        // Queries and keys of 1152 numbers, values, gate and output of 2304, four taps of the first three; two numbers
        // a head for writes and decay, two for the types, two a softmax head for the weights; gains of 64 and 128.
        {"natsl-800m", 2 * 32000 * 1536 +
                           21 * (2 * 1152 * 1536 + 3 * 2304 * 1536 + 4 * (2 * 1152 + 2304) + 2 * 6 * 1536 + 2 * 6 +
                                 2 * 6 * 1536 + 2 * 18 * 1152 + 2 * 64 + 2 * 128 + 3 * 1536 * 4096 + 2 * 1536) +
                           1536},
        // Tied embeddings; 512 biases and an offset a head.
        {"lazy-340m", 32000 * 1024 + 24 * (4 * 1024 * 1024 + 16 * 513 + 3 * 1024 * 2816 + 2 * 1024) + 1024},
        {"transformer-340m", 32000 * 1024 + 24 * (4 * 1024 * 1024 + 3 * 1024 * 2816 + 2 * 1024) + 1024},
        {"alibi-340m", 32000 * 1024 + 24 * (4 * 1024 * 1024 + 3 * 1024 * 2816 + 2 * 1024) + 1024},
        {"sigmoid-340m", 32000 * 1024 + 24 * (4 * 1024 * 1024 + 3 * 1024 * 2816 + 2 * 1024) + 1024},
        // A fifth map, the gate's, and a gain of a head's 64 numbers.
        {"retnet-340m", 32000 * 1024 + 22 * (5 * 1024 * 1024 + 64 + 3 * 1024 * 2816 + 2 * 1024) + 1024},
        // And four taps of queries, keys and values; a rate of each token; what the memory begins as, and its norm.
        {"ttt-340m", 32000 * 1024 +
                         22 * (5 * 1024 * 1024 + 64 + 4 * 3 * 1024 + 16 * 1025 + 64 * 1024 + 3 * 1024 +
                               3 * 1024 * 2816 + 2 * 1024) +
                         1024},
        {"titans-340m", 32000 * 1024 +
                            22 * (5 * 1024 * 1024 + 64 + 4 * 3 * 1024 + 3 * 16 * 1025 + 64 * 1024 + 2 * 1024 +
                                  3 * 1024 * 2816 + 2 * 1024) +
                            1024},
        {"gdn-340m", 32000 * 1024 +
                         21 * (2 * 768 * 1024 + 3 * 1536 * 1024 + 4 * (2 * 768 + 1536) + 2 * 6 * 1024 + 2 * 6 + 256 +
                               3 * 1024 * 2816 + 2 * 1024) +
                         1024},
        {"transformer-760m", 32000 * 1536 + 24 * (4 * 1536 * 1536 + 3 * 1536 * 4096 + 2 * 1536) + 1536},
        {"sigmoid-760m", 32000 * 1536 + 24 * (4 * 1536 * 1536 + 3 * 1536 * 4096 + 2 * 1536) + 1536},
        {"retnet-760m", 32000 * 1536 + 22 * (5 * 1536 * 1536 + 64 + 3 * 1536 * 4096 + 2 * 1536) + 1536},
        {"ttt-760m", 32000 * 1536 +
                         22 * (5 * 1536 * 1536 + 64 + 4 * 3 * 1536 + 24 * 1537 + 64 * 1536 + 3 * 1536 +
                               3 * 1536 * 4096 + 2 * 1536) +
                         1536},
        {"titans-760m", 32000 * 1536 +
                            22 * (5 * 1536 * 1536 + 64 + 4 * 3 * 1536 + 3 * 24 * 1537 + 64 * 1536 + 2 * 1536 +
                                  3 * 1536 * 4096 + 2 * 1536) +
                            1536},
        // Queries, keys and values with four taps each, a write strength a head, a gain of a head's 128 numbers.
        {"deltanet-340m",
         32000 * 1024 + 24 * (4 * 1024 * 1024 + 4 * 3 * 1024 + 8 * 1024 + 128 + 3 * 1024 * 2816 + 2 * 1024) + 1024},
        {"deltanet-760m",
         32000 * 1536 + 24 * (4 * 1536 * 1536 + 4 * 3 * 1536 + 12 * 1536 + 128 + 3 * 1536 * 4096 + 2 * 1536) + 1536},
        {"lazy-760m", 32000 * 1536 + 24 * (4 * 1536 * 1536 + 24 * 513 + 3 * 1536 * 4096 + 2 * 1536) + 1536},
        // Rows of z and x of 3072, B and C of 128, dt of 48; four taps and a bias of x, B and C; A, D and a bias of dt.
        {"mamba2-800m",
         2 * 32000 * 1536 +
             48 * ((2 * 3072 + 2 * 128 + 48) * 1536 + 5 * (3072 + 2 * 128) + 3 * 48 + 3072 + 3072 * 1536 + 1536) +
             1536},
        // A layer of BERT's or GPT-2's: four maps and the feed-forward with biases, two norms.
        {"mhe-encoder-base", (30522 + 512 + 1 + 2) * 768 + 12 * (12 * 768 * 768 + 13 * 768) +  // 4 + 5 + 4 vectors
                                 768 * 768 + 3 * 768 + 30522},
        {"mhe-decoder-medium", (50257 + 512) * 1024 + 24 * (12 * 1024 * 1024 + 13 * 1024) + 2 * 1024},
        // Biases of the feed-forward alone; three norms in a decoder's layer, two in an encoder's.
        {"mhe-translation-base", 37000 * 512 + 6 * (12 * 512 * 512 + 9 * 512) + 6 * (16 * 512 * 512 + 11 * 512)},
        {"hashformer-bert", 124'645'634},  // Table 2.2's 124.6M
        {"hashformer-md5-emb", 124'645'634},
        {"hashformer-lsh-emb-1k", 86'839'298},
        {"hashformer-md5-pool", 86'843'138},
        {"hashformer-lsh-pool", 86'843'138},
        {"hashformer-lsh-add", 86'243'330},
        {"hashformer-md5-proj", 86'145'026},
        {"proformer", 15'094'274},
        {"canine-like", 98'333'954},
    };
    for (const model::Preset& preset : model::presets()) {
        INFO(preset.name);
        const model::Inspection made = model::inspect_config(model::preset_json(preset.name).dump());
        CHECK((made.has_head || made.has_classes));
        const auto natsl = std::count(preset.mixers.begin(), preset.mixers.end(), "natsl");  // of two sites each
        const std::int64_t cross = preset.manner == model::Preset::vaswani ? preset.layers / 2 : 0;
        CHECK(made.sites.size() == static_cast<std::size_t>(preset.layers + natsl + cross));
        if (const auto found = counted.find(preset.name); found != counted.end())
            CHECK(made.parameters == found->second);
        // Names of our own say what they have, within a third.
        const std::string size = preset.name.substr(5);
        if (preset.printed.empty() && std::isdigit(static_cast<unsigned char>(size.front())) != 0) {
            const double named = std::stod(size) * (size.back() == 'k' ? 1e3 : 1e6);
            CHECK(static_cast<double>(made.parameters) == Approx(named).epsilon(0.35));
        }
    }
    CHECK_THROWS_AS(model::preset_json("tiny"), Error);
}

TEST_CASE("NAtS-L's presets have the parameters that the paper prints, and the small ones about as many as each other",
          "[presets]") {
    std::map<std::string, std::vector<double>> ours;
    for (const model::Preset& preset : model::presets()) {
        if (preset.manner != model::Preset::llama) continue;
        INFO(preset.name);
        const auto parameters =
            static_cast<double>(model::inspect_config(model::preset_json(preset.name).dump()).parameters);
        const std::string printed = preset.printed, name = preset.name;
        if (name.ends_with("-800m")) CHECK(std::round(parameters / 1e6) == std::stod(printed));
        if (name.ends_with("-340m")) CHECK(parameters / 1e6 == Approx(340).epsilon(0.05));
        if (name.ends_with("-760m")) CHECK(parameters / 1e6 == Approx(760).epsilon(0.05));
        if (name.ends_with("-380m")) CHECK(parameters / 1e6 == Approx(380).epsilon(0.05));
        if (printed.empty()) ours[name.substr(0, 4)].push_back(parameters);
    }
    REQUIRE(ours.size() == 2);
    CHECK(ours.at("tiny").size() == 7);      // and Lazy Attention
    CHECK(ours.at("nano").size() == 7 + 5);  // and what it is compared with
    for (const auto& [size, parameters] : ours) {
        INFO(size);
        const auto [least, most] = std::minmax_element(parameters.begin(), parameters.end());
        CHECK(*most < 1.1 * *least);
    }
}

TEST_CASE("Each baseline of Lazy Attention has a preset of both sizes, marked as chosen", "[presets]") {
    const std::map<std::string, double> million{{"transformer-760m", 728.7}, {"gdn-760m", 743.6},
                                                {"mamba2-340m", 349.6},      {"mamba2-760m", 752.1},
                                                {"deltanet-340m", 341.6},    {"deltanet-760m", 729.6}};
    const auto parameters = [](const std::string& name) {
        return static_cast<double>(model::inspect_config(model::preset_json(name).dump()).parameters);
    };
    for (const auto& [name, count] : million) {
        INFO(name);
        CHECK(parameters(name) / 1e6 == Approx(count).margin(0.05));
    }
    const auto& all = model::presets();
    for (const char* model : {"transformer", "gdn", "mamba2", "deltanet", "sigmoid", "retnet", "ttt", "titans"}) {
        for (const char* size : {"-340m", "-760m"}) {
            const std::string name = std::string(model) + size;
            INFO(name);
            const auto found =
                std::find_if(all.begin(), all.end(), [&](const model::Preset& one) { return one.name == name; });
            REQUIRE(found != all.end());
            CHECK(found->chosen);
            CHECK(found->tied);
            CHECK(found->vocabulary == 32000);
        }
    }
    // DeltaNet has as many layers as bring its total nearest to Lazy Attention's.
    for (const std::string size : {"340m", "760m"}) {
        INFO(size);
        nlohmann::json config = model::preset_json("deltanet-" + size);
        const double wanted = parameters("lazy-" + size);
        const double nearest = std::abs(parameters("deltanet-" + size) - wanted);
        const auto layers = config.at("num_hidden_layers").get<std::size_t>();
        for (const std::size_t other : {layers - 1, layers + 1}) {
            config["num_hidden_layers"] = other;
            config["layers"] = std::vector<std::string>(other, "deltanet");
            CHECK(std::abs(static_cast<double>(model::inspect_config(config.dump()).parameters) - wanted) > nearest);
        }
    }
}

TEST_CASE("The layouts are those of Table 11 for 24 layers, and round down for few", "[presets]") {
    const std::map<std::string, std::vector<int>> table{
        {"uniform", {}},
        {"even", {2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24}},
        {"odd", {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23}},
        {"top", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
        {"middle", {1, 2, 3, 4, 5, 6, 19, 20, 21, 22, 23, 24}},
        {"bottom", {13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}},
        {"quarter", {4, 8, 12, 16, 20, 24}},
        {"first", {1}},
        {"last", {24}},
        {"bilateral", {1, 24}},
    };
    CHECK(model::layouts().size() == table.size());
    for (const model::Layout& layout : model::layouts()) {
        INFO(layout.name);
        const auto mixers = model::layout_mixers(layout.name, "mlp", 24);
        std::vector<int> standard;
        for (int layer = 1; layer <= 24; ++layer)
            if (mixers[static_cast<std::size_t>(layer - 1)] == "standard") standard.push_back(layer);
        CHECK(standard == table.at(layout.name));
        CHECK(model::layout_of(mixers) == layout.name);
    }
    CHECK(model::layout_mixers("middle", "mlp", 5) ==
          std::vector<std::string>{"standard", "mlp", "mlp", "standard", "standard"});
    CHECK(model::layout_mixers("top", "mlp", 3) == std::vector<std::string>{"standard", "mlp", "mlp"});
    CHECK(model::layout_of({"mlp", "mlp", "standard", "rnd_emb_qk"}) == "custom");
    CHECK_THROWS_AS(model::layout_mixers("sideways", "mlp", 4), Error);
}
