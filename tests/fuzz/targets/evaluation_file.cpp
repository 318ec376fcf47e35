// SPDX-License-Identifier: GPL-3.0-or-later
// A file of evaluations (*.evaluation.h5) of ours, changed through HDF5 itself by the input's edits (hdf5_edits.h),
// then read whole, its items with their texts, and written as a table.
#include "core/store/evaluation/evaluation_file.h"
#include "core/base/text/text.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/targets/hdf5_edits.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {
namespace {

store::Evaluation sample() {
    store::Evaluation evaluation;
    evaluation.models.resize(2);
    evaluation.models[0].name = "one";
    evaluation.models[0].layer_mixers = "standard,mlp";
    evaluation.models[1].name = "two, \"quoted\"";
    evaluation.results.resize(3);
    for (std::size_t i = 0; i < 3; ++i) {
        evaluation.results[i].model = static_cast<std::int64_t>(i % 2);
        evaluation.results[i].task = "perplexity";
        evaluation.results[i].metric = "token_perplexity";
        evaluation.results[i].length = 16;
        evaluation.results[i].value = 2.5;
    }
    for (std::int64_t i = 0; i < 3; ++i)
        evaluation.items.push_back({i % 2, "piqa", 16, 0, i, 1, i % 2, i % 2 == 1, R"({"requests":[]})"});
    return evaluation;
}

}  // namespace

void run_evaluation_file(std::string_view input) {
    static const EditedFile file([](const auto& path) { store::write_evaluation(path, sample()); });
    const auto path = file.edited(input);
    refusal([&] {
        const store::Evaluation evaluation = store::read_evaluation(path);
        for (const store::EvaluationResult& result : evaluation.results) {
            expect(result.model >= 0 && result.model < static_cast<std::int64_t>(evaluation.models.size()),
                   "results of models that are there");
        }
        expect(!store::evaluation_csv(evaluation).empty(), "a table with a first line");
    });
    refusal([&] {
        for (const store::EvaluatedItem& item : store::read_items(path))
            expect(item.model >= 0 && item.texts.empty(), "items of models that are there, without texts");
    });
    for (const std::int64_t row : {0, 2}) {
        refusal([&] {
            const std::string texts = store::read_item_texts(path, row);
            expect(find_invalid_utf8(texts) >= texts.size(), "texts of UTF-8");
        });
    }
}

}  // namespace headscope::fuzz
