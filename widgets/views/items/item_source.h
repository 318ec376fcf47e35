// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QHash>
#include <QObject>
#include <memory>
#include <vector>

#include "core/base/process/worker.h"
#include "core/workspace/evaluation_items.h"
#include "widgets/mailbox.h"
#include "widgets/views/items/item_page.h"

namespace headscope::widgets {

/// The items of one evaluation file, read on a worker as they are asked for. Window's thread.
class ItemSource : public QObject {
    Q_OBJECT
public:
    using Items = std::vector<store::EvaluatedItem>;
    /// `reader`: the thread that reads HDF5.
    explicit ItemSource(Worker* reader, QObject* parent = nullptr);
    ~ItemSource() override;

    /// Does nothing if that file is open; `record` changes whenever the file does.
    void open(const QString& path, std::shared_ptr<const store::Evaluation> record);
    const QString& path() const { return path_; }
    const std::shared_ptr<const store::Evaluation>& record() const { return record_; }
    /// Without their texts; null: not read yet, or failure() says why not.
    const std::shared_ptr<const Items>& items() const { return items_; }
    const std::vector<workspace::ItemsGroup>& groups() const { return groups_; }
    const QString& failure() const { return failure_; }
    /// Name of a model's option, which is a class of its head; as people count options where it is none.
    QString option_name(std::int64_t model, std::int64_t option) const;
    bool of_classes(std::int64_t model) const { return classes_.contains(model); }

    /// The begin of the texts of these rows, for a list; rows that were asked for before, and are not read yet, are
    /// dropped.
    void ask_words(const std::vector<std::int64_t>& rows);
    /// Empty: not known yet.
    QString words(std::int64_t row) const { return words_.value(row); }

    /// All of one row's; a question before it is dropped.
    void ask_page(std::int64_t row);
    /// Row of page(); -1: none.
    std::int64_t page_row() const { return page_row_; }
    const ItemPage& page() const { return page_; }
    const workspace::ItemTexts& texts() const { return texts_; }
    const QString& page_failure() const { return page_failure_; }

    /// Which of the rows have `text` in their texts, letter case aside: found() comes again and again until searching()
    /// ends.
    void search(const QString& text, std::vector<std::int64_t> rows);
    void stop_searching();
    bool searching() const { return searched_ < sought_rows_.size(); }
    std::size_t searched() const { return searched_; }
    std::size_t to_search() const { return sought_rows_.size(); }

Q_SIGNALS:
    void items_read();
    void words_read();
    void page_read();
    void found(const std::vector<std::int64_t>& rows);  ///< perhaps none, in order

private:
    void search_on();

    Worker* reader_;
    QString path_;
    std::shared_ptr<const store::Evaluation> record_;
    std::shared_ptr<const Items> items_;
    std::vector<workspace::ItemsGroup> groups_;
    workspace::ClassesOfModels classes_;
    QString failure_;
    QHash<std::int64_t, QString> words_;
    std::vector<std::int64_t> asked_words_;  ///< of those that are on their way
    std::int64_t page_row_ = -1;
    ItemPage page_;
    workspace::ItemTexts texts_;
    QString page_failure_;
    QString sought_;
    std::vector<std::int64_t> sought_rows_;
    std::size_t searched_ = 0;
    int opened_ = 0, asked_ = 0, worded_ = 0, searches_ = 0;  ///< what an answer must be of
    Mailbox mailbox_{this};
};

}  // namespace headscope::widgets
