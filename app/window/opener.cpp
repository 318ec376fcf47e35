// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/opener.h"

#include <QProcess>

#include "core/base/error.h"
#include "core/store/evaluation_file.h"
#include "core/store/file_format.h"
#include "widgets/desk/error_words.h"

namespace headscope::app {

Opener::Opener(widgets::Desk* desk, std::string program, QObject* parent)
    : QObject(parent), desk_(desk), program_(std::move(program)) {}

bool Opener::looks_like_analysis(const QString& path) {
    return path.endsWith(QLatin1String(".h5")) || path.endsWith(QLatin1String(".hdf5")) ||
           path.endsWith(QLatin1String(".h5.partial"));
}

void Opener::open(const QString& path, bool ours) {
    if (ours) {
        const auto wanted = std::make_shared<bool>(true);
        ours_[path] = wanted;
        read(path, wanted);
        return;
    }
    auto* child = new QProcess(this);
    child->setStandardOutputFile(QProcess::nullDevice());
    connect(child, &QProcess::finished, this, [this, child, path](int status, QProcess::ExitStatus how) {
        QString message = widgets::error_words(child->readAllStandardError());
        child->deleteLater();
        if (how == QProcess::NormalExit && status == 0) {
            read(path);
            return;
        }
        if (message.isEmpty())
            message = tr("[%1] expected an analysis file; the process that looked at it ended").arg(path);
        Q_EMIT failed(path, message);
    });
    connect(child, &QProcess::errorOccurred, this, [this, child, path](QProcess::ProcessError error) {
        if (error != QProcess::FailedToStart) return;
        child->deleteLater();
        Q_EMIT failed(
            path,
            tr("[%1] expected to start a process that looks at the file first; %2").arg(path, child->errorString()));
    });
    child->start(QString::fromStdString(program_), {QStringLiteral("info"), path, QStringLiteral("--json")});
}

void Opener::give_up(const QString& path) {
    const auto place = ours_.find(path);
    if (place == ours_.end()) return;
    *place->second = false;
    ours_.erase(place);
}

/// `wanted` belongs to the window's thread.
void Opener::read(const QString& path, const std::shared_ptr<bool>& wanted) {
    const auto is_wanted = [this, path, wanted] {
        if (!wanted) return true;
        if (const auto place = ours_.find(path); place != ours_.end() && place->second == wanted) ours_.erase(place);
        return *wanted;
    };
    desk_->reader().post(this, [this, path, is_wanted, send = mailbox_.sender()](const Cancellation&) {
        try {
            if (store::hdf5_format(path.toStdString()) == "headscope-evaluation") {
                auto record = std::make_shared<const store::Evaluation>(store::read_evaluation(path.toStdString()));
                send([this, path, record] { Q_EMIT evaluation_read(path, record); });
                return;
            }
            auto opened = std::make_shared<widgets::Study::Opened>(widgets::Study::open(path.toStdString()));
            send([this, is_wanted, opened = std::move(opened)]() mutable {
                if (is_wanted()) {
                    Q_EMIT this->opened(desk_->add(std::move(*opened)));
                    return;
                }
                // The file is closed where it was opened.
                desk_->reader().post(nullptr,
                                     [gone = std::move(opened)](const Cancellation&) mutable { gone.reset(); });
            });
        } catch (const Stopped&) {
        } catch (...) {
            try {
                const QString message = QString::fromUtf8(current_error("analysis").what());
                send([this, path, is_wanted, message] {
                    if (is_wanted()) Q_EMIT failed(path, message);
                });
            } catch (const Stopped&) {
            }
        }
    });
}

}  // namespace headscope::app
