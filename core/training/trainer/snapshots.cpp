// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/snapshots.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/io/output_file.h"
#include "core/base/io/sha256.h"
#include "core/base/json/json.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"

namespace headscope::training {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestJson = 64'000'000;
constexpr const char* kTrash = ".trash-";
constexpr const char* kDamaged = ".damaged";

bool is_base_name(const std::string& name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
           name.find('\0') == std::string::npos;
}

void check_file(const fs::path& folder, const std::string& name, const JsonView& entry,
                const Cancellation& cancellation) {
    const InputFile file(folder / name, "snapshot");
    const std::int64_t bytes = entry.at("bytes").integer({0, std::numeric_limits<std::int64_t>::max()});
    if (file.size() != static_cast<std::uint64_t>(bytes))
        throw Error(ErrorCode::mismatch, shown(file.path()), "expected " + std::to_string(bytes) + " bytes",
                    "found " + std::to_string(file.size()));
    const std::string hash = sha256_hex(file, cancellation);
    if (hash != entry.at("sha256").string())
        throw Error(ErrorCode::mismatch, shown(file.path()), "expected the bytes of the manifest",
                    "found others (SHA-256 " + hash.substr(0, 12) + "...)");
}

void remove_quietly(const fs::path& path) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
}

}  // namespace

TrainingState verify_snapshot(const fs::path& folder, const Cancellation& cancellation) {
    const fs::path manifest_path = folder / "manifest.json";
    const nlohmann::json manifest = read_json_file(manifest_path, kLargestJson, "manifest");
    const JsonView view(manifest, shown(manifest_path));
    const JsonView files = view.at("files").object();
    for (const char* name : {"config.json", kStateName, kOptimizerName})
        if (!files.has(name)) files.refuse(ErrorCode::mismatch, std::string("expected an entry for ") + name);
    bool weights = false;
    for (const std::string& name : files.keys()) {
        if (!is_base_name(name)) files.refuse(ErrorCode::format, "expected plain names of files");
        check_file(folder, name, files.at(name), cancellation);
        weights |= name.starts_with("model") && name.ends_with(".safetensors");
    }
    if (!weights) files.refuse(ErrorCode::mismatch, "expected an entry for the weights");
    const fs::path state_path = folder / kStateName;
    TrainingState state = read_state(read_json_file(state_path, kLargestJson, "training state"), shown(state_path));
    const std::int64_t step = snapshot_step(folder.filename().string());
    if (step >= 0 && step != state.step)
        throw Error(ErrorCode::mismatch, shown(folder), "expected the snapshot of step " + std::to_string(step),
                    "found that of step " + std::to_string(state.step));
    return state;
}

SnapshotStore::SnapshotStore(RunFolder run) : run_(std::move(run)) {
    std::error_code ignored;
    if (fs::is_symlink(run_.snapshots(), ignored))
        throw Error(ErrorCode::usage, shown(run_.snapshots()), "expected to write the snapshots of this run",
                    "found a link");
}

void SnapshotStore::clean() const {
    std::error_code error;
    std::vector<fs::path> rest;
    for (fs::directory_iterator at(run_.snapshots(), error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        if (name.ends_with(".partial") || name.starts_with(kTrash)) rest.push_back(at->path());
    }
    for (const fs::path& path : rest) remove_quietly(path);
}

std::vector<std::int64_t> SnapshotStore::steps() const {
    std::vector<std::int64_t> all;
    std::error_code error;
    for (fs::directory_iterator at(run_.snapshots(), error), end; !error && at != end; at.increment(error)) {
        const std::int64_t step = snapshot_step(at->path().filename().string());
        if (step >= 0) all.push_back(step);
    }
    std::sort(all.begin(), all.end());
    return all;
}

void SnapshotStore::put_aside(std::int64_t step) const {
    const fs::path from = folder(step);
    fs::path to = from;
    to += kDamaged;
    remove_quietly(to);
    if (::rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT)
        throw os_error(errno, from, "expected to put this damaged snapshot aside");
}

std::uint64_t SnapshotStore::write(const TrainingState& state, checkpoint::SaveRequest request,
                                   const Cancellation& cancellation) {
    std::error_code error;
    fs::create_directories(run_.snapshots(), error);
    const fs::path target = folder(state.step);
    if (holds(state.step)) return 0;
    if (fs::exists(target, error)) put_aside(state.step);
    request.destination = target;
    request.texts[kStateName] = json_text(state_json(state));
    NoProgress quiet;
    const std::uint64_t bytes = checkpoint::save_checkpoint(request, quiet, cancellation);
    verify_snapshot(target, cancellation);
    verified_.insert(state.step);
    link("last", state.step);
    return bytes;
}

std::int64_t SnapshotStore::newest_whole(TrainingState& state, std::vector<std::string>& problems,
                                         const Cancellation& cancellation) {
    const std::vector<std::int64_t> all = steps();
    for (auto step = all.rbegin(); step != all.rend(); ++step) {
        try {
            state = verify_snapshot(folder(*step), cancellation);
            verified_.insert(*step);
            // Pruning may rely on this one: one more whole snapshot.
            for (auto older = std::next(step); older != all.rend() && verified_.size() < 2; ++older) {
                try {
                    verify_snapshot(folder(*older), cancellation);
                    verified_.insert(*older);
                } catch (const Error& problem) {
                    problems.emplace_back(problem.what());
                    put_aside(*older);
                }
            }
            return *step;
        } catch (const Error& problem) {
            problems.emplace_back(problem.what());
            put_aside(*step);
        }
    }
    return -1;
}

bool SnapshotStore::holds(std::int64_t step) const {
    std::error_code error;
    return verified_.contains(step) && fs::exists(folder(step), error);
}

std::uint64_t SnapshotStore::bytes(std::int64_t step) const {
    std::uint64_t sum = 0;
    std::error_code error;
    for (fs::directory_iterator at(folder(step), error), end; !error && at != end; at.increment(error)) {
        std::error_code ignored;
        const std::uintmax_t size = at->is_regular_file(ignored) ? at->file_size(ignored) : 0;
        if (!ignored) sum += size;
    }
    return sum;
}

void SnapshotStore::link(const std::string& name, std::int64_t step) const {
    const fs::path target = run_.snapshots() / name, aside = run_.snapshots() / (kTrash + name);
    if (step < 0) {
        remove_link(target);
        return;
    }
    std::error_code error;
    if (fs::read_symlink(target, error) == snapshot_name(step)) return;
    remove_quietly(aside);
    const bool made = ::symlink(snapshot_name(step).c_str(), aside.c_str()) == 0;
    // Some file systems have no links: the snapshots are as good without.
    if (!made && (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS)) return;
    if (!made || ::rename(aside.c_str(), target.c_str()) != 0)
        throw os_error(errno, target, "expected to make this link to a snapshot");
    sync_folder(run_.snapshots());
}

void SnapshotStore::prune(std::int64_t keep, std::int64_t best) {
    std::vector<std::int64_t> all = steps();
    for (std::size_t i = 0; i < all.size(); ++i) {
        const bool among_newest = static_cast<std::int64_t>(all.size() - i) <= keep;
        if (among_newest || all[i] == best) continue;
        const auto others = std::count_if(
            all.begin(), all.end(), [&](std::int64_t step) { return step != all[i] && verified_.contains(step); });
        if (others < 2) continue;
        // Out of sight first: a folder that is half removed must never look like a snapshot.
        const fs::path trash = run_.snapshots() / (kTrash + snapshot_name(all[i]));
        remove_quietly(trash);
        if (::rename(folder(all[i]).c_str(), trash.c_str()) != 0)
            throw os_error(errno, folder(all[i]), "expected to remove this old snapshot");
        verified_.erase(all[i]);
        remove_quietly(trash);
    }
}

std::vector<fs::path> last_snapshots(const RunFolder& run, std::int64_t count) {
    const SnapshotStore store(run);
    const std::vector<std::int64_t> steps = store.steps();
    if (std::ssize(steps) < count)
        throw Error(ErrorCode::usage, shown(run.path),
                    "expected a run with " + std::to_string(count) + " snapshots (its job's snapshots.keep)",
                    "found " + std::to_string(steps.size()));
    std::vector<fs::path> folders;
    for (auto step = steps.end() - count; step != steps.end(); ++step) folders.push_back(store.folder(*step));
    return folders;
}

}  // namespace headscope::training
