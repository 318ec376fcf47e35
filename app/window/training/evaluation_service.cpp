// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/training/evaluation_service.h"

#include <QDateTime>
#include <QFileInfo>
#include <algorithm>
#include <csignal>
#include <utility>

#include "app/window/launch.h"
#include "core/base/error.h"
#include "core/data/objectives/list.h"
#include "core/training/job/job.h"
#include "widgets/desk/error_words.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/run_shelf.h"

namespace headscope::app {
namespace {

constexpr std::chrono::milliseconds kEvaluationEnd{1000};
constexpr int kLookPause = 400;  ///< ms
constexpr int kParts = 16;       ///< the shortest context is that part of the length of training
constexpr const char* kTextTasks = "perplexity,next_token_accuracy";

/// Tasks on the part that the job holds out; empty: it has none, for its items lie in files.
std::string held_out_tasks(const training::JobFile& job) {
    const data::ObjectiveKind& objective = data::kind_of(job.data.objective);
    const bool made = job.data.generator.has_value();
    if (objective.reads_stream()) return made ? job.data.generator->name : std::string(kTextTasks);
    return made == objective.reads_items() && !objective.spans ? objective.name : "";
}

QString file_name_of(const QStringList& names) {
    const QString of =
        names.size() == 1 ? names.front().section(QLatin1Char('/'), -1) : QStringLiteral("%1-models").arg(names.size());
    return of + QLatin1Char('-') + QDateTime::currentDateTime().toString(QStringLiteral("yyyy-MM-dd-hhmmss"));
}

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
    words << folders << QStringLiteral("--task") << QString::fromStdString(tasks);
    if (tasks != kTextTasks) return words;
    words << QStringLiteral("--length");
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
        const std::string tasks = held_out_tasks(job);
        if (tasks.empty()) continue;
        auto plan = std::find_if(plans.begin(), plans.end(), [&](const auto& one) { return one.tasks == tasks; });
        if (plan == plans.end()) plan = plans.insert(plans.end(), EvaluationPlan{{}, {}, tasks, 0});
        plan->folders << run.folder;
        plan->names << run.name;
        const auto length = job.data.sequence_length;
        plan->length = plan->length > 0 ? std::min(plan->length, length) : length;
    }
    return plans;
}

EvaluationService::EvaluationService(widgets::Desk* desk, std::string program, QObject* parent)
    : QObject(parent), desk_(desk), program_(std::move(program)) {
    connect(&desk_->evaluations(), &widgets::EvaluationShelf::evaluate_wanted, this, [this] { evaluate(); });
    connect(&desk_->evaluations(), &widgets::EvaluationShelf::evaluate_unwanted, this, &EvaluationService::stop);
    look_.setInterval(kLookPause);
    connect(&look_, &QTimer::timeout, this, [this] {
        if (process_) desk_->evaluations().set_progress(told_progress(process_->errors()));
    });
}

EvaluationService::~EvaluationService() {
    mailbox_.close();
    files_.cancel(this);
    if (!process_) return;
    process_->send_signal(SIGKILL);
    process_->wait(kEvaluationEnd);
}

void EvaluationService::evaluate() {
    std::vector<EvaluatedRun> runs;
    for (const widgets::Run& run : desk_->runs().runs()) runs.push_back({run.path, run.name, run.record});
    begin([runs] {
        std::deque<Call> calls;
        for (const EvaluationPlan& plan : evaluation_plans(runs))
            calls.push_back({plan.words(), plan.names, file_name_of(plan.names)});
        return calls;
    });
}

void EvaluationService::evaluate(const QStringList& words, const QStringList& names) {
    begin([call = Call{words, names, file_name_of(names)}] { return std::deque<Call>{call}; });
}

void EvaluationService::begin(MakeCalls make) {
    if (busy_ || folder_.empty()) return;
    busy_ = true;
    stopped_ = false;
    desk_->evaluations().set_evaluating(tr("Evaluating…"));
    files_.post(this, [this, make = std::move(make), folder = folder_, send = mailbox_.sender()](const Cancellation&) {
        QString problem;
        auto calls = std::make_shared<std::deque<Call>>();
        try {
            *calls = make();
            std::error_code error;
            std::filesystem::create_directories(folder / "evaluations", error);
            if (error)
                throw Error(ErrorCode::io, (folder / "evaluations").string(), "expected to make this folder",
                            "found " + error.message());
            if (calls->empty()) problem = tr("No open run has a snapshot, and held-out data to evaluate it on");
        } catch (...) {
            problem = QString::fromUtf8(current_error("evaluate").what());
        }
        send([this, calls, problem] {
            if (!problem.isEmpty()) return end(problem);
            calls_ = std::move(*calls);
            next();
        });
    });
}

void EvaluationService::next() {
    if (stopped_ || calls_.empty()) return end();
    files_.post(this, [this, call = calls_.front(), folder = folder_, send = mailbox_.sender()](const Cancellation&) {
        send([this, call, output = free_name(folder, call.file_name)] { start(call, output); });
    });
    calls_.pop_front();
}

void EvaluationService::start(const Call& call, const QString& output) {
    if (stopped_) return end();
    desk_->evaluations().set_evaluating(tr("Evaluating %1 at low priority").arg(call.names.join(QStringLiteral(", "))));
    try {
        process_ =
            Spawned::start_aside(patient(program_, QStringList(call.words) << QStringLiteral("-o") << output),
                                 [this, output, send = mailbox_.sender()] { send([this, output] { ended(output); }); });
        look_.start();
    } catch (const Error& error) {
        end(QString::fromUtf8(error.what()));
    }
}

void EvaluationService::ended(const QString& output) {
    const auto process = std::exchange(process_, nullptr);
    look_.stop();
    const QString message = widgets::error_words(QByteArray::fromStdString(process->errors()));
    if (stopped_) return end();
    if (process->status() != 0) {
        calls_.clear();
        return end(message.isEmpty() ? tr("The evaluation ended early") : message);
    }
    Q_EMIT written(output);
    next();
}

void EvaluationService::end(const QString& problem) {
    busy_ = false;
    calls_.clear();
    desk_->evaluations().set_evaluating({});
    if (!problem.isEmpty()) Q_EMIT failed(problem);
}

void EvaluationService::stop() {
    stopped_ = true;
    if (process_) process_->send_signal(SIGKILL);
}

}  // namespace headscope::app
