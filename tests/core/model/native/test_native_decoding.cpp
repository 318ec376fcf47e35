// SPDX-License-Identifier: GPL-3.0-or-later
// Native models of every mixer read a text in pieces as they read it at once.
#include "tests/catch_with_torch.h"

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "core/model/towers/cache.h"
#include "core/model/trainable.h"
#include "tests/core/model/native/mixer_stacks.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using namespace headscope::test::native_mixers;
using model::Trainable;
using test::largest_difference;
using test::largest_value;
using test::native_config;
using test::some_tokens;

namespace {

/// The model's logits when it reads `first` tokens at once and then one after the other.
at::Tensor in_pieces(model::Model& model, const at::Tensor& ids, std::int64_t first) {
    const auto cache = model.new_cache();
    model::ForwardOptions options;
    options.cache = cache.get();
    at::Tensor hidden = at::full({ids.size(0), ids.size(1), model.config().hidden}, 0.0, at::kFloat);
    for (std::int64_t done = 0; done < ids.size(1);) {
        const std::int64_t count = done == 0 ? first : 1;
        const at::Tensor part = model.forward({ids.narrow(1, done, count), {}, {}}, options);
        hidden.narrow(1, done, count).copy_(part);
        done += count;
    }
    return hidden;
}

}  // namespace

TEST_CASE("A text read in pieces is the text read at once, for every mixer and option", "[native][decoding]") {
    for_every_stack([](const nlohmann::json& config) {
        const auto trainable = Trainable::create(config.dump(), 3, at::kFloat);
        // All lengths for one stack of each mixer, two beyond a power of two for the others.
        const bool one = config.at("layers").size() == 2 && config.at("attention_bias") && config.value("rotary", true);
        for (const std::int64_t length :
             one ? std::vector<std::int64_t>{1, 2, 63, 64, 65, 300} : std::vector<std::int64_t>{2, 34}) {
            INFO(length);
            const at::Tensor ids = some_tokens(2, length).ids;
            model::Model& model = trainable->model();
            const at::Tensor whole = model.forward({ids, {}, {}});
            CHECK(largest_difference(in_pieces(model, ids, (length + 1) / 2), whole) <
                  3 * test::kFloatError * largest_value(whole));  // of three layers
        }
    });
}

TEST_CASE("A cache that is cloned goes on by itself", "[native][decoding]") {
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        const auto trainable = Trainable::create(stack_config({mixer, mixer}).dump(), 3, at::kFloat);
        model::Model& model = trainable->model();
        const at::Tensor ids = some_tokens(1, 9).ids;
        const auto first = model.new_cache();
        model::ForwardOptions options;
        options.cache = first.get();
        model.forward({ids.narrow(1, 0, 8), {}, {}}, options);
        const auto second = first->clone();
        CHECK(second->length() == 8);
        const at::Tensor one = model.forward({ids.narrow(1, 8, 1), {}, {}}, options);
        options.cache = second.get();
        CHECK(at::Tensor(one - model.forward({ids.narrow(1, 8, 1), {}, {}}, options)).abs().max().item<double>() == 0);
    }
}

TEST_CASE("Texts that go on from the same beginning may share a cache of it", "[native][decoding]") {
    const std::vector<std::int64_t> chosen{1, 0, 1};
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        const auto trainable = Trainable::create(native_config({mixer, "standard", mixer}).dump(), 3, at::kFloat);
        model::Model& model = trainable->model();
        const at::Tensor begin = some_tokens(2, 70).ids, rest = some_tokens(3, 9).ids;
        const at::Tensor which = at::tensor(chosen, at::kLong);
        const auto first = model.new_cache();
        model::ForwardOptions options;
        options.cache = first.get();
        model.forward({begin, {}, {}}, options);
        const auto own = first->chosen(which);
        CHECK(own->batch() == 3);
        options.cache = own.get();
        const at::Tensor after = model.forward({rest, {}, {}}, options);
        const at::Tensor whole = model.forward({at::cat({begin.index_select(0, which), rest}, 1), {}, {}});
        CHECK(largest_difference(after, whole.narrow(1, 70, 9)) < 3 * test::kFloatError * largest_value(whole));
        CHECK(first->batch() == 2);
        CHECK(first->length() == 70);
        CHECK(model.new_cache()->chosen(which)->batch() == 0);
    }
}

TEST_CASE("A cache of a state that learns does not grow with the text", "[native][decoding]") {
    for (const char* mixer : kLearners) {
        INFO(mixer);
        const auto trainable = Trainable::create(stack_config({mixer}).dump(), 1, at::kFloat);
        model::Model& model = trainable->model();
        const auto bytes = [&model](std::int64_t length) {
            const auto cache = model.new_cache();
            model::ForwardOptions options;
            options.cache = cache.get();
            model.forward(some_tokens(1, length), options);
            return cache->bytes();
        };
        CHECK(bytes(17) == bytes(305));  // one token after a mini-batch's end
    }
}
