// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/pages/task_service.h"

#include <csignal>
#include <utility>

#include "app/window/launch.h"
#include "core/base/error.h"
#include "core/base/process/spawned.h"
#include "widgets/desk/error_words.h"

namespace headscope::app {
namespace {

constexpr std::chrono::milliseconds kTaskEnd{5000};  ///< for it to stop in order
constexpr int kTaskLook = 400;                       ///< ms

}  // namespace

TaskService::TaskService(std::string program, QObject* parent) : QObject(parent), program_(std::move(program)) {
    look_.setInterval(kTaskLook);
    connect(&look_, &QTimer::timeout, this, [this] {
        const QString now = process_ ? told_progress(process_->errors()) : QString();
        if (now == progress_) return;
        progress_ = now;
        Q_EMIT changed();
    });
}

TaskService::~TaskService() {
    mailbox_.close();
    if (!process_) return;
    process_->send_signal(SIGTERM);
    if (process_->wait(kTaskEnd)) return;
    process_->send_signal(SIGKILL);
    process_->wait(kTaskEnd);
}

void TaskService::start(const QString& title, const QStringList& words) {
    if (process_) return;
    title_ = title;
    progress_.clear();
    stopped_ = false;
    try {
        process_ = Spawned::start_aside(patient(program_, words),
                                        [this, send = mailbox_.sender()] { send([this] { end(); }); });
    } catch (const Error& error) {
        Q_EMIT ended(QString::fromUtf8(error.what()));
        return;
    }
    look_.start();
    Q_EMIT changed();
}

void TaskService::stop() {
    stopped_ = true;
    if (process_) process_->send_signal(SIGTERM);
}

void TaskService::end() {
    const auto process = std::exchange(process_, nullptr);
    look_.stop();
    Q_EMIT changed();
    if (stopped_) {
        Q_EMIT stopped();
        return;
    }
    const QString message = widgets::error_words(QByteArray::fromStdString(process->errors()));
    if (process->status() == 0)
        Q_EMIT ended({});
    else
        Q_EMIT ended(message.isEmpty() ? tr("%1 ended early").arg(title_) : message);
}

}  // namespace headscope::app
