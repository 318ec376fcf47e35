// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint.h"

#include <ATen/core/Tensor.h>
#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json.h"
#include "core/base/os_error.h"
#include "core/base/text.h"
#include "core/checkpoint/fingerprint.h"
#include "core/checkpoint/shards.h"
#include "core/checkpoint/tensor_reader.h"
#include "core/checkpoint/torch_types.h"

namespace headscope::checkpoint {

namespace fs = std::filesystem;

struct Checkpoint::Impl {
    fs::path path;
    fs::path folder;  ///< where the configuration and the tokenizer are looked for
    bool has_config = false;
    nlohmann::json config = nlohmann::json::object();
    std::vector<InputFile> open_files;
    std::vector<fs::path> files;
    std::map<std::string, TensorInfo> tensors;
};

namespace {

constexpr std::uint64_t largest_config = 16U << 20U;

bool ends_with(const fs::path& path, std::string_view end) {
    return path.native().ends_with(end);
}

bool is_index(const fs::path& path) {
    return ends_with(path, ".json");
}

/// What else lies in a folder that people take for a checkpoint, for the message that says that it is none.
std::string other_weights(const std::vector<fs::path>& names) {
    std::vector<std::string> others;
    for (const fs::path& name : names) {
        for (const char* end : {".bin", ".pt", ".pth", ".gguf", ".ggml", ".h5", ".msgpack", ".onnx", ".ckpt", ".tar"}) {
            if (ends_with(name, end)) others.push_back(name.string());
        }
    }
    return others.empty() ? "found neither" : "found " + list_text(others, 5) + ", which are not supported yet";
}

/// The weights of a folder: which of its files to open.
fs::path weights_in(const fs::path& folder) {
    for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
        struct stat status {};
        if (::lstat((folder / name).c_str(), &status) == 0) return folder / name;
    }
    std::vector<fs::path> names;
    std::vector<fs::path> candidates;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        names.push_back(entry->path().filename());
        if (ends_with(names.back(), ".safetensors.index.json")) candidates.push_back(names.back());
    }
    if (error) throw os_error(error.value(), folder, "expected a folder that can be read");
    if (candidates.empty()) {
        for (const fs::path& name : names) {
            if (ends_with(name, ".safetensors")) candidates.push_back(name);
        }
    }
    if (candidates.size() == 1) return folder / candidates.front();
    if (candidates.size() > 1) {
        std::vector<std::string> found(candidates.begin(), candidates.end());
        throw Error(ErrorCode::usage, shown(folder), "expected model.safetensors or model.safetensors.index.json",
                    "found several others: " + list_text(found, 5) + "; name one of them");
    }
    throw Error(ErrorCode::format, shown(folder),
                "expected model.safetensors or model.safetensors.index.json in this folder", other_weights(names));
}

}  // namespace

std::shared_ptr<const Checkpoint> Checkpoint::open(const fs::path& path) {
    try {
        auto impl = std::make_unique<Impl>();
        impl->path = path;
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0) {
            throw os_error(errno, path, "expected a checkpoint: a folder, a .safetensors file or an index of shards");
        }
        const fs::path weights_path = S_ISDIR(status.st_mode) ? weights_in(path) : path;
        impl->folder = weights_path.parent_path();
        // Whatever lies under this name is read, and refused if it is no regular file.
        if (const auto config = impl->folder / "config.json"; ::lstat(config.c_str(), &status) == 0) {
            impl->config = read_json_file(config, largest_config, "configuration");
            JsonView(impl->config, shown(config)).object();
            impl->has_config = true;
        }
        Weights weights = is_index(weights_path) ? open_sharded(weights_path) : open_single(weights_path);
        impl->tensors = std::move(weights.tensors);
        impl->open_files = std::move(weights.files);
        for (const InputFile& file : impl->open_files) impl->files.push_back(file.path());
        return std::shared_ptr<const Checkpoint>(new Checkpoint(std::move(impl)));
    } catch (...) {
        throw current_error(shown(path));
    }
}

Checkpoint::Checkpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Checkpoint::~Checkpoint() = default;

const fs::path& Checkpoint::path() const {
    return impl_->path;
}
bool Checkpoint::has_config() const {
    return impl_->has_config;
}
const nlohmann::json& Checkpoint::config() const {
    return impl_->config;
}
const std::map<std::string, TensorInfo>& Checkpoint::tensors() const {
    return impl_->tensors;
}
const std::vector<fs::path>& Checkpoint::files() const {
    return impl_->files;
}
const std::vector<InputFile>& Checkpoint::open_files() const {
    return impl_->open_files;
}

std::string Checkpoint::display_name() const {
    std::error_code error;
    const fs::path whole = fs::absolute(impl_->path, error).lexically_normal();
    const fs::path name = whole.has_filename() ? whole.filename() : whole.parent_path().filename();
    return name.empty() ? impl_->path.string() : name.string();
}

std::optional<fs::path> Checkpoint::side_file(std::string_view name) const {
    if (!is_base_name(name)) return std::nullopt;
    fs::path path = impl_->folder / name;
    if (!ends_at_regular_file(path)) return std::nullopt;
    return path;
}

const TensorInfo& Checkpoint::tensor(const std::string& name) const {
    const auto found = impl_->tensors.find(name);
    if (found == impl_->tensors.end()) {
        throw Error(ErrorCode::mismatch, shown(impl_->path), "expected the tensor \"" + escaped(name) + '"',
                    "found none of that name");
    }
    return found->second;
}

at::Tensor Checkpoint::load(const std::string& name, LoadAs as) const {
    return load(name, as, Cancellation());
}

at::Tensor Checkpoint::load(const std::string& name, LoadAs as, const Cancellation& cancellation) const {
    const TensorInfo& info = tensor(name);
    try {
        return load_tensor(impl_->open_files.at(info.file), info, loaded_type(info.type, as), cancellation);
    } catch (...) {
        throw current_error(shown(impl_->path) + ", tensor \"" + escaped(name) + '"');
    }
}

std::string Checkpoint::fingerprint() const {
    return fingerprint(Cancellation());
}

std::string Checkpoint::fingerprint(const Cancellation& cancellation) const {
    try {
        return checkpoint::fingerprint(impl_->open_files, cancellation);
    } catch (...) {
        throw current_error(shown(impl_->path));
    }
}

}  // namespace headscope::checkpoint
