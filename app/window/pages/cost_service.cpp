// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/pages/cost_service.h"

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/window/launch.h"
#include "app/window/training/job_estimate.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/json/json.h"
#include "widgets/desk/error_words.h"
#include "widgets/training/facts.h"

namespace headscope::app {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kCostEnd{1000};

/// Parses the output of `headscope cost --json`. Throws Error.
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
            const json& paper = one.at("paper");
            row.paper.time = real(paper.at("time"));
            row.paper.prefill = real(paper.at("prefill_flops"));
            row.paper.decode = real(paper.at("decode_flops"));
            row.paper.activation = real(paper.at("activation_bytes"));
            row.paper.cache = real(paper.at("cache_bytes"));
            row.paper.parameters = real(paper.at("parameters"));
            if (paper.contains("precomputed_prefill_flops")) {
                row.paper.precomputed_prefill = real(paper.at("precomputed_prefill_flops"));
                row.paper.precomputed_decode = real(paper.at("precomputed_decode_flops"));
            }
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
    process_->send_signal(SIGKILL);
    process_->wait(kCostEnd);
}

void CostService::measure(const widgets::CostRequest& wish) {
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
            write_whole_file(path.toStdString(), config_of_job(job), "configuration");
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

void CostService::start(const widgets::CostRequest& wish, const QStringList& sizes) {
    QStringList lengths;
    for (const std::int64_t length : wish.lengths) lengths << QString::number(length);
    QStringList words{QStringLiteral("cost")};
    words << sizes << QStringLiteral("--measure") << QStringLiteral("--json") << QStringLiteral("--batch")
          << QString::number(wish.batch) << QStringLiteral("--lengths") << lengths.join(QLatin1Char(','));
    SpawnOptions options = patient(program_, words);
    options.keep_output = true;
    try {
        process_ = Spawned::start_aside(
            options, [this, wish, send = mailbox_.sender()] { send([this, wish] { ended(wish); }); });
    } catch (const Error& error) {
        fail(QString::fromUtf8(error.what()));
    }
}

void CostService::fail(const QString& words) {
    widgets::CostAnswer now = shelf_->cost();
    now.busy = false;
    now.words = words;
    Q_EMIT failed(words);
    shelf_->set_cost(now);
}

void CostService::ended(const widgets::CostRequest& wish) {
    const auto process = std::exchange(process_, nullptr);
    const QByteArray answer = QByteArray::fromStdString(process->output());
    const QString message = widgets::error_words(QByteArray::fromStdString(process->errors()));
    if (!stopped_ && process->status() != 0)
        return fail(message.isEmpty() ? tr("The measuring process ended early") : message);
    widgets::CostAnswer now = shelf_->cost();
    now.busy = false;
    now.words.clear();
    if (!stopped_) {
        try {
            now.table = table_of(answer);
            now.wish = wish;
            now.words = tr("Measured here with %1, float32.").arg(widgets::sequences_words(wish.batch));
        } catch (const Error& error) {
            now.words = QString::fromUtf8(error.what());
        }
    }
    shelf_->set_cost(now);
}

void CostService::stop() {
    stopped_ = true;
    if (process_) process_->send_signal(SIGKILL);
}

}  // namespace headscope::app
