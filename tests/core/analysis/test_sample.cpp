// SPDX-License-Identifier: GPL-3.0-or-later
// The whole way on the bundled checkpoint: text, tokens, model, file.
#include <catch2/catch.hpp>

#include <cmath>

#include "core/analysis/input.h"
#include "core/analysis/request.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/model.h"
#include "core/store/analysis/analysis_file.h"
#include "core/tokenizer/tokenizer.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;

TEST_CASE("The sample is analysed from a text to a file", "[analysis][sample]") {
    const std::filesystem::path folder =
        std::filesystem::path(HEADSCOPE_SOURCE_DIR) / "resources/samples/llama-kjv-shakespeare";
    const auto checkpoint = checkpoint::Checkpoint::open(folder);
    const auto model = model::Model::build(*checkpoint);
    const auto tokenizer = tokenizer::Tokenizer::from_file(folder / "tokenizer.json");
    analysis::InputOptions options;
    options.texts = {"In the beginning was the light, and the light was upon the face of the waters.",
                     "To be, or not to be."};
    options.vocabulary = model->config().vocabulary;
    options.first_token_id = analysis::beginning_token(*checkpoint, *tokenizer);
    analysis::AnalysisRequest request;
    request.sequences = analysis::read_input(options, tokenizer.get()).sequences;
    request.record.states = request.record.maps = true;

    const test::TemporaryFolder temporary;
    NoProgress progress;
    const Cancellation cancellation;
    analysis::run(*model, request, temporary / "a.headscope.h5", {}, progress, cancellation);
    const auto file = store::AnalysisFile::open(temporary / "a.headscope.h5");
    file->check();
    REQUIRE(file->header().sites.size() == 4);
    REQUIRE(file->header().most_heads() == 8);
    const auto entropy = file->indicator("entropy_row_mean"), sink = file->indicator("sink"),
               density = file->indicator("density");
    const double most = std::log(static_cast<double>(file->header().longest()));
    for (std::size_t i = 0; i < entropy.data.size(); ++i) {
        REQUIRE((entropy.data[i] > 0 && entropy.data[i] < most));
        REQUIRE(sink.data[i] + density.data[i] == Approx(1).epsilon(1e-5));
    }
    // A trained model does better than guessing among its 2048 tokens.
    const auto loss = file->loss(0).data;
    double sum = 0;
    std::size_t count = 0;
    for (const double value : loss) {
        if (std::isnan(value)) continue;
        sum += value;
        ++count;
    }
    REQUIRE(count + 1 == request.sequences[0].ids.size());
    REQUIRE(sum / static_cast<double>(count) < std::log(2048.0) - 2);
    REQUIRE(file->map(1, 3).has_value());
    REQUIRE(std::isfinite(file->state("hidden_norm", 0, 4)->data[0]));
    REQUIRE(std::isnan(
        file->state("k_norm", 0, 0)->data[4 * static_cast<std::size_t>(file->header().longest())]));  // 4 key heads
}
