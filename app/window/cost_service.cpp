// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/cost_service.h"

#include <QProcess>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/window/job_estimate.h"
#include "app/window/launch.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/output_file.h"
#include "widgets/desk/error_words.h"
#include "widgets/training/facts.h"

namespace headscope::app {
namespace {

using nlohmann::json;

/// What `headscope cost --json` says. Throws Error.
std::shared_ptr<const cost::CostTable> table_of(const QByteArray& answer) {
    const json document = parse_json(answer.toStdString(), "headscope cost");
    auto table = std::make_shared<cost::CostTable>();
    try {
        const json& setting = document.at("setting");
        table->setting.batch = setting.at("batch").get<std::int64_t>();
        table->setting.hidden = setting.at("hidden").get<std::int64_t>();
        table->setting.heads = setting.at("heads").get<std::int64_t>();
        table->setting.tensor_parallel = setting.at("tensor_parallel").get<std::int64_t>();
        table->setting.bytes = setting.at("bytes").get<std::int64_t>();
        const auto real = [](const json& value) { return value.is_number() ? value.get<double>() : std::nan(""); };
        for (const json& one : document.at("rows")) {
            cost::CostRow row;
            row.mixer = one.at("mixer").get<std::string>();
            row.length = one.at("length").get<std::int64_t>();
            cost::CostSetting at = table->setting;
            at.length = row.length;
            row.paper = cost::evaluate(cost::mixer_cost(row.mixer), at);
            if (one.contains("measured")) {
                const json& here = one.at("measured");
                cost::MeasuredMixer measured;
                measured.mixer = row.mixer;
                measured.prefill_flops = real(here.at("prefill_flops"));
                measured.decode_flops = real(here.at("decode_flops"));
                measured.activation_bytes = real(here.at("activation_bytes"));
                measured.cache_bytes = real(here.at("cache_bytes"));
                row.measured = measured;
                row.guide_flops = real(here.at("guide_flops"));
            }
            table->rows.push_back(std::move(row));
        }
    } catch (const json::exception& error) {
        throw Error(ErrorCode::format, "headscope cost", "expected its table as JSON",
                    std::string("found ") + error.what());
    }
    return table;
}

}  // namespace

CostService::CostService(widgets::RunShelf* shelf, std::string program, QObject* parent)
    : QObject(parent), shelf_(shelf), program_(std::move(program)) {
    connect(shelf_, &widgets::RunShelf::cost_wanted, this, &CostService::measure);
    connect(shelf_, &widgets::RunShelf::cost_unwanted, this, &CostService::stop);
}

CostService::~CostService() {
    mailbox_.close();
    files_.cancel(this);
    if (!process_) return;
    process_->disconnect(this);
    process_->kill();
    process_->waitForFinished(1000);
}

void CostService::measure(const widgets::CostWish& wish) {
    if (shelf_->cost().busy) return;
    stopped_ = false;
    widgets::CostAnswer answer = shelf_->cost();
    answer.busy = true;
    answer.words = tr("Measuring…");
    shelf_->set_cost(answer);
    if (!wish.preset.isEmpty()) return start(wish, {QStringLiteral("--preset"), wish.preset});
    const training::JobFile job = shelf_->draft().job();
    if (!job.model.from.empty()) return start(wish, {QString::fromStdString(job.model.from)});
    // Sizes of one's own: as a configuration in a file.
    const QString path = folder_.filePath(QStringLiteral("config.json"));
    files_.post(this, [this, wish, job, path, send = mailbox_.sender()](const Cancellation&) {
        QString failure;
        try {
            OutputFile file(path.toStdString(), {}, "configuration");
            file.append(config_of_job(job));
            file.publish();
        } catch (...) {
            failure = QString::fromUtf8(current_error("cost").what());
        }
        send([this, wish, path, failure] {
            if (failure.isEmpty() && !stopped_) return start(wish, {QStringLiteral("--config"), path});
            widgets::CostAnswer now = shelf_->cost();
            now.busy = false;
            now.words = failure;
            shelf_->set_cost(now);
        });
    });
}

void CostService::start(const widgets::CostWish& wish, const QStringList& sizes) {
    QStringList lengths;
    for (const std::int64_t length : wish.lengths) lengths << QString::number(length);
    QStringList words{QStringLiteral("cost")};
    words << sizes << QStringLiteral("--measure") << QStringLiteral("--json") << QStringLiteral("--batch")
          << QString::number(wish.batch) << QStringLiteral("--lengths") << lengths.join(QLatin1Char(','));
    process_ = new QProcess(this);
    make_patient(*process_);
    connect(process_, &QProcess::finished, this,
            [this, wish](int status, QProcess::ExitStatus how) { ended(wish, status, how != QProcess::NormalExit); });
    connect(process_, &QProcess::errorOccurred, this, [this, wish](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) ended(wish, 1, true);
    });
    process_->start(QString::fromStdString(program_), words);
}

void CostService::ended(const widgets::CostWish& wish, int status, bool crashed) {
    if (!process_) return;
    const QByteArray answer = process_->readAllStandardOutput();
    const QString message = widgets::error_words(process_->readAllStandardError());
    process_->deleteLater();
    process_.clear();
    widgets::CostAnswer now = shelf_->cost();
    now.busy = false;
    now.words.clear();
    if (!stopped_ && !crashed && status == 0) {
        try {
            now.table = table_of(answer);
            now.wish = wish;
            now.words = tr("Measured here with %1, float32.").arg(widgets::sequences_words(wish.batch));
        } catch (const Error& error) {
            now.words = QString::fromUtf8(error.what());
        }
    } else if (!stopped_) {
        now.words = message.isEmpty() ? tr("The measuring process ended early") : message;
        Q_EMIT failed(now.words);
    }
    shelf_->set_cost(now);
}

void CostService::stop() {
    stopped_ = true;
    if (process_) process_->kill();
}

}  // namespace headscope::app
