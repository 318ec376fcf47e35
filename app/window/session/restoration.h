// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QStringList>

namespace headscope::app {

/// True for two spellings of one path.
bool is_same_path(const QString& one, const QString& other);

/// Paths of a session while it is restored, and what the user opens and does meanwhile. The session controller begins
/// and ends it; callers that open a path settle it.
class Restoration : public QObject {
    Q_OBJECT
public:
    struct Paths {
        QStringList models, analyses, runs;
        bool empty() const { return models.isEmpty() && analyses.isEmpty() && runs.isEmpty(); }
        bool contain(const QString& path) const;
        bool remove(const QString& path);  ///< false: it was not there
        Paths& operator+=(const Paths& other);
    };

    bool active() const { return active_; }
    bool touched() const { return touched_; }  ///< the user did something since it began
    void touch() { touched_ = true; }
    /// The path belongs to the session and is not open yet.
    bool expects(const QString& path) const { return opening_.contain(path) || late_.contain(path); }
    /// It does, and the user has not requested it: it does not come to the front.
    bool brought_back(const QString& path) const;
    /// The user opens a path.
    void request(const QString& path);
    /// Keeps a requested text or job until the session is restored, which would take its place. False: no need.
    bool postpone(const QString& path);
    /// The path is open, or cannot be opened.
    void settle(const QString& path);

    // For the session controller:
    void begin(const Paths& paths);
    void end() { active_ = false; }
    /// Paths of the command line: the user's, but no reason to leave the restored views behind.
    void set_requested(const QStringList& paths) { requested_ = paths; }
    const QStringList& requested() const { return requested_; }
    void forget_requests();  ///< of paths that are not late
    void forget_request(const QString& path);
    void untouch() { touched_ = false; }
    QStringList take_postponed();
    const Paths& opening() const { return opening_; }
    const Paths& late() const { return late_; }
    void make_late();  ///< all that has not answered: it is opened when its disk answers

Q_SIGNALS:
    void settled(const QString& path, bool late);

private:
    Paths opening_, late_;
    QStringList requested_, postponed_;
    bool active_ = false, touched_ = false;
};

}  // namespace headscope::app
