// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/session/session.h"

#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QStandardPaths>
#include <algorithm>
#include <chrono>
#include <utility>

#include "app/window/session/path_states.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "widgets/desk/job_draft.h"
#include "widgets/panels/text_choice.h"

namespace headscope::app {
namespace {

constexpr int kSessionVersion = 1;
constexpr qint64 kMostSessionBytes = 64 << 20;

std::optional<QJsonObject> read_object(const std::filesystem::path& path) {
    QFile file(QString::fromStdString(path.string()));
    if (!file.open(QIODevice::ReadOnly) || file.size() > kMostSessionBytes) return std::nullopt;
    const QJsonDocument document = QJsonDocument::fromJson(file.readAll());
    if (!document.isObject() || document.object()["version"].toInt() != kSessionVersion) return std::nullopt;
    return document.object();
}

void write_object(const std::filesystem::path& path, QJsonObject object, const char* kind) {
    object["version"] = kSessionVersion;
    const QByteArray text = QJsonDocument(object).toJson();
    write_whole_file(path, {text.constData(), static_cast<std::size_t>(text.size())}, kind);
}

QStringList strings(const QJsonValue& value) {
    QStringList list;
    for (const QJsonValue item : value.toArray()) list << item.toString();
    return list;
}

constexpr const char* kSession = "session.json";
constexpr const char* kLost = "session.lost.json";
constexpr const char* kUnread = "session.unread.json";
constexpr const char* kRecent = "recent.json";
constexpr QLatin1String kJobView("train"), kPartial(".partial");
constexpr std::chrono::seconds kDiskPatience{2};

std::optional<Session> load(const std::filesystem::path& path) {
    const auto object = read_object(path);
    if (!object) return std::nullopt;
    const QJsonObject& o = *object;
    Session session;
    session.saved = QDateTime::fromString(o["saved"].toString(), Qt::ISODate);
    session.closed = o["closed"].toBool();
    session.process = static_cast<qint64>(o["process"].toDouble());
    session.models = strings(o["models"]);
    session.analyses = strings(o["analyses"]);
    session.runs = strings(o["runs"]);
    session.shown_run = o["shown_run"].toString();
    session.chosen_model = o["chosen_model"].toString();
    session.shown_analysis = o["shown_analysis"].toString();
    session.selection = o["selection"].toObject();
    session.views = o["views"].toObject();
    session.text = o["text"].toObject();
    session.window = o["window"].toObject();
    session.theme = o["theme"].toString(QStringLiteral("system"));
    session.front = o["front"].toString();
    session.names = o["names"].toObject();
    for (const QJsonValue sets : o["head_sets"].toArray())
        session.head_sets.push_back(QJsonDocument(sets.toObject()).toJson(QJsonDocument::Compact).toStdString());
    return session;
}

void add_missing(QStringList& list, const QStringList& others) {
    for (const QString& other : others)
        if (!list.contains(other)) list << other;
}

/// Typed, or a file: an example is chosen again in a moment.
bool is_own(const widgets::TextSource& source) {
    return source.kind != widgets::TextSource::Kind::example && !source.value.trimmed().isEmpty();
}

bool has_own_text(const QJsonObject& text) {
    const widgets::TextChoice choice = widgets::text_choice_from(text);
    return !choice.target.isEmpty() || !choice.pair.isEmpty() ||
           std::any_of(choice.sources.begin(), choice.sources.end(), is_own);
}

QJsonObject joined_texts(const QJsonObject& first, const QJsonObject& second) {
    if (!has_own_text(first)) return has_own_text(second) || first.isEmpty() ? second : first;
    widgets::TextChoice all = widgets::text_choice_from(first);
    const widgets::TextChoice others = widgets::text_choice_from(second);
    for (const widgets::TextSource& source : others.sources) {
        const bool known = std::any_of(all.sources.begin(), all.sources.end(), [&](const widgets::TextSource& one) {
            return one.kind == source.kind && one.value == source.value;
        });
        if (!known && is_own(source)) all.sources.push_back(source);
    }
    if (all.target.isEmpty()) all.target = others.target;
    if (all.pair.isEmpty()) all.pair = others.pair;
    return widgets::to_json(all);
}

/// A job that was written, not the one that every window begins with.
bool has_own_job(const QJsonObject& views) {
    const QJsonValue text = views[kJobView].toObject()["job"];
    return text.isString() && text.toString() != widgets::JobDraft::first_text();
}

/// Identifies the model of some sets of heads.
QString model_of(const std::string& sets) {
    const QJsonObject object = QJsonDocument::fromJson(QByteArray::fromStdString(sets)).object();
    const QString sha256 = object["model_sha256"].toString();
    return sha256.isEmpty() ? QStringLiteral("name ") + object["model_name"].toString() : sha256;
}

void add_missing(std::vector<std::string>& sets, const std::vector<std::string>& others) {
    QStringList known;
    for (const std::string& one : sets) known << model_of(one);
    for (const std::string& other : others)
        if (!known.contains(model_of(other))) sets.push_back(other);
}

/// A run may have ended between the last save and the end of the program: its file has its name then. Where its disk
/// does not answer it keeps the one it had.
void follow_renames(FoundSession& found) {
    const auto published = [](const QString& path) { return path.chopped(kPartial.size()); };
    QStringList asked;
    for (const auto* session : {&found.last, &found.lost}) {
        if (!*session) continue;
        for (const QString& path :
             (*session)->analyses + (*session)->names.keys() + QStringList{(*session)->shown_analysis})
            if (path.endsWith(kPartial)) asked << path << published(path);
    }
    if (asked.isEmpty()) return;
    const auto states = PathStates().ask(asked, kDiskPatience);
    const auto is = [&](const QString& path, PathStates::State state) { return states.at(path) == state; };
    const auto follow = [&](QString& path) {
        if (!path.endsWith(kPartial) || !is(path, PathStates::State::missing)) return;
        if (is(published(path), PathStates::State::there)) path = published(path);
    };
    for (auto* session : {&found.last, &found.lost}) {
        if (!*session) continue;
        for (QString& path : (*session)->analyses) follow(path);
        (*session)->analyses.removeDuplicates();
        for (const QString& path : (*session)->names.keys()) {
            QString now = path;
            follow(now);
            if (now != path) (*session)->names[now] = (*session)->names.take(path);
        }
        follow((*session)->shown_analysis);
    }
}

/// Removes temporary files of interrupted saves.
void remove_leftovers(const std::filesystem::path& folder) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        const bool ours = name.starts_with(kSession) || name.starts_with(kLost) || name.starts_with(kRecent);
        std::error_code ignored;
        if (ours && name.ends_with(".partial")) std::filesystem::remove(entry->path(), ignored);
    }
}

void save(const std::filesystem::path& path, const Session& session) {
    QJsonArray head_sets;
    for (const std::string& sets : session.head_sets)
        head_sets.append(QJsonDocument::fromJson(QByteArray::fromStdString(sets)).object());
    write_object(path,
                 {{"saved", session.saved.toString(Qt::ISODate)},
                  {"closed", session.closed},
                  {"process", static_cast<double>(session.process)},
                  {"models", QJsonArray::fromStringList(session.models)},
                  {"analyses", QJsonArray::fromStringList(session.analyses)},
                  {"runs", QJsonArray::fromStringList(session.runs)},
                  {"shown_run", session.shown_run},
                  {"chosen_model", session.chosen_model},
                  {"shown_analysis", session.shown_analysis},
                  {"selection", session.selection},
                  {"views", session.views},
                  {"text", session.text},
                  {"window", session.window},
                  {"theme", session.theme},
                  {"front", session.front},
                  {"names", session.names},
                  {"head_sets", head_sets}},
                 "session");
}

}  // namespace

bool Session::has_work() const {
    return !models.isEmpty() || !analyses.isEmpty() || !runs.isEmpty() || has_own_text(text);
}

Session joined(Session first, const Session& second) {
    const bool nothing_open = first.models.isEmpty() && first.analyses.isEmpty() && first.runs.isEmpty();
    const bool own = has_own_job(first.views), others = has_own_job(second.views);
    const bool of_second = !own || (others && first.saved < second.saved);
    const QJsonObject job = (of_second ? second : first).views[kJobView].toObject();
    if (first.views.isEmpty() || nothing_open) {
        first.views = second.views;
        first.front = second.front;
    }
    if (!job.isEmpty()) first.views[kJobView] = job;
    if (first.analyses.isEmpty()) {
        first.selection = second.selection;
        first.shown_analysis = second.shown_analysis;
    }
    if (first.models.isEmpty()) first.chosen_model = second.chosen_model;
    if (first.runs.isEmpty()) first.shown_run = second.shown_run;
    if (first.window.isEmpty()) first.window = second.window;
    add_missing(first.models, second.models);
    add_missing(first.analyses, second.analyses);
    add_missing(first.runs, second.runs);
    add_missing(first.head_sets, second.head_sets);
    for (auto name = second.names.begin(); name != second.names.end(); ++name)
        if (!first.names.contains(name.key())) first.names[name.key()] = *name;
    first.text = joined_texts(first.text, second.text);
    return first;
}

std::filesystem::path data_folder() {
    return QStandardPaths::writableLocation(QStandardPaths::AppDataLocation).toStdString();
}

void make_data_folder(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        throw Error(ErrorCode::io, folder.string(), "expected to make this folder for sessions and analyses",
                    "found " + error.message());
}

std::array<std::filesystem::path, 3> session_files(const std::filesystem::path& folder) {
    return {folder / kSession, folder / kLost, folder / kRecent};
}

std::optional<Session> load_session(const std::filesystem::path& folder) {
    return load(folder / kSession);
}

FoundSession read_session(const std::filesystem::path& folder) {
    FoundSession found;
    found.last = load(folder / kSession);
    found.lost = load(folder / kLost);
    std::error_code ignored;
    found.unread = !found.last && std::filesystem::exists(folder / kSession, ignored);
    if (found.last && !found.last->closed && found.last->has_work()) {
        Session offer = *found.last;
        // Sets of heads are not offered but kept: each session has all of them.
        offer.head_sets.clear();
        if (found.lost) offer = joined(std::move(offer), *found.lost);
        found.lost = std::move(offer);
        found.died = true;
    }
    follow_renames(found);
    return found;
}

FoundSession find_session(const std::filesystem::path& folder) {
    remove_leftovers(folder);
    FoundSession found = read_session(folder);
    try {
        put_aside(folder, found);
    } catch (const Error& error) {
        found.problem = error.what();
    }
    return found;
}

void put_aside(const std::filesystem::path& folder, const FoundSession& found) {
    std::error_code error;
    if (found.unread) std::filesystem::rename(folder / kSession, folder / kUnread, error);
    if (error)
        throw Error(ErrorCode::io, (folder / kSession).string(), "expected to put this file of another version aside",
                    "found " + error.message());
    if (found.died) save(folder / kLost, *found.lost);
}

void drop_lost_session(const std::filesystem::path& folder) {
    std::error_code ignored;
    std::filesystem::remove(folder / kLost, ignored);
}

void save_session(const std::filesystem::path& folder, const Session& session) {
    save(folder / kSession, session);
}

std::vector<Recent> load_recent(const std::filesystem::path& folder) {
    std::vector<Recent> items;
    const auto object = read_object(folder / kRecent);
    if (!object) return items;
    for (const QJsonValue value : (*object)["items"].toArray()) {
        const QJsonObject item = value.toObject();
        items.push_back({item["path"].toString(), item["name"].toString(), item["detail"].toString(),
                         item["kind"].toString(), QByteArray::fromBase64(item["thumbnail"].toString().toLatin1())});
        if (items.size() == kMostRecent) break;
    }
    return items;
}

void save_recent(const std::filesystem::path& folder, const std::vector<Recent>& items) {
    QJsonArray list;
    for (const Recent& item : items) {
        if (list.size() == static_cast<int>(kMostRecent)) break;
        list.append(QJsonObject{{"path", item.path},
                                {"name", item.name},
                                {"detail", item.detail},
                                {"kind", item.kind},
                                {"thumbnail", QString::fromLatin1(item.thumbnail.toBase64())}});
    }
    write_object(folder / kRecent, {{"items", list}}, "list of recent files");
}

}  // namespace headscope::app
