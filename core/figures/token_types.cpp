// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/token_types.h"

#include <algorithm>

namespace headscope::figures {
namespace {

bool has_types(const store::AnalysisHeader& header, const Site& site) {
    return header.type_chunk > 0 && site.branch == "linear" && site.heads > 0;
}

}  // namespace

std::optional<TypedHead> typed_head(const store::AnalysisHeader& header, std::int64_t site, std::int64_t head) {
    const Site& here = header.sites.at(static_cast<std::size_t>(site));
    if (has_types(header, here)) return TypedHead{site, head};
    if (here.branch != "softmax") return std::nullopt;
    for (const std::int64_t other : typed_sites(header)) {
        const Site& linear = header.sites[static_cast<std::size_t>(other)];
        if (linear.layer != here.layer || linear.stack != here.stack) continue;
        const std::int64_t group = std::max(1, here.heads / linear.heads);
        return TypedHead{other, std::min<std::int64_t>(head / group, linear.heads - 1)};
    }
    return std::nullopt;
}

std::vector<std::int64_t> typed_sites(const store::AnalysisHeader& header) {
    std::vector<std::int64_t> sites;
    for (std::int64_t i = 0; i < std::ssize(header.sites); ++i)
        if (has_types(header, header.sites[static_cast<std::size_t>(i)])) sites.push_back(i);
    return sites;
}

std::vector<std::int32_t> types_of_tokens(const store::Values& types, std::int64_t head, std::int64_t chunk,
                                          std::int64_t tokens) {
    std::vector<std::int32_t> all(static_cast<std::size_t>(tokens), -1);
    const std::int64_t chunks = types.shape.at(1);
    if (head < 0 || head >= types.shape.at(0) || chunk < 1) return all;
    for (std::int64_t i = 0; i < std::min(tokens, chunks * chunk); ++i)
        all[static_cast<std::size_t>(i)] =
            static_cast<std::int32_t>(types.data[static_cast<std::size_t>(head * chunks + i / chunk)]);
    return all;
}

}  // namespace headscope::figures
