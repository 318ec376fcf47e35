// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/backend.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "kernels/cpu/attention/attention.h"
#include "kernels/gpu/host/plugin.h"
#include "kernels/operators.h"

namespace headscope::kernels {
namespace {

thread_local std::string last_backend_name;

std::string joined(const std::vector<std::string>& names) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    return list;
}

/// The process-wide choice.
class Choice {
public:
    void set(const std::string& name, int device = 0) {
        const auto names = available_backends();
        const bool automatic = name.empty() || name == "auto";
        if (!automatic && std::find(names.begin(), names.end(), name) == names.end()) {
            const std::string why = name == "cuda" || name == "hip" ? gpu::problem(name) : "";
            throw Error("backend", "auto or one of " + joined(names), name + (why.empty() ? "" : ": " + why));
        }
        const std::lock_guard lock(mutex_);
        decided_ = true;
        const auto gpus = gpu::backend_names();
        const bool on_gpu = std::find(gpus.begin(), gpus.end(), name) != gpus.end();
        backend_ = name == "reference" ? Backend::reference : on_gpu ? Backend::gpu : Backend::cpu;
        name_ = automatic ? names.front() : name;
        cpu::choose_target(automatic || backend_ != Backend::cpu ? "" : name);
        gpu::choose(on_gpu ? name : "", device);
    }

    std::string name() {
        (void)get();
        const std::lock_guard lock(mutex_);
        return name_;
    }

    Backend get() {
        {
            const std::lock_guard lock(mutex_);
            if (decided_) return backend_;
        }
        const char* wish = std::getenv("HEADSCOPE_KERNELS");
        set(wish == nullptr ? "" : wish);
        return get();
    }

private:
    std::mutex mutex_;
    bool decided_ = false;
    Backend backend_ = Backend::cpu;
    std::string name_;
};

Choice& choice() {
    static Choice instance;
    return instance;
}

}  // namespace

Error::Error(std::string where, std::string expected, std::string found)
    : std::invalid_argument("[" + where + "] expected " + expected + "; found " + found),
      where_(std::move(where)),
      expected_(std::move(expected)),
      found_(std::move(found)) {}

std::vector<std::string> available_backends() {
    std::vector<std::string> names = cpu::target_names();
    for (std::string& name : gpu::backend_names()) names.push_back(std::move(name));
    names.emplace_back("reference");
    return names;
}

void force_backend(const std::string& name) {
    choice().set(name);
}

void force_gpu(const std::string& name, int device) {
    choice().set(name, device);
}

std::string gpu_problem(const std::string& name) {
    return gpu::problem(name);
}

std::string chosen_backend() {
    return choice().name();
}

std::string chosen_kernels(const std::string& dtype) {
    std::string name = chosen_backend();
    if (!runs_on_gpu() || dtype != "bfloat16") return name;
    return name + " " + gpu::chosen_products();
}

std::string chosen_device() {
    return runs_on_gpu() ? gpu::device_name() : "cpu";
}

bool runs_on_gpu() {
    return choice().get() == Backend::gpu;
}

int chosen_gpu_index() {
    return gpu::device_index();
}

std::string last_backend() {
    return last_backend_name;
}

Backend backend_for(Device device) {
    return device == Device::gpu ? Backend::gpu : choice().get();
}

void note_backend(Backend backend) {
    last_backend_name = backend == Backend::reference ? "reference"
                        : backend == Backend::cpu     ? cpu::last_target()
                                                      : gpu::ran_name();
}

}  // namespace headscope::kernels
