// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <optional>
#include <string>
#include <vector>

#include "core/maps/head_map.h"
#include "widgets/views/map/map_probe.h"

namespace headscope::widgets {

/// Name of a token in the readout: "40 “wind”"; its position alone without a label.
QString token_name(std::int64_t position, const std::vector<QString>* labels);

/// "Query 40 “wind” → key 3 “of”: weight 0.012, score −3.2".
QString cell_words(const MapReading& reading, const std::vector<QString>* queries, const std::vector<QString>* keys);

/// "Region: queries 3–40, keys 0–7 · mass 1.2 · …"; without `mass`: it is being summed.
QString region_words(const maps::Cells& region, const std::optional<maps::RegionMass>& mass);

/// The token that `text` asks for, at `after` + 1 or later, from the start again behind the end: a position, or text
/// that occurs in a piece or a label (capitals or not). Nothing: there is none.
std::optional<std::int64_t> find_token(const QString& text, std::int64_t after, const std::vector<std::string>& pieces,
                                       const std::vector<QString>* labels, std::int64_t size);

/// Sets NaN in [rows, columns] blocks of a self-attention map of `queries` x `keys` if all their pairs are in the
/// future.
void hide_future(std::vector<float>& thumbnail, std::int64_t rows, std::int64_t columns, std::int64_t queries,
                 std::int64_t keys);

}  // namespace headscope::widgets
