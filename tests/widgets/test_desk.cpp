// SPDX-License-Identifier: GPL-3.0-or-later
// The desk: analyses arrive as values, one selection for all views.
#include <QSignalSpy>
#include <QTest>
#include <QThread>
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <future>
#include <memory>
#include <vector>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/desk/error_words.h"
#include "widgets/idle_queue.h"
#include "widgets/panels/project_tree.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

struct Opened {
    explicit Opened(const tests::SyntheticAnalysis& a = {}) {
        tests::write_synthetic_analysis(folder / "a.headscope.h5", a);
        study = tests::open_study(desk, folder / "a.headscope.h5");
    }
    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    Study* study = nullptr;
};

/// An analysis whose values are all too large for their budget.
struct Tight {
    /// Waits until the requested values have come.
    void finish() {
        reader.finish();
        QCoreApplication::sendPostedEvents(nullptr, QEvent::MetaCall);
    }
    static std::filesystem::path written(const std::filesystem::path& path) {
        tests::write_synthetic_analysis(path);
        return path;
    }
    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    ValueBudget budget{1};
    Worker reader;
    Study study{1, &reader, &budget, Study::open(written(folder / "a.headscope.h5"))};
};

}  // namespace

TEST_CASE("The error of a process is its last error line, not its progress", "[desk]") {
    CHECK(error_words("headscope: [a.h5] expected x; found y\n") == "[a.h5] expected x; found y");
    CHECK(error_words("headscope:   0 %  reading\nheadscope: [a] one\nheadscope: 100 %  done\n") == "[a] one");
    CHECK(error_words("headscope: [a] one\nheadscope: [b] two\nsomebody else's line\n") == "[b] two");
    CHECK(error_words("headscope: 100 percent of [a] is missing\r\n") == "100 percent of [a] is missing");
    CHECK(error_words("headscope:  14 %  step 5570 of 40000\n").isEmpty());
    CHECK(error_words("terminate called\n").isEmpty());
    CHECK(error_words({}).isEmpty());
}

TEST_CASE("A renamed analysis has that name until the name is taken away", "[desk]") {
    Opened opened;
    QSignalSpy changed(&opened.desk, &Desk::changed);
    CHECK(opened.study->name() == "a");
    opened.desk.rename_study(opened.study->id(), QStringLiteral("  Baseline,\n 4 layers "));
    CHECK(opened.study->name() == "Baseline, 4 layers");
    CHECK(opened.study->file_name() == "a");
    CHECK(changed.count() == 1);
    opened.study->set_path(opened.folder / "b.headscope.h5");
    CHECK(opened.study->name() == "Baseline, 4 layers");
    opened.desk.rename_study(opened.study->id(), QString(200, QLatin1Char('x')));
    CHECK(opened.study->name().size() == Study::kMostName);
    opened.desk.rename_study(opened.study->id(), QStringLiteral("b"));
    CHECK(opened.study->given_name().isEmpty());
    opened.desk.rename_study(opened.study->id(), {});
    CHECK(opened.study->name() == "b");
    CHECK(changed.count() == 3);
    opened.desk.rename_study(77, QStringLiteral("nothing"));
    CHECK(changed.count() == 3);
}

TEST_CASE("An analysis reports its NaN values, also when its run has just ended", "[desk]") {
    tests::SyntheticAnalysis spoilt;
    spoilt.problems = {"weights: 1 of 4 numbers of w are NaN or infinite", "loss: NaN or infinite"};
    Opened opened(spoilt);
    const QStringList expected{QString::fromStdString(spoilt.problems[0]), QString::fromStdString(spoilt.problems[1])};
    CHECK(opened.study->problems() == expected);
    ProjectTree tree(&opened.desk);
    const auto items =
        tree.findItems(QStringLiteral("contains NaN or infinity"), Qt::MatchContains | Qt::MatchRecursive);
    REQUIRE(items.size() == 1);
    CHECK(items.front()->toolTip(0).contains(expected[1]));

    Opened fine;
    CHECK(fine.study->problems().isEmpty());
    // As of a run: the file was not complete when it was opened.
    auto partial = Study::open(opened.folder / "a.headscope.h5");
    partial.complete = false;
    partial.problems.clear();
    Study* ran = opened.desk.add(std::move(partial));
    QSignalSpy found(ran, &Study::problems_found);
    ran->tell_complete(opened.folder / "a.headscope.h5");
    tests::settle(opened.desk);
    CHECK(found.count() == 1);
    CHECK(ran->problems() == expected);
}

TEST_CASE("A value is read once, on another thread, and announced when it is there", "[desk]") {
    Opened opened;
    QSignalSpy arrived(&opened.desk, &Desk::arrived);
    const auto first = opened.study->heads(0);
    CHECK_FALSE(first);
    CHECK(first.pending);
    tests::settle(opened.desk);
    CHECK(arrived.count() == 1);
    const auto second = opened.study->heads(0);
    REQUIRE(second);
    CHECK_FALSE(second.pending);
    CHECK(second->rows.size() == 12);
    CHECK(opened.study->heads(0).value == second.value);
}

TEST_CASE("Values of all analyses together stay within one budget, the last ones asked for are kept", "[desk]") {
    ensure_application();
    const test::TemporaryFolder folder;
    tests::write_synthetic_analysis(folder / "a.headscope.h5");
    tests::write_synthetic_analysis(folder / "b.headscope.h5");
    // A thumbnail is of 4 heads and 24 x 24 numbers of 8 bytes: two fit, three do not.
    constexpr std::int64_t kThumbnail = 4 * 24 * 24 * 8, kBudget = 5 * kThumbnail / 2;
    ValueBudget budget(kBudget, 1);
    Worker reader;
    Study first(1, &reader, &budget, Study::open(folder / "a.headscope.h5"));
    {
        Study second(2, &reader, &budget, Study::open(folder / "b.headscope.h5"));
        const auto ask = [&](Study& study, std::int64_t site) {
            study.thumbnails("mean", 0, site);
            reader.finish();
            QCoreApplication::sendPostedEvents(nullptr, QEvent::MetaCall);
        };
        ask(first, 0);
        ask(first, 1);
        CHECK(budget.bytes() == 2 * kThumbnail);
        ask(second, 0);
        CHECK(budget.bytes() == 2 * kThumbnail);
        CHECK(second.thumbnails("mean", 0, 0));
        CHECK(first.thumbnails("mean", 0, 1));
        CHECK_FALSE(first.thumbnails("mean", 0, 0));  // read again
        reader.finish();
    }
    // Values of a closed analysis are freed.
    CHECK(budget.bytes() <= 2 * kThumbnail);
    CHECK(first.thumbnails("mean", 0, 1));
}

TEST_CASE("Values that views want together all come, even where the budget is too small for one", "[desk]") {
    Tight tight;
    Study& study = tight.study;
    // As views do: whenever something came, all that is shown is asked for again.
    int rounds = 0, missing = -1;
    while (missing != 0 && rounds < 30) {
        missing = 0;
        for (std::int64_t sequence = 0; sequence < study.sequences(); ++sequence) {
            missing += !study.heads(sequence) + !study.loss(sequence);
            for (std::int64_t site = 0; site < std::ssize(study.sites()); ++site)
                missing += !study.thumbnails("mean", sequence, site) + !study.thumbnails("maximum", sequence, site) +
                           !study.column_mass(sequence, site);
        }
        if (rounds == 0) CHECK(missing > 8);
        tight.finish();
        ++rounds;
    }
    CHECK(missing == 0);
    CHECK(rounds <= 3);
}

TEST_CASE("Who goes from head to head keeps the last few values alone, however fast", "[desk]") {
    Tight tight;
    Study& study = tight.study;
    std::int64_t most = 0;
    int asked = 0;
    for (std::int64_t sequence = 0; sequence < study.sequences(); ++sequence)
        for (std::int64_t site = 0; site < std::ssize(study.sites()); ++site)
            for (const char* which : {"mean", "maximum"}) {
                study.thumbnails(which, sequence, site);
                ++asked;
                tight.finish();
                REQUIRE(study.thumbnails(which, sequence, site));
                most = std::max(most, tight.budget.bytes());
            }
    CHECK(asked > 4);
    CHECK(most <= 4 * 4 * 24 * 24 * 8);  // four thumbnails
}

TEST_CASE("A value without requests is not read; a new request reads it once", "[desk]") {
    Tight tight;
    Study& study = tight.study;
    std::atomic<int> read{0};
    std::promise<void> open;
    const auto number = [&](const std::string& key) {
        return study.ask<int>(key, 0, 0, [&read](const store::AnalysisFile&) {
            ++read;
            return std::make_shared<const int>(1);
        });
    };
    tight.reader.post(nullptr, [opened = open.get_future().share()](const Cancellation&) { opened.wait(); });
    number("passed");
    // Others are wanted, and come, while it waits.
    for (int round = 0; round < 5; ++round) {
        number("shown");
        tight.budget.next_round();
    }
    number("shown");
    open.set_value();
    tight.finish();
    CHECK(read == 1);
    CHECK(number("shown"));
    CHECK_FALSE(number("passed"));
    tight.finish();
    CHECK(number("passed"));
    CHECK(read == 2);
}

TEST_CASE("What is posted is done in order, a little at a time, and not for those that went", "[desk]") {
    ensure_application();
    QObject owner;
    auto gone = std::make_unique<QObject>();
    std::vector<int> done;
    const auto take = [&](int number) {
        done.push_back(number);
        QThread::msleep(10);  // longer than a turn
    };
    IdleQueue& turns = IdleQueue::of_window();
    turns.post(&owner, [&] {
        take(1);
        turns.post(&owner, [&] { take(4); });
    });
    turns.post(gone.get(), [&] { take(2); });
    turns.post(&owner, [&] { take(3); });
    gone.reset();
    CHECK(done.empty());
    std::vector<std::size_t> between;  // as a key would: records what was done by then
    QTimer key;
    QObject::connect(&key, &QTimer::timeout, &owner, [&] { between.push_back(done.size()); });
    key.start(0);
    REQUIRE(QTest::qWaitFor([&] { return turns.empty(); }, 10'000));
    CHECK(done == std::vector{1, 3, 4});
    CHECK(std::find(between.begin(), between.end(), 1) != between.end());
    CHECK(std::find(between.begin(), between.end(), 2) != between.end());
}

TEST_CASE("What changes is read again, and the old value shown until then", "[desk]") {
    Opened opened;
    opened.study->heads(0);
    opened.study->loss(0);
    tests::settle(opened.desk);
    const auto before = opened.study->heads(0).value;
    const auto loss = opened.study->loss(0).value;
    opened.study->tell_site_done(0, 1);
    const auto during = opened.study->heads(0);
    CHECK(during.value == before);
    CHECK(during.pending);
    CHECK_FALSE(opened.study->loss(0).pending);
    tests::settle(opened.desk);
    CHECK(opened.study->heads(0).value != before);
    CHECK(opened.study->loss(0).value == loss);
}

TEST_CASE("A reply has a failure in place of the value", "[desk]") {
    Opened opened;
    opened.study->figure("no such recipe", {});
    tests::settle(opened.desk);
    const auto reply = opened.study->figure("no such recipe", {});
    CHECK_FALSE(reply);
    CHECK(reply.failure.contains("no such recipe"));
}

TEST_CASE("A study may go while its values are being read", "[desk]") {
    Opened opened;
    for (int i = 0; i < 20; ++i) {
        Study* study = tests::open_study(opened.desk, opened.folder / "a.headscope.h5");
        study->heads(0);
        study->loss(0);
        opened.desk.remove(study->id());
    }
    tests::settle(opened.desk);
    CHECK(opened.desk.studies().size() == 1);
}

TEST_CASE("The selection stays within what the study has", "[desk]") {
    Opened opened;
    QSignalSpy moved(&opened.desk, &Desk::selection_changed);
    opened.desk.select_head(7, 9);
    CHECK(opened.desk.selection().site == 2);
    CHECK(opened.desk.selection().head == 3);
    opened.desk.step(1, 1);
    CHECK(moved.count() == 1);
    opened.desk.step(-1, -2);
    CHECK(opened.desk.selection().site == 1);
    CHECK(opened.desk.selection().head == 1);
    opened.desk.select_tokens(5, 1000);
    CHECK(opened.desk.selection().key == 23);
    opened.desk.remove(opened.study->id());
    CHECK(opened.desk.selection().study == 0);
    CHECK(opened.desk.current() == nullptr);
}

TEST_CASE("A map is a row and a column of weights and scores", "[desk]") {
    tests::SyntheticAnalysis a;
    a.record.maps = true;
    Opened opened(a);
    opened.study->row(0, 1, 2, 7);
    tests::settle(opened.desk);
    opened.study->row(0, 1, 2, 7);
    opened.study->column(0, 1, 2, 3);
    tests::settle(opened.desk);
    const auto row = opened.study->row(0, 1, 2, 7);
    const auto column = opened.study->column(0, 1, 2, 3);
    REQUIRE(row);
    REQUIRE(column);
    REQUIRE(row->weights.size() == 24);
    CHECK(row->weights[3] == column->weights[7]);
    double sum = 0;
    for (int k = 0; k <= 7; ++k) sum += row->weights[static_cast<std::size_t>(k)];
    CHECK(sum == Approx(1).epsilon(1e-5));
    CHECK(std::isnan(row->weights[8]));
}
