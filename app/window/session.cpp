// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/session.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QStandardPaths>

#include "core/base/error.h"
#include "core/base/output_file.h"

namespace headscope::app {
namespace {

constexpr int kVersion = 1;
constexpr qint64 kMostBytes = 64 << 20;
constexpr std::size_t kMostRecent = 24;

std::optional<QJsonObject> read_object(const std::filesystem::path& path) {
    QFile file(QString::fromStdString(path.string()));
    if (!file.open(QIODevice::ReadOnly) || file.size() > kMostBytes) return std::nullopt;
    const QJsonDocument document = QJsonDocument::fromJson(file.readAll());
    if (!document.isObject() || document.object()["version"].toInt() != kVersion) return std::nullopt;
    return document.object();
}

void write_object(const std::filesystem::path& path, QJsonObject object, const char* kind) {
    object["version"] = kVersion;
    const QByteArray text = QJsonDocument(object).toJson();
    OutputFile file(path, {}, kind);
    file.append(text.constData(), static_cast<std::size_t>(text.size()));
    file.publish();
}

QStringList strings(const QJsonValue& value) {
    QStringList list;
    for (const QJsonValue item : value.toArray()) list << item.toString();
    return list;
}

constexpr const char* kSession = "session.json";
constexpr const char* kLost = "session.lost.json";

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
    for (const QJsonValue sets : o["head_sets"].toArray())
        session.head_sets.push_back(QJsonDocument(sets.toObject()).toJson(QJsonDocument::Compact).toStdString());
    return session;
}

}  // namespace

std::filesystem::path data_folder() {
    const std::filesystem::path folder =
        QStandardPaths::writableLocation(QStandardPaths::AppDataLocation).toStdString();
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        throw Error(ErrorCode::io, folder.string(), "expected to make this folder for sessions and analyses",
                    "found " + error.message());
    return folder;
}

std::optional<Session> load_session(const std::filesystem::path& folder) {
    return load(folder / kSession);
}

std::optional<Session> load_lost_session(const std::filesystem::path& folder) {
    return load(folder / kLost);
}

void put_session_aside(const std::filesystem::path& folder) {
    std::error_code ignored;  // it is offered now in any case; the next start may find it twice
    std::filesystem::rename(folder / kSession, folder / kLost, ignored);
}

void drop_lost_session(const std::filesystem::path& folder) {
    std::error_code ignored;
    std::filesystem::remove(folder / kLost, ignored);
}

void save_session(const std::filesystem::path& folder, const Session& session) {
    QJsonArray head_sets;
    for (const std::string& sets : session.head_sets)
        head_sets.append(QJsonDocument::fromJson(QByteArray::fromStdString(sets)).object());
    write_object(folder / kSession,
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
                  {"head_sets", head_sets}},
                 "session");
}

std::vector<Recent> load_recent(const std::filesystem::path& folder) {
    std::vector<Recent> items;
    const auto object = read_object(folder / "recent.json");
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
    write_object(folder / "recent.json", {{"items", list}}, "list of recent files");
}

}  // namespace headscope::app
