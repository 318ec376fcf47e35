// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/evaluate_choice.h"

#include <QCoreApplication>
#include <QJsonArray>
#include <algorithm>
#include <cmath>

namespace headscope::widgets {
namespace {

constexpr int kMostShots = 1000;

QString tr_choice(const char* text) {
    return QCoreApplication::translate("EvaluateChoice", text);
}

std::vector<EvaluateOffer::Task> chosen_tasks(const EvaluateOffer& offer, const EvaluateChoice& choice) {
    std::vector<EvaluateOffer::Task> tasks;
    for (const auto& task : offer.tasks)
        if (choice.tasks.contains(task.name)) tasks.push_back(task);
    return tasks;
}

std::vector<EvaluateOffer::Model> chosen_models(const EvaluateOffer& offer, const EvaluateChoice& choice) {
    std::vector<EvaluateOffer::Model> models;
    for (const auto& model : offer.models)
        if (choice.models.contains(model.place)) models.push_back(model);
    return models;
}

/// The first task with that kind of data; null: none.
const EvaluateOffer::Task* first_of(const std::vector<EvaluateOffer::Task>& tasks, EvaluateOffer::Data data) {
    const auto found = std::find_if(tasks.begin(), tasks.end(), [&](const auto& task) { return task.data == data; });
    return found == tasks.end() ? nullptr : &*found;
}

bool are_lengths(const QString& text) {
    const QStringList parts = text.split(QLatin1Char(','));
    return text.isEmpty() || std::all_of(parts.begin(), parts.end(), [](const QString& part) {
               bool whole = false;
               return part.trimmed().toLongLong(&whole) > 0 && whole;
           });
}

}  // namespace

QString problem_of(const EvaluateOffer& offer, const EvaluateChoice& choice) {
    using Data = EvaluateOffer::Data;
    const auto models = chosen_models(offer, choice);
    const auto tasks = chosen_tasks(offer, choice);
    if (models.empty()) return tr_choice("Choose a model");
    for (const auto& model : models) {
        if (!model.refusal.isEmpty()) return QStringLiteral("%1: %2").arg(model.name, model.refusal);
        if (models.size() > 1 && model.place.contains(QLatin1Char('\n')))
            return tr_choice("%1 has an adapter: evaluate it alone").arg(model.name);
    }
    if (tasks.empty()) return tr_choice("Choose a task or a set of tasks");
    const auto *items = first_of(tasks, Data::items), *text = first_of(tasks, Data::text),
               *made = first_of(tasks, Data::made);
    if (items && text)
        return tr_choice("%1 reads items and %2 reads text: evaluate them one after the other")
            .arg(items->name, text->name);
    if (items && choice.data.isEmpty()) return tr_choice("Choose the folder of the data sets for %1").arg(items->name);
    if (text && made && !choice.data.isEmpty())
        return tr_choice("%1 reads text and %2 reads items: evaluate them one after the other")
            .arg(text->name, made->name);
    if (text && choice.data.isEmpty())
        for (const auto& model : models)
            if (!model.held_out)
                return tr_choice("%1 needs a text: choose one under Texts (only runs hold text out; %2 is none)")
                    .arg(text->name, model.name);
    if (choice.shots > 0)
        for (const auto& task : tasks)
            if (!task.examples) return tr_choice("%1 takes no examples").arg(task.name);
    if (!are_lengths(choice.lengths)) return tr_choice("Lengths are numbers of tokens, separated by commas");
    return {};
}

QStringList evaluate_words(const EvaluateOffer& offer, const EvaluateChoice& choice) {
    QStringList words{QStringLiteral("evaluate")}, names;
    QString adapter;
    for (const auto& model : chosen_models(offer, choice)) {
        words << model.place.section(QLatin1Char('\n'), 0, 0);
        if (const QString with = model.place.section(QLatin1Char('\n'), 1); !with.isEmpty()) adapter = with;
    }
    const auto tasks = chosen_tasks(offer, choice);
    for (const auto& task : tasks) names << task.name;
    const auto option = [&](const char* name, const QString& value) {
        if (!value.isEmpty()) words << QLatin1String(name) << value;
    };
    const auto number = [](qint64 value) { return value > 0 ? QString::number(value) : QString(); };
    const bool items = first_of(tasks, EvaluateOffer::Data::items) != nullptr;
    option("--adapter", adapter);
    option("--task", names.join(QLatin1Char(',')));
    option("--data", choice.data);
    option("--length", QString(choice.lengths).remove(QLatin1Char(' ')));
    if (items) option("--shots", number(choice.shots));
    if (items) option("--limit", number(choice.limit));
    if (first_of(tasks, EvaluateOffer::Data::made)) option("--sequences", number(choice.limit));
    if (items && choice.baselines) words << QStringLiteral("--baselines");
    if (choice.device != EvaluateChoice().device) option("--device", choice.device);
    return words;
}

QJsonObject to_json(const EvaluateChoice& choice) {
    return {{"tasks", QJsonArray::fromStringList(choice.tasks)},
            {"data", choice.data},
            {"lengths", choice.lengths},
            {"shots", choice.shots},
            {"limit", static_cast<double>(choice.limit)},
            {"baselines", choice.baselines},
            {"device", choice.device}};
}

EvaluateChoice evaluate_choice_from(const QJsonObject& object) {
    EvaluateChoice choice;
    for (const QJsonValue& task : object["tasks"].toArray())
        if (task.isString()) choice.tasks << task.toString();
    choice.data = object["data"].toString();
    choice.lengths = object["lengths"].toString();
    choice.shots = std::clamp(object["shots"].toInt(), 0, kMostShots);
    if (const double limit = object["limit"].toDouble(); limit >= 1 && limit < 2e9)
        choice.limit = static_cast<qint64>(limit);
    choice.baselines = object["baselines"].toBool();
    choice.device = object["device"].toString(choice.device);
    return choice;
}

}  // namespace headscope::widgets
