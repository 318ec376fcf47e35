// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/engine.h"

#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <chrono>
#include <cmath>

#include "app/commands/device.h"
#include "app/commands/loading.h"
#include "app/resources.h"
#include "app/window/text_job.h"
#include "app/window/training/calibration.h"
#include "core/analysis/job_request.h"
#include "core/analysis/rate_book.h"
#include "core/base/error.h"
#include "core/base/io/free_space.h"
#include "core/base/process/free_memory.h"
#include "core/checkpoint/fingerprint.h"
#include "core/model/load/memory.h"
#include "core/model/load/model_device.h"
#include "kernels/parallel.h"

namespace headscope::app {
namespace {

using widgets::TextChoice;
using Clock = std::chrono::steady_clock;

const char kCalibration = 0;        ///< owner of the measurement
constexpr int kProgressTurn = 500;  // ms
constexpr std::size_t kMostLoaded = 3;

/// The message of what is being handled in a catch (...); Stopped passes.
QString message_of(const char* where) {
    return QString::fromUtf8(current_error(where).what());
}

QString full_path(const QString& path) {
    return QFileInfo(path).absoluteFilePath();
}

std::filesystem::path output_name(const std::filesystem::path& folder, const std::string& model) {
    std::string name;
    for (const char c : model) {
        const bool good = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.';
        if (good || (!name.empty() && name.back() != '_')) name += good ? c : '_';
    }
    const QString time = QDateTime::currentDateTime().toString(QStringLiteral("yyyyMMdd-HHmmss"));
    std::error_code ignored;
    for (int number = 1;; ++number) {
        const std::string stem = name + "-" + time.toStdString() + (number > 1 ? "-" + std::to_string(number) : "");
        const auto path = folder / (stem + ".headscope.h5");
        if (!std::filesystem::exists(path, ignored)) return path;
    }
}

/// Progress as words, a few times a second at most.
class WordReporter final : public Progress {
public:
    explicit WordReporter(const std::function<void(const QString&)>& report) : report_(report) {}

    void advance(double done, double total, const std::string& what) override {
        const auto now = Clock::now();
        if (now - last_ < std::chrono::milliseconds(200)) return;
        last_ = now;
        const double share = total > 0 ? 100 * done / total : 0;
        report_(QStringLiteral("%1, %2 %").arg(QString::fromStdString(what)).arg(share, 0, 'f', 0));
    }

private:
    const std::function<void(const QString&)>& report_;
    Clock::time_point last_{};
};

}  // namespace

/// Hands progress on, a few times a second at most.
class Engine::Reporter final : public Progress {
public:
    Reporter(Engine* engine, widgets::Mailbox::Sender send) : engine_(engine), send_(std::move(send)) {}

    void advance(double done, double total, const std::string& what) override {
        const auto now = Clock::now();
        // Always reports the last step of reading weights, and of the layers.
        const bool loading = what.starts_with("load ");
        if (loading == loading_ && done < total && now - last_ < std::chrono::milliseconds(80)) return;
        loading_ = loading;
        last_ = now;
        send_([engine = engine_, done, total, what, now] {
            engine->progress_.advance(done, total, what, now);
            engine->tell_progress();
        });
    }

private:
    Engine* engine_;
    widgets::Mailbox::Sender send_;
    bool loading_ = false;
    Clock::time_point last_{};
};

Engine::Engine(int threads, QObject* parent) : QObject(parent) {
    try {
        resources_ = resource_folder().string();
    } catch (const Error&) {  // examples and the sample are missed then, and said so where they are asked for
    }
    progress_turn_.setInterval(kProgressTurn);
    connect(&progress_turn_, &QTimer::timeout, this, &Engine::tell_progress);
    kernels::set_threads(threads);
    threads_ = kernels::threads();
    compute_.post(this, [threads](const Cancellation&) { configure_compute(threads, "auto", "cpu"); });
}

Engine::~Engine() {
    mailbox_.close();
    files_.cancel(this);
    back_.cancel(this);
    compute_.cancel(this);
    compute_.cancel(&kCalibration);
    for (auto& [id, model] : models_)  // weights go where they were made
        compute_.let_go(std::move(model));
}

std::shared_ptr<OpenModel> Engine::find(int id) const {
    const auto place = models_.find(id);
    return place == models_.end() ? nullptr : place->second;
}

int Engine::model_at(const QString& path) const {
    const QString wanted = full_path(path);
    for (const auto& card : cards_)
        if (full_path(card.path) == wanted) return card.id;
    return 0;
}

void Engine::open_model(const QString& path, bool of_session) {
    const int known = model_at(path);
    if (known != 0) {
        Q_EMIT model_opened(known);
        return;
    }
    const QString name = full_path(path);
    if (coming_.contains(name)) return;
    // One of a session may wait behind a disk that does not answer: who wants it now does not.
    std::set<QString>& coming = of_session ? coming_back_ : coming_;
    if (!coming.insert(name).second) return;
    (of_session ? back_ : files_)
        .post(this, [this, path, name, &coming, send = mailbox_.sender()](const Cancellation&) {
            try {
                auto model = open_checkpoint(path);
                send([this, name, &coming, model] {
                    coming.erase(name);
                    take(model);
                });
            } catch (const Stopped&) {
            } catch (...) {
                try {
                    send([this, path, name, &coming, message = message_of("checkpoint")] {
                        coming.erase(name);
                        Q_EMIT model_failed(path, message);
                    });
                } catch (const Stopped&) {
                }
            }
        });
}

void Engine::take(std::shared_ptr<OpenModel> model) {
    if (const int known = model_at(model->card.path); known != 0) {  // wanted, and brought back, at the same time
        compute_.let_go(std::move(model));
        Q_EMIT model_opened(known);
        return;
    }
    const int id = model->card.id = ++last_id_;
    cards_.push_back(model->card);
    models_.emplace(id, std::move(model));
    Q_EMIT models_changed();
    Q_EMIT model_opened(id);
}

std::function<QString(std::int32_t)> Engine::speller(int id) const {
    const auto model = find(id);
    if (!model || !model->tokenizer) return {};
    return [tokenizer = model->tokenizer](std::int32_t token) { return listed_word(*tokenizer, token); };
}

void Engine::close_model(int id) {
    auto model = find(id);
    if (!model) return;
    models_.erase(id);
    std::erase_if(cards_, [id](const auto& card) { return card.id == id; });
    compute_.let_go(std::move(model));
    Q_EMIT models_changed();
}

void Engine::preview(const TextChoice& choice) {
    const auto model = find(choice.model);
    const bool nothing = std::none_of(choice.sources.begin(), choice.sources.end(),
                                      [](const auto& source) { return source.used && !source.value.isEmpty(); });
    static const char previews = 0;  // an owner of their own: a newer question takes the place of an older one
    files_.cancel(&previews);
    if (!model || nothing) {
        Q_EMIT previewed({});
        return;
    }
    const bool loaded = std::any_of(cards_.begin(), cards_.end(),
                                    [&](const auto& card) { return card.id == choice.model && card.loaded; });
    const double rate = rate_ > 0 ? rate_ : analysis::Rate::by_threads(threads_).multiplications_per_second;
    files_.post(&previews, [this, model, choice, rate, loaded, threads = threads_, resources = resources_,
                            send = mailbox_.sender()](const Cancellation& cancellation) {
        widgets::TokenPreview preview;
        try {
            analysis::Input input = read_choice(*model, choice, resources, cancellation);
            const std::string first = input.first_token;
            const auto request = make_request(*model, choice, input, cancellation);
            read_interventions(*model, choice);
            const auto shape = analysis::rate_shape(model->inspection, request, false, threads);
            const auto known = analysis::RateBook::own().find(shape).value_or(analysis::Rate{rate});
            preview = make_preview(*model, choice, request, first, known, loaded);
            preview.uncut = uncut_tokens(*model, choice, request, resources, cancellation);
        } catch (const Stopped&) {
            return;
        } catch (...) {
            try {
                preview.failure = message_of("text");
            } catch (const Stopped&) {
                return;
            }
        }
        if (cancellation.requested()) return;
        send([this, preview = std::make_shared<const widgets::TokenPreview>(std::move(preview))] {
            Q_EMIT previewed(*preview);
        });
    });
}

void Engine::run(const TextChoice& choice, const std::filesystem::path& folder) {
    const auto model = find(choice.model);
    if (!model || running_) return;
    running_ = true;
    progress_ = {};
    progress_turn_.start();
    compute_.cancel(&kCalibration);
    compute_.post(this, [this, model, choice, folder, threads = threads_, resources = resources_,
                         send = mailbox_.sender()](const Cancellation& cancellation) {
        QString output, message;
        double rate = 0;
        try {
            std::filesystem::create_directories(folder);
            choose_device(choice.device.toStdString());
            analysis::Input input = read_choice(*model, choice, resources, cancellation);
            const auto inputs = input.paths;
            auto request = make_request(*model, choice, input, cancellation);
            ask::InterventionPlan plan = read_interventions(*model, choice);
            analysis::check_request(model->inspection, request);
            Reporter reporter(this, send);
            make_room(model, send);
            const analysis::MemoryOptions memory{.weights_there = model->weights != nullptr};
            request.batch_tokens = analysis::fitting_batch_tokens(model->inspection, request, memory);
            expect_free_space(folder, analysis::estimate(model->inspection, request, {}).file_bytes,
                              "this analysis file");
            const model::Residence residence = analysis::expect_memory(model->inspection, request, memory);
            checkpoint::FingerprintAhead fingerprint(model->file);
            load(model, residence, reporter, cancellation, send);
            request.settings_json = analysis::with_residence(request.settings_json, model->residence);
            plan.read_values(*model->weights, &cancellation);
            request.interventions.insert(request.interventions.begin(), plan.list.begin(), plan.list.end());
            request.model_sha256 = fingerprint.get(cancellation);
            request.config_json = model->weights->config().to_json();
            request.keep_partial_on_stop = true;
            const double work = analysis::estimate(model->inspection, request, {}).multiplications;
            const auto shape = analysis::rate_shape(model->inspection, request, false, threads);
            const auto known = analysis::RateBook::own().find(shape);
            request.created = [this, work, known, tokens = static_cast<double>(analysis::token_count(request)),
                               send](const std::filesystem::path& partial) {
                send([this, path = QString::fromStdString(partial.string()), work, known, tokens, now = Clock::now()] {
                    progress_.begin(work, tokens, known ? known->multiplications_per_second : rate_, now);
                    Q_EMIT run_began(path);
                    tell_progress();
                });
            };
            request.site_done = [this, send](std::int64_t sequence, std::int64_t site) {
                send([this, sequence, site] { Q_EMIT site_done(sequence, site); });
            };
            request.loss_done = [this, send](std::int64_t sequence) {
                send([this, sequence] { Q_EMIT loss_done(sequence); });
            };
            const auto path = output_name(folder, model->card.name.toStdString());
            const auto begin = Clock::now();
            analysis::run(*model->weights, request, path, inputs, reporter, cancellation);
            const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
            // A streamed model may wait for the disk; the rates are of the processor.
            if (model->residence != model::Residence::stream && device_ == "cpu") {
                rate = analysis::Rate::measured(work, seconds, {}).multiplications_per_second;
                analysis::RateBook::keep(shape, work, seconds);
            }
            output = QString::fromStdString(path.string());
        } catch (const Stopped&) {
        } catch (...) {
            try {
                message = message_of("analysis");
            } catch (const Stopped&) {
            }
        }
        send([this, output, message, rate] {
            running_ = false;
            progress_turn_.stop();
            if (rate > 0) {
                rate_ = rate;
                Q_EMIT rate_measured(rate);
            }
            Q_EMIT run_ended(output, message);
        });
    });
}

/// Compute thread.
void Engine::choose_device(const std::string& device) {
    if (device == device_) return;
    device_ = "cpu";  // a GPU that cannot be used leaves the processor
    choose_kernels("auto", device, "device");
    device_ = device;
}

/// Compute thread.
void Engine::drop_weights(OpenModel& model, const widgets::Mailbox::Sender& send) {
    model.weights.reset();
    send([this, id = model.card.id] {
        for (auto& card : cards_)
            if (card.id == id) card.loaded = false;
        Q_EMIT models_changed();
    });
}

/// Compute thread. Those that ran longest ago lose their weights before others get theirs: a run's snapshots, analysed
/// one by one, would fill the memory. Weights on another device than the chosen one are read again, within its memory.
void Engine::make_room(const std::shared_ptr<OpenModel>& model, const widgets::Mailbox::Sender& send) {
    if (model->weights && model->weights->device() != model::model_device()) drop_weights(*model, send);
    std::erase_if(loaded_, [&](const auto& one) { return one.expired() || one.lock() == model; });
    while (loaded_.size() >= kMostLoaded) {
        if (const auto oldest = loaded_.front().lock()) drop_weights(*oldest, send);
        loaded_.pop_front();
    }
    if (model->weights) loaded_.push_back(model);  // the latest, also if its work is refused
}

/// Compute thread. Reads the weights where they are not in memory.
void Engine::load(const std::shared_ptr<OpenModel>& model, model::Residence residence, Progress& progress,
                  const Cancellation& cancellation, const widgets::Mailbox::Sender& send) {
    if (!model->weights) {
        model->residence = residence;
        model->weights =
            model::Model::build(*model->file, checkpoint::LoadAs::float32, &progress, &cancellation, residence);
        loaded_.push_back(model);
        send([this, id = model->card.id] {
            for (auto& card : cards_)
                if (card.id == id) card.loaded = true;
            Q_EMIT models_changed();
        });
    }
}

void Engine::work_with(int id, const void* owner, ModelWork work) {
    const auto model = find(id);
    if (!model) return work.ended(tr("The model is closed"));
    compute_.cancel(&kCalibration);
    compute_.post(
        owner, [this, model, work = std::move(work), send = mailbox_.sender()](const Cancellation& cancellation) {
            QString failure;
            try {
                choose_device(work.device);
                work.prepare(cancellation);
                make_room(model, send);
                const char* const advice = "shorten the text";
                model::Residence residence = model->residence;
                if (model->weights)
                    expect_memory("the text",
                                  work.bytes(residence) -
                                      model::resident_bytes(model->inspection, checkpoint::LoadAs::float32, residence),
                                  {}, advice);
                else
                    residence = model::choose_residence(work.bytes, {checkpoint::LoadAs::float32, {}, false, advice});
                WordReporter progress(work.report);
                load(model, residence, progress, cancellation, send);
                work.run(cancellation);
            } catch (const Stopped&) {
            } catch (...) {
                try {
                    failure = message_of("model");
                } catch (const Stopped&) {
                }
            }
            work.ended(failure);
        });
}

void Engine::tell_progress() {
    const RunProgress::Shown shown = progress_.shown(Clock::now());
    if (!shown.text.isEmpty()) Q_EMIT progressed(shown.share, shown.text);
}

void Engine::calibrate(const std::filesystem::path& folder) {
    if (running_ || resources_.empty()) return;
    const auto sample = std::filesystem::path(resources_) / "samples" / "llama-kjv-shakespeare";
    compute_.post(&kCalibration, [this, sample, folder, send = mailbox_.sender()](const Cancellation& cancellation) {
        try {
            choose_device("cpu");
            const auto rate = measure_rate(sample, folder, cancellation);
            if (!rate) return;
            send([this, rate = *rate] {
                rate_ = rate;
                Q_EMIT rate_measured(rate);
            });
        } catch (const Stopped&) {
        } catch (...) {  // a background task: the estimate stays a guess until the first run
        }
    });
}

void Engine::stop() {
    if (compute_.cancel(this) == 0 || !running_) return;
    running_ = false;  // it had not begun
    progress_turn_.stop();
    Q_EMIT run_ended({}, {});
}

}  // namespace headscope::app
