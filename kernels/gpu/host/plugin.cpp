// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/gpu/host/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/machine/gpu_driver.h"
#include "kernels/backend.h"
#include "kernels/gpu/host/blocks.h"
#include "kernels/gpu/libraries.h"
#include "kernels/score_rule.h"

namespace headscope::kernels {
namespace gpu {
namespace {

constexpr const char* kEmulator = "emulator";

thread_local std::string products_of_call;

std::filesystem::path own_folder() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&backend_names), &info) == 0 || info.dli_fname == nullptr) return {};
    return std::filesystem::absolute(info.dli_fname).parent_path();
}

/// A GPU library, or why it cannot be used.
struct Library {
    const HsPlugin* plugin = nullptr;
    std::string problem, file;
};

/// "HEADSCOPE_CUDA", the start of names of CMake's options and of variables of the environment.
std::string prefix_of(const std::string& name) {
    return name == "hip" ? "HEADSCOPE_HIP" : "HEADSCOPE_CUDA";
}

std::string option_that_builds(const std::string& name) {
    return name == kEmulator ? "" : ": build it with -D" + prefix_of(name) + "=ON";
}

/// In the folder of this library, or the file that HEADSCOPE_CUDA_KERNELS or HEADSCOPE_HIP_KERNELS names.
std::filesystem::path path_of(const std::string& name) {
    const char* named = name == kEmulator ? nullptr : std::getenv((prefix_of(name) + "_KERNELS").c_str());
    if (named != nullptr && *named != '\0') return std::filesystem::absolute(named).lexically_normal();
    return own_folder() / ("libheadscope_gpu_" + name + ".so");
}

Library open(const std::string& name) {
    const std::filesystem::path path = path_of(name);
    const std::string file = path.filename().string();
    const auto fails = [&file](const std::string& problem) { return Library{nullptr, problem, file}; };
    std::error_code none;
    if (file.empty() || std::filesystem::is_directory(path, none)) return fails("a folder, " + path.string());
    if (!std::filesystem::exists(path, none))
        return fails("no " + file + " in " + path.parent_path().string() + option_that_builds(name));
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* why = dlerror();
        return fails(file + " that cannot be loaded: " + (why == nullptr ? "no reason is given" : why));
    }
    const auto function = reinterpret_cast<HsPluginFunction>(dlsym(library, "headscope_gpu_plugin"));
    const HsPlugin* found = function == nullptr ? nullptr : function(HS_GPU_ABI);
    if (found == nullptr || found->abi != HS_GPU_ABI || found->architectures == nullptr)
        return fails(file + " of another version" + option_that_builds(name));
    if (found->devices() <= 0) {
        HsOutcome outcome{};  // a driver that is too old, say
        found->select(0, &outcome);
        return fails(file + ", which finds no device" + (*outcome.text == '\0' ? "" : ": ") + outcome.text);
    }
    return {found, {}, file};
}

/// Compute capability of "sm_90", or of "sm_90a", which is `exact`.
struct Capability {
    int major = 0, minor = 0;
    bool exact = false;
};

constexpr std::string_view kNvidiaPrefix = "sm_";

std::optional<Capability> capability_of(std::string_view name) {
    if (!name.starts_with(kNvidiaPrefix)) return std::nullopt;
    name.remove_prefix(kNvidiaPrefix.size());
    int number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc()) return std::nullopt;
    return Capability{number / 10, number % 10, name.ends_with('a')};
}

/// One of the list's names.
bool code_runs_on(std::string_view built, std::string_view device) {
    const auto code = capability_of(built), card = capability_of(device);
    if (code && card)
        return code->major == card->major && (code->exact ? code->minor == card->minor : code->minor <= card->minor);
    const bool named = built.starts_with(kNvidiaPrefix) || built.starts_with("gfx");
    if (!named || built.find("generic") != std::string_view::npos) return true;
    // "gfx90a:xnack-" runs on "gfx90a"; of a driver that has no names the version alone is known, "gfx90".
    return built.substr(0, built.find(':')).starts_with(device);
}

/// Calls found(name) for each name of "sm_80+sm_90".
template <class Found>
void each_architecture(std::string_view list, const Found& found) {
    while (!list.empty()) {
        const std::size_t end = std::min(list.find('+'), list.size());
        if (end > 0) found(list.substr(0, end));
        list.remove_prefix(std::min(end + 1, list.size()));
    }
}

/// The libraries that were looked for, and the choice among them.
class Libraries {
public:
    struct Choice {
        std::string name;
        int device = 0;
    };

    const Library& find(const std::string& name) {
        const std::lock_guard lock(mutex_);
        const auto [at, fresh] = libraries_.try_emplace(name);
        if (fresh) at->second = open(name);
        return at->second;
    }

    void choose(const Choice& choice) {
        const std::lock_guard lock(mutex_);
        choice_ = choice;
    }

    Choice chosen() {
        const std::lock_guard lock(mutex_);
        return choice_;
    }

private:
    std::mutex mutex_;
    std::map<std::string, Library> libraries_;  ///< an entry never changes
    Choice choice_;
};

Libraries& libraries() {
    static Libraries instance;
    return instance;
}

bool is_emulator(const std::string& name) {
    return name.starts_with(kEmulator);
}

const HsPlugin* find(const std::string& name) {
    return libraries().find(is_emulator(name) ? kEmulator : name).plugin;
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

std::string problem(const std::string& name) {
    return libraries().find(name).problem;
}

void choose(const std::string& name, int device) {
    release_kept_blocks();
    libraries().choose({name, device});
}

std::string device_name() {
    const std::string name = libraries().chosen().name;
    if (name.empty() || is_emulator(name)) return "cpu";
    const int index = device_index();
    std::string text = name + ":" + std::to_string(index);
    const GpuDriver driver = find_gpus(name == "hip" ? GpuKind::hip : GpuKind::cuda);
    if (static_cast<std::size_t>(index) >= driver.devices.size()) return text;
    const GpuDevice& device = driver.devices[static_cast<std::size_t>(index)];
    return text + " " + device.name + " " + device.architecture();
}

int device_index() {
    return libraries().chosen().device;
}

std::string chosen_name() {
    const std::string name = libraries().chosen().name;
    if (!name.empty()) return name;
    for (const char* one : {"cuda", "hip"})
        if (find(one) != nullptr) return one;
    return "gpu";
}

std::string chosen_products() {
    if (libraries().chosen().name.empty()) return {};
    return plugin("device").mma(static_cast<int>(Normaliser::softmax)) != 0 ? "mma" : "fma";
}

void note_products(const char* products) {
    products_of_call = products;
}

std::string ran_name() {
    std::string name = chosen_name();
    if (!products_of_call.empty()) name += " " + products_of_call;
    return name;
}

const HsPlugin& plugin(const char* where) {
    products_of_call.clear();
    const std::string name = chosen_name();
    const HsPlugin* found = name == "gpu" ? nullptr : find(name);
    if (found == nullptr)
        throw Error(where, "a GPU library (cuda or hip) and a device", "none: --device cpu has every kernel");
    if (found->configure != nullptr) found->configure(name == "emulator64" ? 64 : 32);
    HsOutcome outcome{};
    found->select(device_index(), &outcome);  // drivers keep one choice per thread
    expect_done(outcome, where);
    return *found;
}

void refuse(const char* where) {
    throw Error(where, "a kernel of the " + chosen_name() + " plugin", "none: --device cpu has one");
}

void expect_done(const HsOutcome& outcome, const char* where) {
    if (outcome.status == HS_DONE) return;
    if (outcome.status == HS_CANCELLED) throw Cancelled();
    if (outcome.status == HS_MEMORY) {
        // As LibTorch's own, from which core makes one kind of error.
        const std::string kind = chosen_name() == "hip" ? "HIP" : "CUDA";
        throw std::runtime_error(kind + " out of memory. In [" + where + "]: " + outcome.text);
    }
    throw Error(
        where,
        outcome.status == HS_UNSUPPORTED ? "sizes that the GPU library has a kernel for" : "a device without faults",
        outcome.text);
}

Memory::~Memory() {
    for (const Block& block : blocks_) return_block(library_, device_, block.memory, block.bytes);
}

void* Memory::bytes(std::size_t count) {
    HsOutcome outcome{};
    const std::size_t size = block_bytes(library_, count);
    void* memory = take_block(library_, device_, size, outcome);
    expect_done(outcome, where_);
    blocks_.push_back({memory, size});
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

}  // namespace gpu

bool runs_on(std::string_view architectures, std::string_view device) {
    bool known = false, runs = false;
    gpu::each_architecture(architectures, [&](std::string_view built) {
        known = true;
        runs = runs || gpu::code_runs_on(built, device);
    });
    return runs || !known;
}

std::string missing_kernel(const std::string& name) {
    const HsPlugin* library = gpu::find(name);
    if (library == nullptr) return {};
    const HsPlugin& p = *library;
    const std::pair<const char*, bool> all[] = {{"attention", p.attention != nullptr},
                                                {"attention backward", p.attention_backward != nullptr},
                                                {"recurrent attention forward", p.recurrent_forward != nullptr},
                                                {"recurrent attention backward", p.recurrent_backward != nullptr},
                                                {"statistics of implicit attention", p.implicit != nullptr},
                                                {"running attention forward", p.running_forward != nullptr},
                                                {"running attention backward", p.running_backward != nullptr},
                                                {"Taylor weights", p.taylor != nullptr},
                                                {"RMS norm", p.rms_norm != nullptr},
                                                {"RMS norm backward", p.rms_norm_backward != nullptr},
                                                {"gated SiLU", p.gated_silu != nullptr},
                                                {"rotation", p.rotate != nullptr},
                                                {"cross-entropy", p.cross_entropy != nullptr},
                                                {"convolution", p.convolution != nullptr},
                                                {"convolution backward", p.convolution_backward != nullptr},
                                                {"AdamW", p.adamw != nullptr},
                                                {"norm of gradients", p.squared_norm != nullptr}};
    const auto* missing = std::find_if(std::begin(all), std::end(all), [](const auto& one) { return !one.second; });
    return missing == std::end(all) ? "" : missing->first;
}

std::string architecture_problem(const std::string& name, const std::string& architecture) {
    const gpu::Library& library = gpu::libraries().find(name);
    if (library.plugin == nullptr) return library.problem;
    if (runs_on(library.plugin->architectures, architecture)) return {};
    std::string built;
    gpu::each_architecture(library.plugin->architectures,
                           [&](std::string_view one) { built.append(built.empty() ? "" : ", ").append(one); });
    const bool nvidia = architecture.starts_with(gpu::kNvidiaPrefix);
    return library.file + " for " + built + ": build it with -D" + gpu::prefix_of(name) +
           "_ARCHITECTURES=" + architecture.substr(nvidia ? gpu::kNvidiaPrefix.size() : 0);
}

}  // namespace headscope::kernels
