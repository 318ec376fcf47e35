// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <sys/stat.h>

#include <cerrno>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json/json.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/experts/switch_experts.h"
#include "core/checkpoint/fingerprint.h"
#include "core/checkpoint/gguf/gguf.h"
#include "core/checkpoint/not_finite.h"
#include "core/checkpoint/packed/open_packed.h"
#include "core/checkpoint/packed/packed_bytes.h"
#include "core/checkpoint/shards.h"
#include "core/checkpoint/stored_tensor.h"
#include "core/checkpoint/tensor_reader.h"
#include "core/checkpoint/torch_types.h"
#include "core/checkpoint/weights_in.h"

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
    std::map<std::string, std::string> unreadable;
    std::vector<std::string> notes;
    std::unique_ptr<const Adapter> adapter;
    std::string packed_format;
    std::optional<Error> quantization_fault;
    std::optional<gguf::Metadata> metadata;  ///< of a GGUF file
    std::mutex tokenizer_mutex;
    std::optional<std::shared_ptr<const TokenizerDocuments>> tokenizer;  ///< of that, once it was asked for

    void open_gguf_file(const fs::path& file) {
        GgufModel model = open_gguf(file);
        tensors = std::move(model.tensors);
        config = std::move(model.config);
        has_config = true;
        open_files = std::move(model.files);
        notes.insert(notes.end(), model.notes.begin(), model.notes.end());
        packed_format = std::move(model.format);
        metadata = std::move(model.metadata);
    }

    void open_weights(const fs::path& file);
};

namespace {

constexpr std::uint64_t largest_config = 16U << 20U;

bool is_index(const fs::path& path) {
    return path.native().ends_with(".json");
}

std::string adapter_note(const Adapter& adapter) {
    const auto count = [](std::size_t number) {
        return std::to_string(number) + (number == 1 ? " tensor" : " tensors");
    };
    std::string note = "the LoRA adapter " + escaped(adapter.display_name());
    if (!adapter.base().empty()) note += " of \"" + escaped(adapter.base()) + '"';
    note += " is merged into " + count(adapter.merged().size());
    if (const auto replaced = adapter.replaced(); !replaced.empty())
        note += ", and " + count(replaced.size()) + " of its own took the place of the base's";
    if (adapter.unties()) note += "; the head is no longer the embedding";
    if (const auto rows = adapter.vocabulary()) note += "; the vocabulary has " + std::to_string(*rows) + " entries";
    if (!adapter.left_out().empty()) note += "; the head of its task is left out: " + list_text(adapter.left_out(), 5);
    return note;
}

bool is_gguf_file(const fs::path& path) {
    return ends_at_regular_file(path) && is_gguf(InputFile(path, "weight file"));
}

}  // namespace

void Checkpoint::Impl::open_weights(const fs::path& file) {
    struct stat status {};
    // Whatever lies under this name is read, and refused if it is no regular file.
    if (const auto beside = folder / "config.json"; ::lstat(beside.c_str(), &status) == 0) {
        config = read_python_json_file(beside, largest_config, "configuration");
        JsonView(config, shown(beside)).object();
        has_config = true;
    }
    Weights weights = is_index(file) ? open_sharded(file) : open_single(file);
    tensors = std::move(weights.tensors);
    unreadable = std::move(weights.unreadable);
    notes.insert(notes.end(), weights.notes.begin(), weights.notes.end());
    open_files = std::move(weights.files);
    try {
        packed_format = unpack_names(config, folder, open_files, tensors);
    } catch (const Error& error) {
        if (error.code() == ErrorCode::io) throw;
        quantization_fault = error;  // the tensors can be listed
        return;
    }
    split_switch_experts(tensors);
    join_expert_stacks(tensors);
}

std::shared_ptr<const Checkpoint> Checkpoint::open(const fs::path& path) {
    return open(path, fs::path());
}

std::shared_ptr<const Checkpoint> Checkpoint::open(const fs::path& path, const fs::path& adapter,
                                                   const VocabularyTensors& vocabulary) {
    try {
        auto impl = std::make_unique<Impl>();
        impl->path = path;
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0) {
            throw os_error(errno, path, "expected a checkpoint: a folder, a weight file or an index of shards");
        }
        const fs::path weights_path = S_ISDIR(status.st_mode) ? weights_in(path, impl->notes) : path;
        impl->folder = weights_path.parent_path();
        if (is_gguf_file(weights_path))
            impl->open_gguf_file(weights_path);
        else
            impl->open_weights(weights_path);
        if (!impl->packed_format.empty())
            impl->notes.push_back("weights are quantized (" + impl->packed_format + ") and become float32 when read");
        for (const InputFile& file : impl->open_files) impl->files.push_back(file.path());
        if (!adapter.empty()) {
            impl->adapter = std::make_unique<Adapter>(adapter, impl->tensors, shown(path), vocabulary);
            impl->notes.push_back(adapter_note(*impl->adapter));
            impl->tensors = impl->adapter->tensors();
            for (const std::string& key : vocabulary.tie_keys)
                if (impl->adapter->unties()) impl->config[nlohmann::json::json_pointer(key)] = false;
            if (const auto rows = impl->adapter->vocabulary())
                impl->config[nlohmann::json::json_pointer(vocabulary.size_key)] = *rows;
        } else if (!impl->metadata && !weights_path.filename().native().starts_with("adapter_model") &&
                   ::lstat((impl->folder / adapter_config_name).c_str(), &status) == 0) {
            impl->notes.push_back(adapter_text(impl->folder) +
                                  " lies beside the weights and is not applied: --adapter " + shown(impl->folder) +
                                  " does that");
        }
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
const std::vector<std::string>& Checkpoint::notes() const {
    return impl_->notes;
}
const Adapter* Checkpoint::adapter() const {
    return impl_->adapter.get();
}
const std::map<std::string, std::string>& Checkpoint::unreadable() const {
    return impl_->unreadable;
}
const std::vector<InputFile>& Checkpoint::open_files() const {
    return impl_->open_files;
}
const std::string& Checkpoint::packed_format() const {
    return impl_->packed_format;
}
const Error* Checkpoint::quantization_fault() const {
    return impl_->quantization_fault ? &*impl_->quantization_fault : nullptr;
}

std::shared_ptr<const TokenizerDocuments> Checkpoint::own_tokenizer() const {
    if (!impl_->metadata) return nullptr;
    const std::lock_guard lock(impl_->tokenizer_mutex);
    if (!impl_->tokenizer) {
        try {
            auto made = gguf_tokenizer(*impl_->metadata);
            impl_->tokenizer = made ? std::make_shared<const TokenizerDocuments>(*std::move(made)) : nullptr;
        } catch (...) {
            throw current_error(shown(impl_->path));
        }
    }
    return *impl_->tokenizer;
}

nlohmann::json Checkpoint::tokenizer_settings() const {
    if (const auto own = own_tokenizer()) return own->settings;
    const auto path = side_file("tokenizer_config.json");
    return path ? read_json_file(*path, largest_config, "tokenizer configuration") : nlohmann::json();
}

bool Checkpoint::is_made(const std::string& name) const {
    return tensor(name).packed || (impl_->adapter && impl_->adapter->changes(name));
}

bool Checkpoint::is_packed(const std::string& name) const {
    return tensor(name).packed && !(impl_->adapter && impl_->adapter->own(name));
}

std::uint64_t Checkpoint::stored_bytes(const std::string& name) const {
    const TensorInfo& info = tensor(name);
    if (!impl_->adapter) return info.bytes;
    const TensorInfo* own = impl_->adapter->own(name);
    return (own ? own->bytes : info.bytes) + impl_->adapter->update_bytes(name);
}

std::string stored_type(const TensorInfo& tensor) {
    return tensor.packed ? tensor.packed->type : std::string(name(tensor.type));
}

std::string Checkpoint::display_name() const {
    std::error_code error;
    const fs::path whole = fs::absolute(impl_->path, error).lexically_normal();
    const fs::path last = whole.has_filename() ? whole.filename() : whole.parent_path().filename();
    const std::string name = last.empty() ? impl_->path.string() : last.string();
    return impl_->adapter ? name + " + " + impl_->adapter->display_name() : name;
}

std::optional<fs::path> Checkpoint::side_file(std::string_view name) const {
    if (impl_->metadata || !is_base_name(name)) return std::nullopt;
    fs::path path = impl_->folder / name;
    if (!ends_at_regular_file(path)) return std::nullopt;
    return path;
}

const TensorInfo& Checkpoint::tensor(const std::string& name) const {
    const auto found = impl_->tensors.find(name);
    if (found == impl_->tensors.end()) {
        if (const auto bad = impl_->unreadable.find(name); bad != impl_->unreadable.end()) {
            throw Error(ErrorCode::unsupported, shown(impl_->path) + ", tensor \"" + escaped(name) + '"',
                        "expected a plain tensor", bad->second);
        }
        throw Error(ErrorCode::mismatch, shown(impl_->path), "expected the tensor \"" + escaped(name) + '"',
                    "found none of that name");
    }
    return found->second;
}

at::Tensor Checkpoint::load(const std::string& name, LoadAs as) const {
    return load(name, as, Cancellation());
}

at::Tensor Checkpoint::load(const std::string& name, LoadAs as, const Cancellation& cancellation,
                            std::int64_t* not_finite) const {
    const TensorInfo& info = tensor(name);
    try {
        const DataType type = loaded_type(info.type, as);
        if (!is_made(name)) return load_tensor(impl_->open_files.at(info.file), info, type, cancellation, not_finite);
        if (impl_->adapter && impl_->adapter->changes(name)) {
            const at::Tensor made = at::empty(info.shape, at::TensorOptions(torch_type(type).value()));
            const std::int64_t found = load_into(*this, name, made, cancellation);
            if (not_finite) *not_finite = found;
            return made;
        }
        at::Tensor made = PackedBytes(impl_->open_files, info.packed, cancellation, true).all(torch_type(type).value());
        if (not_finite) *not_finite = count_not_finite(made);
        return made;
    } catch (...) {
        throw current_error(shown(impl_->path) + ", tensor \"" + escaped(name) + '"');
    }
}

std::string Checkpoint::fingerprint() const {
    return fingerprint(Cancellation());
}

std::string Checkpoint::fingerprint(const Cancellation& cancellation) const {
    try {
        std::vector<const InputFile*> more;
        if (impl_->adapter) more.push_back(&impl_->adapter->file());
        return checkpoint::fingerprint(impl_->open_files, more, cancellation);
    } catch (...) {
        throw current_error(shown(impl_->path));
    }
}

}  // namespace headscope::checkpoint
