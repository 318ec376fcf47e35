// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/device_choice.h"

#include <charconv>

namespace headscope {
namespace {

constexpr int kHighestIndex = 1023;

std::optional<DeviceChoice> parse(const std::string& text) {
    if (text == "cpu") return DeviceChoice{};
    if (text == "auto") return DeviceChoice{.automatic = true};
    for (const GpuKind kind : {GpuKind::cuda, GpuKind::hip}) {
        const std::string name = gpu_kind_name(kind);
        if (text == name) return DeviceChoice{.gpu = kind};
        if (!text.starts_with(name + ":")) continue;
        int index = -1;
        const char* const end = text.data() + text.size();
        const auto read = std::from_chars(text.data() + name.size() + 1, end, index);
        if (read.ec != std::errc() || read.ptr != end || index < 0 || index > kHighestIndex) return std::nullopt;
        return DeviceChoice{.gpu = kind, .numbered = true, .index = index};
    }
    return std::nullopt;
}

}  // namespace

const Option& device_option() {
    static const Option option = [] {
        Option one("device", std::string("cpu"));
        one.help =
            "Where models are computed: cpu, a GPU (cuda, cuda:N, hip, hip:N), or auto: a GPU that has a "
            "kernel for every operator, else cpu";
        one.accepts = [](const std::string& text) { return parse(text).has_value(); };
        one.form = "auto, cpu, cuda, cuda:N, hip or hip:N";
        return one;
    }();
    return option;
}

DeviceChoice read_device(const std::string& text, const std::string& place) {
    if (const auto choice = parse(text)) return *choice;
    throw Error(ErrorCode::usage, place, "expected " + device_option().form, "found " + escaped(text));
}

}  // namespace headscope
