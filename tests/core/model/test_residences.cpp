// SPDX-License-Identifier: GPL-3.0-or-later
// Wherever weights are between two uses, results are equal bit for bit: every golden case, stored in bfloat16.
#include "tests/catch_with_torch.h"

#include <ATen/ops/equal.h>

#include "core/model/towers/cache.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using checkpoint::LoadAs;
using model::Residence;

namespace {

std::vector<std::string> golden_names() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(test::golden_models()))
        if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
    std::sort(names.begin(), names.end());
    return names;
}

/// Hidden states and logits of the whole batch, and of the same piece by piece where the model has a cache.
std::vector<at::Tensor> results(model::Model& model, const model::Batch& batch) {
    model::ForwardOptions options;
    options.beyond_positions = true;
    std::vector<at::Tensor> found{model.forward(batch, options)};
    if (model.has_head() || model.has_classes()) found.push_back(model.logits(found[0].flatten(0, 1)));
    const bool pieces = model.causal() && !model.config().encoder && !batch.padded() && batch.ids.size(1) > 2;
    if (!pieces) return found;
    const auto cache = model.new_cache();
    options.cache = cache.get();
    for (const std::int64_t first : {std::int64_t{0}, batch.ids.size(1) - 1}) {
        model::Batch piece = batch;
        piece.ids = batch.ids.slice(1, first, first == 0 ? batch.ids.size(1) - 1 : batch.ids.size(1)).contiguous();
        found.push_back(model.forward(piece, options));
    }
    return found;
}

}  // namespace

TEST_CASE("Residences give equal bits for every family", "[model][residence]") {
    std::size_t compared = 0;
    for (const std::string& name : golden_names()) {
        CAPTURE(name);
        test::TinyCheckpoint checkpoint = test::golden_checkpoint(name);
        const model::Batch batch = test::golden_batch(name);
        checkpoint.file_type = "BF16";
        const std::vector<at::Tensor> expected = results(*checkpoint.build(), batch);
        for (const Residence residence : {Residence::file, Residence::stream}) {
            CAPTURE(model::name(residence));
            const auto other = checkpoint.build(LoadAs::float32, residence);
            // Twice: the first pass leaves nothing behind.
            for (int pass = 0; pass < 2; ++pass) {
                const std::vector<at::Tensor> found = results(*other, batch);
                REQUIRE(found.size() == expected.size());
                for (std::size_t i = 0; i < found.size(); ++i) CHECK(at::equal(found[i], expected[i]));
            }
            CHECK(other->report().not_finite.empty());
            ++compared;
        }
    }
    CHECK(compared > 300);
}

TEST_CASE("Residences agree for other types of files", "[model][residence]") {
    for (const char* type : {"F16", "F32", "F64"}) {
        for (const char* name : {"llama", "gpt2", "bart", "mixtral"}) {
            CAPTURE(type, name);
            test::TinyCheckpoint checkpoint = test::golden_checkpoint(name);
            const model::Batch batch = test::golden_batch(name);
            checkpoint.file_type = type;
            const std::vector<at::Tensor> expected = results(*checkpoint.build(), batch);
            for (const Residence residence : {Residence::file, Residence::stream}) {
                const auto other = checkpoint.build(LoadAs::float32, residence);
                const std::vector<at::Tensor> found = results(*other, batch);
                for (std::size_t i = 0; i < found.size(); ++i) CHECK(at::equal(found[i], expected[i]));
            }
        }
    }
}
