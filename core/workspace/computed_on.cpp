// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/computed_on.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace headscope::workspace {

ComputedOn computed_on(const store::AnalysisHeader& header) {
    const auto settings = nlohmann::json::parse(header.settings_json, nullptr, false);
    const auto text = [&](const char* key) {
        const auto at = settings.find(key);
        return at != settings.end() && at->is_string() ? escaped(at->get<std::string>()) : std::string();
    };
    if (!settings.is_object()) return {};
    // Older programs stored the request here.
    if (!settings.contains("device_requested")) return {};
    return {text("device"), text("kernels")};
}

}  // namespace headscope::workspace
