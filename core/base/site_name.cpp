// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/site_name.h"

namespace headscope {
namespace {

/// Empty parts are the same at all sites that could be confused with this one.
struct SiteName {
    std::string stack, layer, kind, branch;
};

SiteName name_of(std::span<const Site> sites, std::int64_t site) {
    const Site& here = sites[static_cast<std::size_t>(site)];
    SiteName name;
    name.layer = std::to_string(here.layer);
    for (const Site& other : sites) {
        if (other.stack != here.stack) name.stack = here.stack;
        if (other.layer != here.layer || other.stack != here.stack) continue;
        if (other.kind != here.kind) name.kind = here.kind;
        if (other.branch != here.branch) name.branch = here.branch;
    }
    return name;
}

}  // namespace

std::string site_label(std::span<const Site> sites, std::int64_t site) {
    const SiteName name = name_of(sites, site);
    std::string label;
    for (const std::string* part : {&name.stack, &name.layer, &name.kind, &name.branch})
        if (!part->empty()) label += (label.empty() ? "" : " ") + *part;
    return label;
}

std::string site_title(std::span<const Site> sites, std::int64_t site) {
    const SiteName name = name_of(sites, site);
    std::string title = (name.stack.empty() ? "" : name.stack + " ") + "layer " + name.layer;
    if (!name.kind.empty()) title += ", " + name.kind + "-attention";
    if (!name.branch.empty()) title += ", " + name.branch + " branch";
    return title;
}

std::string site_heading(std::span<const Site> sites, std::int64_t site) {
    std::string heading = site_title(sites, site);
    if (heading.front() >= 'a' && heading.front() <= 'z')
        heading.front() = static_cast<char>(heading.front() - 'a' + 'A');
    return heading;
}

}  // namespace headscope
