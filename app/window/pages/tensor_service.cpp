// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/pages/tensor_service.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>

#include "app/window/engine.h"
#include "app/window/files/model_place.h"
#include "app/window/text_job.h"
#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/tensor_summary.h"

namespace headscope::app {
namespace {

using widgets::TensorNumbers;
using widgets::TensorRow;
using widgets::TensorStatus;
using widgets::TensorTable;

constexpr std::size_t kMostReasons = 8;  ///< listed one by one for unreadable tensors
const char kTables = 0, kNumbers = 0;    ///< owners of the worker's tasks

QString shown(const std::string& text) {
    return QString::fromStdString(escaped(text));
}

std::shared_ptr<const TensorNumbers> numbers_of(const checkpoint::TensorSummary& summary) {
    auto numbers = std::make_shared<TensorNumbers>();
    numbers->elements = summary.elements;
    numbers->zeros = summary.zeros;
    numbers->nans = summary.nans;
    numbers->positive_infinities = summary.positive_infinities;
    numbers->negative_infinities = summary.negative_infinities;
    numbers->minimum = summary.minimum;
    numbers->maximum = summary.maximum;
    numbers->mean = summary.mean;
    numbers->deviation = summary.deviation;
    numbers->norm = summary.norm;
    numbers->edges = summary.edges;
    numbers->counts = summary.counts;
    return numbers;
}

/// The message of what is being handled in a catch (...); empty for Stopped.
QString message_of() {
    try {
        return QString::fromUtf8(current_error("tensors").what());
    } catch (const Stopped&) {
        return {};
    }
}

}  // namespace

std::shared_ptr<const TensorTable> make_tensor_table(const OpenModel& model, const Cancellation& cancellation) {
    auto table = std::make_shared<TensorTable>();
    const auto& file = *model.file;
    const auto& report = model.inspection.report;
    table->model = model.card.id;
    table->name = model.card.name;
    for (const auto& path : file.files()) table->files.push_back(shown(path.filename().string()));
    const std::set<std::string_view> left_over(report.left_over.begin(), report.left_over.end());
    const auto usual = model.card.tensors_only ? TensorStatus::plain : TensorStatus::matched;
    if (model.card.tensors_only) table->notes.push_back(model.card.note);
    table->rows.reserve(file.tensors().size() + file.unreadable().size() + report.missing.size());
    for (const auto& [name, info] : file.tensors()) {
        if (table->rows.size() % 4096 == 0) cancellation.check();
        const auto status = left_over.contains(name) ? TensorStatus::left_over : usual;
        table->rows.push_back({name, info.shape, checkpoint::stored_type(info), info.elements,
                               static_cast<std::int64_t>(info.bytes), static_cast<std::int32_t>(info.file), status});
    }
    for (const auto& [name, reason] : file.unreadable()) {
        if (table->notes.size() < kMostReasons)
            table->notes.push_back(QObject::tr("%1 is not read: %2").arg(shown(name), shown(reason)));
        table->rows.push_back({name, {}, {}, 0, 0, -1, TensorStatus::unreadable});
    }
    for (const auto& name : report.missing) table->rows.push_back({name, {}, {}, 0, 0, -1, TensorStatus::missing});
    std::sort(table->rows.begin(), table->rows.end(),
              [](const TensorRow& a, const TensorRow& b) { return a.name < b.name; });
    for (const auto& note : file.notes()) table->notes.push_back(QString::fromStdString(note));
    return table;
}

TensorService::TensorService(Engine* engine, QObject* parent) : TensorSource(parent), engine_(engine) {
    connect(engine_, &Engine::models_changed, this, &TensorService::models_changed);
}

TensorService::~TensorService() {
    mailbox_.close();
    worker_.cancel(&kTables);
    worker_.cancel(&kNumbers);
}

std::vector<TensorService::Model> TensorService::models() const {
    std::vector<Model> models;
    for (const auto& card : engine_->models()) {
        // No command line draws the tensors of a merged model.
        const ModelPlace place = ModelPlace::of(card.path);
        const auto model = engine_->opened(card.id);
        // The hash lives as long as its tokenizer.
        std::shared_ptr<const tokenizer::WordHash> hash;
        if (model && model->tokenizer && model->tokenizer->word_hash() != nullptr)
            hash = {model->tokenizer, model->tokenizer->word_hash()};
        models.push_back({card.id, card.name, place.adapter.isEmpty() ? place.path : QString(), std::move(hash)});
    }
    return models;
}

void TensorService::want_table(int id) {
    const auto model = engine_->opened(id);
    if (!model) return;
    worker_.cancel(&kTables);
    worker_.post(&kTables, [this, model, id, send = mailbox_.sender()](const Cancellation& cancellation) {
        try {
            auto table = make_tensor_table(*model, cancellation);
            send([this, table = std::move(table)] { Q_EMIT table_ready(table); });
        } catch (...) {
            if (const QString message = message_of(); !message.isEmpty())
                send([this, id, message] { Q_EMIT failed(id, {}, message); });
        }
    });
}

void TensorService::want_numbers(int id, const QString& tensor) {
    const auto model = engine_->opened(id);
    if (!model) return;
    worker_.cancel(&kNumbers);
    worker_.post(&kNumbers, [this, model, id, tensor, send = mailbox_.sender()](const Cancellation& cancellation) {
        using Clock = std::chrono::steady_clock;
        auto told = Clock::now();
        const auto progress = [&](double share) {
            const auto now = Clock::now();
            if (now - told < std::chrono::milliseconds(80)) return;
            told = now;
            send([this, id, tensor, share] { Q_EMIT numbers_progressed(id, tensor, share); });
        };
        try {
            auto numbers = numbers_of(checkpoint::summarise_tensor(*model->file, tensor.toStdString(),
                                                                   checkpoint::kUsualBins, progress, cancellation));
            if (cancellation.requested()) return;
            send([this, id, tensor, numbers = std::move(numbers)] { Q_EMIT numbers_ready(id, tensor, numbers); });
        } catch (...) {
            const QString message = message_of();
            if (!message.isEmpty() && !cancellation.requested())
                send([this, id, tensor, message] { Q_EMIT failed(id, tensor, message); });
        }
    });
}

void TensorService::stop_numbers() {
    worker_.cancel(&kNumbers);
}

}  // namespace headscope::app
