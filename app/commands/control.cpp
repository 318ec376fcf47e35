// SPDX-License-Identifier: GPL-3.0-or-later
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/run/control.h"
#include "core/run/journal_reader.h"

namespace headscope::app {
namespace control_command {
namespace {

struct ControlOptions {
    std::string run, action, value;
    double wait = 60;
    bool json = false;
};

/// The event that answers the request, once the journal has it; empty at a timeout or if the trainer is gone.
std::optional<training::Control> answer(const training::RunFolder& run, training::JournalReader& reader,
                                        const std::string& id, double seconds, const Cancellation& cancellation) {
    const auto start = std::chrono::steady_clock::now();
    while (true) {
        const bool alive = training::being_written(run.journal());
        for (training::JournalReader::Batch batch = reader.read(); true; batch = reader.read()) {
            for (const auto& event : batch.events)
                if (const auto* control = std::get_if<training::Control>(&event.what); control && control->id == id)
                    return *control;
            if (!batch.more) break;
        }
        cancellation.check();
        const auto waited = std::chrono::steady_clock::now() - start;
        if (!alive || std::chrono::duration<double>(waited).count() > seconds) return std::nullopt;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

void run(const ControlOptions& options, const Cancellation& cancellation) {
    const training::RunFolder folder{options.run};
    const training::ControlAction action = training::action_of(options.action);
    training::JournalReader reader(folder.journal());
    while (reader.read().more) cancellation.check();
    const std::string id = training::send_control(folder, action, options.value);
    if (options.wait <= 0) return options.json ? print_json({{"id", id}}) : print("sent\n");
    const auto control = answer(folder, reader, id, options.wait, cancellation);
    if (!control)
        throw Error(ErrorCode::io, shown(options.run),
                    "expected an answer within " + format_seconds(options.wait) + " (a step may take longer: --wait)",
                    training::being_written(folder.journal()) ? "found no answer yet; the request is queued"
                                                              : "found that the run ended");
    if (options.json)
        print_json({{"id", id}, {"step", control->step}, {"action", control->action}, {"outcome", control->outcome}});
    else
        print("step " + std::to_string(control->step) + "  " + control->action + ": " +
              escaped(control->outcome, 1000) + "\n");
}

}  // namespace
}  // namespace control_command

void add_control(CLI::App& app, Context& context) {
    using namespace control_command;
    auto* command = app.add_subcommand("control", "Ask something of a run that is at work");
    auto options = std::make_shared<ControlOptions>();
    add_option(*command, "run", options->run, "The run's folder")->required();
    add_option(*command, "action", options->action, "pause, resume, stop, snapshot, evaluate, or rate VALUE")
        ->required();
    add_option(*command, "value", options->value, "Of rate: the schedule's new peak, such as 1e-4");
    add_option(*command, "--wait", options->wait, "Seconds to wait for the answer; 0: none")->check(in_range(0.0, 1e6));
    add_flag(*command, "--json", options->json, "One JSON document");
    command->callback([&context, options, command] {
        check_options("control", given_options(*command), {options->action == "rate" ? "rate" : "other actions"});
        context.command = [&context, options] { run(*options, context.cancellation); };
    });
}

}  // namespace headscope::app
