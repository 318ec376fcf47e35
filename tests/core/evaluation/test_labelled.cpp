// SPDX-License-Identifier: GPL-3.0-or-later
// Spoilt texts, classes, translations and speed of fresh native stacks over bytes.
#include "tests/catch_with_torch.h"

#include <cmath>
#include <fstream>

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "core/data/special_tokens.h"
#include "core/evaluation/labelled.h"
#include "core/evaluation/metrics/classification.h"
#include "core/evaluation/sources.h"
#include "core/evaluation/speed.h"
#include "core/model/trainable.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using evaluation::LabelledItems;
using evaluation::LabelledWork;
using evaluation::ScoreOptions;
using nlohmann::json;
using test::IsError;

namespace {

LabelledWork work_of_bytes() {
    LabelledWork work;
    work.tokenizer = data::with_special_tokens(data::byte_tokenizer(), "test");
    return work;
}

std::unique_ptr<model::Trainable> fresh(const json& options) {
    json config = {{"model_type", "headscope"},
                   {"stack", "encoder"},
                   {"vocab_size", 300},
                   {"hidden_size", 12},
                   {"intermediate_size", 20},
                   {"num_hidden_layers", 2},
                   {"num_attention_heads", 3},
                   {"num_key_value_heads", 3},
                   {"head_dim", 4},
                   {"max_position_embeddings", 64},
                   {"initializer_range", 0.4},
                   {"layers", {"standard", "standard"}}};
    config.update(options);
    return model::Trainable::create(config.dump(), 5, at::kFloat);
}

json classes_of_texts(std::int64_t classes) {
    return {{"head", {{"kind", "sequence_classes"}, {"classes", classes}}}};
}

LabelledItems some_items() {
    return {"rte",
            {},
            {{"a cat", "", false, 0},
             {"", "", false, 1},
             {"two", "words", true, 1},
             {"naïve — ok?", "é", true, 0},
             {"a much longer text than the others are, cut to its length at the end of it all", "x", true, 1}}};
}

}  // namespace

TEST_CASE("Spoilt texts are scored by seed and number, whatever the batches are", "[evaluation][labelled]") {
    const test::TemporaryFolder folder;
    std::ofstream(folder / "a.txt")
        << "In the beginning God created the heaven and the earth. And the earth was without "
           "form, and void; and darkness was upon the face of the deep.";
    const LabelledWork work = work_of_bytes();
    const auto documents =
        evaluation::file_documents({{folder / "a.txt", data::SourceKind::text}}, work.tokenizer.tokenizer, "a.txt");
    const std::pair<const char*, json> cases[] = {
        {"masked", {{"head", {{"kind", "masked_language"}}}}},
        {"shuffle_random", {{"head", {{"kind", "token_classes"}, {"classes", 3}}}}},
    };
    for (const auto& [task, head] : cases) {
        INFO(task);
        const auto made = fresh(head);
        model::Model& model = made->model();
        evaluation::check_head(task, model.config());
        const auto score = [&](std::uint64_t seed, std::int64_t batch_tokens, std::int64_t most) {
            ScoreOptions options;
            options.batch_tokens = batch_tokens;
            return evaluation::score_corrupted(model, task, *documents, work, 22, seed, most, options, {});
        };
        const auto one = score(1, 22, 0), again = score(1, 4096, 0);
        // 140 bytes are 7 sequences of 20 and two ends.
        CHECK(one.sequences() == 7);
        CHECK(one.targets() == again.targets());
        CHECK(one.loss() == Approx(again.loss()).epsilon(1e-5));
        CHECK(one.loss() > 0);
        if (std::string(task) == "masked") {
            CHECK(one.targets() > 7);
            CHECK(one.targets() < 42);
        } else {
            CHECK(one.targets() == 140);  // every ordinary token has a label
        }
        CHECK(score(2, 4096, 0).loss() != again.loss());
        CHECK(score(1, 4096, 45).sequences() == 2);
        CHECK(score(1, 4096, 19).sequences() == 1);  // shorter than a sequence
    }
}

TEST_CASE("Texts and pairs get the class that the head says of their first token", "[evaluation][labelled]") {
    const LabelledWork work = work_of_bytes();
    const LabelledItems items = some_items();
    json config = classes_of_texts(2);
    config["id2label"] = {{"0", "LABEL_0"}, {"1", "entailment"}};
    const auto made = fresh(config);
    model::Model& model = made->model();
    std::vector<std::int64_t> said, truth;
    double loss = 0;
    for (const auto& item : items.items) {
        const auto bytes = [&](const std::string& text) {
            const auto ids = work.tokenizer.tokenizer->encode(text, false).ids;
            return std::vector<std::int64_t>(ids.begin(), ids.end());
        };
        const auto special = data::special_ids(*work.tokenizer.tokenizer, work.tokenizer.files);
        std::vector<std::int64_t> ids{special.first};
        auto first = bytes(item.text), second = bytes(item.other);
        // Length 40 leaves 36 for a pair: the longer text is cut.
        if (item.has_other && first.size() + second.size() > 36) first.resize(36 - second.size());
        ids.insert(ids.end(), first.begin(), first.end());
        ids.push_back(special.last);
        if (item.has_other) {
            ids.push_back(special.last);
            ids.insert(ids.end(), second.begin(), second.end());
            ids.push_back(special.last);
        }
        model::Batch batch;
        batch.ids = at::tensor(ids, at::kLong).unsqueeze(0);
        const at::Tensor logs = at::log_softmax(model.logits(model.forward(batch).select(1, 0)), 1, at::kDouble);
        said.push_back(logs.argmax(1).item<std::int64_t>());
        truth.push_back(static_cast<std::int64_t>(item.label));
        loss -= logs[0][truth.back()].item<double>() / 5;
    }
    std::vector<std::int64_t> chosen, gold;
    const auto values =
        evaluation::classify(model, work, items, 40, {},
                             [&](const evaluation::AnsweredItem& answered) {
                                 CHECK(answered.task == "rte");
                                 const auto row = evaluation::evaluated_item(answered, 0, *work.tokenizer.tokenizer);
                                 chosen.push_back(row.chosen);
                                 gold.push_back(row.gold);
                                 // Classes by their names; transformers' own is none.
                                 const json texts = json::parse(row.texts).at("requests");
                                 REQUIRE(texts.size() == 2);
                                 CHECK(texts[0].at("continuation") == "0");
                                 CHECK(texts[1].at("continuation") == "entailment");
                                 const json line = json::parse(evaluation::item_line(answered, 0, false));
                                 const auto name = [](std::int64_t c) { return c == 0 ? "0" : "entailment"; };
                                 CHECK(line.at("gold") == row.gold);
                                 CHECK(line.at("gold_class") == name(row.gold));
                                 CHECK(line.at("chosen_class") == name(row.chosen));
                             },
                             {});
    CHECK(chosen == said);
    CHECK(gold == truth);
    REQUIRE(values.size() == 4);
    CHECK(values[0].metric == "accuracy");
    CHECK(values[0].value == evaluation::accuracy(said, truth));
    CHECK(values[1].value == evaluation::f1_of_class(said, truth, 1));
    CHECK(values[2].value == evaluation::matthews(said, truth));
    CHECK(values[3].value == Approx(loss).epsilon(1e-5));
    CHECK(values[3].count == 5);
    for (const auto& value : values) CHECK(value.cut == 1);

    const auto number = fresh(classes_of_texts(1));
    const auto regression = evaluation::classify(number->model(), work, items, 40, {}, {}, {});
    REQUIRE(regression.size() == 2);
    CHECK(regression[0].metric == "spearman");
    CHECK(std::abs(regression[0].value) <= 1);
    CHECK(regression[1].value > 0);
}

TEST_CASE("What a model translates its sources to has a BLEU of 100", "[evaluation][labelled]") {
    LabelledWork work = work_of_bytes();
    const auto made = fresh({{"stack", "encoder_decoder"},
                             {"num_encoder_layers", 1},
                             {"decoder_start_token_id", 1},
                             {"positions", "sinusoidal"}});
    model::Model& model = made->model();
    LabelledItems items{"toy", {}, {{"seven", "?", true, 0}, {"eleven and two", "?", true, 0}}};
    std::vector<std::string> said;
    const auto keep = [&](const evaluation::AnsweredItem& answered) { said.push_back(answered.score.generated); };
    for (const std::int64_t width : {1, 3}) {
        work.beams.width = width;
        said.clear();
        const auto first = evaluation::translate(model, work, items, 12, {}, keep, {});
        REQUIRE(first.size() == 2);
        CHECK(first[0].metric == "bleu");
        CHECK(first[1].value > 0);
        CHECK(first[1].count == 4);  // "?" and the end token of both
        CHECK(first[0].cut == 1);    // "eleven and two" has 14 bytes, of which 10 are read
        REQUIRE(said.size() == 2);
        LabelledItems own = items;
        for (std::size_t i = 0; i < 2; ++i) own.items[i].other = said[i];
        const double bleu = evaluation::translate(model, work, own, 12, {}, {}, {})[0].value;
        // Fresh models say few words, perhaps less than four.
        CHECK((bleu == Approx(100) || bleu == 0));
        CHECK(bleu >= first[0].value);
    }
}

TEST_CASE("Models whose head is another one are refused by what they have", "[evaluation][labelled]") {
    const auto words = fresh({{"head", {{"kind", "masked_language"}}}});
    const auto two = fresh(classes_of_texts(2));
    const auto& masked = std::as_const(*words).model().config();
    const auto& classes = std::as_const(*two).model().config();
    for (const char* task : {"shuffle_random", "classify", "translation"})
        CHECK_THROWS_MATCHES(evaluation::check_head(task, masked), Error, IsError(ErrorCode::unsupported, "found"));
    for (const char* task : {"masked", "shuffle_random", "translation"})
        CHECK_THROWS_MATCHES(evaluation::check_head(task, classes), Error, IsError(ErrorCode::unsupported, "found"));
    CHECK_NOTHROW(evaluation::check_head("classify", classes));
    CHECK(evaluation::labelled_file("rte=data/rte.jsonl", "classify").name == "rte");
    CHECK(evaluation::labelled_file("rte=data/rte.jsonl", "classify").file == "data/rte.jsonl");
    CHECK(evaluation::labelled_file("data/rte.jsonl", "classify").name == "classify");
}

TEST_CASE("Forward passes and training steps are timed", "[evaluation][labelled]") {
    for (const json& options :
         {json{{"head", {{"kind", "masked_language"}}}}, classes_of_texts(1), classes_of_texts(3),
          json{{"stack", "decoder"}, {"head", {{"kind", "sequence_classes"}, {"classes", 3}}}},
          json{{"head", {{"kind", "token_classes"}, {"classes", 3}}},
               {"vocab_size", 0},
               {"embedding", {{"kind", "add"}, {"hash", "md5"}}}},
          json{{"stack", "encoder_decoder"}, {"num_encoder_layers", 1}, {"decoder_start_token_id", 1}}}) {
        INFO(options);
        const auto made = fresh(options);
        evaluation::SpeedOptions speed;
        speed.batch = 2;
        speed.seconds = 0;
        speed.open = [&] { return fresh(options); };
        const auto values = evaluation::measure_speed(made->model(), speed, 8, {});
        REQUIRE(values.size() == 2);
        CHECK(values[0].metric == "forward_ms");
        CHECK(values[1].metric == "step_ms");
        for (const auto& value : values) {
            CHECK(value.milliseconds > 0);
            CHECK(value.runs == 3);
        }
    }
}
