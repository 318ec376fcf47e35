// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/training/evaluation_service.h"

#include <QDateTime>
#include <QFileInfo>
#include <algorithm>
#include <csignal>
#include <utility>

#include "app/window/launch.h"
#include "core/base/error.h"
#include "core/training/job/job.h"
#include "widgets/desk/error_words.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/run_shelf.h"

namespace headscope::app {
namespace {

constexpr std::chrono::milliseconds kEvaluationEnd{1000};
constexpr int kParts = 16;  ///< the shortest context is that part of the length of training

/// A name that no file has: a second may see several.
QString free_name(const std::filesystem::path& folder, const QString& name) {
    const QString begin = QString::fromStdString((folder / "evaluations").string()) + QLatin1Char('/') + name;
    QString path = begin + QStringLiteral(".evaluation.h5");
    for (int number = 2; QFileInfo::exists(path); ++number)
        path = QStringLiteral("%1-%2.evaluation.h5").arg(begin).arg(number);
    return path;
}

}  // namespace

QStringList EvaluationPlan::words() const {
    QStringList words{QStringLiteral("evaluate")};
    words << folders << QStringLiteral("--task");
    if (!generator.empty()) return words << QString::fromStdString(generator);
    words << QStringLiteral("perplexity,next_token_accuracy") << QStringLiteral("--length");
    QStringList lengths;
    for (std::int64_t part = kParts; part > 1; part /= 2)
        if (const std::int64_t shorter = length / part; shorter > 1) lengths << QString::number(shorter);
    lengths << QString::number(length);
    return words << lengths.join(QLatin1Char(','));
}

std::deque<EvaluationPlan> evaluation_plans(const std::vector<EvaluatedRun>& runs) {
    std::deque<EvaluationPlan> plans;
    for (const EvaluatedRun& run : runs) {
        if (!run.record->started || run.record->snapshots.empty()) continue;
        const auto job = training::read_job(run.record->started->job, run.folder.toStdString() + ", job.toml");
        const std::string generator = job.data.generator ? job.data.generator->name : "";
        auto plan =
            std::find_if(plans.begin(), plans.end(), [&](const auto& one) { return one.generator == generator; });
        if (plan == plans.end()) plan = plans.insert(plans.end(), EvaluationPlan{{}, {}, generator, 0, {}});
        plan->folders << run.folder;
        plan->names << run.name;
        const auto length = job.data.sequence_length;
        plan->length = plan->length > 0 ? std::min(plan->length, length) : length;
    }
    const QString time = QDateTime::currentDateTime().toString(QStringLiteral("yyyy-MM-dd-hhmmss"));
    for (EvaluationPlan& plan : plans) {
        const QString of = plan.names.size() == 1 ? plan.names.front().section(QLatin1Char('/'), -1)
                                                  : QStringLiteral("%1-runs").arg(plan.names.size());
        plan.file_name = of + QLatin1Char('-') + time;
    }
    return plans;
}

EvaluationService::EvaluationService(widgets::Desk* desk, std::string program, QObject* parent)
    : QObject(parent), desk_(desk), program_(std::move(program)) {
    connect(&desk_->evaluations(), &widgets::EvaluationShelf::evaluate_wanted, this, &EvaluationService::evaluate);
    connect(&desk_->evaluations(), &widgets::EvaluationShelf::evaluate_unwanted, this, &EvaluationService::stop);
}

EvaluationService::~EvaluationService() {
    mailbox_.close();
    files_.cancel(this);
    if (!process_) return;
    process_->send_signal(SIGKILL);
    process_->wait(kEvaluationEnd);
}

void EvaluationService::evaluate() {
    if (busy_ || folder_.empty()) return;
    std::vector<EvaluatedRun> runs;
    for (const widgets::Run& run : desk_->runs().runs()) runs.push_back({run.path, run.name, run.record});
    busy_ = true;
    stopped_ = false;
    desk_->evaluations().set_evaluating(tr("Evaluating…"));
    files_.post(this, [this, runs, folder = folder_, send = mailbox_.sender()](const Cancellation&) {
        QString problem;
        auto plans = std::make_shared<std::deque<EvaluationPlan>>();
        try {
            *plans = evaluation_plans(runs);
            std::error_code error;
            std::filesystem::create_directories(folder / "evaluations", error);
            if (error)
                throw Error(ErrorCode::io, (folder / "evaluations").string(), "expected to make this folder",
                            "found " + error.message());
            if (plans->empty()) problem = tr("None of the open runs has a snapshot that could be evaluated");
        } catch (...) {
            problem = QString::fromUtf8(current_error("evaluate").what());
        }
        send([this, plans, problem] {
            if (!problem.isEmpty()) return end(problem);
            plans_ = std::move(*plans);
            next();
        });
    });
}

void EvaluationService::next() {
    if (stopped_ || plans_.empty()) return end();
    files_.post(this, [this, plan = plans_.front(), folder = folder_, send = mailbox_.sender()](const Cancellation&) {
        send([this, plan, output = free_name(folder, plan.file_name)] { start(plan, output); });
    });
    plans_.pop_front();
}

void EvaluationService::start(const EvaluationPlan& plan, const QString& output) {
    if (stopped_) return end();
    desk_->evaluations().set_evaluating(
        tr("Evaluating %1, at a low priority").arg(plan.names.join(QStringLiteral(", "))));
    try {
        process_ =
            Spawned::start_aside(patient(program_, plan.words() << QStringLiteral("-o") << output),
                                 [this, output, send = mailbox_.sender()] { send([this, output] { ended(output); }); });
    } catch (const Error& error) {
        end(QString::fromUtf8(error.what()));
    }
}

void EvaluationService::ended(const QString& output) {
    const auto process = std::exchange(process_, nullptr);
    const QString message = widgets::error_words(QByteArray::fromStdString(process->errors()));
    if (stopped_) return end();
    if (process->status() != 0) {
        plans_.clear();
        return end(message.isEmpty() ? tr("The evaluating process ended early") : message);
    }
    Q_EMIT written(output);
    next();
}

void EvaluationService::end(const QString& problem) {
    busy_ = false;
    plans_.clear();
    desk_->evaluations().set_evaluating({});
    if (!problem.isEmpty()) Q_EMIT failed(problem);
}

void EvaluationService::stop() {
    stopped_ = true;
    if (process_) process_->send_signal(SIGKILL);
}

}  // namespace headscope::app
