// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/map_reader.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/process/os_error.h"

namespace headscope::maps {

namespace {

Error refused(const store::AnalysisFile& file, const char* what, const std::string& expected,
              const std::string& found) {
    return {ErrorCode::usage, std::string(what) + " of " + shown(file.path()), expected, found};
}

/// Heads [first, end) of one sequence, or (empty) of all.
std::shared_ptr<const MeanMap> mean_of(const store::AnalysisFile& file, std::optional<std::int64_t> sequence,
                                       std::int64_t site, std::int64_t first, std::int64_t end) {
    const auto sequences = std::ssize(file.header().sequences);
    const bool implicit = file.header().sites.at(static_cast<std::size_t>(site)).has_implicit;
    std::vector<std::shared_ptr<const PairMap>> maps;
    std::int64_t bytes = 0;
    for (std::int64_t s = sequence.value_or(0); s < (sequence ? *sequence + 1 : sequences); ++s) {
        for (std::int64_t head = first; head < end && file.site_done(s, site); ++head) {
            std::shared_ptr<const PairMap> map;
            if (implicit)
                map = read_implicit_map(file, s, site, head);
            else
                map = read_head_map(file, s, site, head);
            if (!map) continue;
            bytes += map->bytes();
            if (bytes > kMostMapBytes) {
                throw refused(file, sequence ? "mean over the heads" : "mean over the sequences",
                              "expected at most " + std::to_string(kMostMapBytes >> 20) +
                                  " MiB of queries and keys, or coefficients",
                              "found more in " + std::to_string(s + 1) + " of " + std::to_string(sequences) +
                                  " sequences: choose one " + (sequence ? "head" : "of them"));
            }
            maps.push_back(std::move(map));
        }
    }
    return maps.empty() ? nullptr : std::make_shared<const MeanMap>(std::move(maps));
}

}  // namespace

std::shared_ptr<const HeadMap> read_head_map(const store::AnalysisFile& file, std::int64_t sequence, std::int64_t site,
                                             std::int64_t head) {
    auto map = file.map_of_head(sequence, site, head);
    if (!map) return nullptr;
    return std::make_shared<const HeadMap>(std::move(map->query), std::move(map->key), std::move(map->row_constant),
                                           map->key_size, std::move(map->rule));
}

std::shared_ptr<const MeanMap> read_mean_map(const store::AnalysisFile& file, std::int64_t site, std::int64_t head) {
    return mean_of(file, std::nullopt, site, head, head + 1);
}

std::shared_ptr<const MeanMap> read_mean_of_heads(const store::AnalysisFile& file, std::optional<std::int64_t> sequence,
                                                  std::int64_t site) {
    return mean_of(file, sequence, site, 0, file.header().sites.at(static_cast<std::size_t>(site)).heads);
}

std::shared_ptr<const Rollout> read_rollout(const store::AnalysisFile& file, std::int64_t sequence, std::int64_t site) {
    const auto& sites = file.header().sites;
    const Site& last = sites.at(static_cast<std::size_t>(site));
    if (!last.is_self()) {
        throw refused(file, "rollout", "expected a layer's attention to its own tokens",
                      "found cross-attention, which leads to another text");
    }
    std::vector<std::optional<store::AnalysisFile::Map>> layers;
    std::int64_t bytes = 0, before = -1;
    for (std::int64_t i = 0; i <= site; ++i) {
        const Site& here = sites[static_cast<std::size_t>(i)];
        if (here.stack != last.stack || !here.is_self()) continue;
        const std::string layer = "layer " + std::to_string(here.layer);
        if (here.layer == before)
            throw refused(file, "rollout", "expected one attention in each layer", "found several in " + layer);
        before = here.layer;
        if (here.has_implicit) {
            throw refused(file, "rollout", "expected layers whose weights of a query sum to 1",
                          "found a recurrent one: " + layer);
        }
        if (!here.has_matrix) {  // what works on each token by itself mixes none
            layers.emplace_back();
            continue;
        }
        auto map = file.map(sequence, i);
        if (!map) {
            if (i == site) return nullptr;
            throw refused(file, "rollout", "expected maps of every layer up to " + std::to_string(last.layer),
                          "found none of " + layer);
        }
        bytes += static_cast<std::int64_t>((map->query.size() + map->key.size()) * sizeof(float));
        if (bytes > kMostMapBytes) {
            throw refused(file, "rollout",
                          "expected at most " + std::to_string(kMostMapBytes >> 20) + " MiB of queries and keys",
                          "found more up to " + layer);
        }
        layers.push_back(std::move(map));
    }
    if (!layers.back()) return nullptr;
    const std::int64_t tokens = layers.back()->queries;
    return std::make_shared<const Rollout>(std::move(layers), tokens);
}

std::shared_ptr<const ImplicitMap> read_implicit_map(const store::AnalysisFile& file, std::int64_t sequence,
                                                     std::int64_t site, std::int64_t head, std::int64_t most_bytes) {
    if (!file.has_implicit(sequence, site)) return nullptr;
    const Site& about = file.header().sites.at(static_cast<std::size_t>(site));
    const std::int64_t length = file.header().queries(sequence, about);
    // The thumbnail keeps the coefficient of greatest magnitude of each block.
    const store::Values small = file.thumbnail("maximum", sequence, site);
    const auto blocks = static_cast<std::size_t>(small.shape.at(1) * small.shape.at(2));
    double most = 0;
    for (std::size_t i = 0; i < blocks; ++i) {
        const double value = std::abs(small.data.at(static_cast<std::size_t>(head) * blocks + i));
        if (std::isfinite(value)) most = std::max(most, value);
    }
    const std::int64_t bytes = length * length * static_cast<std::int64_t>(sizeof(float));
    const auto largest = static_cast<float>(most);
    if (bytes <= most_bytes) {
        auto whole = std::make_shared<const std::vector<float>>(
            file.implicit(sequence, site, head, {0, length}, {0, length}).value());
        return std::make_shared<const ImplicitMap>(
            length, about.causal, largest, bytes, [whole, length](const Cells& cells) {
                std::vector<float> part;
                part.reserve(static_cast<std::size_t>(cells.queries() * cells.keys()));
                for (std::int64_t q = cells.q_begin; q < cells.q_end; ++q) {
                    const auto row = whole->begin() + q * length;
                    part.insert(part.end(), row + cells.k_begin, row + cells.k_end);
                }
                return part;
            });
    }
    // Tiles are made on threads of their own, and an AnalysisFile serves one at a time.
    struct Own {
        std::shared_ptr<store::AnalysisFile> file;
        std::mutex mutex;
    };
    auto own = std::make_shared<Own>();
    own->file = store::AnalysisFile::open(file.path());
    return std::make_shared<const ImplicitMap>(
        length, about.causal, largest, 0, [own, sequence, site, head](const Cells& cells) {
            const std::lock_guard lock(own->mutex);
            return own->file->implicit(sequence, site, head, {cells.q_begin, cells.q_end}, {cells.k_begin, cells.k_end})
                .value();
        });
}

std::shared_ptr<const NormMap> read_norm_map(const store::AnalysisFile& file, std::int64_t sequence, std::int64_t site,
                                             std::optional<std::int64_t> head) {
    const std::int64_t heads = file.header().sites.at(static_cast<std::size_t>(site)).heads;
    std::vector<std::shared_ptr<const HeadMap>> maps;
    for (std::int64_t h = head.value_or(0); h < (head ? *head + 1 : heads); ++h) {
        maps.push_back(read_head_map(file, sequence, site, h));
        if (!maps.back()) return nullptr;
    }
    const auto stored = file.value_products(sequence, site);
    if (!stored) {
        throw refused(file, "norms", "expected a file with norms: analyze with --record maps,norms",
                      "found none recorded");
    }
    std::vector<float> products;
    for (std::size_t at = 0; at < stored->data.size(); ++at) {
        const auto g = static_cast<std::int64_t>(at) / heads % heads, h = static_cast<std::int64_t>(at) % heads;
        if (head && (g != *head || h != *head)) continue;
        products.push_back(static_cast<float>(stored->data[at]));
        if (!std::isfinite(products.back())) {
            throw refused(file, "norms", "expected heads whose output is weights times values",
                          "found that more is done to it before the output projection");
        }
    }
    return std::make_shared<const NormMap>(std::move(maps), std::move(products));
}

}  // namespace headscope::maps
