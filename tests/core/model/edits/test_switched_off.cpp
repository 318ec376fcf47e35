// SPDX-License-Identifier: GPL-3.0-or-later
// Heads that are switched off, against transformers with hooks on the output projections
// (tests/oracle/generate/switched_heads.py).
#include "tests/catch_with_torch.h"

#include <filesystem>
#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include "core/model/towers/cache.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/head_edit.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using test::IsError;
using test::largest_difference;
using test::largest_value;
using test::RecordingProbe;
using How = model::Action;

namespace {

nlohmann::json read(const std::filesystem::path& path) {
    std::ifstream file(path);
    REQUIRE(file.good());
    return nlohmann::json::parse(file);
}

at::Tensor ids_of(const nlohmann::json& rows) {
    std::vector<at::Tensor> all;
    for (const auto& row : rows) all.push_back(at::tensor(row.get<std::vector<std::int64_t>>(), at::kLong));
    return at::stack(all);
}

struct Golden {
    test::TinyCheckpoint checkpoint;
    model::Batch batch;
};

Golden golden(const std::string& name) {
    const nlohmann::json json = read(test::golden_model_file(name));
    Golden golden;
    golden.checkpoint.config = json.at("config");
    golden.checkpoint.tensors = json.at("tensors").get<std::map<std::string, std::vector<std::int64_t>>>();
    golden.checkpoint.file_type = json.at("file_type");
    golden.batch.ids = ids_of(json.at("ids"));
    golden.batch.lengths = json.value("lengths", std::vector<std::int64_t>());
    if (json.contains("token_types")) golden.batch.token_types = ids_of(json["token_types"]);
    if (json.contains("target")) golden.batch.target = ids_of(json["target"]);
    golden.batch.target_lengths = json.value("target_lengths", std::vector<std::int64_t>());
    return golden;
}

std::vector<model::Intervention> switched_of(const nlohmann::json& list, const model::Model& model) {
    std::vector<model::Intervention> heads;
    for (const auto& item : list)
        heads.push_back(test::head_edit(model.sites(), item[0], item[1], item[2] == "zero" ? How::zero : How::mean));
    return heads;
}

/// Logits at the first and the last real token of each sequence, [B, 2, V].
at::Tensor ends(model::Model& model, const model::Batch& batch, const std::vector<model::Intervention>& switched,
                model::Probe* probe = nullptr) {
    model::Interventions edits(switched, model.config(), model.sites());
    model::ForwardOptions options;
    options.beyond_positions = true;
    options.editor = &edits;
    options.probe = probe;
    const at::Tensor hidden = model.forward(batch, options);
    std::vector<at::Tensor> rows;
    for (std::int64_t b = 0; b < hidden.size(0); ++b) {
        const auto& lengths = batch.predicted_lengths();
        const std::int64_t last = (lengths.empty() ? hidden.size(1) : lengths[static_cast<std::size_t>(b)]) - 1;
        rows.push_back(
            model.logits(at::stack({hidden.select(0, b).select(0, 0), hidden.select(0, b).select(0, last)})));
    }
    return at::stack(rows);
}

}  // namespace

TEST_CASE("Heads that are switched off change the logits as in transformers, in every family", "[model][switched]") {
    const nlohmann::json cases = read(test::golden_file("switched_heads.json"));
    REQUIRE(cases.size() == 20);
    for (const auto& [name, list] : cases.items()) {
        DYNAMIC_SECTION(name) {
            const Golden g = golden(name);
            const auto model = g.checkpoint.build();
            for (const nlohmann::json& one : list) {
                std::vector<double> flat;
                for (const auto& sequence : one.at("logits")) {
                    for (const auto& row : sequence) {
                        for (const auto& value : row) flat.push_back(value);
                    }
                }
                const auto switched = switched_of(one.at("switched"), *model);
                const at::Tensor expected = at::tensor(flat, at::kDouble).reshape({g.batch.ids.size(0), 2, -1});
                const double bound = test::kFloatError * largest_value(expected);
                CHECK(largest_difference(ends(*model, g.batch, switched), expected) < bound);
                // The measuring way through attention, which is another one, gives the same.
                RecordingProbe probe(true, {"nothing"});
                CHECK(largest_difference(ends(*model, g.batch, switched, &probe), expected) < bound);
                CHECK(probe.sites.size() == model->sites().size());
            }
        }
    }
}

TEST_CASE("A head that is switched off is measured as it would be, and later ones as they become",
          "[model][switched]") {
    const Golden g = golden("llama");
    const auto model = g.checkpoint.build();
    RecordingProbe plain(true), off(true);
    ends(*model, g.batch, {}, &plain);
    ends(*model, g.batch, {test::head_edit(model->sites(), 0, 2)}, &off);
    CHECK(off.sites[0].statistics.entropy == plain.sites[0].statistics.entropy);
    CHECK(off.at("head_output", 0).equal(plain.at("head_output", 0)));
    CHECK(off.sites[0].output.equal(plain.sites[0].output));
    CHECK_FALSE(off.at("attention_output", 0).equal(plain.at("attention_output", 0)));
    CHECK(off.sites[1].statistics.entropy != plain.sites[1].statistics.entropy);
}

TEST_CASE("With a cache a head at zero is exact token by token, and a mean is refused", "[model][switched]") {
    for (const std::string name : {"llama", "gpt2", "t5"}) {
        const Golden g = golden(name);
        const auto model = g.checkpoint.build();
        model::Batch batch;
        batch.ids = g.batch.ids.narrow(0, 0, 1);
        const bool pair = g.batch.target.defined();
        if (pair) batch.target = g.batch.target.narrow(0, 0, 1);
        const std::int64_t last = std::ssize(model->sites()) - 1;
        model::Interventions edits({test::head_edit(model->sites(), 0, 1), test::head_edit(model->sites(), last, 0)},
                                   model->config(), model->sites());
        model::ForwardOptions options;
        options.editor = &edits;
        const at::Tensor whole = model->forward(batch, options);
        const auto cache = model->new_cache();
        options.cache = cache.get();
        std::vector<at::Tensor> steps;
        for (std::int64_t i = 0; i < whole.size(1); ++i) {
            model::Batch step = batch;
            (pair ? step.target : step.ids) = batch.predicted().narrow(1, i, 1);
            if (pair && i > 0) step.ids = at::Tensor();
            steps.push_back(model->forward(step, options));
        }
        CHECK(largest_difference(at::cat(steps, 1), whole) < test::kFloatError * largest_value(whole));

        const auto fresh = model->new_cache();
        options.cache = fresh.get();
        model::Interventions mean({test::head_edit(model->sites(), 0, 1, How::mean)}, model->config(), model->sites());
        options.editor = &mean;
        CHECK_THROWS_MATCHES(model->forward(batch, options), Error, IsError(ErrorCode::usage, "mean"));
        CHECK_FALSE(fresh->spoiled());
    }
}
