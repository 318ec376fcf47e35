// SPDX-License-Identifier: GPL-3.0-or-later
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/device_choice.h"
#include "core/base/machine/gpu_driver.h"
#include "core/base/machine/gpu_operators.h"
#include "tests/core/base/environment.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using test::IsError;
using test::TemporaryFolder;

namespace {

GpuDriver fake_driver(const std::string& devices, const std::string& library = HEADSCOPE_FAKE_DRIVER) {
    const test::Environment driver("HEADSCOPE_CUDA_DRIVER", library), number("HEADSCOPE_FAKE_GPUS", devices);
    return find_gpus(GpuKind::cuda, true);
}

}  // namespace

TEST_CASE("A driver lists its devices with name, memory and capability", "[base][gpu]") {
    const GpuDriver driver = fake_driver("2");
    CHECK(driver.problem.empty());
    CHECK(driver.library == HEADSCOPE_FAKE_DRIVER);
    CHECK(driver.version == "13.2");
    REQUIRE(driver.devices.size() == 2);
    CHECK(driver.devices[0].name == "Fake?GPU 0");  // control characters are replaced
    CHECK(driver.devices[1].name == "Fake?GPU 1");
    CHECK(driver.devices[0].architecture() == "sm_80");
    CHECK(driver.devices[1].architecture() == "sm_90");
    CHECK(driver.devices[1].memory == 32e9);
    CHECK(driver.devices[0].free_memory == 4e9);
    CHECK(driver.devices[1].free_memory == -1);  // it gives no context
}

TEST_CASE("AMD's architectures have AMD's names", "[base][gpu]") {
    const test::Environment library("HEADSCOPE_HIP_DRIVER", HEADSCOPE_FAKE_HIP_DRIVER);
    const GpuDriver driver = find_gpus(GpuKind::hip);
    CHECK(driver.problem.empty());
    CHECK(driver.version == "6.3");
    REQUIRE(driver.devices.size() == 2);
    CHECK(driver.devices[0].architecture() == "gfx90a");
    CHECK(driver.devices[1].architecture() == "gfx90");  // it has no properties: its version
}

TEST_CASE("A look at the free memory of AMD's cards leaves the thread's card as it is", "[base][gpu]") {
    const test::Environment driver("HEADSCOPE_HIP_DRIVER", HEADSCOPE_FAKE_HIP_DRIVER);
    const GpuDriver found = find_gpus(GpuKind::hip, true);
    REQUIRE(found.devices.size() == 2);
    CHECK(found.devices[0].free_memory == 1e9);
    CHECK(found.devices[1].free_memory == 2e9);
    void* library = dlopen(HEADSCOPE_FAKE_HIP_DRIVER, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    const auto current = reinterpret_cast<int (*)(int*)>(dlsym(library, "hipGetDevice"));
    REQUIRE(current != nullptr);
    int device = -1;
    CHECK(current(&device) == 0);
    CHECK(device == 0);
    dlclose(library);
}

TEST_CASE("A driver without devices, or that fails, is a problem in words", "[base][gpu]") {
    const std::string library = std::string("driver library ") + HEADSCOPE_FAKE_DRIVER;
    CHECK(fake_driver("0").problem == library + " (version 13.2), which reports no device");
    CHECK(fake_driver("fails").problem == library + ", whose cuInit returns error 999 (CUDA_ERROR_UNKNOWN)");
    CHECK(fake_driver("-1").problem == library + ", which reports -1 devices");
    CHECK(fake_driver("fails").devices.empty());
}

TEST_CASE("Missing and broken driver libraries are problems in words", "[base][gpu]") {
    const TemporaryFolder folder;
    const std::string absent = (folder / "libcuda.so.1").string();
    CHECK(fake_driver("2", absent).problem ==
          "no driver library " + absent + ": cannot open shared object file: No such file or directory");
    const std::string broken = (folder / "broken.so").string();
    test::write_file(broken, "not a library");
    CHECK(fake_driver("2", broken).problem.starts_with("no driver library " + broken + ": "));
    CHECK(fake_driver("2", HEADSCOPE_INCOMPLETE_DRIVER).problem ==
          std::string("driver library ") + HEADSCOPE_INCOMPLETE_DRIVER + " without the function cuDeviceGetCount");
    const test::Environment driver("HEADSCOPE_HIP_DRIVER", HEADSCOPE_FAKE_DRIVER);
    CHECK(find_gpus(GpuKind::hip).problem ==
          std::string("driver library ") + HEADSCOPE_FAKE_DRIVER + " without the function hipInit");
}

TEST_CASE("Devices are read by one rule", "[base][option][gpu]") {
    CHECK_FALSE(read_device("cpu", "x").gpu.has_value());
    CHECK_FALSE(read_device("cpu", "x").automatic);
    CHECK(read_device("auto", "x").automatic);
    CHECK(read_device("cuda", "x").gpu == GpuKind::cuda);
    CHECK_FALSE(read_device("cuda", "x").numbered);
    CHECK(read_device("cuda:0", "x").index == 0);
    CHECK(read_device("cuda:0", "x").numbered);
    CHECK(read_device("hip:12", "x").gpu == GpuKind::hip);
    CHECK(read_device("hip:12", "x").index == 12);
    for (const char* wrong : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999", "cuda0", "CUDA", "cpu:0"}) {
        INFO(wrong);
        CHECK_THROWS_MATCHES(
            read_device(wrong, "--device"), Error,
            IsError(ErrorCode::usage, "[--device] expected auto, cpu, cuda, cuda:N, hip or hip:N; found"));
        CHECK_THROWS_MATCHES(checked_value(device_option(), wrong, "job.toml: device"), Error,
                             IsError(ErrorCode::format, "[job.toml: device] expected auto, cpu, cuda"));
    }
    CHECK(checked_value(device_option(), "cuda:3", "") == "cuda:3");
    CHECK(json_of(device_option().standard) == "cpu");
}

TEST_CASE("A library of LibTorch's operators is open, or a problem in words", "[base][gpu]") {
    CHECK(open_gpu_operators(HEADSCOPE_FAKE_DRIVER).empty());
    const std::string absent = "libtorch_absent.so";
    CHECK(open_gpu_operators(absent.c_str()).starts_with("no " + absent + ": cannot open shared object file"));
    CHECK(std::string(gpu_operators_library(GpuKind::cuda)) == "libtorch_cuda.so");
    CHECK(std::string(gpu_operators_library(GpuKind::hip)) == "libtorch_hip.so");
}
