// SPDX-License-Identifier: GPL-3.0-or-later
// Files of a run opened while they are renamed: a lost name is no failure, and no file is listed twice.
#include <QCoreApplication>
#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <thread>

#include "app/window/files/opener.h"
#include "core/base/io/file_identity.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

/// A desk whose reader is busy until it is let go.
struct Busy {
    Busy() {
        desk.reader().post(nullptr, [this](const Cancellation&) {
            while (!go) std::this_thread::yield();
        });
    }
    ~Busy() { go = true; }
    void let_go() {
        go = true;
        tests::settle(desk);
    }
    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    std::filesystem::path partial = folder / "a.headscope.h5.partial", finished = folder / "a.headscope.h5";
    std::atomic<bool> go = false;
    Desk desk;
    app::Opener opener{&desk, "none"};
    QSignalSpy opened{&opener, &app::Opener::opened};
    QSignalSpy failed{&opener, &app::Opener::failed};
};

QString name(const std::filesystem::path& path) {
    return QString::fromStdString(path.string());
}

}  // namespace

TEST_CASE("A partial file that was renamed before the reader came to it is no problem", "[app][opener]") {
    Busy busy;
    tests::write_synthetic_analysis(busy.finished);
    busy.opener.open(name(busy.partial), true);
    busy.opener.give_up(name(busy.partial));
    busy.opener.open(name(busy.finished), true);
    busy.let_go();
    CHECK(busy.failed.count() == 0);
    REQUIRE(busy.opened.count() == 1);
    CHECK(busy.desk.studies().front()->path() == busy.finished);
}

TEST_CASE("A partial file that was read but not delivered when the run ended is not listed", "[app][opener]") {
    Busy busy;
    tests::write_synthetic_analysis(busy.folder / "b.headscope.h5");
    std::filesystem::copy_file(busy.folder / "b.headscope.h5", busy.partial);
    busy.opener.open(name(busy.partial), true);
    busy.go = true;
    busy.desk.reader().finish();  // it waits among the events of this thread
    busy.opener.give_up(name(busy.partial));
    tests::settle(busy.desk);
    CHECK(busy.opened.count() == 0);
    CHECK(busy.failed.count() == 0);
    CHECK(busy.desk.studies().empty());
    // The same name again is another matter.
    busy.opener.open(name(busy.partial), true);
    tests::settle(busy.desk);
    CHECK(busy.opened.count() == 1);
}

TEST_CASE("An unreadable file that was not given up is reported", "[app][opener]") {
    Busy busy;
    busy.opener.open(name(busy.partial), true);
    busy.let_go();
    CHECK(busy.failed.count() == 1);
    CHECK(busy.opened.count() == 0);
}

namespace {

/// In the program's place: keeps who looks at what, and refuses names with "bad" in them.
struct Looker {
    Looker() {
        test::write_file(
            program,
            "#!/bin/sh\n"
            "cd '" +
                folder.path().string() +
                "'\n"
                "mkdir at.$$; ls -d at.* | wc -l >> together; shift 3; echo $# >> looks; sleep 0.02; rmdir at.$$\n"
                "case \"$*\" in *hang*) exec sleep 100;; esac\n"
                "case \"$*\" in *bad*) echo \"headscope: [$1] expected a good file\" >&2; exit 1;; esac\n");
        std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    }
    std::vector<int> numbers(const char* file) const {
        std::ifstream in(folder / file);
        return {std::istream_iterator<int>(in), {}};
    }
    test::TemporaryFolder folder;
    std::filesystem::path program = folder / "look";
};

}  // namespace

TEST_CASE("Hundreds of files are looked at by few processes, and a bad one keeps back no other", "[app][opener]") {
    ensure_application();
    const Looker looker;
    Desk desk;
    app::Opener opener{&desk, looker.program.string()};
    QSignalSpy opened{&opener, &app::Opener::opened};
    QSignalSpy failed{&opener, &app::Opener::failed};
    QSignalSpy changes{&desk, &Desk::studies_changed};
    constexpr int kFiles = 100;
    QElapsedTimer clock;
    clock.start();
    tests::write_synthetic_analysis(looker.folder / "0.headscope.h5");
    for (int i = 0; i < kFiles; ++i) {
        const auto path = looker.folder / (std::to_string(i) + (i == 50 ? "bad" : "") + ".headscope.h5");
        if (i > 0) std::filesystem::copy_file(looker.folder / "0.headscope.h5", path);
        opener.open(name(path));
        opener.open(name(path));
    }
    REQUIRE(QTest::qWaitFor([&] { return opened.count() + failed.count() == kFiles; }, 60'000));
    tests::settle(desk);
    CHECK(opened.count() == kFiles - 1);
    REQUIRE(failed.count() == 1);
    CHECK(failed[0][1].toString().contains(QStringLiteral("50bad.headscope.h5] expected a good file")));
    CHECK(std::ssize(desk.studies()) == kFiles - 1);
    const std::vector<int> looks = looker.numbers("looks"), together = looker.numbers("together");
    CHECK(looks.size() < kFiles / 3);
    CHECK(*std::max_element(together.begin(), together.end()) <= 2);
    CHECK(changes.count() < kFiles);
    CHECK(changes.count() <= clock.elapsed() / 80 + 2);
    for (int i = 0; i + 1 < std::ssize(desk.studies()); ++i) {
        const auto number = [&](int at) {
            return std::stoi(desk.studies()[static_cast<std::size_t>(at)]->path().filename());
        };
        CHECK(number(i) < number(i + 1));
    }
    // A failed file may be requested again; an open one is not listed twice.
    QSignalSpy was_open{&opener, &app::Opener::was_open};
    std::filesystem::create_symlink(looker.folder / "1.headscope.h5", looker.folder / "link.headscope.h5");
    for (const char* again : {"50bad", "1", "link"})
        opener.open(name(looker.folder / (std::string(again) + ".headscope.h5")));
    REQUIRE(QTest::qWaitFor([&] { return was_open.count() == 2 && failed.count() == 2; }, 60'000));
    CHECK(opened.count() == kFiles - 1);
    CHECK(std::ssize(desk.studies()) == kFiles - 1);
}

TEST_CASE("A disk that does not answer holds up its own file alone, and is given up", "[app][opener]") {
    ensure_application();
    const Looker looker;
    Desk desk;
    app::Opener opener{&desk, looker.program.string()};
    opener.set_patience(std::chrono::milliseconds(400), std::chrono::milliseconds(4600));
    QSignalSpy opened{&opener, &app::Opener::opened};
    QSignalSpy failed{&opener, &app::Opener::failed};
    constexpr int kFiles = 20;
    tests::write_synthetic_analysis(looker.folder / "0.headscope.h5");
    const auto path = [&](int i) {
        return looker.folder / (std::to_string(i) + (i == 5 ? "hang" : "") + ".headscope.h5");
    };
    for (int i = 0; i < kFiles; ++i) {
        if (i > 0) std::filesystem::copy_file(looker.folder / "0.headscope.h5", path(i));
        opener.open(name(path(i)));
    }
    REQUIRE(QTest::qWaitFor([&] { return opened.count() == kFiles - 1; }, 30'000));
    REQUIRE(QTest::qWaitFor([&] { return failed.count() == 1; }, 30'000));
    CHECK(failed[0][0].toString() == name(path(5)));
    CHECK(failed[0][1].toString().contains(QStringLiteral("expected to read the file within 5 s")));
    CHECK(opened.count() == kFiles - 1);
}

TEST_CASE("A file is known by what it is, not by its name", "[app][opener]") {
    ensure_application();
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5", other = folder / "b.headscope.h5";
    tests::write_synthetic_analysis(path);
    Desk desk;
    CHECK(desk.study_of(*identity_of(path)) == nullptr);
    Study* study = desk.add(Study::open(path));
    CHECK(desk.study_of(*identity_of(path)) == study);
    std::filesystem::create_symlink(path, other);
    CHECK(desk.study_of(*identity_of(other)) == study);
    std::filesystem::remove(other);
    std::filesystem::copy_file(path, other);
    CHECK(desk.study_of(*identity_of(other)) == nullptr);
    // Rewritten under its name: opening it shows other content.
    std::filesystem::rename(other, path);
    CHECK(desk.study_of(*identity_of(path)) == nullptr);
    CHECK_FALSE(identity_of(other).has_value());
    // A file completed here is the same file, whatever its time.
    Study* second = desk.add(Study::open(path));
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(3));
    CHECK(desk.study_of(*identity_of(path)) == nullptr);
    second->tell_complete(path);
    CHECK(desk.study_of(*identity_of(path)) == second);
    desk.remove(second->id());
    CHECK(desk.study_of(*identity_of(path)) == nullptr);
}
