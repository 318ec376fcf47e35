// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "core/base/progress.h"

namespace CLI {
class App;
}

namespace headscope::app {

/// Shared by all sub-commands: the one cancellation flag (set by Ctrl-C) and the common options.
struct Context {
    Cancellation cancellation;
    bool verbose = false;
    std::string program;            ///< argv[0]
    std::function<void()> command;  ///< what the parsed sub-command will do
    bool stopped_in_order = false;  ///< Ctrl-C ended a job that left something behind on purpose: a snapshot
};

/// Arguments that cannot be, found after parsing: exit status 2. What a file or the system refuses is an Error: 1.
class UsageError : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

// One function a sub-command, one file each in commands/: declares its options and sets context.command when chosen.
void add_info(CLI::App& app, Context& context);
void add_tokenize(CLI::App& app, Context& context);
void add_analyze(CLI::App& app, Context& context);
void add_ask(CLI::App& app, Context& context);
void add_export(CLI::App& app, Context& context);
void add_cost(CLI::App& app, Context& context);
void add_evaluate(CLI::App& app, Context& context);
void add_reproduce(CLI::App& app, Context& context);
void add_generate(CLI::App& app, Context& context);
void add_convert(CLI::App& app, Context& context);
void add_list(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_train(CLI::App& app, Context& context);
void add_control(CLI::App& app, Context& context);

}  // namespace headscope::app
