// SPDX-License-Identifier: GPL-3.0-or-later
// Who keeps the session where a disk is full, does not answer, or another window is there.
#include <chrono>
#include <future>
#include <memory>

#include "app/window/session/path_states.h"
#include "app/window/session/session_keeper.h"
#include "core/base/error.h"
#include "core/base/process/ask_async.h"
#include "tests/catch_with_torch.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using namespace headscope::app;
using test::TemporaryFolder;
using test::write_file;

namespace {

Session session_of(const char* model) {
    Session session;
    session.models = QStringList{QString::fromLatin1(model)};
    return session;
}

}  // namespace

TEST_CASE("A session is kept as soon as its folder can be made", "[app][keeper]") {
    const TemporaryFolder home;
    const auto folder = home / "data" / "headscope";
    write_file(home / "data", "");  // a file has the folder's place: fails for every process, as on a full disk
    SessionKeeper keeper(folder);
    const FoundSession found = keeper.find();
    CHECK_FALSE(found.problem.empty());
    CHECK_FALSE(found.last);
    CHECK_FALSE(keeper.another_window());
    CHECK_THROWS_AS(keeper.save(session_of("/old"), {}, false), Error);
    std::filesystem::remove(home / "data");
    CHECK(keeper.save(session_of("/old"), {}, false));
    CHECK(load_session(folder)->models == QStringList{"/old"});

    SessionKeeper other(folder);
    CHECK_FALSE(other.find().last);
    CHECK(other.another_window());
    CHECK_FALSE(other.save(session_of("/new"), {}, false));
    CHECK(load_session(folder)->models == QStringList{"/old"});
}

TEST_CASE("What died is put aside before anything is saved, however late there is a lock", "[app][keeper]") {
    const TemporaryFolder folder;
    save_session(folder.path(), session_of("/old"));
    std::filesystem::create_directory(folder / "session.lock");
    SessionKeeper keeper(folder.path());
    const FoundSession found = keeper.find();
    CHECK_FALSE(found.problem.empty());
    REQUIRE(found.lost);
    CHECK(found.lost->models == QStringList{"/old"});
    CHECK_THROWS_AS(keeper.save(session_of("/new"), {}, false), Error);
    CHECK(load_session(folder.path())->models == QStringList{"/old"});
    std::filesystem::remove(folder / "session.lock");
    CHECK(keeper.save(session_of("/new"), {}, false));
    const FoundSession later = find_session(folder.path());
    REQUIRE(later.lost);
    CHECK(later.lost->models == QStringList{"/new", "/old"});
}

TEST_CASE("A session that comes to be before there is a lock is not written over", "[app][keeper]") {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "session.lock");
    SessionKeeper keeper(folder.path());
    CHECK_FALSE(keeper.find().problem.empty());
    std::filesystem::remove(folder / "session.lock");
    SECTION("another window's, which has ended") {
        SessionKeeper other(folder.path());
        other.find();
        CHECK(other.save(session_of("/other"), {}, false));
    }
    SECTION("one that could not be read at the beginning") {
        save_session(folder.path(), session_of("/other"));
    }
    CHECK_FALSE(keeper.save(session_of("/new"), {}, true));
    CHECK(keeper.another_window());
    CHECK(load_session(folder.path())->models == QStringList{"/other"});
    CHECK_FALSE(keeper.save(session_of("/new"), {}, true));
    // And another may.
    SessionKeeper next(folder.path());
    CHECK(next.find().lost->models == QStringList{"/other"});
    CHECK(next.save(session_of("/next"), {}, true));
}

TEST_CASE("Paths are there or not, however often they are named", "[app][keeper]") {
    const TemporaryFolder folder;
    write_file(folder / "file", "");
    const auto path = [&](const char* name) { return QString::fromStdString((folder / name).string()); };
    PathStates states;
    using State = PathStates::State;
    for (int round = 0; round < 2; ++round) {
        const auto found = states.ask({path("file"), path("none"), path("file")}, std::chrono::seconds(20));
        CHECK(found.size() == 2);
        CHECK(found.at(path("file")) == State::there);
        CHECK(found.at(path("none")) == State::missing);
    }
}

TEST_CASE("Who asks aside gets the answer, the failure or nothing in time", "[app][keeper]") {
    using std::chrono::seconds;
    CHECK(ask_async([] { return 3; }).get() == 3);
    CHECK_THROWS_AS(ask_async([]() -> int { throw Error(ErrorCode::io, "a", "b", "c"); }).get(), Error);
    const auto go_on = std::make_shared<std::promise<void>>();
    const auto waited = ask_async([go = go_on->get_future().share()] {
        go.wait();
        return 3;
    });
    CHECK(waited.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
    go_on->set_value();
    REQUIRE(waited.wait_for(seconds(20)) == std::future_status::ready);
    CHECK(waited.get() == 3);
}
