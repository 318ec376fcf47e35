// SPDX-License-Identifier: GPL-3.0-or-later
// Processes that train one model on the emulated device. mpirun runs the hidden cases of this program in two processes:
// [.sums], [.choice] and [.training]. NCCL is a library without GPUs (fake_nccl.cpp).
#include "tests/catch_with_torch.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/randn.h>

#include "core/base/error.h"
#include "core/model/load/model_device.h"
#include "core/model/trainable.h"
#include "core/run/run_history.h"
#include "core/training/trainer/coordinator.h"
#include "core/training/trainer/exchange/choose_sums.h"
#include "core/training/trainer/exchange/nccl.h"
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
    int first_on_this_machine() const override { return 0; }
    void sum(double* values, int count) override {
        for (int i = 0; i < count; ++i) values[i] *= 2;
    }
    void broadcast(void*, std::size_t) override {}
    void sum_in_background(Block block) override {
        ++blocks;
        if (block.ready) block.ready();
        auto* const values = static_cast<float*>(block.values);
        for (std::int64_t i = 0; i < block.count; ++i) values[i] *= 2;
        if (block.done) block.done();
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

/// Environment of a process with the NCCL of these tests, which writes its calls into the folder.
std::string fake_nccl(const TemporaryFolder& folder) {
    return std::string("HEADSCOPE_NCCL='") + HEADSCOPE_FAKE_NCCL_LIBRARY + "' HEADSCOPE_FAKE_NCCL='" +
           folder.path().string() + "'";
}

/// Opens the device's memory, if the NCCL of these tests reads it.
std::unique_ptr<test::OpenDeviceMemory> memory_for_nccl() {
    return variable("HEADSCOPE_NCCL") == HEADSCOPE_FAKE_NCCL_LIBRARY ? std::make_unique<test::OpenDeviceMemory>()
                                                                     : nullptr;
}

const std::string kByNccl = "gradients are added up by NCCL 2.99.1",
                  kByMpi = "gradients are added up by MPI in memory of the processor: ";

/// The line of an Error, "stopped", or nothing.
std::string failure_of(const auto& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.what();
    } catch (const Stopped&) {
        return "stopped";
    }
    return {};
}

bool has_note(const store::RunRecord& run, const std::string& text) {
    return std::any_of(run.log.begin(), run.log.end(),
                       [&](const store::RunLogLine& line) { return line.level == "note" && line.text == text; });
}

}  // namespace

TEST_CASE("Gradients on a device leave and return block by block during the backward pass", "[device][training]") {
    const auto model = small_model(at::kFloat, emulated_device());
    const model::Batch batch = test::some_tokens(2, 12);
    model->gradients().zero_();
    test::next_token_loss(*model, batch).backward();
    const at::Tensor alone = model->gradients().cpu().clone();
    REQUIRE(alone.abs().max().item<float>() > 0);

    TwinProcesses twins;
    training::GradientExchange exchange(*model, twins, std::make_unique<training::HostSums>(twins), kBlockBytes);
    for (int step = 0; step < 2; ++step) {
        INFO("step " << step);
        model->gradients().zero_();
        twins.blocks = 0;
        exchange.arm();
        const at::Tensor loss = test::next_token_loss(*model, batch);
        const std::int64_t copies = test::emulated_state().copies_aside;
        loss.backward();
        CHECK(twins.blocks > 2);  // before finish()
        CHECK(test::emulated_state().copies_aside == copies + 2 * twins.blocks);
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
        std::optional<test::NoPinnedMemory> without;
        if (!pinned) without.emplace();
        const std::int64_t before = test::emulated_state().pinned;
        TwinProcesses twins;
        training::GradientExchange exchange(*model, twins, std::make_unique<training::HostSums>(twins), kBlockBytes);
        model->gradients().copy_(given);
        exchange.finish();
        CHECK(model->gradients().cpu().equal(given * 2));
        CHECK((test::emulated_state().pinned > before) == pinned);
    }
}

TEST_CASE("Sums of gradients on the emulated device have the bits of the processor's", "[device][training][mpi]") {
    if (!can_start_processes()) return;
    const TemporaryFolder folder;
    CHECK(in_two_processes("[.sums]", "HEADSCOPE_NCCL=none") == 0);
    CHECK(in_two_processes("[.sums]", fake_nccl(folder)) == 0);
    for (const std::string rank : {"0", "1"}) {
        const std::string calls = test::read_file(folder / rank);
        INFO(calls);
        CHECK(calls.starts_with("init " + rank + " of 2\nsum of "));
        CHECK(calls.find("sum of 512 float32\n") != std::string::npos);
        CHECK(calls.find("sum of 1024 bfloat16\n") != std::string::npos);
        CHECK(calls.ends_with("\ndestroy\n"));
        CHECK(calls.find("destroy alone") == std::string::npos);
    }
}

TEST_CASE("One of two processes adds up gradients", "[.sums]") {
    const auto processes = training::connect_processes();
    REQUIRE(processes);
    REQUIRE(processes->size() == 2);
    CHECK(processes->rank_on_this_machine() == processes->rank());
    CHECK(processes->first_on_this_machine() == 0);
    const auto open = memory_for_nccl();
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        for (const at::Device& device : {at::Device(at::kCPU), emulated_device()}) {
            INFO((type == at::kFloat ? "float32" : "bfloat16") << " on " << device.str());
            const auto model = small_model(type, device);
            const std::int64_t count = model->gradients().numel();
            training::ChosenSums chosen = training::choose_sums(*processes, device);
            CHECK(chosen.text == (device.is_cpu() ? "" : open ? kByNccl : kByMpi + "HEADSCOPE_NCCL is none"));
            training::GradientExchange exchange(*model, *processes, std::move(chosen.sums), kBlockBytes);
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
            if (type != at::kFloat) continue;
            // Both processes have the same gradients; blocks are added up while the backward pass runs.
            const model::Batch batch = test::some_tokens(2, 12);
            model->gradients().zero_();
            exchange.arm();
            test::next_token_loss(*model, batch).backward();
            exchange.finish();
            const at::Tensor summed = model->gradients().cpu().clone();
            model->gradients().zero_();
            test::next_token_loss(*model, batch).backward();
            CHECK(summed.equal(model->gradients().cpu() * 2));
        }
    }
}

TEST_CASE("NCCL is opened with its version, or not with a reason", "[training]") {
    const auto opened = [](const std::string& library) {
        ::setenv("HEADSCOPE_NCCL", library.c_str(), 1);
        training::NcclLibrary nccl = training::open_nccl();
        ::unsetenv("HEADSCOPE_NCCL");
        return nccl;
    };
    const training::NcclLibrary whole = opened(HEADSCOPE_FAKE_NCCL_LIBRARY);
    CHECK(whole.problem.empty());
    CHECK(whole.number == 29'901);
    CHECK(whole.version == "2.99.1");
    CHECK(whole.error_text(3) == "internal error (3)");
    const training::NcclLibrary other = opened("libm.so.6");
    CHECK(other.problem == "libm.so.6 lacks the function ncclGetErrorString");
    CHECK(other.number == 0);
    CHECK(
        opened("/absent/libnccl.so.2").problem.starts_with("no /absent/libnccl.so.2: cannot open shared object file"));
    CHECK(opened("none").problem == "HEADSCOPE_NCCL is none");
}

TEST_CASE("NCCL that cannot add up leaves it to MPI, or ends all processes with one line", "[device][training][mpi]") {
    if (!can_start_processes()) return;
    struct Case {
        std::string environment, text;
    };
    const TemporaryFolder folder;
    const std::string fails = fake_nccl(folder) + " HEADSCOPE_FAKE_NCCL_FAILS=",
                      found =
                          "; found internal error (3): with HEADSCOPE_NCCL=none gradients are added up in memory of "
                          "the processor";
    for (const Case& one :
         {Case{"HEADSCOPE_NCCL=/absent/libnccl.so.2", kByMpi +
                                                          "no /absent/libnccl.so.2: cannot open shared object file: "
                                                          "No such file or directory"},
          Case{fails + "version:1", kByMpi + "process 1 has another version of NCCL than process 0"},
          Case{fails + "id:0", "[NCCL] expected ncclGetUniqueId to succeed in process 0" + found},
          Case{fails + "init:1", "[NCCL] expected ncclCommInitRank to succeed in process 1" + found},
          Case{fails + "reduce:1:2", "[NCCL] expected ncclAllReduce to succeed in process 1" + found}}) {
        INFO(one.environment);
        CHECK(in_two_processes("[.choice]", one.environment + " HEADSCOPE_TEST_TEXT='" + one.text + "'") == 0);
    }
}

TEST_CASE("One of two processes chooses an exchange", "[.choice]") {
    const auto processes = training::connect_processes();
    REQUIRE(processes);
    const bool first = processes->rank() == 0;
    const auto text_of = [&](const at::Device& device) { return training::choose_sums(*processes, device).text; };
    const std::string shared = text_of(at::Device(at::kCUDA, 0)),
                      mixed = text_of(first ? emulated_device() : at::Device(at::kCPU));
    CHECK(text_of(at::kCPU).empty());
    if (first) CHECK(shared == kByMpi + "processes share a GPU");
    if (first) CHECK(mixed == kByMpi + "process 1 computes on the processor");

    const auto open = memory_for_nccl();
    const auto model = small_model(at::kFloat, emulated_device());
    const std::int64_t count = model->gradients().numel();
    model->gradients().copy_(numbers_of(processes->rank(), count, at::kFloat));
    std::string chosen;
    const std::string failure = failure_of([&] {
        training::ChosenSums sums = training::choose_sums(*processes, emulated_device());
        chosen = sums.text;
        training::GradientExchange exchange(*model, *processes, std::move(sums.sums), kBlockBytes);
        exchange.finish();
    });
    const std::string expected = variable("HEADSCOPE_TEST_TEXT");
    if (expected.starts_with("[NCCL] ")) {
        CHECK(failure == (first ? expected : "stopped"));
    } else {
        CHECK(failure.empty());
        if (first) CHECK(chosen == expected);
        CHECK(model->gradients().cpu().equal(numbers_of(0, count, at::kFloat) + numbers_of(1, count, at::kFloat)));
    }
}

TEST_CASE("Two processes on the emulated device have the losses of one", "[device][training][mpi]") {
    if (!can_start_processes()) return;
    const TemporaryFolder folder, calls;
    const training::JobFile job = test::small_job(folder, {"training.accumulate=2"});
    test::write_file(folder / "job.toml", training::job_text(job));
    model::move_models_to(emulated_device());
    test::run(test::fresh(job, folder / "alone"));
    model::leave_gpu_of_models();
    const auto train = [&](const std::string& run, const std::string& environment) {
        return in_two_processes("[.training]", environment + " HEADSCOPE_TEST_RUN='" + (folder / run).string() + "'") ==
               0;
    };
    REQUIRE(train("together", "HEADSCOPE_NCCL=none"));
    const auto alone = training::read_run(folder / "alone"), together = training::read_run(folder / "together");
    CHECK(together.processes == 2);
    CHECK(has_note(together, kByMpi + "HEADSCOPE_NCCL is none"));
    REQUIRE(alone.training.loss.size() == 12);
    REQUIRE(together.training.loss.size() == 12);
    for (std::size_t i = 0; i < 12; ++i) {
        INFO("step " << i + 1);
        // As two runs of one process on two devices (test_moved.cpp): sums in another order, which AdamW may enlarge.
        CHECK(together.training.loss[i] == Approx(alone.training.loss[i]).epsilon(i == 0 ? 1e-6 : 1e-3));
        CHECK(together.training.gradient_norm[i] ==
              Approx(alone.training.gradient_norm[i]).epsilon(i == 0 ? 1e-4 : 1e-2));
    }

    // The sum of two numbers has no order.
    REQUIRE(train("nccl", fake_nccl(calls)));
    CHECK(has_note(training::read_run(folder / "nccl"), kByNccl));
    CHECK(test::weights_of(folder / "nccl", 12) == test::weights_of(folder / "together", 12));
    for (const char* rank : {"0", "1"}) CHECK(test::read_file(calls / rank).ends_with("\ndestroy\n"));

    const std::string line =
        "[NCCL] expected ncclAllReduce to succeed in process 1; found internal error (3): with HEADSCOPE_NCCL=none "
        "gradients are added up in memory of the processor";
    REQUIRE(
        train("failed", fake_nccl(calls) + " HEADSCOPE_FAKE_NCCL_FAILS=reduce:1:5 HEADSCOPE_TEST_TEXT='" + line + "'"));
    const auto failed = training::read_run(folder / "failed");
    CHECK(failed.state == "failed");
    CHECK(failed.state_text == line);
}

TEST_CASE("One of two processes trains", "[.training]") {
    const std::filesystem::path run = variable("HEADSCOPE_TEST_RUN");
    const auto processes = training::connect_processes();
    REQUIRE(processes);
    const bool first = processes->rank() == 0;
    const auto open = memory_for_nccl();
    model::move_models_to(emulated_device());
    const std::string failure = failure_of([&] {
        if (first) {
            training::TrainRequest request = test::fresh(training::read_job_file(run.parent_path() / "job.toml"), run);
            request.processes = processes.get();
            test::run(request);
        } else {
            kernels::set_threads(1);
            at::set_num_threads(1);
            NoProgress progress;
            training::run_worker(*processes, progress);
        }
    });
    const std::string expected = variable("HEADSCOPE_TEST_TEXT");
    CHECK(failure == (expected.empty() || first ? expected : "stopped"));
    // The other process computes on the device, too.
    CHECK(test::emulated_state().allocations > 100);
}
