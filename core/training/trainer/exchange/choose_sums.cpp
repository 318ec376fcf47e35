// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/exchange/choose_sums.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/training/trainer/exchange/nccl_sums.h"

namespace headscope::training {
namespace {

constexpr double kMostGpusOfMachine = 1024;

/// A number of the device that other processes have if they share it; 0 for the processor.
double device_number(const Processes& processes, const at::Device& device) {
    if (device.is_cpu()) return 0;
    // Machines may have a cuda:0 each. Other devices of LibTorch belong to one process.
    if (device.is_cuda()) return 1 + processes.first_on_this_machine() * kMostGpusOfMachine + device.index();
    return -1.0 - processes.rank();
}

/// Why NCCL cannot add up; empty if it can. Numbers of all processes: their devices, and their libraries' versions.
std::string why_no_nccl(std::vector<double> devices, const std::vector<double>& versions, const NcclLibrary& own) {
    const auto process = [](const auto& all, auto found) { return "process " + std::to_string(found - all.begin()); };
    if (const auto none = std::find(devices.begin(), devices.end(), 0.0); none != devices.end())
        return process(devices, none) + " computes on the processor";
    std::sort(devices.begin(), devices.end());
    if (std::adjacent_find(devices.begin(), devices.end()) != devices.end()) return "processes share a GPU";
    if (!own.problem.empty()) return escaped(own.problem);
    const auto other =
        std::find_if(versions.begin(), versions.end(), [&](double version) { return version != own.number; });
    if (other == versions.end()) return {};
    return process(versions, other) + " has " + (*other == 0 ? "no NCCL" : "another version of NCCL than process 0");
}

}  // namespace

ChosenSums choose_sums(Processes& processes, const at::Device& device) {
    const std::vector<double> devices = of_all(processes, device_number(processes, device));
    if (std::all_of(devices.begin(), devices.end(), [](double one) { return one == 0; }))
        return {std::make_unique<HostSums>(processes), {}};
    NcclLibrary nccl;
    if (!device.is_cpu()) nccl = open_nccl();
    const std::vector<double> versions = of_all(processes, nccl.number);
    const std::string why = why_no_nccl(devices, versions, nccl);
    if (!why.empty())
        return {std::make_unique<HostSums>(processes),
                "gradients are added up by MPI in memory of the processor: " + why};
    const std::string text = "gradients are added up by NCCL " + nccl.version;
    return {std::make_unique<NcclSums>(processes, device, std::move(nccl)), text};
}

}  // namespace headscope::training
