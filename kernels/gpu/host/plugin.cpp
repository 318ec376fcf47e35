// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/gpu/host/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "kernels/backend.h"

namespace headscope::kernels::gpu {
namespace {

constexpr const char* kEmulator = "emulator";

std::filesystem::path own_folder() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&backend_names), &info) == 0 || info.dli_fname == nullptr) return {};
    return std::filesystem::absolute(info.dli_fname).parent_path();
}

/// Null if the library is absent, cannot be loaded, or has another interface or no device.
const HsPlugin* open(const std::string& name) {
    const auto path = own_folder() / ("libheadscope_gpu_" + name + ".so");
    std::error_code none;
    if (!std::filesystem::exists(path, none)) return nullptr;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    const auto function = reinterpret_cast<HsPluginFunction>(dlsym(library, "headscope_gpu_plugin"));
    const HsPlugin* found = function == nullptr ? nullptr : function(HS_GPU_ABI);
    return found != nullptr && found->devices() > 0 ? found : nullptr;
}

/// The libraries that were looked for, and the choice among them.
class Libraries {
public:
    const HsPlugin* find(const std::string& name) {
        const std::lock_guard lock(mutex_);
        const auto [at, fresh] = libraries_.try_emplace(name, nullptr);
        if (fresh) at->second = open(name);
        return at->second;
    }

    void choose(const std::string& name) {
        const std::lock_guard lock(mutex_);
        chosen_ = name;
    }

    std::string chosen() {
        const std::lock_guard lock(mutex_);
        return chosen_;
    }

private:
    std::mutex mutex_;
    std::map<std::string, const HsPlugin*> libraries_;
    std::string chosen_;
};

Libraries& libraries() {
    static Libraries instance;
    return instance;
}

bool is_emulator(const std::string& name) {
    return name.starts_with(kEmulator);
}

const HsPlugin* find(const std::string& name) {
    return libraries().find(is_emulator(name) ? kEmulator : name);
}

}  // namespace

std::vector<std::string> backend_names() {
    std::vector<std::string> names;
    for (const char* name : {"cuda", "hip"})
        if (find(name) != nullptr) names.emplace_back(name);
    const char* wanted = std::getenv("HEADSCOPE_EMULATOR");
    if (wanted != nullptr && std::string(wanted) == "1" && find(kEmulator) != nullptr) {
        names.emplace_back(kEmulator);
        names.emplace_back("emulator64");
    }
    return names;
}

void choose(const std::string& name) {
    libraries().choose(name);
}

std::string chosen_name() {
    const std::string name = libraries().chosen();
    if (!name.empty()) return name;
    for (const char* one : {"cuda", "hip"})
        if (find(one) != nullptr) return one;
    return "gpu";
}

const HsPlugin& plugin(const char* where) {
    const std::string name = chosen_name();
    const HsPlugin* found = name == "gpu" ? nullptr : find(name);
    if (found == nullptr)
        throw Error(where, "a GPU library (cuda or hip) and a device", "none: --device cpu has every kernel");
    if (found->configure != nullptr) found->configure(name == "emulator64" ? 64 : 32);
    return *found;
}

void refuse(const char* where) {
    throw Error(where, "a kernel of the " + chosen_name() + " plugin", "none: --device cpu has one");
}

void expect_done(const HsOutcome& outcome, const char* where) {
    if (outcome.status == HS_DONE) return;
    if (outcome.status == HS_CANCELLED) throw Cancelled();
    const char* expected = outcome.status == HS_MEMORY        ? "memory on the device"
                           : outcome.status == HS_UNSUPPORTED ? "sizes that the GPU library has a kernel for"
                                                              : "a device without faults";
    throw Error(where, expected, outcome.text);
}

Memory::~Memory() {
    for (void* block : blocks_) library_.release(block);
}

void* Memory::bytes(std::size_t count) {
    HsOutcome outcome{};
    void* memory = library_.allocate(count, &outcome);
    expect_done(outcome, where_);
    blocks_.push_back(memory);
    return memory;
}

void Memory::clear(void* memory, std::size_t count) {
    HsOutcome outcome{};
    library_.clear(memory, count, nullptr, &outcome);
    expect_done(outcome, where_);
}

void Memory::copy(void* to, const void* from, std::size_t count, int direction) {
    HsOutcome outcome{};
    library_.copy(to, from, count, direction, nullptr, &outcome);
    expect_done(outcome, where_);
    library_.wait(nullptr, &outcome);
    expect_done(outcome, where_);
}

}  // namespace headscope::kernels::gpu
