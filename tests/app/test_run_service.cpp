// SPDX-License-Identifier: GPL-3.0-or-later
// Runs as the window follows them: journals that grow, fail and are many, processes that have not begun yet, what
// windows leave that were killed.
#include <sys/stat.h>
#include <unistd.h>

#include <QSignalSpy>
#include <QTest>
#include <csignal>
#include <fstream>
#include <iterator>
#include <optional>

#include "app/window/launch.h"
#include "app/window/training/followed_run.h"
#include "app/window/training/run_service.h"
#include "core/base/process/spawned.h"
#include "core/run/journal.h"
#include "tests/catch_with_torch.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/training/sample_run.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::app;
using namespace headscope::training;
using test::TemporaryFolder;
using test::write_file;
namespace fs = std::filesystem;

namespace {

constexpr int kPatience = 30'000;  // ms

/// Looks like `headscope train ... -o run` until it is killed; nothing is written.
std::shared_ptr<Spawned> trainer_of(const fs::path& run) {
    // A pipe without a writer: its reader holds the words of the program that the shell would start.
    static const TemporaryFolder pipes;
    const fs::path pipe = pipes / "pipe";
    ::mkfifo(pipe.c_str(), 0600);
    SpawnOptions options;
    options.program = "/bin/sh";
    options.arguments = {"-c", "read line < '" + pipe.string() + "'", "train", "job.toml", "-o", run.string()};
    auto spawned = Spawned::start(options);
    // A process has its words a moment after it is there, and is found by them.
    const fs::path words = "/proc/" + std::to_string(spawned->process()) + "/cmdline";
    const auto known = [&] {
        std::ifstream file(words);
        return std::string(std::istreambuf_iterator<char>(file), {}).find(run.string()) != std::string::npos;
    };
    for (int round = 0; !known() && round < 2000; ++round) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return spawned;
}

void end(Spawned& process) {
    process.send_signal(SIGKILL);
    CHECK(process.wait(std::chrono::seconds(20)));
}

/// More than is looked at of a journal that is as long as that.
void fill(JournalWriter& writer) {
    for (int n = 1; n <= 200; ++n) writer.append(Log{LogLevel::note, n, std::string(10'000, 'a')});
}

struct Service {
    bool application = (widgets::ensure_application(), true);
    TemporaryFolder folder;
    widgets::RunShelf shelf;
    RunService service{&shelf, "/bin/false"};
    Service() { service.set_folder(folder.path()); }
};

}  // namespace

TEST_CASE("The speed of a job with patience and a share of warm-up can be measured", "[app][runs]") {
    const JobFile job =
        read_job("[data]\ncorpus = \"kjv\"\n[evaluation]\npatience = 3\n[schedule]\nwarmup_share = 0.1\n", "job");
    const JobFile measured = measured_job(job);
    CHECK(measured.training.minutes.value_or(0) > 3);
    CHECK_FALSE(measured.evaluation.evaluates());
    CHECK_NOTHROW(read_job(job_text(measured), "measured"));  // as the process reads it
}

TEST_CASE("A long run is reported seldom, and a pause at once", "[app][runs]") {
    const TemporaryFolder folder;
    JournalWriter writer(folder / kJournalName);
    writer.append(test::sample_start());
    std::int64_t n = 0;
    const auto train = [&](std::int64_t until) {
        while (n < until) writer.append(test::sample_step(++n));
    };
    train(100);
    FollowedRun run(folder.path());
    CHECK_FALSE(run.read());
    REQUIRE(run.due());
    const auto first = run.publish();
    CHECK(first->steps.size() == 100);
    CHECK_FALSE(run.due());
    CHECK_FALSE(run.read());
    CHECK_FALSE(run.due());  // nothing came
    train(101);
    run.read();
    REQUIRE(run.due());  // a short one, at every look
    CHECK(run.publish()->steps.size() == 101);
    train(150'000);
    run.read();
    using Clock = std::chrono::steady_clock;
    // A disk may make a look at the journal as long as the pause between two of them.
    const auto is_early = [](Clock::time_point published) {
        return Clock::now() < published + std::chrono::seconds(1);
    };
    auto published = Clock::now();
    run.publish();
    train(150'001);
    run.read();
    if (const bool due = run.due(); is_early(published)) CHECK_FALSE(due);
    writer.append(StateChanged{RunState::paused, n, ""});
    run.read();
    REQUIRE(run.due());
    published = Clock::now();
    CHECK(run.publish()->steps.size() == 150'001);
    train(150'002);
    run.read();
    if (const bool due = run.due(); is_early(published)) CHECK_FALSE(due);
    QTest::qSleep(2100);
    CHECK(run.due());
}

TEST_CASE("What was published before the last is let go of by who follows the run", "[app][runs]") {
    const TemporaryFolder folder;
    JournalWriter writer(folder / kJournalName);
    writer.append(test::sample_start());
    FollowedRun run(folder.path());
    run.read();
    std::weak_ptr<const workspace::LiveRun> first = run.publish();
    std::weak_ptr<const workspace::LiveRun> second = run.publish();
    CHECK_FALSE(first.expired());  // the window may have it still
    run.publish();
    CHECK(first.expired());
    CHECK_FALSE(second.expired());
}

TEST_CASE("The end of a run's process is reported once", "[app][runs]") {
    const TemporaryFolder folder;
    std::optional<JournalWriter> writer(std::in_place, folder / kJournalName);
    writer->append(test::sample_start());
    FollowedRun run(folder.path());
    CHECK_FALSE(run.read());
    run.publish();
    writer.reset();
    CHECK(run.read());
    CHECK(run.due());
    CHECK(run.publish()->status() == workspace::RunStatus::interrupted);
    CHECK_FALSE(run.read());
}

TEST_CASE("Interrupted runs are found by the ends of their journals", "[app][runs]") {
    const TemporaryFolder folder;
    const auto run = [&](const std::string& name, const std::vector<What>& last, bool is_long) {
        fs::create_directory(folder / name);
        JournalWriter writer(folder / name / kJournalName);
        writer.append(test::sample_start());
        writer.append(StateChanged{});
        if (is_long) fill(writer);
        for (const What& what : last) writer.append(what);
    };
    const StateChanged finished{RunState::finished, 9, ""}, paused{RunState::paused, 9, ""};
    for (const bool is_long : {false, true}) {
        const std::string of = is_long ? "-long" : "-short";
        run("died" + of, {test::sample_step(9)}, is_long);
        run("died-paused" + of, {paused, Control{9, "pause", "", "paused", "1"}}, is_long);
        run("died-again" + of, {finished, test::sample_start(9), test::sample_step(10)}, is_long);
        run("finished" + of, {finished}, is_long);
        run("failed" + of, {StateChanged{RunState::failed, 9, "why"}}, is_long);
    }
    // Its last event is longer than what is looked at first.
    run("died-large", {SampleText{9, std::string(3 << 20, 'a'), ""}}, false);
    run("finished-large", {SampleText{9, std::string(3 << 20, 'a'), ""}, finished}, false);
    fs::create_directory(folder / "trains");
    JournalWriter writer(folder / "trains" / kJournalName);
    writer.append(test::sample_start());
    fs::create_directory(folder / "empty");
    fs::create_directory(folder / "no-run");
    write_file(folder / "no-run" / kJournalName, "a text that somebody wrote, longer than a header");
    write_file(folder / "file", "");
    { const JournalWriter nothing(folder / "empty" / kJournalName); }

    std::vector<std::string> names;
    for (const fs::path& path : interrupted_runs(folder.path(), Cancellation())) names.push_back(path.filename());
    CHECK(names == std::vector<std::string>{"died-again-long", "died-again-short", "died-large", "died-long",
                                            "died-paused-long", "died-paused-short", "died-short"});
    Cancellation stopped;
    stopped.request();
    CHECK_THROWS_AS(interrupted_runs(folder.path(), stopped), Stopped);
}

TEST_CASE("Of many runs the newest are looked at", "[app][runs]") {
    const TemporaryFolder folder, first;
    {
        JournalWriter writer(first / kJournalName);
        writer.append(test::sample_start());
        writer.append(test::sample_step(9));
    }
    constexpr int kRuns = 600;
    const auto day = fs::file_time_type::clock::now() - std::chrono::hours(24);
    std::vector<std::string> newest, found;
    for (int i = 0; i < kRuns; ++i) {
        const std::string name = std::to_string(1000 + i);
        const bool old = i % 6 == 0;
        fs::create_directory(folder / name);
        const fs::path journal = folder.path() / name / kJournalName;
        fs::copy_file(first / kJournalName, journal);
        fs::last_write_time(journal, day + std::chrono::seconds(old ? 0 : 1 + i));
        if (!old) newest.push_back(name);
    }
    REQUIRE(newest.size() == 500);
    for (const fs::path& path : interrupted_runs(folder.path(), Cancellation())) found.push_back(path.filename());
    CHECK(found == newest);
}

TEST_CASE("What a killed window's measurements left is removed, and nothing else", "[app][runs]") {
    const TemporaryFolder folder;
    SpawnOptions options;
    options.program = "/bin/true";
    const auto gone = Spawned::start(options);
    REQUIRE(gone->wait(std::chrono::seconds(20)));
    const std::string dead = std::to_string(gone->process()), own = std::to_string(::getpid()),
                      alive = std::to_string(::getppid());
    for (const std::string& number : {dead, own, alive}) {
        fs::create_directories(folder / ("measuring-" + number) / "run");
        write_file(folder / ("measuring-" + number) / "run" / "events.log", "x");
        write_file(folder / ("calibration-" + number + ".headscope.h5.partial"), "x");
    }
    write_file(folder / ("calibration-" + dead + ".headscope.h5"), "x");
    const std::vector<std::string> others{"calibration-" + dead + ".toml",
                                          "measuring-" + dead + "-mine",
                                          "measuring-",
                                          "measuring-x",
                                          "measuring--" + dead,
                                          "session.json"};
    for (const std::string& name : others) write_file(folder / name, "x");
    remove_measurements(folder.path());
    std::vector<std::string> left = others;
    left.push_back("measuring-" + alive);
    left.push_back("calibration-" + alive + ".headscope.h5.partial");
    std::sort(left.begin(), left.end());
    CHECK(folder.names() == left);
    remove_measurements(folder / "absent");
}

TEST_CASE("A process that is to train is known by itself, not by its number", "[app][runs]") {
    const TemporaryFolder folder;
    Launch launch;
    launch.run = folder / "run";
    launch.spawned = trainer_of(launch.run);
    CHECK(look_at(launch).what == LaunchState::What::waiting);
    // As a window sees it that did not start it.
    const std::shared_ptr<Launch> found = find_launch(folder / "." / "run", folder.path());
    REQUIRE(found);
    CHECK(found->process == launch.spawned->process());
    CHECK(found->log == folder / "jobs" / "run.log");
    CHECK(look_at(*found).what == LaunchState::What::waiting);
    CHECK_FALSE(find_launch(folder / "other", folder.path()));
    found->run = folder / "other";  // as if another process had got the number
    CHECK(look_at(*found).what == LaunchState::What::ended);
    found->run = launch.run;
    stop_launch(*found);
    CHECK(launch.spawned->wait(std::chrono::seconds(20)));
    CHECK(look_at(launch).what == LaunchState::What::ended);
    CHECK(look_at(*found).what == LaunchState::What::ended);
    CHECK_FALSE(find_launch(launch.run, folder.path()));
    fs::create_directory(launch.run);
    { const JournalWriter begun(launch.run / kJournalName); }
    CHECK(look_at(launch).what == LaunchState::What::begun);
}

TEST_CASE("A resumed run starts with the first event of its process", "[app][runs]") {
    const TemporaryFolder folder;
    Launch launch;
    launch.resume = true;
    launch.run = folder.path();
    {
        JournalWriter before(folder / kJournalName);
        before.append(test::sample_start());
    }
    launch.journal = fs::file_size(folder / kJournalName);
    launch.spawned = trainer_of(launch.run);
    JournalWriter writer(folder / kJournalName);
    CHECK(look_at(launch).what == LaunchState::What::waiting);
    writer.append(test::sample_start());
    CHECK(look_at(launch).what == LaunchState::What::begun);
    end(*launch.spawned);
}

TEST_CASE("A run that has not begun when its folder is opened is waited for", "[app][runs]") {
    Service made;
    const fs::path folder = made.folder / "run";
    const QString path = QString::fromStdString(folder.string());
    QSignalSpy opened(&made.service, &RunService::opened), not_opened(&made.service, &RunService::not_opened),
        failed(&made.service, &RunService::failed), changed(&made.service, &RunService::starting_changed);
    made.service.open(path);
    REQUIRE(failed.wait(kPatience));  // no process makes it
    CHECK(not_opened.count() == 1);
    const auto process = trainer_of(folder);
    made.service.open(path);
    REQUIRE(not_opened.wait(kPatience));
    CHECK(failed.count() == 1);
    CHECK(changed.count() == 1);
    CHECK(made.service.starting() == QStringList{path});
    CHECK_FALSE(made.shelf.starting().isEmpty());
    made.service.open(path);  // twice is once
    REQUIRE(not_opened.wait(kPatience));
    CHECK(made.service.starting().size() == 1);
    SECTION("and is open when it begins") {
        fs::create_directory(folder);
        JournalWriter writer(folder / kJournalName);
        writer.append(test::sample_start());
        REQUIRE(opened.wait(kPatience));
        CHECK(failed.count() == 1);
        CHECK(made.shelf.runs().size() == 1);
        end(*process);
    }
    SECTION("and is reported if it ends before that") {
        made.service.stop_starting();
        REQUIRE(failed.wait(kPatience));
        CHECK(process->wait(std::chrono::seconds(20)));
        CHECK(made.shelf.runs().empty());
    }
    CHECK(made.service.starting().isEmpty());
    CHECK(made.shelf.starting().isEmpty());
}

TEST_CASE("A fork at the end of its run trains as long again", "[app][runs]") {
    const auto [job, snapshot, begin, expected] = GENERATE(table<std::string, std::string, std::int64_t, std::string>({
        {"steps = 400", "step-000300", 0, "steps = 400"},
        {"steps = 400", "step-000400", 0, "steps = 800"},
        {"steps = 800", "step-000800", 400, "steps = 1200"},
        {"tokens = 4096", "step-000032", 0, "tokens = 8192"},
        {"minutes = 3", "step-000400", 0, "minutes = 3"},
        {"epochs = 3", "step-000050", 0, "epochs = 3"},
        {"epochs = 3", "step-000100", 0, "epochs = 6"},
    }));
    Service made;
    const fs::path folder = made.folder / "run";
    fs::create_directory(folder);
    JournalWriter writer(folder / kJournalName);
    auto started = test::sample_start(begin);
    started.job += "[data]\ncorpus = \"kjv\"\nsequence_length = 64\n[training]\nbatch = 2\n" + job + "\n";
    writer.append(started);
    QSignalSpy opened(&made.service, &RunService::opened);
    made.service.open(QString::fromStdString(folder.string()));
    REQUIRE(opened.wait(kPatience));
    made.service.fork(made.shelf.runs().front().id, QString::fromStdString(snapshot));
    const widgets::JobDraft& draft = made.shelf.draft();
    CHECK_FALSE(draft.problem());
    CHECK(draft.text().contains(QString::fromStdString(expected)));
    CHECK(draft.fork().path.endsWith(QString::fromStdString(snapshot)));
}

TEST_CASE("A failure is reported until the run can be read again", "[app][runs]") {
    Service made;
    const fs::path folder = made.folder / "run";
    fs::create_directory(folder);
    JournalWriter writer(folder / kJournalName);
    writer.append(test::sample_start());
    QSignalSpy opened(&made.service, &RunService::opened);
    made.service.open(QString::fromStdString(folder.string()));
    REQUIRE(opened.wait(kPatience));
    const auto failure = [&] { return made.shelf.runs().front().failure; };
    fs::rename(folder / kJournalName, folder / "aside");
    fs::create_directory(folder / kJournalName);
    REQUIRE(QTest::qWaitFor([&] { return !failure().isEmpty(); }, kPatience));
    fs::remove(folder / kJournalName);
    fs::rename(folder / "aside", folder / kJournalName);
    REQUIRE(QTest::qWaitFor([&] { return failure().isEmpty(); }, kPatience));
    writer.append(test::sample_step(1));
    REQUIRE(QTest::qWaitFor([&] { return made.shelf.runs().front().record->last_step() == 1; }, kPatience));
}
