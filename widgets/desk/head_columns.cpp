// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/head_columns.h"

#include "core/base/error.h"
#include "core/store/ask/ask_file.h"
#include "core/workspace/asked_columns.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/study.h"

namespace headscope::widgets {

std::vector<const OpenAsk*> files_with_columns(const AskShelf& asks, const Study& study) {
    std::vector<const OpenAsk*> files;
    for (const OpenAsk& one : asks.all())
        if (workspace::has_asked_columns(one.record->tool) && workspace::of_same_model(study.header(), *one.record))
            files.push_back(&one);
    return files;
}

int column_number(const std::vector<const OpenAsk*>& files, const OpenAsk& file) {
    int number = 0;
    for (const OpenAsk* one : files) {
        if (one->record->tool == file.record->tool) ++number;
        if (one == &file) break;
    }
    return number;
}

HeadColumns::Table HeadColumns::with_columns(const Study& study, const Table& table) {
    const std::vector<const OpenAsk*> files = files_with_columns(asks_, study);
    std::vector<std::shared_ptr<const store::AskRecord>> records;
    for (const OpenAsk* one : files) records.push_back(one->record);
    if (files.empty() || !table) return table;
    if (table == from_ && records == records_) return wide_;
    auto wide = std::make_shared<workspace::HeadTable>(*table);
    for (const OpenAsk* one : files) {
        try {
            workspace::add_asked_columns(*wide, *one->record, one->path.toStdString(), column_number(files, *one));
        } catch (const Error&) {  // a file without its tables: the views of its tool show the failure
        }
    }
    from_ = table;
    wide_ = std::move(wide);
    records_ = std::move(records);
    return wide_;
}

}  // namespace headscope::widgets
