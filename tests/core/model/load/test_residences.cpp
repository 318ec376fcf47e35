// SPDX-License-Identifier: GPL-3.0-or-later
// Wherever weights are between two uses, results are equal bit for bit: every golden case, stored in bfloat16.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "core/base/process/read_ahead.h"
#include "core/model/towers/stack.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/file_size_limit.h"
#include "tests/core/base/no_threads.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/load/residence_results.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using checkpoint::LoadAs;
using model::Residence;
using test::residences::results;

namespace {

std::vector<std::string> golden_names() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(test::golden_models()))
        if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
    std::sort(names.begin(), names.end());
    return names;
}

/// The same texts in reverse order.
model::Batch reversed(const model::Batch& batch) {
    model::Batch other = batch;
    for (at::Tensor* rows : {&other.ids, &other.token_types, &other.target})
        if (rows->defined()) *rows = rows->flip(0);
    for (std::vector<std::int64_t>* lengths : {&other.lengths, &other.target_lengths})
        std::reverse(lengths->begin(), lengths->end());
    return other;
}

/// Final hidden states of passes that go through the layers together.
std::vector<at::Tensor> together(model::Model& model, const std::vector<model::Model::Pass>& passes,
                                 const model::WaitingPlace& place = {}) {
    std::vector<at::Tensor> hidden;
    model.forward_each(passes, place, [&hidden](std::size_t pass, const at::Tensor& one) {
        REQUIRE(pass == hidden.size());
        hidden.push_back(one);
    });
    return hidden;
}

/// Looks at the weights of the last tower's layers after their mixers and after their feed-forwards.
class WeightProbe final : public model::Probe {
public:
    explicit WeightProbe(const model::Model& model)
        : layers_(dynamic_cast<const model::Stack&>(model).tower().layers()),
          first_(model.config().encoder ? model.config().encoder->layers : 0) {}

    struct Seen {
        bool after_mixer, mixer_there, feed_forward_there;
        const void* begin;  ///< of the buffer, and its bytes
        std::size_t bytes;
    };
    std::vector<Seen> seen;

    bool wants(std::string_view name, LayerIndex layer) const override {
        return layer.value >= first_ && (name == "attention_output" || name == "feed_forward_output");
    }
    void announce(std::string_view name, LayerIndex layer, const at::Tensor&) override {
        const model::Layer& own = *layers_.at(static_cast<std::size_t>(layer.value - first_));
        const bool after_mixer = name == "attention_output";
        const at::Tensor& mixer = own.output.weight;
        const at::Tensor& inner =
            own.feed_forward.experts.per_token > 0 ? own.feed_forward.experts.gate_up : own.feed_forward.up.weight;
        const at::Tensor& used = after_mixer ? mixer : inner;
        if (!used.defined()) throw std::runtime_error("a weight in use is undefined");
        seen.push_back({after_mixer, mixer.defined(), inner.defined(), used.storage().data(), used.storage().nbytes()});
    }
    const kernels::StatisticsRequest* request(SiteIndex) override { return nullptr; }
    void measured(const model::AttentionRecord&) override {}

private:
    std::vector<const model::Layer*> layers_;
    std::int64_t first_;
};

}  // namespace

TEST_CASE("Layers are read in turn where no second thread can be started", "[model][residence]") {
    CHECK(test::holds_without_threads([] {
        ReadAhead<std::int64_t> ahead([](std::int64_t number, const Cancellation&) { return 2 * number; });
        ahead.start(3);
        return ahead.take(3, nullptr) == 6 && ahead.take(4, nullptr) == 8;
    }));
}

TEST_CASE("A stop ends the wait for what is read ahead, and the read goes on", "[model][residence]") {
    std::atomic<bool> released = false;
    Cancellation cancellation;
    ReadAhead<std::int64_t> ahead([&released](std::int64_t number, const Cancellation&) {
        // A wait that does not end fails the test after five seconds.
        for (int i = 0; i < 500 && !released; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return 2 * number;
    });
    ahead.start(3);
    cancellation.request();
    CHECK_THROWS_AS(ahead.take(3, &cancellation), Stopped);
    released = true;
    CHECK(ahead.take(3, nullptr) == 6);
    CHECK(ahead.take(4, &cancellation) == 8);
}

TEST_CASE("A feed-forward takes the memory of its layer's mixers", "[model][residence]") {
    // Blocks that are parallel, or whose weights several layers share, hold both.
    const std::map<std::string, bool> names{{"llama", true}, {"mixtral", true}, {"bart", true},   {"gpt2", true},
                                            {"gptj", false}, {"falcon", false}, {"albert", false}};
    for (const auto& [name, in_steps] : names) {
        CAPTURE(name);
        test::TinyCheckpoint tiny = test::golden_checkpoint(name);
        tiny.file_type = "BF16";
        const test::TemporaryFolder folder;
        tiny.write(folder.path());
        const auto file = checkpoint::Checkpoint::open(folder.path());
        const model::WeightSizes sizes = model::inspect(*file).sizes;
        CHECK((sizes.buffer < sizes.layer) == in_steps);
        CHECK(2 * sizes.buffer >= sizes.layer);
        for (const Residence residence : {Residence::file, Residence::stream}) {
            CAPTURE(model::name(residence));
            const auto model = model::Model::build(*file, LoadAs::float32, nullptr, nullptr, residence);
            WeightProbe probe(*model);
            model::ForwardOptions options;
            options.probe = &probe;
            options.beyond_positions = true;
            model->forward(test::golden_batch(name), options);
            REQUIRE(probe.seen.size() >= 4);
            for (const WeightProbe::Seen& seen : probe.seen) {
                CHECK(seen.begin == probe.seen.front().begin);
                CHECK(seen.bytes == probe.seen.front().bytes);
                CHECK(seen.mixer_there == (seen.after_mixer || !in_steps));
                CHECK(seen.feed_forward_there == (!seen.after_mixer || !in_steps));
            }
            const auto bytes = static_cast<double>(probe.seen.front().bytes);
            CHECK(bytes > 2 * sizes.buffer);
            // Vectors and small matrices stay elsewhere; each of the others begins at a multiple of 64 bytes.
            CHECK(bytes <= 4 * sizes.buffer + 64.0 * static_cast<double>(file->tensors().size()));
            // Gate and up [54, 20], then down [20, 27].
            if (name == "llama") CHECK(probe.seen.front().bytes == 4352 + 2176);
        }
    }
}

TEST_CASE("Batches that pass each layer together give the bits of each alone", "[model][residence]") {
    for (const char* name : {"llama", "mixtral", "gpt-oss", "hybrid-nemotron-h", "gptj", "albert", "bart", "t5"}) {
        CAPTURE(name);
        test::TinyCheckpoint tiny = test::golden_checkpoint(name);
        tiny.file_type = "BF16";
        const model::Batch batch = test::golden_batch(name), other = reversed(batch);
        model::ForwardOptions options;
        options.beyond_positions = true;
        const auto alone = tiny.build();
        const at::Tensor expected[] = {alone->forward(batch, options), alone->forward(other, options)};
        CHECK_FALSE(at::equal(expected[0], expected[1]));
        for (const Residence residence : model::kResidences) {
            CAPTURE(model::name(residence));
            const auto model = tiny.build(LoadAs::float32, residence);
            for (int run = 0; run < 2; ++run) {
                const std::vector<at::Tensor> found = together(*model, {{&batch, options}, {&other, options}});
                REQUIRE(found.size() == 2);
                for (std::size_t i = 0; i < 2; ++i) CHECK(at::equal(found[i], expected[i]));
            }
        }
    }
}

TEST_CASE("Hidden states that wait on the disk come back with their bits", "[model][residence]") {
    for (const char* name : {"llama", "llama-rope-dynamic", "gemma3", "mixtral", "gpt-oss", "hybrid-nemotron-h", "gptj",
                             "albert", "bart", "t5", "xl-segments", "native-static_emb_qk", "native-rnd_emb_qk"}) {
        CAPTURE(name);
        test::TinyCheckpoint tiny = test::golden_checkpoint(name);
        tiny.file_type = "BF16";
        const model::Batch batch = test::golden_batch(name), other = reversed(batch);
        const test::TemporaryFolder folder;
        model::ForwardOptions options;
        options.beyond_positions = true;
        const auto file = tiny.build(LoadAs::float32, Residence::file);
        const at::Tensor expected[] = {file->forward(batch, options), file->forward(other, options)};
        const auto streamed = tiny.build(LoadAs::float32, Residence::stream);
        options.after_layer = [&folder](int) { CHECK(folder.names().empty()); };
        const std::vector<model::Model::Pass> passes{{&batch, options}, {&other, options}};
        const auto bytes = static_cast<double>(expected[0].nbytes());
        // Both wait on the disk, one does, none does.
        for (const double memory : {0.0, bytes, 8 * bytes}) {
            CAPTURE(memory);
            const std::vector<at::Tensor> found = together(*streamed, passes, {memory, folder.path()});
            REQUIRE(found.size() == 2);
            for (std::size_t i = 0; i < 2; ++i) CHECK(at::equal(found[i], expected[i]));
        }
        // The file is made where several passes wait, and only there.
        const model::WaitingPlace missing{0, folder / "missing"};
        REQUIRE_THROWS_MATCHES(together(*streamed, passes, missing), Error,
                               test::IsError(ErrorCode::io, "expected to write hidden states of texts that wait here"));
        CHECK(at::equal(together(*streamed, {passes.front()}, missing).front(), expected[0]));
    }
}

TEST_CASE("A full disk stops passes that wait before a layer runs, and the model stays usable", "[model][residence]") {
    test::TinyCheckpoint tiny = test::golden_checkpoint("llama");
    tiny.file_type = "BF16";
    const model::Batch batch = test::golden_batch("llama"), other = reversed(batch);
    const test::TemporaryFolder folder;
    std::vector<int> layers;
    model::ForwardOptions options;
    options.after_layer = [&layers](int layer) { layers.push_back(layer); };
    const auto streamed = tiny.build(LoadAs::float32, Residence::stream);
    const at::Tensor expected = tiny.build()->forward(batch);
    const std::vector<model::Model::Pass> passes{{&batch, options}, {&other, options}};
    {
        // The first states fit, the second do not.
        const test::FileSizeLimit limit(static_cast<rlim_t>(expected.nbytes()) + 1);
        REQUIRE_THROWS_MATCHES(together(*streamed, passes, {0, folder.path()}), Error,
                               test::IsError(ErrorCode::io, "] expected to write hidden states of texts that wait"));
    }
    CHECK(layers.empty());
    CHECK(folder.names().empty());
    CHECK(at::equal(together(*streamed, passes, {0, folder.path()}).front(), expected));
}

TEST_CASE("Long texts, whose mixers get fresh memory, have equal bits in every residence", "[model][residence]") {
    for (const char* name : {"llama", "mixtral", "gptj"}) {
        CAPTURE(name);
        test::TinyCheckpoint tiny = test::golden_checkpoint(name);
        tiny.file_type = "BF16";
        model::Batch batch;
        batch.ids = at::arange(model::kManyTokens, at::kLong).remainder(37).view({64, -1}).contiguous();
        model::ForwardOptions options;
        options.beyond_positions = true;
        const at::Tensor expected = tiny.build()->forward(batch, options);
        for (const Residence residence : {Residence::file, Residence::stream}) {
            CAPTURE(model::name(residence));
            const auto model = tiny.build(LoadAs::float32, residence);
            for (int run = 0; run < 2; ++run) CHECK(at::equal(model->forward(batch, options), expected));
        }
    }
}

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
