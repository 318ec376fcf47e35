// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/io/sha256.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/save.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/hostile.h"
#include "tests/core/checkpoint/pytorch_builder.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;
namespace fs = std::filesystem;

namespace {

const fs::path golden = test::golden_file("pytorch");

std::string bytes_of(const at::Tensor& tensor) {
    return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

bool any_note(const Checkpoint& checkpoint, const std::string& part) {
    return std::any_of(checkpoint.notes().begin(), checkpoint.notes().end(),
                       [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

void same(const Checkpoint& found, const Checkpoint& expected) {
    for (const auto& [name, info] : expected.tensors()) {
        INFO(name);
        REQUIRE(found.tensors().count(name) == 1);
        const TensorInfo& tensor = found.tensor(name);
        REQUIRE(tensor.name == name);
        REQUIRE(tensor.type == info.type);
        REQUIRE(tensor.shape == info.shape);
        REQUIRE(tensor.elements == info.elements);
        REQUIRE(tensor.bytes == info.bytes);
        for (const LoadAs as : {LoadAs::stored, LoadAs::float32, LoadAs::float64}) {
            const at::Tensor loaded = found.load(name, as);
            REQUIRE(loaded.is_contiguous());
            REQUIRE(bytes_of(loaded) == bytes_of(expected.load(name, as)));
        }
    }
}

}  // namespace

TEST_CASE("What torch.save writes is read as PyTorch reads it", "[checkpoint][pytorch]") {
    const std::string name =
        GENERATE("types", "views", "protocol2", "protocol3", "protocol4", "protocol5", "lightning", "nested", "tree",
                 "module_state", "no_checksums", "quantised", "legacy", "legacy_views", "legacy_protocol4");
    INFO(name);
    const auto found = Checkpoint::open(golden / (name + ".pt"));
    const auto expected = Checkpoint::open(golden / (name + ".safetensors"));
    same(*found, *expected);
    REQUIRE(found->tensors().size() == expected->tensors().size());
    REQUIRE(found->files().size() == 1);
    REQUIRE(found->fingerprint() == sha256_hex(sha256_hex(read_file(golden / (name + ".pt"))) + "\n"));
}

TEST_CASE("Other content of a PyTorch file is noted, not read", "[checkpoint][pytorch]") {
    const auto beside = Checkpoint::open(golden / "protocol4.pt");
    REQUIRE(any_note(*beside, R"(the weights lie under "model_state_dict"; beside them, and not read: "epoch")"));
    REQUIRE(any_note(*beside, "\"module.\" was taken off every name"));
    const auto state = Checkpoint::open(golden / "module_state.pt");
    REQUIRE(state->notes().empty());
    REQUIRE(state->tensors().size() == 7);
}

TEST_CASE("Tensors of kinds that are not read are named when they are asked for", "[checkpoint][pytorch]") {
    const auto checkpoint = Checkpoint::open(golden / "quantised.pt");
    const auto [name, part] = GENERATE(table<const char*, const char*>({
        {"quantised", "made by torch._utils._rebuild_qtensor"},
        {"wide", "complex128"},
        {"conjugate", "conjugated"},
        {"negative", "negated"},
        {"sparse", "_rebuild_sparse_tensor"},
        {"meta", "_rebuild_meta_tensor_no_storage"},
        {"subclass", "__main__.Subclass"},
    }));
    INFO(name);
    REQUIRE(checkpoint->tensors().count(name) == 0);
    REQUIRE(checkpoint->unreadable().count(name) == 1);
    REQUIRE_THROWS_MATCHES(checkpoint->load(name), Error, IsError(ErrorCode::unsupported, part));
    REQUIRE_THROWS_MATCHES(checkpoint->tensor(name), Error, IsError(ErrorCode::unsupported, std::string(name)));
}

TEST_CASE("PyTorch's files without a state dictionary are distinguished", "[checkpoint][pytorch]") {
    const auto [name, code, part] = GENERATE(table<const char*, ErrorCode, const char*>({
        {"legacy_module", ErrorCode::unsupported, "torch.nn.modules.container.Sequential: if that is a whole model"},
        {"script", ErrorCode::unsupported, "TorchScript"},
        {"whole_module", ErrorCode::unsupported, "torch.nn.modules.container.Sequential: if that is a whole model"},
        {"tensor", ErrorCode::format, "found a tensor"},
        {"no_tensors", ErrorCode::format, "without tensors: \"epoch\", \"args (argparse.Namespace)\""},
    }));
    INFO(name);
    REQUIRE_THROWS_MATCHES(Checkpoint::open(golden / (std::string(name) + ".pt")), Error, IsError(code, part));
}

TEST_CASE("A PyTorch file opens in a folder, single and sharded, under every usual name", "[checkpoint][pytorch]") {
    const TemporaryFolder folder;
    write_file(folder / "config.json", R"({"model_type":"llama"})");
    SECTION("single") {
        const std::string name = GENERATE("pytorch_model.bin", "model.pt", "consolidated.00.pth", "epoch=1.ckpt");
        write_file(folder / name, pytorch_bytes(good_pickle()));
        write_file(folder / "training_args.bin", "not weights");
        write_file(folder / "optimizer.pt", "not weights");
        for (const fs::path& path : {folder.path(), folder / name}) {
            const auto checkpoint = Checkpoint::open(path);
            REQUIRE(checkpoint->has_config());
            REQUIRE(bytes_of(checkpoint->load("weight")) == six_floats());
        }
    }
    SECTION("several others") {
        write_file(folder / "a.pt", "x");
        write_file(folder / "b.pt", "x");
        REQUIRE_THROWS_MATCHES(Checkpoint::open(folder.path()), Error,
                               IsError(ErrorCode::usage, R"(found several others: "a.pt", "b.pt")"));
    }
    SECTION("sharded, with a tensor that is not read") {
        write_file(folder / "p-1.bin", pytorch_bytes(PickleText().raw("}").plain_entry("module.a").end()));
        write_file(folder / "p-2.bin", pytorch_bytes(PickleText()
                                                         .raw("}")
                                                         .plain_entry("module.b")
                                                         .text("module.q")
                                                         .global("torch._utils", "_rebuild_qtensor")
                                                         .raw(")Rs")
                                                         .end()));
        write_file(folder / "pytorch_model.bin.index.json",
                   R"({"weight_map":{"module.a":"p-1.bin","module.b":"p-2.bin","module.q":"p-2.bin"}})");
        for (const fs::path& path : {folder.path(), folder / "pytorch_model.bin.index.json"}) {
            const auto checkpoint = Checkpoint::open(path);
            REQUIRE(checkpoint->tensors().size() == 2);
            REQUIRE(checkpoint->tensor("b").file == 1);
            REQUIRE(checkpoint->unreadable().count("q") == 1);
            REQUIRE(bytes_of(checkpoint->load("b")) == six_floats());
        }
    }
    SECTION("beside safetensors, which win") {
        write_file(folder / "pytorch_model.bin", "anything");
        write_file(folder / "model.safetensors", tiny_safetensors("a"));
        const auto checkpoint = Checkpoint::open(folder.path());
        REQUIRE(checkpoint->tensors().count("a") == 1);
        REQUIRE(any_note(*checkpoint, "model.safetensors was read; pytorch_model.bin lies there too"));
    }
    SECTION("safetensors under another name") {
        write_file(folder / "pytorch_model.bin", tiny_safetensors("a"));
        REQUIRE(Checkpoint::open(folder.path())->tensors().count("a") == 1);
    }
    SECTION("through links, as in a cache") {
        fs::create_directories(folder / "blobs");
        write_file(folder / "blobs/1", pytorch_bytes(good_pickle()));
        fs::create_symlink("blobs/1", folder / "pytorch_model.bin");
        REQUIRE(Checkpoint::open(folder.path())->tensors().count("weight") == 1);
    }
}

TEST_CASE("A tensor in another shard than the index says is reported with its shard", "[checkpoint][pytorch][shards]") {
    const TemporaryFolder folder;
    write_file(folder / "1.bin", pytorch_bytes(PickleText().raw("}").plain_entry("a").end()));
    write_file(folder / "2.bin", pytorch_bytes(PickleText().raw("}").plain_entry("b").plain_entry("c").end()));
    const auto refused = [&](const std::string& map, ErrorCode code, const std::string& part) {
        write_file(folder / "pytorch_model.bin.index.json", R"({"weight_map":)" + map + "}");
        REQUIRE_THROWS_MATCHES(Checkpoint::open(folder.path()), Error, IsError(code, part));
    };
    refused(R"({"a":"1.bin","b":"1.bin","c":"2.bin"})", ErrorCode::mismatch, R"(found no "b"; "b" lies in "2.bin")");
    refused(R"({"a":"1.bin","b":"2.bin","c":"3.bin","d":"4.bin"})", ErrorCode::io, R"(found no "3.bin", "4.bin")");
    refused(R"({"a":"1.bin","b":"2.bin","c":"2.bin","d":"2.bin"})", ErrorCode::mismatch, R"(found no "d")");
    // Tensors beyond the index are read, as in transformers.
    write_file(folder / "pytorch_model.bin.index.json", R"({"weight_map":{"a":"1.bin","b":"2.bin"}})");
    REQUIRE(Checkpoint::open(folder.path())->tensors().count("c") == 1);
}

TEST_CASE("A PyTorch checkpoint is converted into the same tensors", "[checkpoint][pytorch][save]") {
    const TemporaryFolder folder;
    const auto source = Checkpoint::open(golden / "views.pt");
    NoProgress progress;
    convert(*source, folder / "out", LoadAs::stored, progress, Cancellation(), 1000);
    const auto saved = Checkpoint::open(folder / "out");
    REQUIRE(saved->files().size() > 1);
    same(*saved, *Checkpoint::open(golden / "views.safetensors"));
    convert(*source, folder / "half", LoadAs::float16, progress, Cancellation());
    const auto half = Checkpoint::open(folder / "half");
    for (const auto& [name, info] : source->tensors()) {
        INFO(name);
        REQUIRE(bytes_of(half->load(name)) == bytes_of(source->load(name, LoadAs::float16)));
    }
}

TEST_CASE("Large views are read in blocks, whatever their strides", "[checkpoint][pytorch]") {
    // 1200 x 1100 x 3 numbers, 15.8 MB: several blocks of 4 MB; read in every order of the dimensions.
    const TemporaryFolder folder;
    const std::int64_t a = 1200, b = 1100, c = 3;
    std::string storage(static_cast<std::size_t>(a * b * c) * 4, '\0');
    for (std::int64_t i = 0; i < a * b * c; ++i) {
        const auto value = static_cast<float>(i);
        std::memcpy(storage.data() + 4 * i, &value, 4);
    }
    std::vector<std::int64_t> sizes, strides;
    std::int64_t offset = 0;
    bool damaged_is_noticed = true;
    SECTION("(c, b, a)") {
        sizes = {c, b, a};
        strides = {1, c, b * c};
    }
    SECTION("(b, a, c)") {
        sizes = {b, a, c};
        strides = {c, b * c, 1};
    }
    SECTION("a part with gaps") {
        sizes = {300, 2, 200};
        strides = {2 * c, 1, 4 * b * c};
        offset = 7;
        damaged_is_noticed = false;
    }
    SECTION("few elements far apart") {
        sizes = {3, 5};
        strides = {b * c, 200 * b * c};
        offset = 11;
        damaged_is_noticed = false;
    }
    const auto elements = static_cast<std::int64_t>(storage.size() / 4);
    const std::string pickle =
        PickleText().raw("}").text("w").tensor("FloatStorage", "0", elements, offset, sizes, strides).raw("s").end();
    std::string bytes = pytorch_bytes(pickle, storage);
    write_file(folder / "x.pt", bytes);
    const auto checkpoint = Checkpoint::open(folder / "x.pt");
    const at::Tensor tensor = checkpoint->load("w", LoadAs::float64);
    REQUIRE(tensor.sizes().vec() == sizes);
    const auto* values = tensor.const_data_ptr<double>();
    std::int64_t wrong = 0;
    std::vector<std::int64_t> at(sizes.size(), 0);
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
        std::int64_t place = offset, rest = i;
        for (std::size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) place += rest % sizes[d] * strides[d];
        wrong += values[i] != static_cast<double>(static_cast<float>(place));
    }
    REQUIRE(wrong == 0);
    Cancellation cancellation;
    cancellation.request();
    REQUIRE_THROWS_AS(checkpoint->load("w", LoadAs::stored, cancellation), Stopped);

    bytes[bytes.find(storage.substr(4'000'000, 4000)) + 1] ^= 1;
    write_file(folder / "y.pt", bytes);
    const auto damaged = Checkpoint::open(folder / "y.pt");
    if (damaged_is_noticed) {
        REQUIRE_THROWS_MATCHES(damaged->load("w"), Error, IsError(ErrorCode::format, "tensor \"w\""));
    } else {
        REQUIRE_NOTHROW(damaged->load("w"));
    }
}

TEST_CASE("Damaged numbers are noticed by their checksum", "[checkpoint][pytorch]") {
    const TemporaryFolder folder;
    const std::string good = pytorch_bytes(good_pickle());
    std::string bad = good;
    bad[bad.find(six_floats()) + 5] ^= 4;
    write_file(folder / "x.pt", bad);
    const auto checkpoint = Checkpoint::open(folder / "x.pt");
    for (const LoadAs as : {LoadAs::stored, LoadAs::float64}) {
        REQUIRE_THROWS_MATCHES(checkpoint->load("weight", as), Error, IsError(ErrorCode::format, "checksum"));
    }
    NoProgress progress;
    REQUIRE_THROWS_MATCHES(convert(*checkpoint, folder / "out", LoadAs::stored, progress, Cancellation()), Error,
                           IsError(ErrorCode::format, "checksum"));
}
