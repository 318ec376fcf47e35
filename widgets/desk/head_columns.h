// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <vector>

#include "core/workspace/head_table.h"

namespace headscope::store {
struct AskRecord;
}

namespace headscope::widgets {

class AskShelf;
struct OpenAsk;
class Study;

/// Open files whose scores are columns of a study's heads, in their order.
std::vector<const OpenAsk*> files_with_columns(const AskShelf& asks, const Study& study);
/// Number of a file among those of its tool, from 1, as columns count them.
int column_number(const std::vector<const OpenAsk*>& files, const OpenAsk& file);

/// Tables of heads with the columns of the open ask files of the same model. Window's thread.
class HeadColumns {
public:
    using Table = std::shared_ptr<const workspace::HeadTable>;

    /// `asks` outlives this.
    explicit HeadColumns(const AskShelf& asks) : asks_(asks) {}

    /// `table` itself where no open file adds a column. Keeps the latest table: the same files give the same pointer.
    Table with_columns(const Study& study, const Table& table);

private:
    const AskShelf& asks_;
    Table from_, wide_;
    std::vector<std::shared_ptr<const store::AskRecord>> records_;  ///< that wide_ has columns of
};

}  // namespace headscope::widgets
