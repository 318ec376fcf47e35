// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/ask_shelf.h"

#include <QDir>
#include <algorithm>

#include "core/base/error.h"
#include "core/store/ask/ask_file.h"

namespace headscope::widgets {
namespace {

constexpr std::size_t kLongestAskName = 60;

QString ask_name(const QString& path, const store::AskRecord& record) {
    const QString model = QString::fromStdString(escaped(record.model_name, kLongestAskName));
    if (model.isEmpty()) return path.section(QLatin1Char('/'), -1);
    return QStringLiteral("%1: %2").arg(QString::fromStdString(escaped(record.tool)), model);
}

}  // namespace

int AskShelf::take(const QString& path, std::shared_ptr<const store::AskRecord> record) {
    const QString clean = QDir::cleanPath(path);
    for (OpenAsk& one : all_) {
        if (one.path != clean) continue;
        one.record = std::move(record);
        const int id = one.id;
        chosen_[one.record->tool] = id;
        Q_EMIT changed();
        return id;
    }
    const QString name = ask_name(clean, *record);
    QString unique = name;
    const auto taken = [&](const OpenAsk& one) { return one.name == unique; };
    for (int number = 2; std::any_of(all_.begin(), all_.end(), taken); ++number)
        unique = QStringLiteral("%1 #%2").arg(name).arg(number);
    const int id = ++last_id_;
    chosen_[record->tool] = id;
    all_.push_back({id, clean, unique, std::move(record)});
    Q_EMIT changed();
    return id;
}

void AskShelf::remove(int id) {
    if (std::erase_if(all_, [id](const OpenAsk& one) { return one.id == id; }) == 0) return;
    std::erase_if(chosen_, [id](const auto& one) { return one.second == id; });
    Q_EMIT changed();
}

const OpenAsk* AskShelf::at(const QString& path) const {
    const QString clean = QDir::cleanPath(path);
    for (const OpenAsk& one : all_)
        if (one.path == clean) return &one;
    return nullptr;
}

const OpenAsk* AskShelf::find(int id) const {
    for (const OpenAsk& one : all_)
        if (one.id == id) return &one;
    return nullptr;
}

std::vector<const OpenAsk*> AskShelf::of_tool(const std::string& tool) const {
    std::vector<const OpenAsk*> found;
    for (const OpenAsk& one : all_)
        if (one.record->tool == tool) found.push_back(&one);
    return found;
}

const OpenAsk* AskShelf::chosen(const std::string& tool) const {
    if (const auto place = chosen_.find(tool); place != chosen_.end())
        if (const OpenAsk* one = find(place->second); one && one->record->tool == tool) return one;
    const std::vector<const OpenAsk*> all = of_tool(tool);
    return all.empty() ? nullptr : all.back();
}

void AskShelf::choose(int id) {
    const OpenAsk* one = find(id);
    if (!one || chosen(one->record->tool) == one) return;
    chosen_[one->record->tool] = id;
    Q_EMIT changed();
}

QString AskShelf::about(const store::AskRecord& record) {
    const auto texts = record.sequences.size();
    QString words = QString::fromStdString(escaped(record.tool));
    if (texts > 0) words += texts == 1 ? tr(", 1 text") : tr(", %1 texts").arg(texts);
    return record.complete ? words : tr("%1, incomplete").arg(words);
}

}  // namespace headscope::widgets
