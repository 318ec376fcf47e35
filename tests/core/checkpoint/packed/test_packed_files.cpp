// SPDX-License-Identifier: GPL-3.0-or-later
// Quantized folders opened as checkpoints: names, shapes and numbers are those of the model.
#include "tests/catch_with_torch.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "core/base/io/sha256.h"
#include "core/checkpoint/packed/packed_source.h"
#include "core/checkpoint/stored_tensor.h"
#include "core/checkpoint/weights_format.h"
#include "tests/core/checkpoint/packed/packed_files.h"

using namespace headscope;
using namespace headscope::checkpoint;

namespace {

std::string sha256_of(const at::Tensor& numbers) {
    return sha256_hex({static_cast<const char*>(numbers.const_data_ptr()), static_cast<std::size_t>(numbers.nbytes())});
}

}  // namespace

TEST_CASE("Quantized folders have the tensors of their models", "[checkpoint][packed]") {
    const auto golden = test::packed_expectations();
    REQUIRE(golden.size() > 30);
    for (const auto& [name, expected] : golden.items()) {
        CAPTURE(name);
        const auto file = Checkpoint::open(test::packed_golden / name);
        REQUIRE(file->quantization_fault() == nullptr);
        CHECK(weights_format(*file) == expected.at("format"));
        CHECK(!file->config().contains("quantization_config"));
        for (const auto& [tensor, entry] : expected.at("tensors").items()) {
            CAPTURE(tensor);
            const TensorInfo& info = file->tensor(tensor);
            REQUIRE(info.packed);
            const at::Tensor whole = file->load(tensor);
            CHECK(whole.sizes() == at::IntArrayRef(info.shape));
            CHECK(whole.scalar_type() == at::kFloat);
            const bool turned = info.packed->transposed;
            CHECK(sha256_of(turned ? whole.transpose(-1, -2) : whole) == entry.at("sha256"));
            CHECK(at::equal(file->load(tensor, LoadAs::bfloat16), whole.to(at::kBFloat16)));
            const StoredTensor stored(*file, tensor, Cancellation());
            CHECK(at::equal(stored.rows(1, info.shape[0] - 1, at::kFloat), whole.narrow(0, 1, info.shape[0] - 1)));
            CHECK(at::equal(file->load_row(tensor, 1, LoadAs::float32), whole.narrow(0, 1, 1)));
            for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
                const at::Tensor into = at::zeros(info.packed->tensor->shape(), type);
                stored.copy_to(into);
                CHECK(at::equal(turned ? into.transpose(-1, -2) : into, whole.to(type)));
            }
            if (info.shape.size() == 3) {
                for (std::int64_t i = 0; i < info.shape[0]; ++i) {
                    const auto one = entry_of(info, i);
                    REQUIRE(one);
                    CHECK(one->bytes * static_cast<std::uint64_t>(info.shape[0]) == info.bytes);
                    const at::Tensor into = at::zeros(one->packed->tensor->shape(), at::kFloat);
                    StoredTensor(*file, *one, Cancellation()).copy_to(into);
                    CHECK(at::equal(turned ? into.transpose(-1, -2) : into, whole.select(0, i)));
                }
                CHECK_FALSE(entry_of(info, info.shape[0]));
            }
            if (info.shape.size() != 2) continue;
            const at::Tensor ids = at::tensor({info.shape[0] - 1, std::int64_t{0}, info.shape[0] - 1}, at::kLong);
            CHECK(at::equal(stored.rows(ids, at::kFloat), whole.index_select(0, ids)));
        }
    }
}
