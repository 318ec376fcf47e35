// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/head_columns.h"

#include <map>
#include <string>

#include "core/base/error.h"
#include "core/store/ask/ask_file.h"
#include "core/workspace/asked_columns.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/study.h"

namespace headscope::widgets {

HeadColumns::Table HeadColumns::with_columns(const Study& study, const Table& table) {
    std::vector<const OpenAsk*> files;
    std::vector<std::shared_ptr<const store::AskRecord>> records;
    for (const OpenAsk& one : asks_.all()) {
        if (!workspace::has_asked_columns(one.record->tool) || !workspace::of_same_model(study.header(), *one.record))
            continue;
        files.push_back(&one);
        records.push_back(one.record);
    }
    if (files.empty() || !table) return table;
    if (table == from_ && records == records_) return wide_;
    auto wide = std::make_shared<workspace::HeadTable>(*table);
    std::map<std::string, int> numbers;  // files of each tool
    for (const OpenAsk* one : files) {
        try {
            workspace::add_asked_columns(*wide, *one->record, one->path.toStdString(), ++numbers[one->record->tool]);
        } catch (const Error&) {  // a file without its tables: the views of its tool show the failure
        }
    }
    from_ = table;
    wide_ = std::move(wide);
    records_ = std::move(records);
    return wide_;
}

}  // namespace headscope::widgets
