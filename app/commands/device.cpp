// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "app/commands/context.h"
#include "core/base/device_choice.h"
#include "core/base/error.h"
#include "core/model/load/model_device.h"
#include "kernels/backend.h"
#include "kernels/gpu/libraries.h"

namespace headscope::app {
namespace {

constexpr GpuKind kGpuKinds[] = {GpuKind::cuda, GpuKind::hip};

std::string gpu_label(GpuKind kind, std::size_t index, const GpuDriver& driver) {
    return std::string(gpu_kind_name(kind)) + ":" + std::to_string(index) + " " + driver.devices[index].name;
}

/// "cuda:0 NAME, cuda:1 NAME"
std::string gpu_labels(GpuKind kind, const GpuDriver& driver) {
    constexpr std::size_t kMost = 16;
    const std::size_t shown = std::min(driver.devices.size(), kMost), more = driver.devices.size() - shown;
    std::string labels;
    for (std::size_t i = 0; i < shown; ++i) labels += (i > 0 ? ", " : "") + gpu_label(kind, i, driver);
    return more == 0 ? labels : labels + " and " + std::to_string(more) + " more";
}

/// Why no kernels run on a GPU; empty if they do.
std::string kernel_problem(GpuKind kind, const GpuDevice& device) {
    const std::string name = gpu_kind_name(kind), problem = kernels::gpu_problem(name);
    return problem.empty() ? kernels::architecture_problem(name, device.architecture()) : problem;
}

/// The same, and why one operator has no kernel there.
std::string full_problem(GpuKind kind, const GpuDevice& device) {
    if (std::string problem = kernel_problem(kind, device); !problem.empty()) return problem;
    const std::string missing = kernels::missing_kernel(gpu_kind_name(kind));
    return missing.empty() ? missing : "no kernel of " + missing;
}

/// Why the first GPU, which backends named without --device take, runs none of the kernels of "cuda" or "hip"; empty
/// for other names.
std::string first_gpu_problem(const std::string& kernels) {
    for (const GpuKind kind : kGpuKinds) {
        if (kernels != gpu_kind_name(kind)) continue;
        const GpuDriver driver = find_gpus(kind);
        if (!driver.problem.empty()) return driver.problem;
        const std::string problem = kernel_problem(kind, driver.devices.front());
        return problem.empty() ? problem : problem + " on " + gpu_label(kind, 0, driver);
    }
    return {};
}

/// Moves models to the GPU if LibTorch can use it. Returns the part that it computes, in words.
std::string take_for_models(GpuKind kind, int index) {
    const std::string problem = model::take_gpu_for_models(kind, index);
    if (problem.empty()) return "whole models";
    const std::string advice = kind == GpuKind::cuda ? "installer/setup.sh --cuda fetches libraries for whole models"
                                                     : "docs/gpu.md has the way to whole models";
    return "single operators, on copies of their operands: " + problem + ": " + advice;
}

bool has_gpu_for_each(const GpuDriver& driver, const MachineShare& share) {
    return driver.devices.size() >= static_cast<std::size_t>(share.processes);
}

/// Takes one GPU, or throws with what is missing. `place`: "--device".
void take_gpu(const DeviceChoice& choice, const std::string& place, const MachineShare& share) {
    const GpuKind kind = *choice.gpu;
    const GpuDriver driver = find_gpus(kind);
    const std::string vendor = gpu_vendor_name(kind);
    const bool shared = share.processes > 1 && !choice.numbered;
    const int index = shared ? share.index : choice.index;
    const std::string number = choice.numbered || shared ? ":" + std::to_string(index) : "",
                      where = place + " " + gpu_kind_name(kind) + number;
    if (!driver.problem.empty())
        throw Error(ErrorCode::unsupported, where, "expected an " + vendor + " GPU", "found " + driver.problem);
    if (shared && !has_gpu_for_each(driver, share))
        throw Error(ErrorCode::unsupported, place + " " + gpu_kind_name(kind),
                    "expected an " + vendor + " GPU for each of the " + std::to_string(share.processes) +
                        " processes of this machine",
                    "found " + gpu_labels(kind, driver) + ": start fewer processes, or name one GPU for all");
    const auto at = static_cast<std::size_t>(index);
    if (at >= driver.devices.size())
        throw Error(ErrorCode::unsupported, where, "expected an " + vendor + " GPU of index " + std::to_string(index),
                    "found " + gpu_labels(kind, driver));
    if (const std::string problem = kernel_problem(kind, driver.devices[at]); !problem.empty())
        throw Error(
            ErrorCode::unsupported, where,
            "expected kernels for " + gpu_label(kind, at, driver) + " (" + driver.devices[at].architecture() + ")",
            "found " + escaped(problem, 1000));
    kernels::force_gpu(gpu_kind_name(kind), index);
    const std::string part = take_for_models(kind, index);
    std::fprintf(stderr, "headscope: %s: %s\n", escaped(where).c_str(), escaped(part, 1000).c_str());
}

/// Takes the first GPU that has a kernel for every operator, of several processes each one of its own; `part` is what
/// it computes. Or returns why there is none.
std::string why_no_gpu(const MachineShare& share, std::string& part) {
    std::string reasons;
    const auto add = [&](const std::string& reason) { reasons += (reasons.empty() ? "" : "; ") + reason; };
    for (const GpuKind kind : kGpuKinds) {
        const GpuDriver driver = find_gpus(kind);
        if (!driver.problem.empty()) {
            add(std::string("no ") + gpu_vendor_name(kind) + " GPU: " + driver.problem);
            continue;
        }
        if (!has_gpu_for_each(driver, share)) {
            add(gpu_labels(kind, driver) + " for " + std::to_string(share.processes) + " processes");
            continue;
        }
        // One process takes any of them.
        const auto own = static_cast<std::size_t>(share.index);
        const std::size_t end = share.processes > 1 ? own + 1 : driver.devices.size();
        for (std::size_t at = own; at < end; ++at) {
            if (const std::string problem = full_problem(kind, driver.devices[at]); !problem.empty()) {
                add(gpu_label(kind, at, driver) + ": " + problem);
                continue;
            }
            kernels::force_gpu(gpu_kind_name(kind), static_cast<int>(at));
            part = take_for_models(kind, static_cast<int>(at));
            return {};
        }
    }
    return reasons;
}

/// HEADSCOPE_KERNELS, where it names a backend.
std::string environment_kernels() {
    const char* named = std::getenv("HEADSCOPE_KERNELS");
    const std::string text = named == nullptr ? "" : named;
    return text == "auto" ? "" : text;
}

void choose_automatically(const std::string& kernels, const std::string& place, const MachineShare& share) {
    std::string why, part;
    if (kernels != "auto")
        why = "--kernels " + kernels;
    else if (const std::string named = environment_kernels(); !named.empty())
        why = "HEADSCOPE_KERNELS is " + named;
    else
        why = why_no_gpu(share, part);
    if (share.index > 0 && !why.empty()) return;  // the first process of the machine reports it
    if (why.empty()) why = part;
    std::fprintf(stderr, "headscope: %s auto: %s%s\n", place.c_str(), kernels::chosen_device().c_str(),
                 escaped(" (" + why + ")", 1000).c_str());
}

}  // namespace

void check_kernel_environment() {
    const char* named = std::getenv("HEADSCOPE_KERNELS");
    try {
        kernels::force_backend(named == nullptr ? "auto" : named);
    } catch (const kernels::Error& error) {
        throw Error(ErrorCode::usage, "HEADSCOPE_KERNELS", "expected " + error.expected(),
                    "found " + escaped(error.found(), 1000));
    }
    if (const std::string problem = first_gpu_problem(environment_kernels()); !problem.empty())
        throw Error(ErrorCode::unsupported, "HEADSCOPE_KERNELS", "expected a GPU for " + environment_kernels(),
                    "found " + escaped(problem, 1000));
}

void choose_kernels(const std::string& named, const std::string& device, const std::string& place,
                    const MachineShare& share) {
    const std::string kernels = named.empty() ? "auto" : named;
    check_kernel_environment();
    model::leave_gpu_of_models();
    const DeviceChoice choice = read_device(device, place);
    const std::string where = place + " " + device;
    if (choice.gpu) {
        const std::string kind = gpu_kind_name(*choice.gpu);
        if (kernels != "auto" && kernels != kind)
            throw UsageError("--kernels: auto or " + kind + " is expected with " + where + "; found " +
                             escaped(kernels));
        return take_gpu(choice, place, share);
    }
    if (kernels != "auto") {
        try {
            kernels::force_backend(kernels);
        } catch (const kernels::Error& error) {
            throw UsageError("--kernels: expected " + error.expected() + "; found " + escaped(error.found(), 1000));
        }
        if (const std::string problem = first_gpu_problem(kernels); !problem.empty())
            throw Error(ErrorCode::unsupported, "--kernels " + kernels, "expected a GPU for them",
                        "found " + escaped(problem, 1000));
    }
    if (choice.automatic) choose_automatically(kernels, place, share);
}

std::vector<ListedGpu> list_gpus() {
    std::vector<ListedGpu> gpus;
    for (const GpuKind kind : kGpuKinds) {
        const GpuDriver driver = find_gpus(kind, true);
        for (std::size_t i = 0; i < driver.devices.size(); ++i)
            gpus.push_back({gpu_kind_name(kind) + (":" + std::to_string(i)), driver.devices[i],
                            kernel_problem(kind, driver.devices[i])});
    }
    return gpus;
}

}  // namespace headscope::app
