// SPDX-License-Identifier: GPL-3.0-or-later
// Generation settings of a model's files, from the command line. Their values are tested in
// tests/core/model/test_generation_settings.cpp.
#include <catch2/catch.hpp>

#include <algorithm>

#include "expectations.h"
#include "files.h"
#include "program.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;

namespace {

using Ids = std::vector<std::int64_t>;

class Sample {
public:
    explicit Sample(const std::filesystem::path& folder) : folder_(linked_sample(folder, {"generation_config.json"})) {}

    void say(const json& settings) const { write_file(folder_ / "generation_config.json", settings.dump()); }
    Outcome generate(std::vector<std::string> more = {}) const {
        more.insert(more.begin(), {"generate", folder_.string(), "--prompt", "And God said", "--json"});
        return run_headscope(more);
    }
    Ids ids(const std::vector<std::string>& more = {}) const {
        const Outcome outcome = generate(more);
        check_success(outcome);
        return json::parse(outcome.out).at("ids").get<Ids>();
    }
    json info() const {
        const Outcome outcome = run_headscope({"info", folder_.string(), "--json"});
        check_success(outcome);
        return json::parse(outcome.out);
    }
    std::string folder() const { return folder_.string(); }

private:
    std::filesystem::path folder_;
};

}  // namespace

TEST_CASE("generate obeys the model's generation settings, and options go before them", "[app][generation]") {
    const TemporaryFolder folder;
    const Sample model(folder / "sample");
    model.say({{"max_new_tokens", 6}});
    const Ids free = model.ids();
    REQUIRE(free.size() == 6);
    CHECK(model.ids({"--tokens", "3"}) == Ids(free.begin(), free.begin() + 3));

    model.say({{"suppress_tokens", {free[0]}}, {"max_new_tokens", 6}});
    const Ids other = model.ids();
    CHECK(std::count(other.begin(), other.end(), free[0]) == 0);

    // Several beams find a text that is at least as likely; one beam is the greedy answer.
    model.say({{"num_beams", 3}, {"max_new_tokens", 6}});
    CHECK(model.ids({"--beams", "1"}) == free);
    const Outcome beams = model.generate();
    check_success(beams);
    CHECK(json::parse(beams.out).at("ids").size() == 6);
    model.say({{"max_new_tokens", 6}});
    CHECK(model.generate({"--beams", "3"}).out == beams.out);

    // Rules of sampling count where the answer is sampled.
    model.say({{"top_k", 1}, {"max_new_tokens", 6}});
    CHECK(model.ids({"--temperature", "5"}) == free);
    model.say({{"min_p", 1.0}, {"max_new_tokens", 6}});
    CHECK(model.ids({"--temperature", "5"}) == free);
    model.say({{"do_sample", true}, {"temperature", 5.0}, {"max_new_tokens", 6}});
    CHECK(model.ids() == free);
}

TEST_CASE("generate refuses by name the generation settings that are not built", "[app][generation]") {
    const TemporaryFolder folder;
    const Sample model(folder / "sample");
    model.say({{"guidance_scale", 1.5}});
    check_refusal(model.generate(), "[generation_config.json: guidance_scale] expected 1");
    model.say({{"typical_p", 0.5}});
    CHECK(model.ids({"--tokens", "2"}).size() == 2);
    check_refusal(model.generate({"--temperature", "1"}), "generation_config.json: typical_p");
    model.say({{"max_length", 2}});
    check_refusal(model.generate(), "generation_config.json: max_length");
    CHECK(model.ids({"--tokens", "2"}).size() == 2);
    model.say({{"repetition_penalty", "high"}});
    check_refusal(model.generate(), "generation_config.json: repetition_penalty");
    model.say({{"forced_bos_token_id", 1000000}});
    check_refusal(model.generate(), "generation_config.json: forced_bos_token_id");
}

TEST_CASE("info lists the generation settings that apply", "[app][generation]") {
    const TemporaryFolder folder;
    const Sample model(folder / "sample");
    model.say({{"forced_bos_token_id", 7},
               {"num_beams", 4},
               {"do_sample", true},
               {"use_cache", true},
               {"guidance_scale", 1.5},
               {"a_word_of_somebody", 3}});
    const json info = model.info(), generation = info.at("generation");
    CHECK(generation.at("file") == "generation_config.json");
    CHECK(generation.at("obeyed") == json{{"forced_bos_token_id", 7}, {"num_beams", 4}});
    CHECK(generation.at("without_effect").at("do_sample").get<std::string>().find("--temperature") == 0);
    CHECK(generation.at("refused") == json{{"guidance_scale", 1.5}});
    CHECK(info.at("notes").dump().find("guidance_scale") != std::string::npos);
    CHECK(info.at("problems").empty());
    const Outcome text = run_headscope({"info", model.folder()});
    CHECK(text.out.find("forced_bos_token_id 7, num_beams 4, of generation_config.json") != std::string::npos);
    model.say({{"min_length", "long"}});
    CHECK(model.info().at("problems").dump().find("min_length") != std::string::npos);
}
