// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/stack_samples.h"

#include <cerrno>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HEADSCOPE_STACKS 1
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#endif

namespace headscope::app {

#ifdef HEADSCOPE_STACKS
namespace {

constexpr int kMostFrames = 80;
constexpr int kMostSamples = 16;
constexpr int kOwnFrames = 2;  // the handler, and what called it
constexpr auto kSamplePatience = std::chrono::milliseconds(20);

struct Sample {
    std::array<void*, kMostFrames> frames;
    int count;
};
// A handler reaches nothing else.
std::array<Sample, kMostSamples> samples;
std::atomic<int> taken{0};

void answer(int) {
    const int error = errno;
    const int at = taken.load(std::memory_order_relaxed);
    if (at < kMostSamples) {
        samples[static_cast<std::size_t>(at)].count =
            ::backtrace(samples[static_cast<std::size_t>(at)].frames.data(), kMostFrames);
        taken.store(at + 1, std::memory_order_release);
    }
    errno = error;
}

int signal_number() {
    return SIGRTMIN + 8;
}

/// "function" or "file+0x12".
std::string name_of(void* address) {
    Dl_info info{};
    if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "?";
    if (info.dli_sname != nullptr) {
        int status = 0;
        const std::unique_ptr<char, void (*)(void*)> plain(
            abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), std::free);
        std::string name = plain ? plain.get() : info.dli_sname;
        return name.substr(0, name.find('('));
    }
    const std::string file = info.dli_fname;
    std::array<char, 32> offset{};
    std::snprintf(offset.data(), offset.size(), "+0x%zx",
                  static_cast<std::size_t>(static_cast<char*>(address) - static_cast<char*>(info.dli_fbase)));
    return file.substr(file.rfind('/') + 1) + offset.data();
}

}  // namespace

StackSamples::StackSamples(pid_t thread) : thread_(thread) {
    void* first = nullptr;
    ::backtrace(&first, 1);  // loads what it needs: not to be done in a handler
    struct sigaction action {};
    action.sa_handler = answer;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal_number(), &action, nullptr);
}

void StackSamples::clear() {
    taken = 0;
}

void StackSamples::take() {
    const int before = taken;
    if (before >= kMostSamples || ::syscall(SYS_tgkill, ::getpid(), thread_, signal_number()) != 0) return;
    const auto end = std::chrono::steady_clock::now() + kSamplePatience;
    while (taken == before && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::vector<std::string> StackSamples::lines() const {
    std::vector<std::string> lines;
    for (int at = 0; at < taken.load(std::memory_order_acquire); ++at) {
        const Sample& sample = samples[static_cast<std::size_t>(at)];
        std::string line;
        for (int frame = std::min(kOwnFrames, sample.count); frame < sample.count; ++frame)
            line += (line.empty() ? "" : " < ") + name_of(sample.frames[static_cast<std::size_t>(frame)]);
        lines.push_back(std::move(line));
    }
    return lines;
}
#else
StackSamples::StackSamples(pid_t thread) : thread_(thread) {}
void StackSamples::clear() {}
void StackSamples::take() {
    static_cast<void>(thread_);
}
std::vector<std::string> StackSamples::lines() const {
    return {};
}
#endif

}  // namespace headscope::app
