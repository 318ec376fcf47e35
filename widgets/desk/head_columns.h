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
class Study;

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
