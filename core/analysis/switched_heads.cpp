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

/// Reads the items of an option's list.
class HeadReader {
public:
    HeadReader(const std::string& option, const std::vector<Site>& sites) : option_(option), sites_(sites) {}

    HeadIndex read(std::string_view item) const {
        const std::size_t first = item.find('.'), last = item.rfind('.');
        if (first == std::string_view::npos) refuse("heads as layer.head, like 3.1,4.2 or 3.cross.1", item);
        const std::int64_t layer = number(item.substr(0, first), item);
        std::optional<std::string_view> name;
        if (last != first) name = item.substr(first + 1, last - first - 1);
        const HeadIndex found{site_of(layer, name, item), number(item.substr(last + 1), item)};
        check(found);
        return found;
    }

    [[noreturn]] void refuse(const std::string& expected, std::string_view item) const {
        throw Error(ErrorCode::usage, option_, "expected " + expected, "found " + escaped(item));
    }

private:
    std::int64_t number(std::string_view digits, std::string_view item) const {
        std::int64_t value = -1;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error != std::errc() || end != digits.data() + digits.size() || value < 0)
            refuse("heads as layer.head, like 3.1,4.2 or 3.cross.1", item);
        return value;
    }

    std::int64_t site_of(std::int64_t layer, std::optional<std::string_view> name, std::string_view item) const {
        const std::vector<std::int64_t> found = sites_of(layer, sites_);
        if (found.empty())
            refuse("a layer from 0 to " + std::to_string(sites_.empty() ? 0 : sites_.back().layer), item);
        if (!name && found.size() == 1) return found.front();
        std::string choices;
        for (const std::int64_t site : found) {
            const std::string& own = name_in_layer(sites_[static_cast<std::size_t>(site)]);
            if (name == own) return site;
            choices += (choices.empty() ? "" : " or ") + std::to_string(layer) + "." + own + ".HEAD";
        }
        refuse(choices, item);
    }

    void check(const HeadIndex& one) const {
        const Site& own = sites_[static_cast<std::size_t>(one.site)];
        const std::string layer = "layer " + std::to_string(own.layer);
        if (!own.has_matrix && !own.has_implicit) refuse("a layer with attention heads", layer + ", which has none");
        if (one.head >= own.heads)
            refuse("a head of " + layer + " from 0 to " + std::to_string(own.heads - 1), std::to_string(one.head));
    }

    const std::string& option_;
    const std::vector<Site>& sites_;
};

}  // namespace

std::vector<HeadIndex> parse_heads(const std::string& option, std::string_view list, const std::vector<Site>& sites) {
    const HeadReader reader(option, sites);
    std::vector<HeadIndex> heads;
    std::set<std::pair<std::int64_t, std::int64_t>> known;
    for (bool more = !list.empty(); more;) {
        const std::size_t comma = list.find(',');
        const std::string_view item = list.substr(0, comma);
        more = comma != std::string_view::npos;
        if (more) list.remove_prefix(comma + 1);
        const HeadIndex one = reader.read(item);
        if (!known.emplace(one.site, one.head).second) reader.refuse("each head once", std::string(item) + " twice");
        heads.push_back(one);
    }
    return heads;
}

std::vector<model::Intervention> parse_switched_off(std::string_view list, model::Action how,
                                                    const std::vector<Site>& sites) {
    std::vector<model::Intervention> edits;
    for (const HeadIndex& one : parse_heads("--switch-off", list, sites)) {
        const Site& site = sites[static_cast<std::size_t>(one.site)];
        model::Intervention edit;
        edit.layers = {site.layer};
        if (sites_of(site.layer, sites).size() > 1) edit.attention = name_in_layer(site);
        edit.heads = {one.head};
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
