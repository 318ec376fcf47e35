// SPDX-License-Identifier: GPL-3.0-or-later
// The window's session as a file: what dies is offered until it is answered, and never less than there was.
#include <QJsonArray>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "app/window/files/leftovers.h"
#include "app/window/session/session.h"
#include "app/window/session/session_lock.h"
#include "core/base/error.h"
#include "core/base/process/spawned.h"
#include "tests/core/base/temporary_folder.h"
#include "widgets/desk/job_draft.h"
#include "widgets/panels/text_choice.h"

using namespace headscope;
using namespace headscope::app;
using test::TemporaryFolder;
using test::write_file;
using widgets::TextSource;

namespace {

QJsonObject texts(std::vector<TextSource> sources) {
    widgets::TextChoice choice;
    choice.sources = std::move(sources);
    return widgets::to_json(choice);
}

QStringList values(const Session& session) {
    QStringList all;
    for (const auto& source : widgets::text_choice_from(session.text).sources) all << source.value;
    return all;
}

Session open_session() {
    Session session;
    session.models = QStringList{"/models/a"};
    session.analyses = QStringList{"/a.headscope.h5", "/b.headscope.h5"};
    session.shown_analysis = QStringLiteral("/b.headscope.h5");
    session.selection = {{"site", 3}};
    session.views = {{"map", QJsonObject{{"zoom", 2}}}};
    session.front = QStringLiteral("map");
    session.text = texts({{TextSource::Kind::text, QStringLiteral("long ago")}});
    session.head_sets = {R"({"marked":[[0,1]],"model_name":"a","model_sha256":"aa"})"};
    return session;
}

Session typed_session(const QString& text) {
    Session session;
    session.text = texts({{TextSource::Kind::text, text}});
    return session;
}

}  // namespace

TEST_CASE("A text of one's own is work, an example is not", "[app][session]") {
    CHECK_FALSE(Session().has_work());
    CHECK_FALSE(typed_session(QStringLiteral("  ")).has_work());
    CHECK(typed_session(QStringLiteral("words")).has_work());
    Session session;
    session.text = texts({{TextSource::Kind::example, QStringLiteral("lantern")}});
    CHECK_FALSE(session.has_work());
    session.text = texts({{TextSource::Kind::file, QStringLiteral("/a.txt")}});
    CHECK(session.has_work());
    session.text = {};
    session.runs << QStringLiteral("/run");
    CHECK(session.has_work());
}

TEST_CASE("Joined sessions have everything of both, and the looks of the one with something open", "[app][session]") {
    const Session both = joined(typed_session(QStringLiteral("new")), open_session());
    CHECK(both.models == open_session().models);
    CHECK(both.analyses == open_session().analyses);
    CHECK(both.shown_analysis == QStringLiteral("/b.headscope.h5"));
    CHECK(both.selection == open_session().selection);
    CHECK(both.front == QStringLiteral("map"));
    CHECK(values(both) == QStringList{"new", "long ago"});
    CHECK(both.head_sets == open_session().head_sets);

    const Session again = joined(both, open_session());
    CHECK(again.analyses == both.analyses);
    CHECK(values(again) == values(both));

    Session other = open_session();
    other.models = QStringList{"/models/b"};
    other.views = {{"map", QJsonObject{{"zoom", 5}}}};
    other.head_sets = {R"({"model_sha256":"aa","marked":[]})", R"({"model_name":"b","marked":[[1,1]]})"};
    const Session two = joined(open_session(), other);
    CHECK(two.models == QStringList{"/models/a", "/models/b"});
    CHECK(two.views == open_session().views);
    CHECK(two.head_sets == std::vector<std::string>{open_session().head_sets[0], other.head_sets[1]});

    Session named = open_session();
    named.names = {{"/a.headscope.h5", "baseline"}};
    other.names = {{"/a.headscope.h5", "older"}, {"/c.headscope.h5", "third"}};
    CHECK(joined(named, other).names == QJsonObject{{"/a.headscope.h5", "baseline"}, {"/c.headscope.h5", "third"}});
}

TEST_CASE("An edited job is not lost to an untouched one", "[app][session]") {
    const auto with_job = [](Session session, const QString& job) {
        session.views[QStringLiteral("train")] = QJsonObject{{"job", job}};
        return session;
    };
    const QString untouched = widgets::JobDraft::first_text();
    const auto job = [](const Session& session) { return session.views["train"].toObject()["job"].toString(); };
    CHECK(job(joined(with_job(open_session(), untouched), with_job(Session(), QStringLiteral("mine")))) == "mine");
    CHECK(job(joined(with_job(Session(), QStringLiteral("mine")), with_job(open_session(), untouched))) == "mine");
    CHECK(job(joined(with_job(Session(), QStringLiteral("one")), with_job(Session(), QStringLiteral("two")))) == "one");
    Session later = with_job(Session(), QStringLiteral("two"));
    later.saved = QDateTime::currentDateTime();
    Session sooner = with_job(open_session(), QStringLiteral("one"));
    sooner.saved = later.saved.addSecs(-60);
    CHECK(job(joined(sooner, later)) == "two");
    CHECK(job(joined(later, sooner)) == "two");
}

TEST_CASE("What died is offered until it is answered, with what died after it", "[app][session]") {
    const TemporaryFolder folder;
    CHECK_FALSE(find_session(folder.path()).last);
    save_session(folder.path(), open_session());
    FoundSession found = find_session(folder.path());
    REQUIRE(found.lost);
    CHECK(found.died);
    CHECK(found.lost->analyses == open_session().analyses);
    CHECK(found.last->head_sets == open_session().head_sets);
    CHECK(found.lost->head_sets.empty());  // not offered: kept
    // As if the window that was to offer it had been killed before it saved anything.
    found = find_session(folder.path());
    REQUIRE(found.lost);
    CHECK(found.lost->analyses == open_session().analyses);
    CHECK(found.last->head_sets == open_session().head_sets);

    save_session(folder.path(), typed_session(QStringLiteral("new")));
    found = find_session(folder.path());
    REQUIRE(found.lost);
    CHECK(found.lost->analyses == open_session().analyses);
    CHECK(values(*found.lost) == QStringList{"new", "long ago"});

    // Closed with the offer open, and one that died with nothing in it: both are brought back as they were.
    for (const bool closed : {true, false}) {
        Session session;
        session.closed = closed;
        session.window = {{"docks", "abc"}};
        save_session(folder.path(), session);
        found = find_session(folder.path());
        REQUIRE(found.last);
        CHECK_FALSE(found.died);
        CHECK(found.last->window == session.window);
        REQUIRE(found.lost);
        CHECK(found.lost->analyses == open_session().analyses);
    }
    drop_lost_session(folder.path());
    CHECK_FALSE(find_session(folder.path()).lost);
}

TEST_CASE("The analysis of a run that ended after the last save is found under its name", "[app][session]") {
    const TemporaryFolder folder;
    const auto path = [&](const char* name) { return QString::fromStdString((folder.path() / name).string()); };
    write_file(folder.path() / "done.headscope.h5", "");
    write_file(folder.path() / "half.headscope.h5.partial", "");
    Session session;
    session.analyses = QStringList{path("done.headscope.h5.partial"), path("half.headscope.h5.partial"),
                                   path("gone.headscope.h5.partial")};
    session.shown_analysis = session.analyses[0];
    session.names = {{session.analyses[0], "done"}, {session.analyses[1], "half"}};
    save_session(folder.path(), session);
    const FoundSession found = find_session(folder.path());
    REQUIRE(found.lost);
    CHECK(found.lost->analyses ==
          QStringList{path("done.headscope.h5"), path("half.headscope.h5.partial"), path("gone.headscope.h5.partial")});
    CHECK(found.lost->shown_analysis == path("done.headscope.h5"));
    CHECK(found.lost->names ==
          QJsonObject{{path("done.headscope.h5"), "done"}, {path("half.headscope.h5.partial"), "half"}});
}

TEST_CASE("Partial files that no process has open are leftovers, and empty ones go", "[app][leftovers]") {
    const TemporaryFolder folder;
    CHECK(find_leftovers(folder.path() / "none").empty());
    for (const char* name : {"b.headscope.h5.partial", "a.headscope.h5.2.partial", "open.headscope.h5.partial"})
        write_file(folder.path() / name, "half");
    write_file(folder.path() / "empty.headscope.h5.partial", "");
    write_file(folder.path() / "whole.headscope.h5", "whole");
    write_file(folder.path() / "other.partial", "not ours");
    std::filesystem::create_directory(folder.path() / "folder.headscope.h5.partial");
    std::filesystem::create_symlink(folder.path() / "whole.headscope.h5", folder.path() / "link.headscope.h5.partial");
    using Paths = std::vector<std::filesystem::path>;
    const auto path = [&](const char* name) { return folder.path() / name; };
    {
        const std::ifstream open(path("open.headscope.h5.partial"));
        CHECK(find_leftovers(folder.path()) == Paths{path("a.headscope.h5.2.partial"), path("b.headscope.h5.partial")});
    }
    CHECK_FALSE(std::filesystem::exists(path("empty.headscope.h5.partial")));
    CHECK(std::filesystem::exists(path("other.partial")));
    CHECK(find_leftovers(folder.path()).size() == 3);
}

TEST_CASE("A session of another version is put aside, and what saves left is cleared away", "[app][session]") {
    const TemporaryFolder folder;
    write_file(folder.path() / "session.json", R"({"version": 2})");
    write_file(folder.path() / "session.json.partial", "");
    write_file(folder.path() / "session.json.2.partial", "");
    write_file(folder.path() / "other.partial", "");
    const FoundSession found = find_session(folder.path());
    CHECK_FALSE(found.last);
    CHECK_FALSE(found.lost);
    CHECK_FALSE(std::filesystem::exists(folder.path() / "session.json"));
    CHECK(test::read_file(folder.path() / "session.unread.json") == R"({"version": 2})");
    CHECK_FALSE(std::filesystem::exists(folder.path() / "session.json.partial"));
    CHECK_FALSE(std::filesystem::exists(folder.path() / "session.json.2.partial"));
    CHECK(std::filesystem::exists(folder.path() / "other.partial"));
}

TEST_CASE("What cannot be put aside on a full disk is found nevertheless, and put aside later", "[app][session]") {
    const TemporaryFolder folder;
    const auto lost = folder.path() / "session.lost.json", last = folder.path() / "session.json";
    save_session(folder.path(), open_session());
    const std::string before = test::read_file(last);
    std::filesystem::create_directory(lost);  // no process can create this name
    const FoundSession found = find_session(folder.path());
    CHECK_FALSE(found.problem.empty());
    CHECK(found.died);
    REQUIRE(found.lost);
    CHECK(found.lost->analyses == open_session().analyses);
    REQUIRE(found.last);
    CHECK(found.last->head_sets == open_session().head_sets);
    CHECK(test::read_file(last) == before);
    CHECK_THROWS_AS(put_aside(folder.path(), found), Error);
    std::filesystem::remove(lost);
    put_aside(folder.path(), found);
    save_session(folder.path(), typed_session(QStringLiteral("new")));
    const FoundSession later = find_session(folder.path());
    CHECK(later.problem.empty());
    REQUIRE(later.lost);
    CHECK(later.lost->analyses == open_session().analyses);
    CHECK(values(*later.lost) == QStringList{"new", "long ago"});

    // The file of another version.
    std::filesystem::remove(lost);
    write_file(last, R"({"version": 2})");
    std::filesystem::create_directory(folder.path() / "session.unread.json");
    FoundSession other = find_session(folder.path());
    CHECK(other.unread);
    CHECK_FALSE(other.problem.empty());
    CHECK(test::read_file(last) == R"({"version": 2})");
    std::filesystem::remove(folder.path() / "session.unread.json");
    put_aside(folder.path(), other);
    CHECK(test::read_file(folder.path() / "session.unread.json") == R"({"version": 2})");
}

TEST_CASE("One window holds the session, and none of its processes does", "[app][session]") {
    const TemporaryFolder folder;
    auto lock = SessionLock::take(folder.path());
    REQUIRE(lock);
    CHECK_FALSE(SessionLock::take(folder.path()));
    SpawnOptions options;
    options.program = "/bin/sleep";
    options.arguments = {"60"};
    const auto child = Spawned::start(options);
    lock.reset();
    CHECK(SessionLock::take(folder.path()));
    CHECK(child->running());
    child->send_signal(SIGKILL);
    CHECK(child->wait(std::chrono::seconds(20)));
    CHECK_THROWS(SessionLock::take(folder.path() / "not there"));
}
