// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

#include "core/workspace/head_table.h"

namespace headscope::widgets {

/// A description of one head: what it looks at by its shares of weight, then the measures in which it is furthest from
/// the other heads, with its rank among them. Thresholds only choose words; no number depends on them.
QStringList words_of_head(const workspace::HeadTable& table, std::size_t row);

}  // namespace headscope::widgets
