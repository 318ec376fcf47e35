// SPDX-License-Identifier: GPL-3.0-or-later
// Processes that train one model on the emulated device. mpirun runs the hidden cases of this program, [.sums] and
// [.training], in two processes.
#include "tests/catch_with_torch.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/randn.h>

#include "core/model/load/model_device.h"
#include "core/model/trainable.h"
#include "core/run/run_history.h"
#include "core/training/trainer/coordinator.h"
#include "core/training/trainer/gradient_exchange.h"
#include "kernels/parallel.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/device/emulated_device.h"
#include "tests/core/model/native_model.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using test::emulated_device;
using test::TemporaryFolder;

namespace {

constexpr std::int64_t kBlockBytes = 2048;  ///< many blocks of a small model

/// A process whose twin always has the same float32 numbers: every sum is the double.
class TwinProcesses final : public training::Processes {
public:
    int rank() const override { return 0; }
    int size() const override { return 2; }
    int on_this_machine() const override { return 2; }
    int rank_on_this_machine() const override { return 0; }
    void sum(double* values, int count) override {
        for (int i = 0; i < count; ++i) values[i] *= 2;
    }
    void broadcast(void*, std::size_t) override {}
    void sum_in_background(Block block) override {
        ++blocks;
        if (block.ready) block.ready();
        auto* const values = static_cast<float*>(block.values);
        for (std::int64_t i = 0; i < block.count; ++i) values[i] *= 2;
    }
    void wait() override {}
    [[noreturn]] void abort() override { std::abort(); }

    int blocks = 0;
};

std::unique_ptr<model::Trainable> small_model(at::ScalarType type, const at::Device& device) {
    auto made = model::Trainable::create(test::native_config({"standard", "standard"}).dump(), 1, type);
    made->to(device);
    return made;
}

/// Gradients of process `rank`.
at::Tensor numbers_of(int rank, std::int64_t count, at::ScalarType type) {
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(100 + rank));
    return at::randn({count}, generator).to(type);
}

/// The exit status of this program's cases of `tag` in two processes.
int in_two_processes(const std::string& tag, const std::string& environment) {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    // Open MPI's plugins leak, and would ask the X server for graphics cards.
    const std::string command =
        environment +
        " OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 HWLOC_COMPONENTS=-gl"
        " ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" timeout 250 mpirun --oversubscribe --bind-to none -n 2 '" +
        program + "' '" + tag + "' < /dev/null";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool can_start_processes() {
#if defined(HEADSCOPE_WITH_MPI)
    if (std::system("command -v mpirun > /dev/null 2>&1") == 0) return true;
#endif
    WARN("no MPI here: not tested");
    return false;
}

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

}  // namespace

TEST_CASE("Gradients on a device leave block by block during the backward pass", "[device][training]") {
    const auto model = small_model(at::kFloat, emulated_device());
    const model::Batch batch = test::some_tokens(2, 12);
    model->gradients().zero_();
    test::next_token_loss(*model, batch).backward();
    const at::Tensor alone = model->gradients().cpu().clone();
    REQUIRE(alone.abs().max().item<float>() > 0);

    TwinProcesses twins;
    training::GradientExchange exchange(*model, twins, kBlockBytes);
    for (int step = 0; step < 2; ++step) {
        INFO("step " << step);
        model->gradients().zero_();
        twins.blocks = 0;
        exchange.arm();
        test::next_token_loss(*model, batch).backward();
        CHECK(twins.blocks > 2);  // before finish()
        exchange.finish();
        CHECK(twins.blocks >= model->gradients().numel() * 4 / kBlockBytes);
        CHECK(model->gradients().cpu().equal(alone * 2));
    }
}

TEST_CASE("Copies of gradients lie in pinned memory where the device has it", "[device][training]") {
    const auto model = small_model(at::kFloat, emulated_device());
    const at::Tensor given = numbers_of(0, model->gradients().numel(), at::kFloat);
    for (const bool pinned : {false, true}) {
        INFO("pinned: " << pinned);
        std::optional<test::OfferPinnedMemory> offer;
        if (pinned) offer.emplace();
        TwinProcesses twins;
        training::GradientExchange exchange(*model, twins, kBlockBytes);
        model->gradients().copy_(given);
        exchange.finish();
        CHECK(model->gradients().cpu().equal(given * 2));
        if (pinned) CHECK(offer->requests() > 0);
    }
}

TEST_CASE("Sums of gradients on the emulated device have the bits of the processor's", "[device][training][mpi]") {
    if (!can_start_processes()) return;
    CHECK(in_two_processes("[.sums]", "") == 0);
}

TEST_CASE("One of two processes adds up gradients", "[.sums]") {
    const auto processes = training::connect_processes();
    REQUIRE(processes);
    REQUIRE(processes->size() == 2);
    CHECK(processes->rank_on_this_machine() == processes->rank());
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        for (const at::Device& device : {at::Device(at::kCPU), emulated_device()}) {
            INFO((type == at::kFloat ? "float32" : "bfloat16") << " on " << device.str());
            const auto model = small_model(type, device);
            const std::int64_t count = model->gradients().numel();
            training::GradientExchange exchange(*model, *processes, kBlockBytes);
            model->gradients().copy_(numbers_of(processes->rank(), count, type));
            exchange.finish();
            // One addition of float32, rounded once.
            const at::Tensor expected =
                (numbers_of(0, count, type).to(at::kFloat) + numbers_of(1, count, type).to(at::kFloat)).to(type);
            CHECK(model->gradients().cpu().equal(expected));
            // As sums of several passes of bfloat16: float32 numbers of the same shape.
            const at::Tensor sums = numbers_of(processes->rank(), count, at::kFloat).to(device);
            exchange.sum(sums);
            CHECK(sums.cpu().equal(numbers_of(0, count, at::kFloat) + numbers_of(1, count, at::kFloat)));
        }
    }
}

TEST_CASE("Two processes on the emulated device have the losses of one", "[device][training][mpi]") {
    if (!can_start_processes()) return;
    const TemporaryFolder folder;
    const training::JobFile job = test::small_job(folder, {"training.accumulate=2"});
    test::write_file(folder / "job.toml", training::job_text(job));
    model::move_models_to(emulated_device());
    test::run(test::fresh(job, folder / "alone"));
    model::leave_gpu_of_models();
    REQUIRE(in_two_processes("[.training]", "HEADSCOPE_TEST_FOLDER='" + folder.path().string() + "'") == 0);
    const auto alone = training::read_run(folder / "alone"), together = training::read_run(folder / "together");
    CHECK(together.processes == 2);
    REQUIRE(alone.training.loss.size() == 12);
    REQUIRE(together.training.loss.size() == 12);
    for (std::size_t i = 0; i < 12; ++i) {
        INFO("step " << i + 1);
        // As two runs of one process on two devices (test_moved.cpp): sums in another order, which AdamW may enlarge.
        CHECK(together.training.loss[i] == Approx(alone.training.loss[i]).epsilon(i == 0 ? 1e-6 : 1e-3));
        CHECK(together.training.gradient_norm[i] ==
              Approx(alone.training.gradient_norm[i]).epsilon(i == 0 ? 1e-4 : 1e-2));
    }
}

TEST_CASE("One of two processes trains", "[.training]") {
    const std::filesystem::path folder = variable("HEADSCOPE_TEST_FOLDER");
    const auto processes = training::connect_processes();
    REQUIRE(processes);
    model::move_models_to(emulated_device());
    if (processes->rank() == 0) {
        training::TrainRequest request = test::fresh(training::read_job_file(folder / "job.toml"), folder / "together");
        request.processes = processes.get();
        CHECK(test::run(request).outcome.state == training::RunState::finished);
    } else {
        kernels::set_threads(1);
        at::set_num_threads(1);
        NoProgress progress;
        training::run_worker(*processes, progress);
    }
    // The other process computes on the device, too: two passes of each of 12 steps.
    CHECK(test::device_allocations() > 1000);
}
