// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/items/item_source.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/class_names.h"
#include "core/base/error.h"

namespace headscope::widgets {
namespace {

constexpr std::size_t kWordBytes = 200;        ///< of a text in the list
constexpr std::size_t kMostClassName = 40;     ///< of a class in the list
constexpr std::size_t kRowsAtOnce = 64;        ///< others that wait for the reader come in between
constexpr qsizetype kMostKnownWords = 50'000;  ///< a list of more forgets what it showed

QString failure_now() {
    return QString::fromUtf8(current_error("items").what());
}

workspace::ItemTexts texts_of(const std::string& path, std::int64_t row) {
    return workspace::parse_item_texts(store::read_item_texts(path, row),
                                       path + ", item in row " + std::to_string(row));
}

bool has_text(const workspace::ItemTexts& texts, const QString& wanted) {
    const auto in = [&](const std::string& text) {
        return QString::fromStdString(text).contains(wanted, Qt::CaseInsensitive);
    };
    return in(texts.prompt) || in(texts.generated) || std::any_of(texts.answers.begin(), texts.answers.end(), in) ||
           std::any_of(texts.requests.begin(), texts.requests.end(), [&](const workspace::ScoredText& request) {
               return in(request.context) || in(request.continuation);
           });
}

}  // namespace

ItemSource::ItemSource(Worker* reader, QObject* parent) : QObject(parent), reader_(reader) {}

ItemSource::~ItemSource() {
    mailbox_.close();
    for (const void* owner :
         {static_cast<const void*>(this), static_cast<const void*>(&page_), static_cast<const void*>(&sought_)})
        reader_->cancel(owner);
}

void ItemSource::open(const QString& path, std::shared_ptr<const store::Evaluation> record) {
    if (path == path_ && record == record_) return;
    stop_searching();
    reader_->cancel(this);
    reader_->cancel(&page_);
    reader_->cancel(&words_);
    path_ = path;
    record_ = std::move(record);
    items_.reset();
    classes_ = record_ ? workspace::classes_of_models(*record_) : workspace::ClassesOfModels{};
    groups_.clear();
    failure_.clear();
    words_.clear();
    asked_words_.clear();
    page_row_ = -1;
    page_ = {};
    texts_ = {};
    page_failure_.clear();
    ++asked_;
    ++worded_;
    reader_->post(this,
                  [this, path = path.toStdString(), opened = ++opened_, send = mailbox_.sender()](const Cancellation&) {
                      auto items = std::make_shared<Items>();
                      std::vector<workspace::ItemsGroup> groups;
                      QString failure;
                      try {
                          *items = store::read_items(path);
                          groups = workspace::item_groups(*items);
                      } catch (...) {
                          failure = failure_now();
                      }
                      send([this, opened, items, groups, failure] {
                          if (opened != opened_) return;
                          if (failure.isEmpty()) items_ = items;
                          groups_ = groups;
                          failure_ = failure;
                          Q_EMIT items_read();
                      });
                  });
}

QString ItemSource::option_name(std::int64_t model, std::int64_t option) const {
    const auto classes = classes_.find(model);
    if (classes == classes_.end()) return QString::number(option + 1);
    return QString::fromStdString(escaped(class_name(classes->second, option), kMostClassName));
}

void ItemSource::ask_words(const std::vector<std::int64_t>& rows) {
    if (words_.size() > kMostKnownWords) words_.clear();
    std::vector<std::int64_t> wanted;
    for (const std::int64_t row : rows)
        if (!words_.contains(row)) wanted.push_back(row);
    if (wanted == asked_words_) return;
    reader_->cancel(&words_);
    ++worded_;
    asked_words_ = wanted;
    if (wanted.empty()) return;
    reader_->post(&words_, [this, path = path_.toStdString(), worded = worded_, wanted,
                            send = mailbox_.sender()](const Cancellation& cancellation) {
        std::vector<QString> words;
        for (const std::int64_t row : wanted) {
            if (cancellation.requested()) return;
            try {
                words.push_back(QString::fromStdString(texts_of(path, row).first_words(kWordBytes)).simplified());
            } catch (...) {
                words.push_back(failure_now());
            }
        }
        send([this, worded, wanted, words] {
            if (worded != worded_) return;
            asked_words_.clear();
            for (std::size_t i = 0; i < wanted.size(); ++i) words_.insert(wanted[i], words[i]);
            Q_EMIT words_read();
        });
    });
}

void ItemSource::ask_page(std::int64_t row) {
    if (!items_ || row < 0 || row >= std::ssize(*items_)) return;
    struct Read {
        workspace::ItemTexts texts;
        ItemPage page;
        QString failure;
    };
    reader_->cancel(&page_);
    const auto own = classes_.find((*items_)[static_cast<std::size_t>(row)].model);
    reader_->post(&page_, [this, path = path_.toStdString(), items = items_, row, asked = ++asked_,
                           classes = own == classes_.end() ? std::vector<std::string>{} : own->second,
                           send = mailbox_.sender()](const Cancellation&) {
        auto read = std::make_shared<Read>();
        try {
            read->texts = texts_of(path, row);
            read->page = make_item_page((*items)[static_cast<std::size_t>(row)], read->texts, classes);
        } catch (...) {
            read->failure = failure_now();
        }
        send([this, asked, row, read] {
            if (asked != asked_) return;
            page_row_ = row;
            texts_ = std::move(read->texts);
            page_ = std::move(read->page);
            page_failure_ = read->failure;
            Q_EMIT page_read();
        });
    });
}

void ItemSource::stop_searching() {
    reader_->cancel(&sought_);
    ++searches_;
    sought_rows_.clear();
    searched_ = 0;
}

void ItemSource::search(const QString& text, std::vector<std::int64_t> rows) {
    stop_searching();
    sought_ = text;
    sought_rows_ = std::move(rows);
    search_on();
}

void ItemSource::search_on() {
    if (!searching()) return;
    const auto begin = sought_rows_.begin() + static_cast<std::ptrdiff_t>(searched_);
    const std::size_t count = std::min(kRowsAtOnce, sought_rows_.size() - searched_);
    std::vector<std::int64_t> part(begin, begin + static_cast<std::ptrdiff_t>(count));
    reader_->post(&sought_, [this, path = path_.toStdString(), text = sought_, part = std::move(part),
                             searches = searches_, send = mailbox_.sender()](const Cancellation& cancellation) {
        std::vector<std::int64_t> rows;
        for (const std::int64_t row : part) {
            if (cancellation.requested()) return;
            try {
                if (has_text(texts_of(path, row), text)) rows.push_back(row);
            } catch (...) {
                continue;  // an unreadable row shows its error when displayed
            }
        }
        send([this, searches, rows, count = part.size()] {
            if (searches != searches_) return;
            searched_ += count;
            Q_EMIT found(rows);
            search_on();
        });
    });
}

}  // namespace headscope::widgets
