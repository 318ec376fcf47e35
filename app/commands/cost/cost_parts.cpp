// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/cost/cost_parts.h"

#include <cmath>
#include <cstdio>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/loading.h"
#include "app/commands/options.h"
#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/evaluation/describe.h"
#include "core/model/load/presets.h"
#include "core/model/model.h"

namespace headscope::app::cost_command {

namespace fs = std::filesystem;
using nlohmann::json;

Subject subject_of(const Options& options) {
    Subject subject;
    if (!options.config.empty()) {
        constexpr std::uint64_t largest_config = 4U << 20U;
        const fs::path path(options.config);
        const auto document = parse_python_json(read_small_file(path, largest_config, "configuration"), options.config);
        const auto inspection = model::inspect_config(document.dump());
        subject.name = path.filename().string();
        subject.config = inspection.config;
        subject.parameters = inspection.parameters;
        return subject;
    }
    if (options.models.empty()) {
        subject.name = options.preset.empty() ? "deconattn-500m" : options.preset;
        const auto inspection = model::inspect_config(model::preset_json(subject.name).dump());
        subject.config = inspection.config;
        subject.parameters = inspection.parameters;
        for (const auto& preset : model::presets())
            if (preset.name == subject.name) subject.printed = preset.printed;
        return subject;
    }
    subject.checkpoint = checkpoint::Checkpoint::open(evaluation::checkpoint_in(options.models.front()));
    const auto inspection = model::inspect(*subject.checkpoint);
    subject.name = subject.checkpoint->display_name();
    subject.config = inspection.config;
    subject.parameters = inspection.parameters;
    return subject;
}

namespace {

std::string short_number(double value, double step, const char* const* units) {
    if (!std::isfinite(value)) return "";
    int unit = 0;
    for (; value >= step && unit < 5; ++unit) value /= step;
    char text[40];
    std::snprintf(text, sizeof text, unit == 0 && value == std::floor(value) ? "%.0f%s" : "%.4g%s", value, units[unit]);
    return text;
}
}  // namespace

std::string flops_text(double value) {
    static const char* const units[] = {"", " k", " M", " G", " T", " P"};
    return short_number(value, 1000, units);
}

std::string bytes_text(double value) {
    static const char* const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
    return short_number(value, 1024, units);
}

std::string seconds_text(double value) {
    static const char* const units[] = {" ns", " us", " ms", " s"};
    if (!std::isfinite(value)) return "";
    int unit = 0;
    for (value *= 1e9; value >= 1000 && unit < 3; ++unit) value /= 1000;
    char text[40];
    std::snprintf(text, sizeof text, "%.3g%s", value, units[unit]);
    return text;
}

json number(double value) {
    return std::isfinite(value) ? json(value) : json();
}

}  // namespace headscope::app::cost_command
