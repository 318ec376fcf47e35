// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command_line.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include "app/child.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/option_use.h"
#include "app/openmp_spin.h"
#include "app/version.h"
#ifdef HEADSCOPE_WITH_WINDOW
#include "app/window/run_window.h"
#endif
#include "core/base/error.h"
#include "core/base/process/cancellation_scope.h"

namespace headscope::app {
namespace {

Cancellation* interrupted = nullptr;
volatile std::sig_atomic_t last_signal = 0;

/// The first signal asks the job to stop and clean up; a second one ends the program as it would without us.
void on_signal(int signal) {
    last_signal = signal;
    interrupted->request();
    std::signal(signal, SIG_DFL);
}

void catch_signals(Cancellation& cancellation) {
    interrupted = &cancellation;
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of write() too: clean up, then end
    std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of write(), not a death
}

int report(const Error& error, bool verbose) {
    finish_progress_line();
    std::fprintf(stderr, "headscope: %s\n", error.what());
    if (verbose) {
        std::fprintf(stderr, "  where:    %s\n  expected: %s\n  found:    %s\n", error.where().c_str(),
                     error.expected().c_str(), error.found().c_str());
    }
    return 1;
}

int report_usage(const CLI::App& app, const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error) == 0 ? 0 : 1;  // --help, --version
    std::string text = error.what();
    if (const auto end = text.find('\n'); end != std::string::npos) text.resize(end);
    std::fprintf(stderr, "headscope: [usage] %s; see headscope %s--help\n", escaped(text, 400).c_str(),
                 app.get_subcommands().empty() ? "" : (app.get_subcommands().front()->get_name() + " ").c_str());
    return 2;
}

#ifdef HEADSCOPE_WITH_WINDOW
/// The sub-commands' names.
std::vector<std::string> commands_of(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    return names;
}
#endif

int run_arguments(int argc, char** argv) {
    Context context;
    context.program = argc > 0 ? argv[0] : "headscope";
    CLI::App app("Headscope: a workbench for looking inside attention.", "headscope");
    try {
        app.set_version_flag("--version", std::string("headscope ") + kVersion);
        app.add_flag("--verbose", context.verbose, "Say more when something fails");
        app.require_subcommand(1);
        app.fallthrough();
        add_info(app, context);
        add_tokenize(app, context);
        add_analyze(app, context);
        add_ask(app, context);
        add_export(app, context);
        add_generate(app, context);
        add_evaluate(app, context);
        add_cost(app, context);
        add_reproduce(app, context);
        add_convert(app, context);
        add_list(app, context);
        add_bench(app, context);
        add_train(app, context);
        add_control(app, context);
#ifdef HEADSCOPE_WITH_WINDOW
        app.footer("Without a command it opens the window: headscope [PATH...] [--threads N] [--fresh]");
        if (wants_window(argc, argv, commands_of(app))) {
            limit_openmp_spin(argv);
            return run_window(argc, argv);
        }
#endif
        try {
            app.parse(argc, argv);
        } catch (const CLI::ParseError& error) {
            return report_usage(app, error);
        }
        if (computes(app.get_subcommands().front()->get_name())) limit_openmp_spin(argv);
        catch_signals(context.cancellation);
        const CancellationScope scope(context.cancellation);
        check_outputs(*app.get_subcommands().front());
        context.command();
        if (std::fflush(stdout) != 0)
            throw Error(ErrorCode::io, "standard output", "expected to write all output", "found an error");
        if (context.stopped_in_order) return last_signal == SIGINT ? 130 : 128 + last_signal;
        return 0;
    } catch (const UsageError& error) {
        std::fprintf(stderr, "headscope: [usage] %s\n", error.what());
        return 2;
    } catch (const ChildDone& child) {
        return child.status;
    } catch (const Stopped&) {
        finish_progress_line();
        if (in_child()) return 1;  // the parent reports it
        std::fprintf(stderr, "headscope: stopped; nothing was left behind\n");
        return last_signal == 0 ? 130 : 128 + last_signal;
    } catch (...) {
        try {
            return report(current_error("headscope"), context.verbose);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "headscope: [headscope] no error expected; found: %s\n", error.what());
            return 1;
        }
    }
}

}  // namespace

int run_command_line(int argc, char** argv) {
    const int status = run_arguments(argc, argv);
    if (in_child()) {
        std::fflush(nullptr);
        std::quick_exit(status);  // what was begun before the fork is the parent's to end
    }
    return status;
}

}  // namespace headscope::app
