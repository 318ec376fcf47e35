// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/launch.h"

#include <unistd.h>

#include <QDateTime>
#include <QFile>
#include <QRegularExpression>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/run/journal_reader.h"
#include "core/run/run_folder.h"
#include "core/training/job/job_keys.h"
#include "widgets/desk/error_words.h"

namespace headscope::app {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kPriority = 10;                       ///< so that the window answers while a job has all processors
constexpr std::chrono::seconds kMeasure{1};         ///< of steps, after the first
constexpr std::chrono::seconds kStepPatience{180};  ///< until the first step: data may have to be made
constexpr std::chrono::milliseconds kTurn{40}, kTrainerEnd{5000};
constexpr qint64 kMostWords = 64 << 10;

void make_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        throw Error(ErrorCode::io, folder.string(), "expected to make this folder for runs",
                    "found " + error.message());
}

std::string plain_name(const std::string& name) {
    std::string plain;
    for (const char c : name) {
        const bool good = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.';
        if (good || (!plain.empty() && plain.back() != '_')) plain += good ? c : '_';
    }
    while (!plain.empty() && (plain.back() == '_' || plain.front() == '.'))
        plain.erase(plain.front() == '.' ? 0 : plain.size() - 1, 1);
    return plain.empty() ? "run" : plain.substr(0, 60);
}

void write_job(const fs::path& path, const training::JobFile& job) {
    const std::string text = training::job_text(training::with_absolute_paths(job));
    write_whole_file(path, text, "job");
}

/// False for a process that has ended: its command line is empty.
bool trains_in(pid_t process, const fs::path& run) {
    std::ifstream file("/proc/" + std::to_string(process) + "/cmdline");
    bool trains = false, output = false;
    for (std::string word; std::getline(file, word, '\0');) {
        if (output && trains && fs::path(word).lexically_normal() == run.lexically_normal()) return true;
        trains |= word == "train";
        output = word == "-o";
    }
    return false;
}

bool is_running(const Launch& launch) {
    return launch.spawned ? launch.spawned->running() : trains_in(launch.process, launch.run);
}

/// A number in front of the text, 0: none.
pid_t leading_number(std::string_view text) {
    pid_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end != text.data() && number > 0 ? number : 0;
}

/// The number of the process in "measuring-123" and the like, 0: it is another file.
pid_t measuring_process(const std::string& name) {
    for (const std::string_view begin : {"measuring-", "calibration-"}) {
        if (!name.starts_with(begin)) continue;
        const std::string_view rest = std::string_view(name).substr(begin.size());
        const pid_t process = leading_number(rest);
        const std::string_view end = rest.substr(std::min(rest.size(), std::to_string(process).size()));
        const bool known = begin == "measuring-" ? end.empty() : end.starts_with(".headscope.h5");
        if (known) return process;
    }
    return 0;
}

std::uintmax_t size_of(const fs::path& file) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(file, error);
    return error ? 0 : size;
}

QString read_words(const fs::path& log) {
    QFile file(QString::fromStdString(log.string()));
    if (!file.open(QIODevice::ReadOnly)) return {};
    if (file.size() > kMostWords) file.seek(file.size() - kMostWords);
    return widgets::error_words(file.read(kMostWords));
}

/// Removes a folder when it goes.
struct Aside {
    fs::path path;
    ~Aside() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
};

/// Ends a process when it goes: a read of the journal may be stopped, too.
struct Ending {
    Spawned& process;
    ~Ending() {
        process.send_signal(SIGKILL);
        process.wait(kTrainerEnd);
    }
};

/// Tokens and seconds of steps, without the first one, which is slower.
struct StepPace {
    std::int64_t tokens = 0;
    double seconds = 0;
    int steps = 0;
    double first_tokens_per_second = 0;

    void add(const training::Step& step) {
        if (steps++ == 0) {
            first_tokens_per_second = step.tokens_per_second;
            return;
        }
        if (!(step.tokens_per_second > 0)) return;
        const std::int64_t now = step.tokens - last;
        tokens += now;
        seconds += static_cast<double>(now) / step.tokens_per_second;
    }
    std::int64_t last = 0;
};

}  // namespace

SpawnOptions patient(const std::string& program, const QStringList& arguments) {
    SpawnOptions options;
    options.program = program;
    for (const QString& word : arguments) options.arguments.push_back(word.toStdString());
    options.nice = kPriority;
    return options;
}

QString told_progress(const std::string& errors) {
    static const QRegularExpression line(QStringLiteral("^headscope: +(\\d+ %.*)$"));
    const QStringList lines = QString::fromStdString(errors).split(QLatin1Char('\n'));
    for (auto one = lines.crbegin(); one != lines.crend(); ++one)
        if (const auto found = line.match(*one); found.hasMatch()) return found.captured(1).simplified();
    return {};
}

void begin_training(Launch& launch, const std::string& program) {
    make_folder(launch.folder / "runs");
    make_folder(launch.folder / "jobs");
    QStringList words{QStringLiteral("train")};
    std::string name;
    if (launch.resume) {
        name = launch.run.filename().string();
        launch.journal = size_of(training::RunFolder{launch.run}.journal());
        words << QStringLiteral("--resume");
    } else {
        const std::string stem = plain_name(launch.job.name) + "-" +
                                 QDateTime::currentDateTime().toString(QStringLiteral("yyyyMMdd-HHmmss")).toStdString();
        std::error_code ignored;
        name = stem;
        for (int number = 2; fs::exists(launch.folder / "runs" / name, ignored); ++number)
            name = stem + "-" + std::to_string(number);
        launch.run = launch.folder / "runs" / name;
        const fs::path job = launch.folder / "jobs" / (name + ".toml");
        write_job(job, launch.job);
        words << QString::fromStdString(job.string());
        if (!launch.from.empty()) words << QStringLiteral("--from") << QString::fromStdString(launch.from.string());
        if (!launch.from.empty() && launch.fresh_optimizer) words << QStringLiteral("--fresh-optimizer");
    }
    launch.log = launch.folder / "jobs" / (name + ".log");
    words << QStringLiteral("-o") << QString::fromStdString(launch.run.string()) << QStringLiteral("--nice")
          << QString::number(kPriority);
    SpawnOptions options = patient(program, words);
    options.error_file = launch.log;
    options.own_session = true;
    launch.spawned = Spawned::start(options);
}

std::shared_ptr<Launch> find_launch(const fs::path& run, const fs::path& folder) {
    std::error_code error;
    for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
        const pid_t process = leading_number(at->path().filename().string());
        if (process == 0 || !trains_in(process, run)) continue;
        auto launch = std::make_shared<Launch>();
        launch->folder = folder;
        launch->run = run;
        launch->log = folder / "jobs" / (run.filename().string() + ".log");
        launch->process = process;
        return launch;
    }
    return nullptr;
}

void stop_launch(const Launch& launch) {
    if (launch.spawned)
        launch.spawned->send_signal(SIGTERM);
    else if (is_running(launch))
        ::kill(launch.process, SIGTERM);
}

LaunchState look_at(const Launch& launch) {
    LaunchState state;
    const fs::path journal = training::RunFolder{launch.run}.journal();
    std::error_code ignored;
    // Before the journal: a process that ends in between has written it by then.
    const bool running = is_running(launch);
    // A short rest of a run may be done before this look; an open journal alone proves nothing.
    const bool begun = launch.resume ? size_of(journal) != launch.journal : fs::exists(journal, ignored);
    if (begun) {
        state.what = LaunchState::What::begun;
    } else if (!running) {
        state.what = LaunchState::What::ended;
        state.words = read_words(launch.log);
        if (state.words.isEmpty())
            state.words = QObject::tr("[%1] expected a process that trains; it ended and said nothing")
                              .arg(QString::fromStdString(launch.run.string()));
    }
    return state;
}

training::JobFile measured_job(training::JobFile job) {
    // A share of warm-up has no meaning in minutes. These, more than kStepPatience, are the end of one whose window was
    // killed.
    for (const char* off : {"evaluation.patience=0", "evaluation.every=0", "snapshots.every=0", "probe.every=0",
                            "sample.every=0", "schedule.warmup_steps=0", "training.minutes=4"})
        training::set_key(job, off);
    return job;
}

double measure_speed(const training::JobFile& job, const std::string& program, const fs::path& folder,
                     const std::atomic<bool>& given_up, const Cancellation& cancellation) {
    const training::JobFile aside = measured_job(job);
    const Aside place{folder / ("measuring-" + std::to_string(::getpid()))};
    { const Aside old{place.path}; }
    make_folder(place.path);
    write_job(place.path / "job.toml", aside);
    const fs::path run = place.path / "run";
    const auto process = Spawned::start(patient(
        program,
        {QStringLiteral("train"), QString::fromStdString((place.path / "job.toml").string()), QStringLiteral("-o"),
         QString::fromStdString(run.string()), QStringLiteral("--nice"), QString::number(kPriority)}));
    const Ending ending{*process};
    training::JournalReader journal(training::RunFolder{run}.journal());
    StepPace pace;
    std::optional<Clock::time_point> first;
    const auto begin = Clock::now();
    for (;;) {
        process->wait(kTurn);
        for (const auto& event : journal.read().events) {
            const auto* step = std::get_if<training::Step>(&event.what);
            if (!step) continue;
            if (!first) first = Clock::now();
            pace.add(*step);
            pace.last = step->tokens;
        }
        if (given_up || cancellation.requested()) throw Stopped();
        const auto now = Clock::now();
        const bool enough = first && pace.seconds > 0 && now - *first >= kMeasure;
        const bool ended = !process->running();
        if (!enough && !ended && now - begin < kStepPatience) continue;
        const QByteArray said = QByteArray::fromStdString(process->errors());
        if (pace.seconds > 0) return static_cast<double>(pace.tokens) / pace.seconds;
        if (pace.steps > 0) return pace.first_tokens_per_second;
        const QString words = widgets::error_words(said);
        // The process has said place, expected and found in one line.
        const QString inside = words.section(QLatin1Char(']'), 0, 0).mid(1),
                      rest = words.section(QLatin1Char(']'), 1).trimmed();
        throw Error(ErrorCode::usage, inside.isEmpty() ? "job" : inside.toStdString(),
                    rest.section(QStringLiteral("; "), 0, 0).toStdString(),
                    rest.isEmpty() ? "found that no step was done in time"
                                   : rest.section(QStringLiteral("; "), 1).toStdString());
    }
}

void remove_measurements(const fs::path& folder) {
    std::vector<fs::path> left;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        const pid_t process = measuring_process(at->path().filename().string());
        // A number of ours is that of one that had it before.
        if (process == ::getpid() || (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH))
            left.push_back(at->path());
    }
    for (const fs::path& one : left) fs::remove_all(one, error);
}

widgets::JobProblem problem_of_words(const QString& words) {
    widgets::JobProblem problem;
    problem.text = words;
    for (const training::JobKey& key : training::job_keys()) {
        const QString full = QString::fromStdString(key.full_name());
        if (!key.section.empty() && words.contains(full)) problem.key = full;
    }
    return problem;
}

}  // namespace headscope::app
