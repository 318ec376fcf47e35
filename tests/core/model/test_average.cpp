// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/checkpoint/save.h"
#include "core/model/fresh/average.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using namespace headscope::test;
using checkpoint::Checkpoint;
using checkpoint::LoadAs;

namespace {

const nlohmann::json kConfig{{"model_type", "headscope"}, {"hidden_size", 4}};

struct Snapshot {
    std::map<std::string, at::Tensor> tensors;
    nlohmann::json config = kConfig;

    std::shared_ptr<const Checkpoint> write(const std::filesystem::path& folder) const {
        checkpoint::SaveRequest request;
        request.destination = folder;
        request.config = &config;
        for (const auto& [name, tensor] : tensors) request.tensors.push_back(checkpoint::output_tensor(name, tensor));
        NoProgress progress;
        checkpoint::save_checkpoint(request, progress, Cancellation());
        return Checkpoint::open(folder);
    }
};

/// Numbers whose sums are not exact in float32.
at::Tensor numbers(int snapshot, at::ScalarType type) {
    at::Tensor values = at::empty({3, 5}, at::kDouble);
    for (std::int64_t i = 0; i < values.numel(); ++i)
        values.data_ptr<double>()[i] =
            (i % 2 == 0 ? 1.0 : -1.0) / static_cast<double>(3 + i + 7 * snapshot) * (i % 3 == 0 ? 1e4 : 1.0);
    return values.to(type);
}

Snapshot snapshot(int number) {
    return {{{"a", numbers(number, at::kFloat)},
             {"b", numbers(number + 10, at::kBFloat16)},
             {"c", numbers(number + 20, at::kDouble)},
             {"ids", at::full({2, 2}, 7, at::kLong)}}};
}

std::vector<std::shared_ptr<const Checkpoint>> snapshots(const TemporaryFolder& folder, int count) {
    std::vector<std::shared_ptr<const Checkpoint>> files;
    for (int i = 0; i < count; ++i) files.push_back(snapshot(i).write(folder / ("step-" + std::to_string(i))));
    return files;
}

void average(const std::vector<std::shared_ptr<const Checkpoint>>& files, const std::filesystem::path& destination,
             LoadAs as = LoadAs::stored) {
    NoProgress progress;
    model::convert_average(files, destination, as, progress, Cancellation());
}

}  // namespace

TEST_CASE("An average of snapshots is their float64 mean, tensor by tensor", "[average]") {
    const TemporaryFolder folder;
    const auto files = snapshots(folder, 5);
    average(files, folder / "mean");
    average(files, folder / "half", LoadAs::bfloat16);
    const auto mean = Checkpoint::open(folder / "mean"), half = Checkpoint::open(folder / "half");
    CHECK(mean->config() == kConfig);
    REQUIRE(mean->tensors().size() == 4);
    for (const char* name : {"a", "b", "c"}) {
        INFO(name);
        at::Tensor wanted = at::empty({3, 5}, at::kDouble);
        for (std::int64_t i = 0; i < wanted.numel(); ++i) {
            double sum = 0;
            for (const auto& file : files) sum += file->load(name, LoadAs::float64).data_ptr<double>()[i];
            wanted.data_ptr<double>()[i] = sum / 5;
        }
        CHECK(mean->tensor(name).type == files.front()->tensor(name).type);
        CHECK(mean->load(name).equal(wanted.to(mean->load(name).scalar_type())));
        CHECK(half->load(name).equal(wanted.to(at::kBFloat16)));
    }
    CHECK(mean->load("ids").equal(at::full({2, 2}, 7, at::kLong)));
}

TEST_CASE("Snapshots that do not match are refused, by folder and tensor or key", "[average]") {
    const TemporaryFolder folder;
    auto files = snapshots(folder, 2);
    const auto refused = [&](const Snapshot& other, const std::string& name) {
        const TemporaryFolder place;
        auto all = files;
        all.push_back(other.write(place / "other"));
        std::string message;
        try {
            average(all, folder / "mean");
        } catch (const Error& error) {
            message = error.what();
        }
        INFO(message);
        CHECK(message.find((place / "other").string()) != std::string::npos);
        CHECK(message.find(name) != std::string::npos);
        CHECK_FALSE(std::filesystem::exists(folder / "mean"));
    };
    Snapshot other = snapshot(2);
    other.tensors.erase("b");
    refused(other, "tensor \"b\"");
    other = snapshot(2);
    other.tensors["more"] = numbers(2, at::kFloat);
    refused(other, "tensor \"more\"");
    other = snapshot(2);
    other.tensors["a"] = numbers(2, at::kFloat).view({5, 3});
    refused(other, "expected the shape [3, 5]");
    other = snapshot(2);
    other.tensors["a"] = numbers(2, at::kDouble);
    refused(other, "expected the type F32");
    other = snapshot(2);
    other.tensors["ids"] = at::full({2, 2}, 8, at::kLong);
    refused(other, "tensor \"ids\"");
    other = snapshot(2);
    other.config["hidden_size"] = 8;
    refused(other, "hidden_size");
    files.pop_back();
    CHECK_THROWS_AS(average(files, folder / "mean"), Error);
}
