// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/training/evaluate_offer.h"

#include <QFileInfo>
#include <algorithm>

#include "app/window/text_job.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/io/sha256.h"
#include "core/data/catalog.h"
#include "core/evaluation/harness/harness_tasks.h"
#include "core/evaluation/tasks.h"
#include "core/run/run_folder.h"
#include "core/training/job/job.h"

namespace headscope::app {

using Offer = widgets::EvaluateOffer;

namespace {

constexpr int kOfferedTitle = 40;  ///< characters of a text in a menu

}  // namespace

Offer offered_tasks() {
    Offer offer;
    // Tasks on text come first: they need no data sets.
    for (const auto& task : evaluation::tasks()) {
        if (!task.kind->offered()) continue;
        offer.tasks.push_back({QString::fromStdString(task.name), QString::fromStdString(task.summary),
                               task.kind->on_text() ? Offer::Data::text : Offer::Data::made, false});
    }
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
    for (const auto& set : evaluation::task_sets()) {
        QStringList tasks;
        for (const auto& name : set.tasks) tasks << QString::fromStdString(name);
        offer.sets.push_back({QString::fromStdString(set.title), QString::fromStdString(set.summary), tasks});
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
        model.refusal = QObject::tr("it reads both directions and predicts no next token");
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

std::vector<Offer::Text> offered_texts(const std::filesystem::path& resources,
                                       const std::vector<widgets::TextExample>& examples,
                                       const std::vector<widgets::TextSource>& sources) {
    using Kind = widgets::TextSource::Kind;
    std::vector<Offer::Text> texts;
    for (const auto& source : sources) {
        if (source.value.trimmed().isEmpty() || source.kind == Kind::example) continue;
        if (source.kind == Kind::file)
            texts.push_back({QObject::tr("File %1").arg(QFileInfo(source.value).fileName()), source.value, {}, {}});
        else
            texts.push_back(
                {QObject::tr("Text “%1”").arg(source.value.left(kOfferedTitle).simplified()), {}, source.value, {}});
    }
    for (const auto& example : examples) {
        const auto path = resources / "texts" / (example.name.toStdString() + ".txt");
        texts.push_back(
            {QObject::tr("Bundled text %1").arg(example.name), QString::fromStdString(path.string()), {}, {}});
    }
    for (const auto& set : data::datasets()) {
        if (set.is_generator) continue;
        std::error_code ignored;
        const bool installed = std::all_of(set.files.begin(), set.files.end(), [&](const std::string& file) {
            return std::filesystem::exists(file, ignored);
        });
        const std::string about = set.description.substr(0, set.description.find(':'));
        texts.push_back(
            {QObject::tr("Corpus %1").arg(QString::fromStdString(about)),
             QString::fromStdString(set.name),
             {},
             installed ? QString() : QObject::tr("install the package %1").arg(QString::fromStdString(set.package))});
    }
    return texts;
}

QString write_text(const std::filesystem::path& folder, const QString& content) {
    const std::string text = content.toStdString();
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw Error(ErrorCode::io, folder.string(), "expected to make this folder", "found " + error.message());
    // Named by its content: the same text is written once.
    const auto path = folder / ("text-" + sha256_hex(text).substr(0, 12) + ".txt");
    write_whole_file(path, text, "text");
    return QString::fromStdString(path.string());
}

}  // namespace headscope::app
