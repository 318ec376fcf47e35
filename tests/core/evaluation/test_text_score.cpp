// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/evaluation/scripted_model.h"

#include <cmath>
#include <fstream>

#include "core/evaluation/documents.h"
#include "core/evaluation/text_score.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;

namespace {

/// Bytes: each is followed by the same one with probability `p`, the others share the rest.
test::ScriptedModel repeating(double p) {
    const double other = std::log((1 - p) / 255);
    at::Tensor logits = at::zeros({256, 256}).add_(other);
    for (int i = 0; i < 256; ++i) logits[i][i] = std::log(p);
    return test::ScriptedModel(logits);
}

std::unique_ptr<evaluation::Documents> files(const std::vector<std::filesystem::path>& paths) {
    std::vector<data::SourceFile> sources;
    for (const auto& path : paths) sources.push_back({path, data::SourceKind::text});
    return evaluation::file_documents(sources, tokenizer::Tokenizer::bytes(), "texts");
}

}  // namespace

TEST_CASE("Words and bytes are counted as lm-eval-harness does", "[evaluation]") {
    const auto words = [](std::initializer_list<const char*> pieces) {
        evaluation::TextCounter counter;
        for (const char* piece : pieces) counter.add(piece);
        return counter.words();
    };
    // len(re.split(r"\s+", text)) in Python.
    CHECK(words({""}) == 1);
    CHECK(words({"one"}) == 1);
    CHECK(words({"one two"}) == 2);
    CHECK(words({" one  two\n"}) == 4);   // ['', 'one', 'two', '']
    CHECK(words({"one ", " two"}) == 2);  // the white space goes on in the next piece
    CHECK(words({"a\u00a0b\u3000c"}) == 3);
    evaluation::TextCounter counter;
    counter.add("a\u00a0b");
    CHECK(counter.bytes() == 4);
}

TEST_CASE("Perplexities of a text are those of its tokens, words and bytes", "[evaluation]") {
    const test::TemporaryFolder folder;
    std::ofstream(folder / "a.txt") << "aaab bb";
    std::ofstream(folder / "b.txt") << "cc";
    auto model = repeating(0.5);
    const auto documents = files({folder / "a.txt", folder / "b.txt"});
    evaluation::TextOptions options;
    options.length = 4;
    const auto score = evaluation::score_text(model, *documents, options);
    // a.txt: a a | a b | b ' ' | ' ' b | b b: six predictions, three of them repeats; b.txt: one repeat.
    const double other = -std::log(0.5 / 255), loss = 4 * std::log(2.0) + 3 * other;
    CHECK(score.documents == 2);
    CHECK(score.tokens.targets() == 7);
    CHECK(score.tokens.loss_sum() == Approx(loss).epsilon(1e-6));
    CHECK(score.words == 3);
    CHECK(score.bytes == 9);
    CHECK(score.word_loss() == Approx(loss / 3).epsilon(1e-6));
    CHECK(score.byte_loss() == Approx(loss / 9).epsilon(1e-6));
    CHECK(score.tokens.accuracy() == Approx(4.0 / 7));
    CHECK(model.longest == 4);

    options.prefix = 'a';  // now every token is predicted: an 'a' behind it, and a 'c' that is none
    const auto with_prefix = evaluation::score_text(model, *documents, options);
    CHECK(with_prefix.tokens.targets() == 9);
    CHECK(with_prefix.tokens.loss_sum() == Approx(loss + std::log(2.0) + other).epsilon(1e-6));
}

TEST_CASE("A text may be cut short, and is then measured by tokens only", "[evaluation]") {
    const test::TemporaryFolder folder;
    std::ofstream(folder / "a.txt") << std::string(1000, 'a');
    auto model = repeating(0.5);
    evaluation::TextOptions options;
    options.length = 16;
    options.most_tokens = 101;
    const auto score = evaluation::score_text(model, *files({folder / "a.txt"}), options);
    CHECK(score.tokens.targets() == 100);
    CHECK(score.cut);
    CHECK(std::isnan(score.word_loss()));
    CHECK(score.tokens.loss() == Approx(std::log(2.0)).epsilon(1e-6));
}

TEST_CASE("Sliding windows predict each token once and read more", "[evaluation]") {
    const test::TemporaryFolder folder;
    std::ofstream(folder / "a.txt") << std::string(200, 'x');
    evaluation::TextOptions options;
    options.length = 32;
    auto disjoint = repeating(0.5), sliding = repeating(0.5);
    const auto one = evaluation::score_text(disjoint, *files({folder / "a.txt"}), options);
    options.stride = 8;
    const auto two = evaluation::score_text(sliding, *files({folder / "a.txt"}), options);
    CHECK(one.tokens.targets() == 199);
    CHECK(two.tokens.targets() == 199);
    CHECK(sliding.tokens > 3 * disjoint.tokens);
}
