// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "widgets/desk/desk.h"
#include "widgets/mailbox.h"

class QTimer;

namespace headscope {
class Spawned;
}
namespace headscope::store {
struct AskRecord;
struct Evaluation;
}  // namespace headscope::store

namespace headscope::app {

/// Opens analysis files into the desk, and reads evaluation and ask files: the format in the file decides. HDF5's
/// parser has had memory errors, and a file may come from anywhere: a child process (`headscope info FILE... --json`)
/// reads it first, and what crashes that does not reach the window. A child takes a third of a second to begin, so of
/// hundreds of files each child looks at several, and few are at it at a time. Where
/// that takes long each file gets a child of its own: a disk that does not answer holds up its own files alone, and
/// these are given up in the end. What was asked for first is there first, but for files that take long.
class Opener : public QObject {
    Q_OBJECT
public:
    Opener(widgets::Desk* desk, std::string program, QObject* parent = nullptr);
    ~Opener() override;  ///< does not wait for disks

    /// `ours`: this process has just written it or is writing it, so that no child needs to look at it first. A path
    /// that is on its way already is not opened twice.
    void open(const QString& path, bool ours = false);
    /// Drops a file of ours that is being opened: neither signal comes.
    void give_up(const QString& path);
    /// How long a look may take: then others need not wait for it, and then it is given up.
    void set_patience(std::chrono::milliseconds patience, std::chrono::milliseconds last);
    /// True if the name alone suggests an analysis, evaluation or ask file.
    static bool looks_like_analysis(const QString& path);

Q_SIGNALS:
    void opened(headscope::widgets::Study* study);
    void was_open(const QString& path, headscope::widgets::Study* study);  ///< the same file, perhaps by another name
    void evaluation_read(const QString& path, const std::shared_ptr<const headscope::store::Evaluation>& record);
    void ask_read(const QString& path, const std::shared_ptr<const headscope::store::AskRecord>& record);
    void failed(const QString& path, const QString& message);

private:
    /// The files of one child.
    struct Look {
        enum class State { fresh, running, good, bad };
        QStringList paths;
        State state = State::fresh;
        bool alone = false;  ///< one of those it was looked at with was bad, or took long
        bool slow = false;   ///< others need not wait for it
        bool late = false;   ///< of a look that took long: others begin first
        std::shared_ptr<Spawned> child;
        std::shared_ptr<bool> heard;  ///< the child's answer is still needed; of the window's thread
        QTimer* patience = nullptr;
        QString message;
    };
    using Looks = std::list<Look>;

    void start_looks();
    void start(Looks::iterator look);
    void wait_longer(Looks::iterator look);
    void child_ended(Looks::iterator look);
    static void leave(Look& look);
    void part(Looks::iterator look, bool late);
    void looked(Looks::iterator look, bool good, const QString& message);
    void take_looked();
    void read_next();
    void settle(const QString& path);
    void read(const QString& path, const std::shared_ptr<bool>& wanted = nullptr);

    widgets::Desk* desk_;
    std::string program_;
    std::map<QString, std::shared_ptr<bool>> ours_;  ///< being opened, and whether they are wanted
    std::set<QString> coming_;                       ///< not ours, and neither opened nor failed yet
    Looks looks_;                                    ///< in the order in which they were asked for
    std::deque<QString> looked_;                     ///< to be read, in that order
    bool reading_ = false;                           ///< the first of them
    std::chrono::milliseconds patience_, last_patience_;
    int children_ = 0;  ///< without those that are slow
    widgets::Mailbox mailbox_{this};
};

}  // namespace headscope::app
