// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/files/opener.h"

#include <QTimer>
#include <csignal>
#include <utility>
#include <vector>

#include "core/ask/corpus/headvis_tree.h"
#include "core/base/error.h"
#include "core/base/process/spawned.h"
#include "core/store/ask/ask_file.h"
#include "core/store/evaluation/evaluation_file.h"
#include "core/store/hdf5/file_format.h"
#include "widgets/desk/error_words.h"

namespace headscope::app {
namespace {

constexpr int kMostChildren = 2;
constexpr std::chrono::seconds kLookPatience{5}, kLastPatience{60};
constexpr std::chrono::milliseconds kChildEnd{500};
constexpr qsizetype kMostFiles = 12;  ///< that one child looks at

}  // namespace

Opener::Opener(widgets::Desk* desk, std::string program, QObject* parent)
    : QObject(parent),
      desk_(desk),
      program_(std::move(program)),
      patience_(kLookPatience),
      last_patience_(kLastPatience) {}

Opener::~Opener() {
    std::vector<std::shared_ptr<Spawned>> children;
    for (Look& look : looks_) {
        if (look.child) children.push_back(look.child);
        leave(look);
    }
    // One that is not there yet could not be killed.
    for (const auto& child : children) child->wait_until_begun(kChildEnd);
}

void Opener::set_patience(std::chrono::milliseconds patience, std::chrono::milliseconds last) {
    patience_ = patience;
    last_patience_ = last;
}

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
    if (!coming_.insert(path).second) return;
    const bool joins = !looks_.empty() && looks_.back().state == Look::State::fresh && !looks_.back().alone &&
                       looks_.back().paths.size() < kMostFiles;
    if (!joins) looks_.emplace_back();
    looks_.back().paths << path;
    start_looks();
}

void Opener::start_looks() {
    for (const bool late : {false, true})
        for (auto look = looks_.begin(); look != looks_.end() && children_ < kMostChildren; ++look)
            if (look->state == Look::State::fresh && look->late == late) start(look);
}

void Opener::start(Looks::iterator look) {
    look->state = Look::State::running;
    ++children_;
    look->heard = std::make_shared<bool>(true);
    look->patience = new QTimer(this);
    look->patience->setSingleShot(true);
    connect(look->patience, &QTimer::timeout, this, [this, look] { wait_longer(look); });
    look->patience->start(patience_);
    SpawnOptions options;
    options.program = program_;
    options.arguments = {"info", "--json", "--"};
    for (const QString& path : look->paths) options.arguments.push_back(path.toStdString());
    try {
        look->child = Spawned::start_aside(options, [this, look, heard = look->heard, send = mailbox_.sender()] {
            send([this, look, heard] {
                if (*heard) child_ended(look);
            });
        });
    } catch (const Error& error) {
        const QString message = tr("[%1] expected to start a process that looks at the file first; %2")
                                    .arg(look->paths.first(), QString::fromStdString(error.found()));
        // Not from within the loop that starts them.
        mailbox_.sender()([this, look, heard = look->heard, message] {
            if (!*heard) return;
            leave(*look);
            looked(look, false, message);
        });
    }
}

void Opener::child_ended(Looks::iterator look) {
    const bool good = look->child->status() == 0;
    QString message = good ? QString() : widgets::error_words(QByteArray::fromStdString(look->child->errors()));
    if (look->child->status() == Spawned::kNotBegun)
        message =
            tr("[%1] expected to start a process that looks at the file first; %2").arg(look->paths.first(), message);
    leave(*look);
    if (!good && message.isEmpty())
        message = tr("[%1] expected an analysis file; the process that looked at it ended").arg(look->paths.first());
    looked(look, good, message);
}

void Opener::wait_longer(Looks::iterator look) {
    if (look->paths.size() == 1 && !look->slow) {
        look->slow = true;
        --children_;
        look->patience->start(last_patience_);
        take_looked();
        return;
    }
    leave(*look);
    if (look->paths.size() == 1) {
        look->state = Look::State::bad;
        look->message = tr("[%1] expected to read the file within %2 s; it has not been read to its end by then. "
                           "Is its disk there?")
                            .arg(look->paths.first())
                            .arg((patience_ + last_patience_).count() / 1000);
    } else {
        --children_;
        part(look, true);
    }
    take_looked();
}

/// Does not wait for the process: its disk may not answer.
void Opener::leave(Look& look) {
    if (look.heard) *look.heard = false;
    if (look.patience) std::exchange(look.patience, nullptr)->deleteLater();
    if (look.child) std::exchange(look.child, nullptr)->send_signal(SIGKILL);
}

/// Gives each file a process of its own.
void Opener::part(Looks::iterator look, bool late) {
    for (const QString& path : look->paths) {
        Look one;
        one.paths << path;
        one.alone = true;
        one.late = late;
        looks_.insert(look, std::move(one));
    }
    looks_.erase(look);
}

void Opener::looked(Looks::iterator look, bool good, const QString& message) {
    if (!look->slow) --children_;
    look->state = good ? Look::State::good : Look::State::bad;
    look->message = message;
    if (!good && look->paths.size() > 1) part(look, false);
    take_looked();
}

void Opener::take_looked() {
    for (auto look = looks_.begin(); look != looks_.end();) {
        const bool done = look->state == Look::State::good || look->state == Look::State::bad;
        if (!done && !look->slow) break;
        if (!done) {
            ++look;
            continue;
        }
        const Look one = std::move(*look);
        look = looks_.erase(look);
        if (one.state == Look::State::good) {
            looked_.insert(looked_.end(), one.paths.begin(), one.paths.end());
            continue;
        }
        coming_.erase(one.paths.first());
        Q_EMIT failed(one.paths.first(), one.message);
    }
    read_next();
    start_looks();
}

/// One at a time: the reader takes what came last first.
void Opener::read_next() {
    if (reading_ || looked_.empty()) return;
    reading_ = true;
    read(looked_.front());
}

void Opener::settle(const QString& path) {
    if (coming_.erase(path) == 0) return;
    reading_ = false;
    looked_.pop_front();
    read_next();
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
    desk_->reader().post(this, [this, path, wanted, is_wanted, send = mailbox_.sender()](const Cancellation&) {
        try {
            const bool tree = ask::corpus::is_headvis_tree(path.toStdString());
            const std::string format = tree ? std::string() : store::hdf5_format(path.toStdString());
            if (tree || format == "headscope-ask") {
                auto record = std::make_shared<const store::AskRecord>(
                    tree ? ask::corpus::read_headvis_tree(path.toStdString()) : store::read_ask(path.toStdString()));
                send([this, path, wanted, record] {
                    if (!wanted) settle(path);
                    Q_EMIT ask_read(path, record);
                });
                return;
            }
            if (format == "headscope-evaluation") {
                auto record = std::make_shared<const store::Evaluation>(store::read_evaluation(path.toStdString()));
                send([this, path, wanted, record] {
                    if (!wanted) settle(path);
                    Q_EMIT evaluation_read(path, record);
                });
                return;
            }
            auto opened = std::make_shared<widgets::Study::Opened>(widgets::Study::open(path.toStdString()));
            send([this, path, wanted, is_wanted, opened = std::move(opened)]() mutable {
                if (!wanted) settle(path);
                widgets::Study* there = !wanted && opened->identity ? desk_->study_of(*opened->identity) : nullptr;
                if (!there && is_wanted()) {
                    Q_EMIT this->opened(desk_->add(std::move(*opened)));
                    return;
                }
                if (there) Q_EMIT was_open(path, there);
                desk_->reader().let_go(std::move(opened));  // the file is closed where it was opened
            });
        } catch (const Stopped&) {
        } catch (...) {
            try {
                const QString message = QString::fromUtf8(current_error("analysis").what());
                send([this, path, wanted, is_wanted, message] {
                    if (!wanted) settle(path);
                    if (is_wanted()) Q_EMIT failed(path, message);
                });
            } catch (const Stopped&) {
            }
        }
    });
}

}  // namespace headscope::app
