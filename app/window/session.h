// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What is open and how it is looked at, kept in a file that is written whole or not at all. The formats of the parts
// are those of to_json() of the widgets.

#include <QDateTime>
#include <QJsonObject>
#include <QStringList>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headscope::app {

struct Session {
    struct Analysis {
        QString path;
    };
    QDateTime saved;
    bool closed = false;  ///< the window was closed; false: it is open, or the program died
    qint64 process = 0;   ///< whose it is
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
    std::vector<std::string> head_sets;  ///< marks, sets and notes of each model, HeadSets::to_json()

    bool empty() const { return models.isEmpty() && analyses.isEmpty() && runs.isEmpty(); }
};

/// One of the things that were opened lately.
struct Recent {
    QString path, name, detail, kind;  ///< kind: model, analysis, run
    QByteArray thumbnail;              ///< PNG
};

/// Folder of the user's own files: analyses, session, recent items. Made when it is not there. Throws Error.
std::filesystem::path data_folder();

/// Empty: there is none, or it is not ours to read. Never throws.
std::optional<Session> load_session(const std::filesystem::path& folder);
/// Throws Error.
void save_session(const std::filesystem::path& folder, const Session& session);

// A session whose program died is put aside, so that the next one may be saved, and offered until it is brought back
// or declined.
void put_session_aside(const std::filesystem::path& folder);
std::optional<Session> load_lost_session(const std::filesystem::path& folder);
void drop_lost_session(const std::filesystem::path& folder);

std::vector<Recent> load_recent(const std::filesystem::path& folder);
void save_recent(const std::filesystem::path& folder, const std::vector<Recent>& items);

}  // namespace headscope::app
