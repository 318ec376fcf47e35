// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/switched_off.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/json/json.h"

namespace headscope::workspace {
namespace {

std::vector<std::string_view> items(std::string_view list) {
    std::vector<std::string_view> all;
    while (!list.empty()) {
        const std::size_t comma = list.find(',');
        all.push_back(list.substr(0, comma));
        list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    }
    return all;
}

std::optional<std::int64_t> number(std::string_view digits) {
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 0) return std::nullopt;
    return value;
}

/// As analysis::parse_switched_off() reads it, but from a file that anybody may have written.
std::optional<SwitchedOffHead> head_of(std::string_view item, const std::vector<Site>& sites) {
    const std::size_t first = item.find('.'), last = item.rfind('.');
    if (first == std::string_view::npos) return std::nullopt;
    const auto layer = number(item.substr(0, first)), head = number(item.substr(last + 1));
    const std::string_view name = last == first ? std::string_view() : item.substr(first + 1, last - first - 1);
    if (!layer || !head) return std::nullopt;
    for (std::size_t n = 0; n < sites.size(); ++n) {
        const Site& site = sites[n];
        if (site.layer != *layer || *head >= site.heads) continue;
        if (name.empty() || name == (site.branch.empty() ? site.kind : site.branch))
            return SwitchedOffHead{static_cast<std::int64_t>(n), *head, false};
    }
    return std::nullopt;
}

}  // namespace

std::vector<SwitchedOffHead> switched_off_heads(const store::AnalysisHeader& header) {
    std::vector<SwitchedOffHead> heads;
    try {
        const nlohmann::json settings = parse_json(header.settings_json, "settings");
        if (!settings.is_object()) return {};
        const auto text = [&settings](const char* key) {
            const auto found = settings.find(key);
            return found != settings.end() && found->is_string() ? found->get<std::string>() : std::string();
        };
        const std::string list = text("switch_off"), how = text("switch_off_how");
        const auto names = items(list), ways = items(how);
        for (std::size_t i = 0; i < names.size(); ++i) {
            auto head = head_of(names[i], header.sites);
            if (!head) continue;
            const std::string_view way = ways.empty() ? std::string_view() : ways[ways.size() == names.size() ? i : 0];
            head->mean = way == "mean";
            heads.push_back(*head);
        }
    } catch (const Error&) {
        return {};  // settings of another program
    }
    std::sort(heads.begin(), heads.end(), [](const SwitchedOffHead& a, const SwitchedOffHead& b) {
        return std::pair(a.site, a.head) < std::pair(b.site, b.head);
    });
    heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
    return heads;
}

}  // namespace headscope::workspace
