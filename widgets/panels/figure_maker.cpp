// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/figure_maker.h"

#include <QFile>
#include <csignal>
#include <utility>

#include "core/base/error.h"
#include "core/base/process/spawned.h"
#include "core/figures/options/figure_arguments.h"
#include "widgets/desk/error_words.h"

namespace headscope::widgets {
namespace {

constexpr std::chrono::milliseconds kEnd{1000};
constexpr qint64 kMostCopied = 32'000'000;  // bytes: every other program that looks is handed them

}  // namespace

FigureMaker::FigureMaker(std::string program, Worker* reader, QObject* parent)
    : QObject(parent), program_(std::move(program)), reader_(reader) {}

FigureMaker::~FigureMaker() {
    mailbox_.close();
    for (const Work& work : works_)
        if (work.kept) work.process->wait_until_begun(kEnd);
    std::erase_if(works_, [](const Work& work) { return work.kept; });
    for (const Work& work : works_) work.process->send_signal(SIGKILL);
    for (const Work& work : works_) work.process->wait(kEnd);  // together: all are ending
}

FigureMaker::Works::iterator FigureMaker::start(const figures::FigureRequest& request,
                                                const std::vector<std::string>& files, const QString& output,
                                                Done done) {
    SpawnOptions options;
    options.program = program_;
    options.arguments = figures::figure_arguments(request, files, output.toStdString());
    const auto work = works_.insert(works_.end(), {nullptr, std::move(done), false});
    try {
        work->process = Spawned::start_aside(
            options, [this, work, send = mailbox_.sender()] { send([this, work] { ended(work); }); });
    } catch (const Error& error) {
        const Done fail = std::move(work->done);
        works_.erase(work);
        fail(QString::fromUtf8(error.what()));
        return works_.end();
    }
    return work;
}

void FigureMaker::ended(Works::iterator work) {
    const Work one = std::move(*work);
    if (work == previewing_) previewing_ = works_.end();
    works_.erase(work);
    if (!one.done) return;
    if (one.process->status() == 0) return one.done({});
    const QString message = error_words(QByteArray::fromStdString(one.process->errors()));
    one.done(message.isEmpty() ? tr("The figure could not be made") : message);
}

void FigureMaker::preview(const figures::FigureRequest& request, const std::vector<std::string>& files) {
    if (previewing_ != works_.end()) {
        previewing_->done = {};
        previewing_->process->send_signal(SIGKILL);
    }
    const QString path = folder_.filePath(QStringLiteral("preview-%1.png").arg(++count_));
    previewing_ = start(request, files, path, [this, path](const QString& message) {
        if (!message.isEmpty()) {
            Q_EMIT preview_failed(message);
            return;
        }
        reader_->post(this, [this, path, send = mailbox_.sender()](const Cancellation&) {
            const QImage picture(path);
            QFile::remove(path);
            send([this, picture] { Q_EMIT previewed(picture); });
        });
    });
}

void FigureMaker::write(const figures::FigureRequest& request, const std::vector<std::string>& files,
                        const QString& output) {
    const auto work = start(request, files, output, [this, output](const QString& message) {
        if (message.isEmpty())
            Q_EMIT written(output);
        else
            Q_EMIT failed(message);
    });
    if (work != works_.end()) work->kept = true;
}

void FigureMaker::copy(const figures::FigureRequest& request, const std::vector<std::string>& files,
                       const QString& format) {
    const QString path = folder_.filePath(QStringLiteral("copy-%1.%2").arg(++count_).arg(format));
    start(request, files, path, [this, path, format](const QString& message) {
        if (!message.isEmpty()) {
            Q_EMIT failed(message);
            return;
        }
        reader_->post(this, [this, path, format, send = mailbox_.sender()](const Cancellation&) {
            QFile file(path);
            Copy copy{format, {}, {}, {}};
            const qint64 size = file.size();
            if (size <= kMostCopied && file.open(QIODevice::ReadOnly)) copy.bytes = file.readAll();
            QFile::remove(path);
            if (size > kMostCopied) {
                send([this, size] {
                    Q_EMIT failed(tr("%1 MB are too much for the clipboard: export them to a file")
                                      .arg(static_cast<double>(size) / 1e6, 0, 'f', 0));
                });
                return;
            }
            // 600 dots an inch take a quarter of a second to read.
            if (format == QLatin1String("png"))
                copy.picture = QImage::fromData(copy.bytes, "PNG");
            else
                copy.text = QString::fromUtf8(copy.bytes);
            send([this, copy] { Q_EMIT copied(copy); });
        });
    });
}

}  // namespace headscope::widgets
