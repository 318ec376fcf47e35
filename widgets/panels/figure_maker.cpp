// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/figure_maker.h"

#include <QFile>
#include <QProcess>

#include "core/figures/figure_arguments.h"
#include "widgets/desk/error_words.h"

namespace headscope::widgets {

FigureMaker::FigureMaker(std::string program, Worker* reader, QObject* parent)
    : QObject(parent), program_(std::move(program)), reader_(reader) {}

FigureMaker::~FigureMaker() {
    mailbox_.close();
    const auto processes = findChildren<QProcess*>();
    for (QProcess* process : processes) {
        process->disconnect(this);
        process->kill();
    }
    for (QProcess* process : processes) process->waitForFinished(1000);  // together: all are ending
}

QProcess* FigureMaker::start(const figures::FigureRequest& request, const std::vector<std::string>& files,
                             const QString& output, Done done) {
    QStringList arguments;
    for (const std::string& word : figures::figure_arguments(request, files, output.toStdString()))
        arguments << QString::fromStdString(word);
    auto* process = new QProcess(this);
    process->setStandardOutputFile(QProcess::nullDevice());
    connect(process, &QProcess::finished, this, [process, done](int status, QProcess::ExitStatus how) {
        process->deleteLater();
        if (how == QProcess::NormalExit && status == 0) {
            done({});
            return;
        }
        const QString message = error_words(process->readAllStandardError());
        done(message.isEmpty() ? tr("The figure could not be made") : message);
    });
    connect(process, &QProcess::errorOccurred, this, [process, done](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) done(process->errorString());
    });
    process->start(QString::fromStdString(program_), arguments);
    return process;
}

void FigureMaker::preview(const figures::FigureRequest& request, const std::vector<std::string>& files) {
    if (previewing_) {
        previewing_->disconnect(this);
        connect(previewing_, &QProcess::finished, previewing_, &QObject::deleteLater);
        previewing_->kill();
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
    start(request, files, output, [this, output](const QString& message) {
        if (message.isEmpty())
            Q_EMIT written(output);
        else
            Q_EMIT failed(message);
    });
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
            const QByteArray bytes = file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
            QFile::remove(path);
            // 600 dots an inch take a quarter of a second to read.
            const QImage picture = format == QLatin1String("png") ? QImage::fromData(bytes, "PNG") : QImage();
            send([this, format, bytes, picture] { Q_EMIT copied(format, bytes, picture); });
        });
    });
}

}  // namespace headscope::widgets
