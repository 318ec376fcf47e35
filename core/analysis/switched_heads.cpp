// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/switched_heads.h"

#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/text.h"

namespace headscope::analysis {
namespace {

/// Name that distinguishes a site within its layer.
const std::string& name_in_layer(const Site& site) {
    return site.branch.empty() ? site.kind : site.branch;
}

std::vector<std::int64_t> sites_of(std::int64_t layer, const std::vector<Site>& sites) {
    std::vector<std::int64_t> found;
    for (std::size_t i = 0; i < sites.size(); ++i) {
        if (sites[i].layer == layer) found.push_back(static_cast<std::int64_t>(i));
    }
    return found;
}

[[noreturn]] void refuse(const std::string& expected, std::string_view item) {
    throw Error(ErrorCode::usage, "--switch-off", "expected " + expected, "found " + escaped(item));
}

std::int64_t number(std::string_view digits, std::string_view item) {
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 0)
        refuse("heads as layer.head, like 3.1,4.2 or 3.cross.1", item);
    return value;
}

std::int64_t site_of(std::int64_t layer, std::optional<std::string_view> name, std::string_view item,
                     const std::vector<Site>& sites) {
    const std::vector<std::int64_t> found = sites_of(layer, sites);
    if (found.empty()) refuse("a layer from 0 to " + std::to_string(sites.empty() ? 0 : sites.back().layer), item);
    if (!name && found.size() == 1) return found.front();
    std::string choices;
    for (const std::int64_t site : found) {
        const std::string& own = name_in_layer(sites[static_cast<std::size_t>(site)]);
        if (name == own) return site;
        choices += (choices.empty() ? "" : " or ") + std::to_string(layer) + "." + own + ".HEAD";
    }
    refuse(choices, item);
}

void check_head(std::int64_t site, std::int64_t head, const std::vector<Site>& sites) {
    const Site& own = sites[static_cast<std::size_t>(site)];
    const std::string layer = "layer " + std::to_string(own.layer);
    if (!own.has_matrix && !own.has_implicit) refuse("a layer with attention heads", layer + ", which has none");
    if (head >= own.heads)
        refuse("a head of " + layer + " from 0 to " + std::to_string(own.heads - 1), std::to_string(head));
}

}  // namespace

std::vector<model::Intervention> parse_switched_off(std::string_view list, model::Action how,
                                                    const std::vector<Site>& sites) {
    std::vector<model::Intervention> edits;
    std::set<std::pair<std::int64_t, std::int64_t>> known;
    for (bool more = !list.empty(); more;) {
        const std::size_t comma = list.find(',');
        const std::string_view item = list.substr(0, comma);
        more = comma != std::string_view::npos;
        if (more) list.remove_prefix(comma + 1);
        const std::size_t first = item.find('.'), last = item.rfind('.');
        if (first == std::string_view::npos) refuse("heads as layer.head, like 3.1,4.2 or 3.cross.1", item);
        const std::int64_t layer = number(item.substr(0, first), item);
        std::optional<std::string_view> name;
        if (last != first) name = item.substr(first + 1, last - first - 1);
        const std::int64_t site = site_of(layer, name, item, sites), head = number(item.substr(last + 1), item);
        check_head(site, head, sites);
        if (!known.emplace(site, head).second) refuse("each head once", std::string(item) + " twice");
        model::Intervention edit;
        edit.layers = {layer};
        if (sites_of(layer, sites).size() > 1) edit.attention = name_in_layer(sites[static_cast<std::size_t>(site)]);
        edit.heads = {head};
        edit.action = how;
        edits.push_back(std::move(edit));
    }
    return edits;
}

std::string head_name(std::int64_t site, std::int64_t head, const std::vector<Site>& sites) {
    const Site& own = sites.at(static_cast<std::size_t>(site));
    const bool several = sites_of(own.layer, sites).size() > 1;
    return std::to_string(own.layer) + "." + (several ? name_in_layer(own) + "." : "") + std::to_string(head);
}

}  // namespace headscope::analysis
