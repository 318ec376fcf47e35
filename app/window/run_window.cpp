// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/run_window.h"

#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <QApplication>
#include <QDir>
#include <QFileInfo>
#include <QIcon>
#include <QTimer>
#include <algorithm>
#include <chrono>
#include <clocale>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "app/version.h"
#include "app/window/main_window.h"
#include "app/window/rig_hooks.h"
#include "core/base/error.h"
#include "core/base/process/threads.h"
#include "widgets/desk/style.h"
#include "widgets/plots/figure/painting_thread.h"
#include "widgets/quiet_qt.h"
#include "widgets/wheel_filter.h"

namespace headscope::app {
namespace {

[[maybe_unused]] constexpr int kMostHeaps = 4, kLargeBytes = 1 << 20, kFreeBytes = 16 << 20;

// An analysis and the window's tiles and figures take every processor; a click is answered before them.
constexpr int kWorkersGiveWay = 5;

// Then the end waits no longer for a thread that a disk keeps waiting.
constexpr std::chrono::seconds kEndWithin{10};

volatile std::sig_atomic_t asked_to_end = 0;

void on_signal(int signal) {
    asked_to_end = 1;
    std::signal(signal, SIG_DFL);
}

/// No exception may unwind through Qt's event loop: prints the bug that let one through, and goes on.
class Application final : public QApplication {
public:
    using QApplication::QApplication;
    bool notify(QObject* receiver, QEvent* event) override {
        try {
            return QApplication::notify(receiver, event);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "headscope: [window] no error expected; found: %s\n", error.what());
        }
        return false;
    }
};

void on_qt_message(QtMsgType type, const QMessageLogContext&, const QString& text) {
    if (type == QtFatalMsg) {  // no display that answers: Qt would abort
        std::fprintf(stderr, "headscope: [window] expected a display to open a window on; found: %s\n",
                     text.section(QLatin1Char('\n'), 0, 0).toUtf8().constData());
        std::fflush(stderr);
        ::_exit(1);
    }
    if (type != QtDebugMsg && type != QtInfoMsg && qEnvironmentVariableIsSet("HEADSCOPE_VERBOSE"))
        std::fprintf(stderr, "qt: %s\n", text.toUtf8().constData());
}

/// Pictures, maps and values come and go all day: large ones are the system's again when they go, and small ones of
/// twenty threads do not lie scattered over twenty heaps.
void keep_memory_together() {
#ifdef __GLIBC__
    ::mallopt(M_ARENA_MAX, kMostHeaps);
    ::mallopt(M_MMAP_THRESHOLD, kLargeBytes);
    ::mallopt(M_TRIM_THRESHOLD, kFreeBytes);
#endif
}

/// Ends the process where that takes too long once begun: nothing wakes a thread whose disk does not answer, and who
/// joins it waits as long. An end that comes in time is an ordinary one.
class EndGuard {
public:
    EndGuard() = default;
    ~EndGuard() {
        {
            const std::lock_guard lock(mutex_);
            ended_ = true;
        }
        changed_.notify_all();
        if (thread_.joinable()) thread_.join();
    }
    EndGuard(const EndGuard&) = delete;
    EndGuard& operator=(const EndGuard&) = delete;

    void begin(int status) {
        thread_ = start_thread([this, status] {
            std::unique_lock lock(mutex_);
            if (changed_.wait_for(lock, kEndWithin, [this] { return ended_; })) return;
            std::fprintf(stderr, "headscope: [window] expected every disk to answer; some did not within %d s\n",
                         static_cast<int>(kEndWithin.count()));
            std::_Exit(status);
        });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ended_ = false;
    std::thread thread_;
};

bool has_display() {
    for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"})
        if (!qEnvironmentVariableIsEmpty(name)) return true;
    return false;
}

}  // namespace

bool wants_window(int argc, char** argv, const std::vector<std::string>& commands) {
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--help" || word == "-h" || word == "--version" || word == "--verbose") return false;
        if (!word.empty() && word[0] != '-') {
            if (std::find(commands.begin(), commands.end(), word) != commands.end()) return false;
            std::error_code ignored;
            return i > 1 || std::filesystem::exists(word, ignored);
        }
    }
    return true;
}

RigHooks& rig_hooks() {
    static RigHooks hooks;
    return hooks;
}

int run_window(int argc, char** argv) {
    MainWindow::Options options;
    CLI::App parser("Headscope: the window.", "headscope");
    std::vector<std::string> paths;
    bool fresh = false;
    parser.add_option("paths", paths, "Checkpoints, analyses and texts to open");
    parser.add_option("--threads", options.threads, "0: all processors")->check(CLI::Range(0, 4096));
    parser.add_flag("--fresh", fresh, "Neither bring the last session back nor write over it");
    bool drive = false;
    double monkey = 0;
    std::uint64_t seed = 1;
    if (rig_hooks().drive != nullptr) {
        parser.add_flag("--drive", drive)->group("");
        parser.add_option("--monkey", monkey)->group("");
        parser.add_option("--seed", seed)->group("");
    }
    try {
        parser.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        std::fprintf(stderr, "headscope: [usage] %s; see headscope --help\n", escaped(error.what(), 400).c_str());
        return 2;
    }
    if (!has_display()) {
        std::fprintf(stderr,
                     "headscope: [window] expected a display ($DISPLAY or $WAYLAND_DISPLAY) to open a window "
                     "on; found none; see headscope --help for what works without one\n");
        return 1;
    }
    try {
        for (const auto& path : paths)
            options.paths << QFileInfo(QString::fromLocal8Bit(path.c_str())).absoluteFilePath();
        options.program = QFileInfo(QStringLiteral("/proc/self/exe")).symLinkTarget().toStdString();
        options.restore = !fresh;
#ifdef NDEBUG
        options.watch = drive || monkey > 0;
#else
        options.watch = true;
#endif
        qInstallMessageHandler(on_qt_message);
        keep_memory_together();
        set_new_threads_nice(kWorkersGiveWay);
        QCoreApplication::setApplicationName(QStringLiteral("headscope"));
        QCoreApplication::setApplicationVersion(QLatin1String(kVersion));
        QGuiApplication::setDesktopFileName(QStringLiteral("org.headscope.Headscope"));
        int count = 1;
        EndGuard guard;  // longer than the window and the application
        Application application(count, argv);
        widgets::paint_on_this_thread_alone();
        std::setlocale(LC_NUMERIC, "C");
        QApplication::setStyle(new widgets::Style);
        widgets::WheelFilter::install(&application);
        QApplication::setWindowIcon(QIcon(QStringLiteral(":/icons/headscope.svg")));
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, on_signal);
        std::signal(SIGPIPE, SIG_IGN);
        std::signal(SIGXFSZ, SIG_IGN);
        MainWindow window(options);
        QTimer signals_seen;
        QObject::connect(&signals_seen, &QTimer::timeout, &window, [&window] {
            if (asked_to_end) window.end();
        });
        signals_seen.start(200);
        window.show();
        if (drive) rig_hooks().drive(&window);
        if (monkey > 0) rig_hooks().monkey(&window, monkey, seed);
        const int status = QApplication::exec();
        window.let_go();
        guard.begin(status);
        return status;
    } catch (...) {
        try {
            std::fprintf(stderr, "headscope: %s\n", current_error("window").what());
        } catch (const std::exception& error) {
            std::fprintf(stderr, "headscope: [window] no error expected; found: %s\n", error.what());
        }
        return 1;
    }
}

}  // namespace headscope::app
