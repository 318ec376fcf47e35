// SPDX-License-Identifier: GPL-3.0-or-later
// Mixers, whole models, probes, an analysis and a training run on the emulated device compute the CPU's results. A read
// of the device's memory by code of the processor ends this program by SIGSEGV.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/InferenceMode.h>

#include "core/analysis/request.h"
#include "core/base/error.h"
#include "core/mixers/types/type.h"
#include "core/model/load/memory.h"
#include "core/model/load/model_device.h"
#include "core/model/trainable.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/device/emulated_device.h"
#include "tests/core/device/mixer_stack.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using test::emulated_device;
using test::largest_difference;
using test::largest_value;
using test::RecordingProbe;
using test::TemporaryFolder;

namespace {

/// Models that are read while this lives move to the emulated device.
class OnEmulatedDevice {
public:
    OnEmulatedDevice() { model::move_models_to(emulated_device()); }
    ~OnEmulatedDevice() { model::leave_gpu_of_models(); }
    OnEmulatedDevice(const OnEmulatedDevice&) = delete;
    OnEmulatedDevice& operator=(const OnEmulatedDevice&) = delete;
};

/// Hidden states and logits, and the values of a probe.
struct Seen {
    at::Tensor hidden, logits;
    RecordingProbe probe{true};
};

void look(model::Model& model, const test::GoldenModel& golden, Seen& seen) {
    model::ForwardOptions options;
    options.beyond_positions = true;
    options.probe = &seen.probe;
    seen.hidden = model.forward(golden.batch, options);
    if (golden.logits.defined())
        seen.logits = model.logits(seen.hidden.flatten(0, 1)).unflatten(0, {seen.hidden.size(0), seen.hidden.size(1)});
}

void check_close(const std::vector<double>& found, const std::vector<double>& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (std::isnan(found[i]) && std::isnan(expected[i])) continue;
        CHECK(found[i] == Approx(expected[i]).epsilon(16 * test::kFloatError).margin(16 * test::kFloatError));
    }
}

analysis::AnalysisRequest request_for(const std::vector<std::int64_t>& lengths, std::int64_t vocabulary) {
    analysis::AnalysisRequest request;
    for (const std::int64_t length : lengths) {
        store::SequenceTokens tokens;
        for (std::int64_t i = 0; i < length; ++i) {
            tokens.ids.push_back(static_cast<std::int32_t>((5 + 3 * i + i * i) % vocabulary));
            tokens.pieces.push_back("t" + std::to_string(tokens.ids.back()));
            tokens.offsets.push_back({0, 0});
        }
        request.sequences.push_back(std::move(tokens));
    }
    return request;
}

std::shared_ptr<store::AnalysisFile> analyze(model::Model& model, const std::filesystem::path& path) {
    NoProgress progress;
    const Cancellation cancellation;
    analysis::run(model, request_for({1, 5, 9}, model.config().vocabulary), path, {}, progress, cancellation);
    return store::AnalysisFile::open(path);
}

}  // namespace

TEST_CASE("Every mixer computes forward and backward on the emulated device what it computes on the CPU", "[device]") {
    for (const std::string& mixer : mixers::known_names()) test::check_mixer(mixer, test::GpuKernels::none);
}

TEST_CASE("A model to be trained moves to the device of models", "[device]") {
    const std::string config = test::stack_config("standard").dump();
    const auto made = [&] { return model::on_model_device(model::Trainable::create(config, 1, at::kFloat)); };
    CHECK(made()->device().is_cpu());
    const OnEmulatedDevice chosen;
    CHECK(made()->device() == emulated_device());
}

TEST_CASE("Models of several families compute the oracle's numbers on the emulated device", "[device][golden]") {
    for (const char* name : {"gpt2", "llama", "qwen2-windows", "bloom", "neox", "gemma2", "gpt-oss", "gptj", "bert",
                             "distilbert", "albert", "modernbert", "fnet-63"}) {
        INFO(name);
        const test::GoldenModel golden = test::golden_model(name);
        Seen expected;
        look(*golden.checkpoint.build(), golden, expected);
        for (const model::Residence residence : model::kResidences) {
            INFO(model::name(residence));
            const OnEmulatedDevice emulated;
            const auto model = golden.checkpoint.build(checkpoint::LoadAs::float32, residence);
            REQUIRE(model->device() == emulated_device());
            Seen seen;
            look(*model, golden, seen);
            if (golden.logits.defined())
                CHECK(largest_difference(seen.logits, golden.logits, golden.batch.lengths) <
                      test::kFloatError * largest_value(golden.logits));
            REQUIRE(seen.probe.order == expected.probe.order);
            for (const auto& [place, value] : seen.probe.values) {
                INFO(place.first << " " << place.second);
                const at::Tensor& other = expected.probe.values.at(place);
                REQUIRE(value.is_cpu());
                REQUIRE(value.sizes() == other.sizes());
                if (!value.is_floating_point()) continue;
                const at::Tensor difference = (value.to(at::kDouble) - other.to(at::kDouble)).abs().nan_to_num();
                if (value.numel() > 0)
                    CHECK(difference.max().item<double>() <= 16 * test::kFloatError * (1 + largest_value(other)));
            }
            REQUIRE(seen.probe.sites.size() == expected.probe.sites.size());
            for (std::size_t i = 0; i < seen.probe.sites.size(); ++i) {
                INFO("site " << i);
                check_close(seen.probe.sites[i].statistics.entropy, expected.probe.sites[i].statistics.entropy);
                check_close(seen.probe.sites[i].statistics.sink, expected.probe.sites[i].statistics.sink);
            }
        }
    }
}

TEST_CASE("Layers are copied to a device with streams while it computes, and else when they run", "[device][golden]") {
    for (const char* name : {"llama", "gpt-oss", "gptj", "albert", "gemma2"}) {
        INFO(name);
        const model::Batch batch = test::golden_batch(name);
        for (const char* type : {"F32", "BF16"}) {
            INFO(type);
            test::TinyCheckpoint tiny = test::golden_checkpoint(name);
            tiny.file_type = type;
            const auto hidden = [&](model::Residence residence) {
                const OnEmulatedDevice emulated;
                const auto model = tiny.build(checkpoint::LoadAs::float32, residence);
                model::ForwardOptions options;
                options.beyond_positions = true;
                const at::Tensor first = model->forward(batch, options);
                CHECK(model->forward(batch, options).equal(first));
                return first;
            };
            const at::Tensor expected = hidden(model::Residence::float32);
            for (const model::Residence residence : {model::Residence::file, model::Residence::stream}) {
                INFO(model::name(residence));
                const std::int64_t before = test::emulated_state().copies_aside;
                CHECK(hidden(residence).equal(expected));
                const std::int64_t after = test::emulated_state().copies_aside;
                CHECK(after > before);
                const test::OneStream one;
                CHECK(hidden(residence).equal(expected));
                CHECK(test::emulated_state().copies_aside == after);
            }
        }
    }
}

TEST_CASE("A device holds no layers of a model that is not resident", "[device][memory]") {
    const test::TinyCheckpoint tiny = test::golden_checkpoint("llama");
    const auto bytes = [&](model::Residence residence) {
        const OnEmulatedDevice emulated;
        const std::int64_t before = test::emulated_state().bytes;
        const auto model = tiny.build(checkpoint::LoadAs::float32, residence);
        return test::emulated_state().bytes - before;
    };
    const std::int64_t all = bytes(model::Residence::float32), small = bytes(model::Residence::file);
    CHECK(small < all);
    CHECK(bytes(model::Residence::stream) == small);

    // Two buffers, where the processor needs one.
    const TemporaryFolder folder;
    tiny.write(folder.path());
    const model::Inspection inspection = model::inspect(*checkpoint::Checkpoint::open(folder.path()));
    const auto planned = [&] {
        return model::resident_bytes(inspection, checkpoint::LoadAs::float32, model::Residence::file);
    };
    const double on_processor = planned();
    const OnEmulatedDevice emulated;
    CHECK(planned() == on_processor + 4 * inspection.sizes.buffer);
}

TEST_CASE("An analysis on the emulated device has the indicators of the CPU", "[device][analysis]") {
    const TemporaryFolder folder;
    for (const char* name : {"llama", "bert", "gpt-oss"}) {
        INFO(name);
        const test::TinyCheckpoint tiny = test::golden_checkpoint(name);
        const auto expected = analyze(*tiny.build(), folder / (std::string(name) + "-here.headscope.h5"));
        const OnEmulatedDevice emulated;
        const auto found = analyze(*tiny.build(), folder / (std::string(name) + "-there.headscope.h5"));
        CHECK(found->problems().empty());
        REQUIRE(found->indicators() == expected->indicators());
        REQUIRE(found->indicators().size() > 3);
        for (const std::string& indicator : found->indicators()) {
            INFO(indicator);
            const auto one = found->indicator(indicator), other = expected->indicator(indicator);
            check_close({one.data.begin(), one.data.end()}, {other.data.begin(), other.data.end()});
        }
    }
}

TEST_CASE("A training run on the emulated device learns as on the CPU, with the same bits again",
          "[device][training]") {
    const TemporaryFolder folder;
    const training::JobFile job = test::small_job(folder, {});
    const auto expected = test::run(test::fresh(job, folder / "here")).all<training::Step>();
    REQUIRE(expected.size() == 12);
    const OnEmulatedDevice emulated;
    const test::Told told = test::run(test::fresh(job, folder / "there"));
    const auto steps = told.all<training::Step>();
    REQUIRE(steps.size() == expected.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
        INFO("step " << i + 1);
        // AdamW divides by the size of a gradient: where that is near 0 roundings move a weight by up to the rate.
        CHECK(steps[i].loss == Approx(expected[i].loss).epsilon(i == 0 ? test::kFloatError : 1e-3));
        CHECK(steps[i].gradient_norm == Approx(expected[i].gradient_norm).epsilon(i == 0 ? 1e-4 : 1e-2));
    }
    CHECK(told.all<training::ProbeResult>().size() == 3);
    CHECK_FALSE(told.all<training::SampleText>().back().text.empty());

    const std::string weights = test::weights_of(folder / "there", 12);
    test::run(test::fresh(job, folder / "again"));
    CHECK(test::weights_of(folder / "again", 12) == weights);
    CHECK(test::optimizer_of(folder / "again", 12) == test::optimizer_of(folder / "there", 12));
}

TEST_CASE("What does not fit on the device is one line; weights of a layer may", "[device][memory]") {
    const auto bytes = [](model::Residence one) { return one == model::Residence::float32 ? 9e9 : 1e9; };
    const model::WeightChoice any{.otherwise = "shorten --length"};
    model::WeightChoice all = any;
    all.residence = model::Residence::float32;
    const auto refusal = [&](const model::WeightChoice& choice, double room) -> std::string {
        try {
            model::choose_residence([](model::Residence one) { return one == model::Residence::float32 ? 9e6 : 1e6; },
                                    choice, room);
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::memory);
            return error.what();
        }
        return "";
    };
    // Bytes, 5 % and 256 MiB of workspace.
    CHECK(model::fits_on_device(bytes(model::Residence::float32), 9.8e9));
    CHECK_FALSE(model::fits_on_device(bytes(model::Residence::float32), 9.7e9));
    CHECK(model::fits_on_device(1e15, 0));  // the driver does not say
    CHECK(model::choose_residence([](model::Residence) { return 1e6; }, any, 1e9) == model::Residence::float32);
    const double layers = 272e6;  // 1 MB fits, 9 MB do not
    CHECK(refusal(any, layers).empty());
    CHECK(refusal(all, layers) ==
          "[--device] expected 278 MB on cuda:0 for all weights and a pass; found 272 MB free: take --weights file, or "
          "take --device cpu");
    CHECK(refusal(any, 100e6) ==
          "[--device] expected 269 MB on cuda:0 for the weights of a layer and a pass; found 100 MB free: shorten "
          "--length, or take --device cpu");
    CHECK(refusal(all, 0).empty());
}
