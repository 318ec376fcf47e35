// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/training/evaluate_offer.h"

#include "app/window/text_job.h"
#include "core/base/error.h"
#include "core/evaluation/harness/harness_tasks.h"
#include "core/evaluation/tasks.h"
#include "core/run/run_folder.h"
#include "core/training/job/job.h"

namespace headscope::app {

using Offer = widgets::EvaluateOffer;

Offer offered_tasks() {
    Offer offer;
    for (const auto& task : evaluation::harness_tasks()) {
        // As the command has it: these two would have their examples from what is scored.
        const bool examples =
            task.kind != evaluation::HarnessKind::last_word && task.kind != evaluation::HarnessKind::page;
        const QString data = QString::fromStdString(task.data_set + (task.configuration.empty() ? "" : ", ") +
                                                    task.configuration + ", " + task.split);
        offer.tasks.push_back({QString::fromStdString(task.name),
                               QObject::tr("%1\nData set: %2").arg(QString::fromStdString(task.summary), data),
                               Offer::Data::items, examples});
    }
    for (const auto& task : evaluation::tasks()) {
        using Kind = evaluation::TaskKind;
        if (task.kind != Kind::windows && task.kind != Kind::positions && task.kind != Kind::said) continue;
        offer.tasks.push_back({QString::fromStdString(task.name), QString::fromStdString(task.summary),
                               task.on_text() ? Offer::Data::text : Offer::Data::made, false});
    }
    for (const auto& set : evaluation::task_sets()) {
        QStringList tasks;
        for (const auto& name : set.tasks) tasks << QString::fromStdString(name);
        offer.sets.push_back({QString::fromStdString(set.name), QString::fromStdString(set.summary), tasks});
    }
    return offer;
}

Offer::Model offered_model(const widgets::ModelCard& card) {
    Offer::Model model{card.path, card.name, card.path, {}, false};
    if (card.tensors_only)
        model.refusal = QObject::tr("it cannot be run");
    else if (!card.tokenizer)
        model.refusal = QObject::tr("it has no tokenizer");
    else if (!card.head)
        model.refusal = QObject::tr("it has no head that predicts tokens");
    else if (!card.causal && !card.encoder_decoder)
        model.refusal = QObject::tr("it reads both ways and predicts no next token");
    if (card.tensors_only && !card.note.isEmpty()) model.about += QLatin1Char('\n') + card.note;
    return model;
}

Offer::Model offered_run(const EvaluatedRun& run) {
    Offer::Model model{run.folder, run.name, run.folder, {}, false};
    const auto* best = run.record->best_snapshot();
    if (!best || !run.record->started) {
        model.refusal = QObject::tr("it has no snapshot yet");
        return model;
    }
    try {
        const auto job = training::read_job(run.record->started->job, run.folder.toStdString() + ", job.toml");
        if (training::snapshot_step(best->name) < 0)  // a journal may come from anywhere
            throw Error(ErrorCode::format, run.folder.toStdString(), "expected a snapshot's name",
                        "found " + escaped(best->name));
        const auto folder = training::RunFolder{run.folder.toStdString()}.snapshots() / best->name;
        model.refusal = offered_model(open_checkpoint(QString::fromStdString(folder.string()))->card).refusal;
        model.about = QObject::tr("%1, %2").arg(run.folder, QString::fromStdString(best->name));
        model.held_out = !job.data.generator;
    } catch (...) {
        model.refusal = QString::fromUtf8(current_error("run").what());
    }
    return model;
}

}  // namespace headscope::app
