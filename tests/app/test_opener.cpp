// SPDX-License-Identifier: GPL-3.0-or-later
// Files of a run on their way into the desk: what lost its name meanwhile is not told as a failure, nor listed twice.
#include <QCoreApplication>
#include <QSignalSpy>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "app/window/opener.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/offscreen.h"

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

TEST_CASE("What is not given up and cannot be read is told", "[app][opener]") {
    Busy busy;
    busy.opener.open(name(busy.partial), true);
    busy.let_go();
    CHECK(busy.failed.count() == 1);
    CHECK(busy.opened.count() == 0);
}
