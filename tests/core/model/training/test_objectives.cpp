// SPDX-License-Identifier: GPL-3.0-or-later
// What native models are trained for: losses, right answers and gradients against torch in float64
// (tests/oracle/generate/objective_losses.py), padded batches against their texts, and which models are refused.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/model/load/presets.h"
#include "core/model/objectives/objective.h"
#include "core/model/trainable.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using model::Trainable;
using nlohmann::json;
using test::IsError;

namespace {

/// The oracle's numbers have twelve digits; its sums and ours are of some hundred terms in another order.
constexpr double kDigits = 1e-8;

using Rows = std::vector<std::vector<std::int64_t>>;

/// [B, L], `filler` behind what is shorter.
at::Tensor padded(const Rows& rows, std::int64_t filler) {
    std::size_t length = 0;
    for (const auto& row : rows) length = std::max(length, row.size());
    at::Tensor all =
        at::full({static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(length)}, filler, at::kLong);
    for (std::size_t n = 0; n < rows.size(); ++n)
        for (std::size_t i = 0; i < rows[n].size(); ++i)
            all[static_cast<std::int64_t>(n)][static_cast<std::int64_t>(i)] = rows[n][i];
    return all;
}

std::vector<std::int64_t> lengths_of(const Rows& rows) {
    std::vector<std::int64_t> lengths;
    for (const auto& row : rows) lengths.push_back(static_cast<std::int64_t>(row.size()));
    return lengths;
}

/// A case of objective_losses.py, and texts [first, first + count) of its batch.
struct Case {
    json all;
    test::TinyCheckpoint checkpoint;

    explicit Case(json one) : all(std::move(one)) {
        checkpoint.config = all.at("config");
        checkpoint.tensors = all.at("tensors").get<std::map<std::string, std::vector<std::int64_t>>>();
    }

    std::string name() const { return all.at("name"); }
    std::unique_ptr<model::Objective> objective() const {
        return model::make_objective(all.at("objective"), all.at("classes"));
    }
    std::unique_ptr<Trainable> open(at::ScalarType type) const {
        const test::TemporaryFolder folder;
        checkpoint.write(folder.path());
        return Trainable::open(*checkpoint::Checkpoint::open(folder.path()), type);
    }
    model::Batch batch(std::size_t first, std::size_t count) const {
        const auto some = [&](const char* key) {
            const Rows rows = all.at(key).get<Rows>();
            return Rows(rows.begin() + static_cast<std::ptrdiff_t>(first),
                        rows.begin() + static_cast<std::ptrdiff_t>(first + count));
        };
        model::Batch made;
        made.ids = padded(some("ids"), 1);
        made.lengths = lengths_of(some("ids"));
        if (all.contains("target")) {
            made.target = padded(some("target"), 1);
            made.target_lengths = lengths_of(some("target"));
        }
        const bool numbers = all.at("objective") == "classify" && all.at("classes") == 1;
        if (numbers) {
            std::vector<float> values;
            for (std::size_t n = 0; n < count; ++n) values.push_back(all.at("wanted")[first + n][0].get<float>());
            made.values = at::tensor(values, at::kFloat);
        } else {
            made.labels = padded(some("wanted"), -1);
            if (all.at("objective") == "classify") made.labels = made.labels.flatten();
        }
        return made;
    }
};

std::vector<Case> cases() {
    std::ifstream file(test::golden_file("objective_losses.json"));
    REQUIRE(file.good());
    std::vector<Case> list;
    for (json& one : json::parse(file).get<std::vector<json>>()) list.emplace_back(std::move(one));
    REQUIRE(list.size() >= 6);
    return list;
}

model::LossSum loss_of(const Case& one, Trainable& model, const model::Batch& batch, bool training) {
    const model::TrainingForward forward;
    const auto objective = one.objective();
    const auto losses = objective->losses(model, batch, {}, training ? &forward : nullptr);
    REQUIRE(losses.size() == 1);
    CHECK(losses.front().name == objective->names().front());
    return losses.front().loss;
}

at::Tensor gradient_of(const Trainable& model, const model::Parameter& parameter) {
    const at::Tensor& value = parameter.value;
    return model.gradients().as_strided(value.sizes(), value.strides(), value.storage_offset()).reshape({-1});
}

std::unique_ptr<Trainable> fresh(const json& changes) {
    json config = test::native_config({"standard", "standard"}, {{"norm", "layer"}});
    config.update(changes);
    return Trainable::create(config.dump(), 1, at::kFloat);
}

void refuses(const char* kind, std::int64_t classes, const json& changes, const std::string& part) {
    INFO(kind << " " << changes.dump());
    const auto model = fresh(changes);
    CHECK_THROWS_MATCHES(model::make_objective(kind, classes)->check(std::as_const(*model).model().config()), Error,
                         IsError(ErrorCode::unsupported, part));
}

}  // namespace

TEST_CASE("Losses, right answers and gradients of every objective are the oracle's", "[objective][golden]") {
    for (const Case& one : cases()) {
        INFO(one.name());
        const auto model = one.open(at::kDouble);
        one.objective()->check(std::as_const(*model).model().config());
        const std::size_t texts = one.all.at("ids").size();
        const auto expected = one.all.at("loss").get<double>();
        for (const bool training : {false, true}) {
            const model::LossSum found = loss_of(one, *model, one.batch(0, texts), training);
            CHECK(found.cross_entropy.value() == Approx(expected).epsilon(kDigits));
            CHECK(found.sum.item<double>() == Approx(expected).epsilon(kDigits));
            CHECK(found.rows == one.all.at("counted").get<std::int64_t>());
            CHECK(found.correct == one.all.at("correct").get<std::int64_t>());
            if (training) found.sum.backward();
        }
        const json& gradients = one.all.at("gradients");
        CHECK(gradients.size() == model->parameters().size());
        for (const auto& parameter : model->parameters()) {
            INFO(parameter.name);
            const at::Tensor found = gradient_of(*model, parameter);
            const auto wanted = gradients.at(parameter.name).get<std::vector<double>>();
            const double scale = std::max(1.0, wanted[0]);
            const std::int64_t last = found.numel() - 1;
            CHECK(found.norm().item<double>() == Approx(wanted[0]).margin(kDigits * scale));
            CHECK(found[0].item<double>() == Approx(wanted[1]).margin(kDigits * scale));
            CHECK(found[last / 2].item<double>() == Approx(wanted[2]).margin(kDigits * scale));
            CHECK(found[last].item<double>() == Approx(wanted[3]).margin(kDigits * scale));
        }
    }
}

TEST_CASE("A padded batch has the losses and gradients of its texts alone", "[objective]") {
    for (const Case& one : cases()) {
        INFO(one.name());
        const auto model = one.open(at::kFloat);
        const std::size_t texts = one.all.at("ids").size();
        double sum = 0;
        for (std::size_t n = 0; n < texts; ++n) {
            const model::LossSum found = loss_of(one, *model, one.batch(n, 1), true);
            sum += found.cross_entropy.value();
            found.sum.backward();  // gradients add up
        }
        const at::Tensor expected = model->gradients().clone();
        model->gradients().zero_();
        const model::LossSum together = loss_of(one, *model, one.batch(0, texts), true);
        together.sum.backward();
        CHECK(together.cross_entropy.value() == Approx(sum).epsilon(test::kFloatError));
        CHECK(test::largest_difference(model->gradients().view({1, 1, -1}), expected.view({1, 1, -1})) <
              3 * test::kFloatError * test::largest_value(expected));
    }
}

TEST_CASE("Where nothing counts, the loss is 0 and no gradient is a NaN", "[objective]") {
    for (const Case& one : cases()) {
        if (one.all.at("objective") == "classify" || one.all.at("objective") == "spans") continue;
        INFO(one.name());
        const auto model = one.open(at::kFloat);
        model::Batch batch = one.batch(0, 2);
        batch.labels.fill_(-1);
        const model::LossSum found = loss_of(one, *model, batch, true);
        CHECK(found.cross_entropy.value() == 0);
        CHECK(found.rows == 0);
        CHECK(found.correct == 0);
        found.sum.mul(0.0).backward();
        CHECK(model->gradients().abs().max().item<double>() == 0);
    }
}

TEST_CASE("A target is predicted if its logit is the first of the largest", "[head_loss]") {
    const at::Tensor hidden = at::tensor(std::vector<double>{1, 0, 0, 1, -1, 0, 1, 1}, at::kDouble).view({4, 2});
    // Rows of logits: [2, 2, 0], [0, 0, 3], [-2, -2, 0], [2, 2, 3].
    const at::Tensor weight = at::tensor(std::vector<double>{2, 0, 2, 0, 0, 3}, at::kDouble).view({3, 2});
    const auto correct = [&](const std::vector<std::int64_t>& targets, at::ScalarType type) {
        return model::head_loss(hidden.to(type), {weight.to(type)}, at::tensor(targets, at::kLong)).correct;
    };
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
        CHECK(correct({0, 2, 2, 2}, type) == 4);
        CHECK(correct({1, 2, 2, 2}, type) == 3);  // as large, but not the first
        CHECK(correct({0, -1, 1, -1}, type) == 1);
        CHECK(correct({-1, -1, -1, -1}, type) == 0);
    }
}

TEST_CASE("An objective refuses models that cannot be trained for it", "[objective]") {
    const json encoder{{"stack", "encoder"}};
    const auto with_head = [&](const char* kind, int classes) {
        json changes = encoder;
        changes["head"] = {{"kind", kind}};
        if (classes > 0) changes["head"]["classes"] = classes;
        return changes;
    };
    json hashed = with_head("token_classes", 3);
    hashed["vocab_size"] = 0;
    hashed["embedding"] = {{"kind", "emb"}, {"hash", "md5"}, {"rows", 23}};
    json pair{{"stack", "encoder_decoder"}, {"num_encoder_layers", 1}};

    refuses("next_token", 2, encoder, "found an encoder");
    refuses("next_token", 2, pair, "found an encoder-decoder");
    refuses("masked", 2, json::object(), "found a decoder");
    refuses("masked", 2, pair, "found an encoder-decoder");
    refuses("masked", 2, hashed, "hashes of words");
    refuses("masked", 2, with_head("sequence_classes", 2), "2 classes of texts");
    refuses("shuffle_random", 2, with_head("token_classes", 4), "4 classes of tokens");
    refuses("shuffle_random", 2, with_head("masked_language", 0), "a head for the vocabulary");
    refuses("translation", 2, encoder, "found an encoder");
    refuses("translation", 2, json::object(), "found a decoder");
    refuses("classify", 3, with_head("sequence_classes", 2), "2 classes of texts");
    refuses("classify", 3, with_head("token_classes", 3), "3 classes of tokens");
    refuses("classify", 2, pair, "found an encoder-decoder");
    refuses("spans", 2, with_head("token_classes", 2), "2 classes of tokens");
    refuses("spans", 2, json::object(), "found a decoder");
    refuses("classify", 2, with_head("spans", 0), "found a head for answers");
    CHECK_THROWS_MATCHES(fresh({{"head", {{"kind", "spans"}}}}), Error,
                         IsError(ErrorCode::unsupported, "encoders alone"));
    CHECK_THROWS_MATCHES(model::make_objective("guess", 2), Error, IsError(ErrorCode::usage, "shuffle_random"));

    for (const auto& [kind, changes] :
         std::vector<std::pair<const char*, json>>{{"next_token", json::object()},
                                                   {"masked", with_head("masked_language", 0)},
                                                   {"masked", encoder},
                                                   {"shuffle_random", hashed},
                                                   {"translation", pair},
                                                   {"spans", with_head("spans", 0)},
                                                   {"classify", with_head("sequence_classes", 2)}}) {
        INFO(kind);
        const auto model = fresh(changes);
        CHECK_NOTHROW(model::make_objective(kind, 2)->check(std::as_const(*model).model().config()));
    }
}

TEST_CASE("An objective says what it lacks in a batch", "[objective]") {
    const auto model = fresh({{"stack", "encoder"}, {"head", {{"kind", "sequence_classes"}, {"classes", 2}}}});
    model::Batch batch = test::some_tokens(2, 5);
    const auto losses = [&](std::int64_t classes) {
        return model::make_objective("classify", classes)->losses(*model, batch, {}, nullptr);
    };
    CHECK_THROWS_MATCHES(losses(2), Error, IsError(ErrorCode::usage, "a class for each text"));
    CHECK_THROWS_MATCHES(losses(1), Error, IsError(ErrorCode::usage, "a number for each text"));
    batch.labels = batch.ids;
    CHECK_THROWS_MATCHES(losses(2), Error, IsError(ErrorCode::usage, "another shape"));
    batch.values = at::full({2}, 0.5, at::kFloat);
    CHECK_THROWS_MATCHES(losses(1), Error, IsError(ErrorCode::usage, "of one class"));
}
