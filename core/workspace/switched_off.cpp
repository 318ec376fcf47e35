// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/switched_off.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/workspace/intervention_list.h"

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

/// A setting that is a string; empty: none.
std::string setting(const store::AnalysisHeader& header, const char* key) {
    const nlohmann::json settings = parse_json(header.settings_json, "settings");
    const auto found = settings.is_object() ? settings.find(key) : settings.end();
    return found != settings.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// None for what another program wrote.
std::vector<InterventionRow> rows_in(const store::AnalysisHeader& header) {
    try {
        return intervention_rows(setting(header, "interventions"), "interventions");
    } catch (const Error&) {
        return {};
    }
}

/// The attention that a row names; empty: all. None for a row that does more than silence heads.
std::optional<std::string> silenced_attention(const InterventionRow& row) {
    if (row.point != "head_output" || (row.what != "zero" && row.what != "mean") || !row.positions.empty())
        return std::nullopt;
    constexpr std::string_view kKey = "attention = \"";
    if (row.more.empty()) return row.more;
    if (!row.more.starts_with(kKey) || row.more.find('"', kKey.size()) + 1 != row.more.size()) return std::nullopt;
    return row.more.substr(kKey.size(), row.more.size() - kKey.size() - 1);
}

bool lists(const std::string& list, std::int64_t wanted) {
    const auto all = items(list);
    return all.empty() || std::any_of(all.begin(), all.end(), [&](auto one) { return number(one) == wanted; });
}

void add_silenced(const InterventionRow& row, const std::vector<Site>& sites, std::vector<SwitchedOffHead>& heads) {
    const auto attention = silenced_attention(row);
    if (!attention) return;
    for (std::size_t n = 0; n < sites.size(); ++n) {
        const Site& site = sites[n];
        const bool named = attention->empty() || *attention == (site.branch.empty() ? site.kind : site.branch);
        if (!named || !lists(row.layers, site.layer)) continue;
        for (std::int64_t head = 0; head < site.heads; ++head)
            if (lists(row.heads, head)) heads.push_back({static_cast<std::int64_t>(n), head, row.what == "mean"});
    }
}

}  // namespace

std::vector<SwitchedOffHead> switched_off_heads(const store::AnalysisHeader& header) {
    std::vector<SwitchedOffHead> heads;
    for (const InterventionRow& row : rows_in(header)) add_silenced(row, header.sites, heads);
    try {
        const std::string list = setting(header, "switch_off"), how = setting(header, "switch_off_how");
        const auto names = items(list), ways = items(how);
        for (std::size_t i = 0; i < names.size(); ++i) {
            auto head = head_of(names[i], header.sites);
            if (!head) continue;
            const std::string_view way = ways.empty() ? std::string_view() : ways[ways.size() == names.size() ? i : 0];
            head->mean = way == "mean";
            heads.push_back(*head);
        }
    } catch (const Error&) {  // settings of another program
    }
    std::stable_sort(heads.begin(), heads.end(), [](const SwitchedOffHead& a, const SwitchedOffHead& b) {
        return std::pair(a.site, a.head) < std::pair(b.site, b.head);
    });
    heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
    return heads;
}

std::size_t other_interventions(const store::AnalysisHeader& header) {
    const std::vector<InterventionRow> rows = rows_in(header);
    return static_cast<std::size_t>(
        std::count_if(rows.begin(), rows.end(), [](const auto& row) { return !silenced_attention(row); }));
}

}  // namespace headscope::workspace
