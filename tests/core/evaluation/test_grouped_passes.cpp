// SPDX-License-Identifier: GPL-3.0-or-later
// Passes of an evaluation that pass each layer together where weights stream.
#include "tests/core/evaluation/scripted_model.h"

#include <string>

#include "core/evaluation/documents.h"
#include "core/evaluation/position_score.h"
#include "core/evaluation/text_score.h"
#include "tests/core/base/bytes_read.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using model::Residence;

namespace {

constexpr std::int64_t kHidden = 64, kInner = 256, kLayers = 3, kKeys = 32, kWords = 257;

/// A Llama that reads bytes, 123 kB a layer.
test::TinyCheckpoint byte_llama() {
    test::TinyCheckpoint tiny = test::golden_checkpoint("llama");
    tiny.config.update({{"hidden_size", kHidden},
                        {"intermediate_size", kInner},
                        {"num_hidden_layers", kLayers},
                        {"num_attention_heads", 4},
                        {"num_key_value_heads", 2},
                        {"head_dim", 16},
                        {"vocab_size", kWords},
                        {"attention_bias", false},
                        {"mlp_bias", false}});
    tiny.file_type = "BF16";
    tiny.tensors = {{"model.embed_tokens.weight", {kWords, kHidden}},
                    {"model.norm.weight", {kHidden}},
                    {"lm_head.weight", {kWords, kHidden}}};
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        const std::string stem = "model.layers." + std::to_string(layer) + ".";
        for (const char* name : {"q", "o"})
            tiny.tensors[stem + "self_attn." + name + "_proj.weight"] = {kHidden, kHidden};
        for (const char* name : {"k", "v"})
            tiny.tensors[stem + "self_attn." + name + "_proj.weight"] = {kKeys, kHidden};
        for (const char* name : {"gate", "up"}) tiny.tensors[stem + "mlp." + name + "_proj.weight"] = {kInner, kHidden};
        tiny.tensors[stem + "mlp.down_proj.weight"] = {kHidden, kInner};
        for (const char* name : {"input", "post_attention"})
            tiny.tensors[stem + name + "_layernorm.weight"] = {kHidden};
    }
    return tiny;
}

std::unique_ptr<evaluation::Documents> documents_of(const test::TemporaryFolder& folder, const std::string& text) {
    return evaluation::file_documents({{test::write_file(folder / "a.txt", text), data::SourceKind::text}},
                                      tokenizer::Tokenizer::bytes(), "a.txt");
}

std::string some_text() {
    std::string text;
    for (int i = 0; i < 300; ++i) text += static_cast<char>('a' + (i * i + 3 * i) % 26);
    return text;
}

void check_equal(const evaluation::TokenScores& found, const evaluation::TokenScores& expected) {
    CHECK(found.targets() == expected.targets());
    CHECK(found.sequences() == expected.sequences());
    CHECK(found.loss_sum() == expected.loss_sum());
    CHECK(found.loss_error() == expected.loss_error());
    CHECK(found.accuracy() == expected.accuracy());
    CHECK(found.in_five() == expected.in_five());
}

}  // namespace

TEST_CASE("A streamed evaluation reads each layer once for several batches", "[evaluation][residence]") {
    const test::TemporaryFolder folder, weights, waiting;
    const auto documents = documents_of(folder, some_text());
    const test::TinyCheckpoint tiny = byte_llama();
    tiny.write(weights.path());
    const auto file = checkpoint::Checkpoint::open(weights.path());
    const double stored = model::inspect(*file).sizes.stored;
    const auto held = model::Model::build(*file);
    const auto streamed = model::Model::build(*file, checkpoint::LoadAs::float32, nullptr, nullptr, Residence::stream);
    REQUIRE(streamed->residence() == Residence::stream);

    evaluation::TextOptions options;
    options.length = 8;
    options.score.batch_tokens = 16;  // two windows: 19 batches
    const auto expected = evaluation::score_text(*held, *documents, options);
    REQUIRE(expected.tokens.sequences() > 36);
    double read = 0;
    const auto score = [&] {
        double done = 0;
        bool falls = false;
        const std::uint64_t before = test::bytes_read();
        const auto found = evaluation::score_text(*streamed, *documents, options, [&](double share) {
            falls = falls || share < done;
            done = share;
        });
        read = static_cast<double>(test::bytes_read() - before);
        check_equal(found.tokens, expected.tokens);
        CHECK_FALSE(falls);
        CHECK(done == 1);
    };
    score();
    // The layers and the head once; and a row of a word for each token.
    CHECK(read > stored / 2);
    CHECK(read < 2 * stored);
    options.score.group_tokens = 160;  // ten batches
    score();
    CHECK(read < 3 * stored);
    options.score.group_tokens = 1;  // each batch alone
    score();
    CHECK(read > 10 * stored);
    // All hidden states wait on the disk.
    options.score.group_tokens = 1 << 18;
    options.score.waiting = {0, waiting.path()};
    score();
    CHECK(waiting.names().empty());
    // None may wait.
    options.score.waiting = {0, {}};
    score();
    CHECK(read > 10 * stored);
}

TEST_CASE("Perplexity by position is the same where weights stream", "[evaluation][residence]") {
    const test::TemporaryFolder folder;
    const auto documents = documents_of(folder, some_text());
    const test::TinyCheckpoint tiny = byte_llama();
    const auto held = tiny.build();
    const auto streamed = tiny.build(checkpoint::LoadAs::float32, Residence::stream);
    evaluation::PositionOptions options;
    options.length = 20;
    options.bucket = 3;
    options.score.batch_tokens = 45;
    const auto expected = evaluation::score_positions(*held, *documents, options);
    const auto found = evaluation::score_positions(*streamed, *documents, options);
    REQUIRE(found.size() == 7);
    REQUIRE(expected.size() == 7);
    for (std::size_t b = 0; b < found.size(); ++b) {
        CHECK(found[b].last == expected[b].last);
        CHECK(found[b].tokens == expected[b].tokens);
        CHECK(found[b].loss == expected[b].loss);
        CHECK(found[b].error == expected[b].error);
    }
}

TEST_CASE("Groups of passes end at their tokens and at the memory of what waits", "[evaluation]") {
    const test::TemporaryFolder folder;
    const auto documents = documents_of(folder, std::string(101, 'a'));
    const auto groups = [&](Residence residence, std::int64_t tokens, double bytes) {
        test::ScriptedModel model(at::zeros({256, 256}));
        model.stays = residence;
        evaluation::TextOptions options;
        options.length = 4;
        options.score.batch_tokens = 4;  // 25 passes
        options.score.group_tokens = tokens;
        options.score.waiting.memory_bytes = bytes;
        const auto score = evaluation::score_text(model, *documents, options);
        CHECK(score.tokens.targets() == 100);
        CHECK(model.passes == 25);
        return model.groups;
    };
    using Sizes = std::vector<std::size_t>;
    CHECK(groups(Residence::float32, 16, 1e6).empty());
    CHECK(groups(Residence::file, 16, 1e6).empty());
    CHECK(groups(Residence::stream, 1000, 1e6) == Sizes{25});
    CHECK(groups(Residence::stream, 16, 1e6) == Sizes{4, 4, 4, 4, 4, 4, 1});
    CHECK(groups(Residence::stream, 19, 1e6) == Sizes{4, 4, 4, 4, 4, 4, 1});
    // One number a token, and as many again: 32 bytes a pass.
    CHECK(groups(Residence::stream, 1000, 10 * 32) == Sizes{10, 10, 5});
    CHECK(groups(Residence::stream, 1000, 0) == Sizes(25, 1));
}
