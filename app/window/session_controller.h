// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QObject>
#include <QTimer>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/window/context.h"
#include "app/window/session/session.h"
#include "app/window/session/session_keeper.h"

namespace headscope::app {

class AnalysisController;
class AsksController;
class EvaluationsController;
class FilesController;
class PagesController;
class RunsController;

/// Saves what is open and how it is looked at, and brings it back in the next window.
class SessionController : public QObject {
    Q_OBJECT
public:
    /// The controllers that open what a session lists.
    struct Parts {
        PagesController& pages;
        AnalysisController& analysis;
        FilesController& files;
        RunsController& runs;
        EvaluationsController& evaluations;
        AsksController& asks;
    };
    /// Geometry and docks of the window.
    struct Layout {
        std::function<QJsonObject()> take;
        std::function<void(const QJsonObject&)> restore;
    };
    SessionController(Context& context, const Parts& parts, Layout layout);
    ~SessionController() override;

    /// Reads the user's folder on a worker, restores the last session if `restore`, and opens `paths`.
    void begin(bool restore, const QStringList& paths);
    Session session(bool closed) const;
    /// Saves the session as that of a closed window. Nothing is saved afterwards.
    void close();
    /// Waits for the session to be on the disk and releases the lock, so that another window may keep its session.
    void let_go();

protected:
    bool eventFilter(QObject* object, QEvent* event) override;

private:
    /// The content of the user's folder when the window opens.
    struct Stored {
        std::filesystem::path folder;
        std::vector<Recent> recent;
        std::shared_ptr<SessionKeeper> keeper;  ///< null: the session is not kept
        FoundSession session;
        QString theme;
        std::optional<double> rate;  ///< of analyses on this machine
        QString problem;
    };
    static Stored read_stored(int threads, bool restore);
    void take(const Stored& stored, bool restore, const QStringList& paths);
    void keep_rate(double rate);
    void open_given(const QStringList& paths);
    void answer_offer(bool bring_back);
    void restore(Session session);
    void restore_layout(const Session& session);
    void restore_head_sets(const Session& session);
    void restore_shown(const Session& session);
    void settled(const QString& path, bool late);
    void stop_restoring();
    void end_restoring();
    void show_requested();
    void note_action();
    void begin_history();
    void save_soon();
    void save_now(bool closed);
    void save_ended(const QString& failure);
    void leave_session_to_another();

    Context& context_;
    Parts parts_;
    Layout layout_;
    std::shared_ptr<SessionKeeper> keeper_;  ///< the worker uses its content
    bool recording_ = false;                 ///< the previous session was read: this one may be saved
    std::optional<Session> lost_;            ///< of a program that died, offered to the user
    bool answered_ = false;                  ///< that offer: its file goes once its content is saved or declined
    std::optional<Session> restoring_;
    std::optional<Session> late_;  ///< its views, until the last of its paths is open
    QTimer restoring_timer_, save_timer_;
    QJsonObject views_before_;                   ///< states of the views when restoring began
    bool in_action_ = false;                     ///< an event of the user is being handled
    std::vector<std::string> unread_head_sets_;  ///< of another version: saved as they are
    int save_pause_ = 0;                         ///< ms from a failed save to the next one; 0: the last one succeeded
    widgets::Mailbox mailbox_{this};
    Worker saver_;  ///< small files of ours: the session, recent items, this machine's speed
};

}  // namespace headscope::app
