// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A session: the open items and the states of views, in a file that is written whole or not at all. Its parts have the
// formats of the widgets' to_json().

#include <QDateTime>
#include <QJsonObject>
#include <QStringList>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headscope::app {

struct Session {
    QDateTime saved;
    bool closed = false;  ///< the window was closed; false: it is open, or the program died
    qint64 process = 0;   ///< of the window
    QStringList models;   ///< paths
    QStringList analyses;
    QStringList runs;  ///< folders
    QString chosen_model;
    QString shown_analysis, shown_run;
    QJsonObject selection;               ///< of the shown analysis
    QJsonObject views;                   ///< by name: View::state()
    QJsonObject text;                    ///< TextChoice
    QJsonObject window;                  ///< geometry, docks: Qt's own bytes in base64
    QString theme;                       ///< system, light, dark
    QString front;                       ///< name of the view in front
    QJsonObject names;                   ///< that analyses were given, by path
    std::vector<std::string> head_sets;  ///< marks, sets and notes of each model, HeadSets::to_json()

    /// Something was open, or the user had typed a text.
    bool has_work() const;
};

/// The first one, with everything of the second that it lacks: what was open, texts, sets of heads. What can be there
/// only once (selection, views) is the first one's where it had something open, else the second one's; of two jobs that
/// were written the later one stays.
Session joined(Session first, const Session& second);

/// One of the things that were opened lately.
struct Recent {
    QString path, name, detail, kind;  ///< kind: model, analysis, run, evaluation, ask
    QByteArray thumbnail;              ///< PNG
};

/// Folder of the user's own files: analyses, session, recent items. It need not be there yet.
std::filesystem::path data_folder();
/// Throws Error.
void make_data_folder(const std::filesystem::path& folder);

/// Empty: there is none, or it is not ours to read. Never throws.
std::optional<Session> load_session(const std::filesystem::path& folder);
/// Throws Error.
void save_session(const std::filesystem::path& folder, const Session& session);

/// The files of a session, which need not exist: the session, a lost one before it, recent items.
std::array<std::filesystem::path, 3> session_files(const std::filesystem::path& folder);

/// The sessions that the next window finds.
struct FoundSession {
    std::optional<Session> last;  ///< to be brought back; where it died, for its layout and sets of heads alone
    std::optional<Session> lost;  ///< of programs that died: offered until it is brought back or declined
    bool died = false;            ///< `last` is part of `lost`
    bool unread = false;          ///< there is a file of another version
    std::string problem;          ///< why a lost session could not be put aside; empty: it was
};
/// A session whose program died becomes the offer, joined with one that was not answered yet.
FoundSession read_session(const std::filesystem::path& folder);
/// As read_session(), and puts aside what must not be lost: only for who holds the SessionLock. A file that this
/// version cannot read is renamed to session.unread.json. Where the disk is full or not to be written on, all of it is
/// found nevertheless, with a problem.
FoundSession find_session(const std::filesystem::path& folder);
/// Puts aside what find_session() could not. Throws Error; until it succeeds nothing may be saved over the files.
void put_aside(const std::filesystem::path& folder, const FoundSession& found);
/// After what it offered is in a saved session, or was declined.
void drop_lost_session(const std::filesystem::path& folder);

/// Items that the list of recent ones keeps.
inline constexpr std::size_t kMostRecent = 24;

std::vector<Recent> load_recent(const std::filesystem::path& folder);
void save_recent(const std::filesystem::path& folder, const std::vector<Recent>& items);

}  // namespace headscope::app
