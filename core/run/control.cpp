// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/control.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/base/io/output_file.h"
#include "core/base/json/json.h"
#include "core/base/option.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"

namespace headscope::training {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestWish = 4096;
constexpr const char* kEnding = ".json";
constexpr std::array kNames = {"pause", "resume", "stop", "snapshot", "evaluate", "learning_rate"};

double rate_of(const std::string& value) {
    double rate = -1;
    const char* end = value.data() + value.size();
    const auto [at, error] = std::from_chars(value.data(), end, rate);
    if (error != std::errc() || at != end || !std::isfinite(rate) || rate < 0 || rate > 100)
        throw Error(ErrorCode::usage, "rate", "expected a learning rate from 0 to 100", "found " + escaped(value));
    return rate;
}

/// Sorts by time of sending, and is the sender's own.
std::string new_id() {
    static std::atomic<int> count = 0;
    const auto time = std::chrono::system_clock::now().time_since_epoch();
    std::array<char, 80> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%020lld-%ld-%d",
                  static_cast<long long>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count()),
                  static_cast<long>(::getpid()), ++count);
    return buffer.data();
}

ControlRequest read_wish(const fs::path& path) {
    const std::string where = shown(path.filename());
    const nlohmann::json document = read_json_file(path, kLargestWish, "wish");
    const JsonView view(document, where);
    view.object();
    ControlRequest wish;
    wish.id = path.stem().string();
    wish.action = action_of(view.at("action").string());
    if (wish.action == ControlAction::learning_rate) wish.value = rate_of(view.at("value").string());
    return wish;
}

}  // namespace

const char* action_name(ControlAction action) {
    return kNames.at(static_cast<std::size_t>(action));
}

ControlAction action_of(const std::string& name) {
    if (name == "rate") return ControlAction::learning_rate;
    std::vector<std::string> known(kNames.begin(), kNames.end());
    const auto found = std::find(known.begin(), known.end(), name);
    if (found != known.end()) return static_cast<ControlAction>(found - known.begin());
    known.emplace_back("rate");
    throw choice_error(known, name, "control");
}

std::string send_control(const RunFolder& run, ControlAction action, const std::string& value) {
    if (action == ControlAction::learning_rate)
        rate_of(value);
    else if (!value.empty())
        throw Error(ErrorCode::usage, "control", std::string("expected nothing after ") + action_name(action),
                    "found " + escaped(value));
    if (!run.exists())
        throw Error(ErrorCode::usage, shown(run.path), "expected the folder of a run (with a job.toml)", "found none");
    if (!being_written(run.journal()))
        throw Error(ErrorCode::usage, shown(run.path),
                    "expected a running job; headscope train -o RUN --resume continues this one",
                    "found no process that trains it");
    std::error_code error;
    fs::create_directory(run.control(), error);
    const std::string id = new_id();
    nlohmann::json document = {{"action", action_name(action)}};
    if (!value.empty()) document["value"] = value;
    write_whole_file(run.control() / (id + kEnding), json_text(document), "request");
    return id;
}

std::vector<ControlRequest> read_control(const RunFolder& run, std::vector<std::string>& refused) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator at(run.control(), error), end; !error && at != end; at.increment(error)) {
        std::error_code gone;
        if (at->path().extension() == kEnding && at->symlink_status(gone).type() == fs::file_type::regular)
            files.push_back(at->path());
    }
    std::sort(files.begin(), files.end());
    std::vector<ControlRequest> wishes;
    for (const fs::path& file : files) {
        try {
            wishes.push_back(read_wish(file));
        } catch (const Error& problem) {
            refused.emplace_back(problem.what());
            fs::remove(file, error);
        }
    }
    return wishes;
}

void remove_control(const RunFolder& run, const std::string& id) {
    std::error_code ignored;
    fs::remove(run.control() / (id + kEnding), ignored);
}

std::vector<fs::path> found_control(const RunFolder& run) {
    std::vector<fs::path> all;
    std::error_code error;
    for (fs::directory_iterator at(run.control(), error), end; !error && at != end; at.increment(error))
        all.push_back(at->path());
    return all;
}

void clear_control(const RunFolder& run, const std::vector<fs::path>& found) {
    remove_link(run.control());
    std::error_code ignored;
    for (const fs::path& path : found) fs::remove_all(path, ignored);
}

}  // namespace headscope::training
