// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QString>
#include <QStringList>
#include <vector>

namespace headscope::widgets {

/// Models, tasks and texts that a dialog of evaluations offers. Values only.
struct EvaluateOffer {
    struct Model {
        QString place;  ///< a path; an adapter's folder behind a line end
        QString name, about;
        QString refusal;        ///< why it cannot be evaluated; empty: it can
        bool held_out = false;  ///< a run on text: tasks on text need no data
        bool operator==(const Model&) const = default;
    };
    /// items: of files with the data set's columns; text: any text; made: its items are made, or read.
    enum class Data { items, text, made };
    struct Task {
        QString name, about;
        Data data = Data::items;
        bool examples = false;  ///< --shots
        bool operator==(const Task&) const = default;
    };
    struct Set {
        QString title, about;
        QStringList tasks;
        bool operator==(const Set&) const = default;
    };
    /// For tasks on text: a file or corpus by `value`, or the text itself, which is written to a file when it is
    /// chosen.
    struct Text {
        QString title, value, content;
        QString refusal;  ///< why it is not available; empty: it is
        bool operator==(const Text&) const = default;
    };
    std::vector<Model> models;
    std::vector<Task> tasks;
    std::vector<Set> sets;
    std::vector<Text> texts;
    bool operator==(const EvaluateOffer&) const = default;
};

/// The user's choices among these.
struct EvaluateChoice {
    QStringList models;  ///< places
    QStringList tasks;
    QString data;     ///< a folder; empty: none
    QString lengths;  ///< "128,256"; empty: as the models read
    int shots = 0;
    qint64 limit = 0;  ///< items of each task; 0: all
    bool baselines = false;
    QString device = QStringLiteral("cpu");  ///< as --device takes it
    bool operator==(const EvaluateChoice&) const = default;
};

/// Why this cannot be evaluated, for people; empty: it can.
QString problem_of(const EvaluateOffer& offer, const EvaluateChoice& choice);
/// The words behind `headscope`, without -o.
QStringList evaluate_words(const EvaluateOffer& offer, const EvaluateChoice& choice);

/// For the session, without the models.
QJsonObject to_json(const EvaluateChoice& choice);
/// Missing or wrong values keep their defaults.
EvaluateChoice evaluate_choice_from(const QJsonObject& object);

}  // namespace headscope::widgets
