// SPDX-License-Identifier: GPL-3.0-or-later
// Which tokenizers give token types, against transformers (tests/oracle/generate/token_types.py).
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/tokenizer/files/token_types.h"
#include "core/tokenizer/tokenizer.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using nlohmann::json;
using test::IsError;

namespace {

json golden() {
    std::ifstream file(test::golden_file("tokenizer/token_types.json"));
    return json::parse(file);
}

json pair_tokenizer() {
    std::ifstream file(test::golden_file("tokenizer/truncation.json"));
    return json::parse(file).at("tokenizer");
}

bool types_of(const json& tokenizer_config, const json& config) {
    return tokenizer::gives_token_types(JsonView(tokenizer_config, "tokenizer_config.json"),
                                        JsonView(config, "config.json"));
}

struct Types final : tokenizer::TokenSink {
    void add(const tokenizer::FoundToken& token) override { all.push_back(token.type); }
    std::vector<std::int32_t> all;
};

std::vector<std::int32_t> pair_types(const std::filesystem::path& folder) {
    Types sink;
    tokenizer::Tokenizer::from_folder(folder)->encode_pair_into(sink, "a b", "c");
    return sink.all;
}

}  // namespace

TEST_CASE("Every tokenizer class gives the token types that transformers gives", "[tokenizer][types]") {
    const json data = golden();
    for (const auto& [name, typed] : data.at("classes").items()) {
        CAPTURE(name);
        CHECK(types_of({{"tokenizer_class", name}}, json::object()) == typed.get<bool>());
        CHECK(types_of({{"tokenizer_class", name + "Fast"}}, json::object()) == typed.get<bool>());
        CHECK(types_of(json::object(), {{"tokenizer_class", name}}) == typed.get<bool>());
    }
}

TEST_CASE("Every model type has the class that transformers registers for it", "[tokenizer][types]") {
    const json data = golden();
    const json& classes = data.at("classes");
    const std::set<std::string> plain{"TokenizersBackend", "PythonBackend", "PreTrainedTokenizer",
                                      "MistralCommonBackend"};
    const auto overruled = data.at("overruled").get<std::set<std::string>>();
    for (const auto& [type, name] : data.at("model_types").items()) {
        CAPTURE(type, name);
        CHECK(types_of(json::object(), {{"model_type", type}}) == classes.value(name.get<std::string>(), false));
        // Another class that a file names counts, but beside the plain backend and for files that are known as wrong.
        const bool counts = !plain.contains(name.get<std::string>()) && !overruled.contains(type);
        CHECK(types_of({{"tokenizer_class", "ElectraTokenizerFast"}}, {{"model_type", type}}) == counts);
    }
    CHECK_FALSE(types_of(json::object(), {{"model_type", "headscope"}}));
    CHECK(types_of({{"tokenizer_class", "BertTokenizer"}}, {{"model_type", "headscope"}}));
}

TEST_CASE("A folder's pairs have the types that transformers gives its model", "[tokenizer][types]") {
    std::size_t typed = 0;
    const json data = golden();
    for (const json& one : data.at("folders")) {
        INFO(one.dump());
        const test::TemporaryFolder folder;
        test::write_file(folder / "tokenizer.json", pair_tokenizer().dump());
        if (!one.at("config").is_null()) test::write_file(folder / "config.json", one.at("config").dump());
        if (!one.at("tokenizer_config").is_null())
            test::write_file(folder / "tokenizer_config.json", one.at("tokenizer_config").dump());
        const json& types = one.at("types");
        typed += types.is_null() ? 0 : 1;
        const auto wanted = types.is_null() ? std::vector<std::int32_t>(6, 0) : types.get<std::vector<std::int32_t>>();
        CHECK(pair_types(folder.path()) == wanted);
        const auto frame = tokenizer::Tokenizer::from_file(folder / "tokenizer.json")->frame(true);
        REQUIRE(frame.size() == 5);
        CHECK(frame[3].text == 1);
        CHECK_FALSE(frame[3].token.has_value());
        CHECK(frame[3].type == wanted[4]);
        CHECK(frame[4].token == 3);
        CHECK(frame[4].type == wanted[5]);
    }
    CHECK(typed > 50);
}

TEST_CASE("Names of inputs that are no list are refused; a configuration that is none is not this reader's",
          "[tokenizer][types]") {
    CHECK_THROWS_MATCHES(types_of({{"model_input_names", "token_type_ids"}}, json::object()), Error,
                         IsError(ErrorCode::format, "tokenizer_config.json: model_input_names]"));
    const test::TemporaryFolder folder;
    test::write_file(folder / "config.json", "{");
    CHECK_FALSE(tokenizer::gives_token_types(folder.path()));
}
