// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/adapter.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/json/json.h"
#include "core/base/process/os_error.h"
#include "core/base/text/shape_text.h"
#include "core/base/text/text.h"
#include "core/checkpoint/adapter/low_rank_update.h"
#include "core/checkpoint/adapter_config.h"
#include "core/checkpoint/adapter_names.h"
#include "core/checkpoint/shards.h"
#include "core/checkpoint/tensor_reader.h"

namespace headscope::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr const char* weight_names[] = {"adapter_model.safetensors", "adapter_model.bin"};

bool is_real(DataType type) {
    return type == DataType::f16 || type == DataType::bf16 || type == DataType::f32 || type == DataType::f64;
}

fs::path folder_of(const fs::path& path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return path;
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

fs::path adapter_weights(const fs::path& folder) {
    for (const char* name : weight_names)
        if (ends_at_regular_file(folder / name)) return folder / name;
    throw Error(ErrorCode::io, shown(folder), "expected adapter_model.safetensors or adapter_model.bin",
                "found neither");
}

struct Adapter::Impl {
    /// Adapter parts of one tensor of the base.
    struct Change {
        std::string module;
        const TensorInfo* a = nullptr;  ///< or what takes the tensor's place
        const TensorInfo* b = nullptr;
        const TensorInfo* weight = nullptr;  ///< in place of the base's, below A and B
        double scale = 0;
        bool embedding = false, transposed = false;  ///< transposed: W is [in, out]
        bool copied = false;                         ///< table or head are what lies below the other's A and B
    };
    /// Changes by the module's name, a dot behind those that are made of A and B.
    using Modules = std::map<std::string, Change>;

    fs::path path;
    AdapterConfig config;
    std::string base;                           ///< for errors
    std::map<std::string, TensorInfo> tensors;  ///< the base's, with what the adapter adds and resizes
    VocabularyTensors vocabulary;
    Weights weights;
    std::map<std::string, Change> changes;
    std::vector<std::string> left_out;
    std::optional<bool> open_direction;
    std::optional<std::int64_t> entries;  ///< of a resized vocabulary
    bool unties = false;
    std::string shared_table;  ///< one that the adapter replaces and that stays the head; empty: none

    std::string where(const std::string& module) const { return shown(path) + ": " + escaped(module); }

    static std::string written_name(const Change& change, bool whole) {
        return whole ? change.module : change.module + ".weight";
    }
    std::string place_of(const Change& change, bool whole) const {
        return find_tensor(tensors, written_name(change, whole));
    }

    /// The modules of the file's tensors.
    Modules modules() const {
        const std::string file = shown(weights.files.front().path());
        Modules found;
        for (const auto& [written, info] : weights.tensors) {
            const AdapterPart part = part_of(written, file);
            if (part.kind == AdapterPart::Kind::copy) continue;
            const bool whole = part.kind == AdapterPart::Kind::whole;
            Change& change = found[part.name + (whole ? "" : ".")];
            const bool first = part.kind != AdapterPart::Kind::b && part.kind != AdapterPart::Kind::embedding_b;
            const TensorInfo*& place = first ? change.a : change.b;
            if (place != nullptr) {
                // PEFT writes what it saved whole once more with its wrapper where the vocabulary was resized.
                const bool wrapped = written.find(".modules_to_save.") != std::string::npos;
                const bool other = place->name.find(".modules_to_save.") != std::string::npos;
                if (whole && wrapped != other && place->shape == info.shape) {
                    if (other) place = &info;
                    continue;
                }
                throw Error(ErrorCode::mismatch, file + ", tensor \"" + escaped(written) + '"',
                            "expected one of that meaning", "found two");
            }
            change.module = part.name;
            place = &info;
            change.embedding = change.embedding || part.kind == AdapterPart::Kind::embedding_a ||
                               part.kind == AdapterPart::Kind::embedding_b;
        }
        for (const auto& [name, change] : found) {
            const bool whole = !name.ends_with('.');
            if (change.a != nullptr && (whole || change.b != nullptr)) continue;
            throw Error(ErrorCode::mismatch, where(change.module), "expected both lora_A and lora_B",
                        "found one of them");
        }
        return found;
    }

    /// Changes to the token table (or to the head) among `modules`.
    struct Found {
        const Change *whole = nullptr, *lora = nullptr;
        explicit operator bool() const { return whole != nullptr || lora != nullptr; }
    };
    Found changes_of(const Modules& modules, const std::string& tensor) const {
        Found found;
        for (const auto& [name, change] : modules) {
            const bool whole = !name.ends_with('.');
            if (tensor.empty() || place_of(change, whole) != tensor) continue;
            (whole ? found.whole : found.lora) = &change;
        }
        return found;
    }

    /// A tied head that is no longer the table becomes a tensor of its own, which begins as the table.
    void untie(Modules& modules) {
        const std::string &table = vocabulary.table, &head = vocabulary.head;
        if (!vocabulary.tied || table.empty() || head.empty() || tensors.count(head) != 0) return;
        TensorInfo copy = tensors.at(table);
        copy.name = head;
        tensors.emplace(head, copy);
        const Found of_table = changes_of(modules, table), of_head = changes_of(modules, head);
        if (config.ties_weights && bool(of_table) != bool(of_head)) {
            throw Error(ErrorCode::unsupported, config.where + ": ensure_weight_tying",
                        "expected changes of both \"" + escaped(table) + "\" and \"" + escaped(head) + '"',
                        "found one of them");
        }
        // Tables and heads that were saved with the adapter (resized ones), not trained apart, stay one tensor. PEFT
        // loads the head last.
        const auto stays = [&](const Found& found) {
            return found.lora == nullptr && (found.whole == nullptr || !config.saves_whole(module_of(*found.whole)));
        };
        if (stays(of_table) && stays(of_head)) {
            tensors.erase(head);
            if (!of_table && !of_head) return;
            shared_table = table;
            const Change change{table, (of_head ? of_head : of_table).whole->a};
            std::erase_if(modules, [&](const auto& one) {
                return &one.second == of_table.whole || &one.second == of_head.whole;
            });
            modules.emplace(table, change);
            return;
        }
        unties = true;
        // The table that both share lies below LoRA's A and B, where PEFT saves it.
        const Found& below = of_table.lora != nullptr && of_table.whole != nullptr ? of_table : of_head;
        if (below.lora == nullptr || below.whole == nullptr) return;
        const TensorInfo* shared = below.whole->a;
        if (of_head.whole == nullptr) changes[head] = {head, shared, nullptr, nullptr, 0, false, false, true};
        if (of_table.whole == nullptr && shared->shape != tensors.at(table).shape)
            changes[table] = {table, shared, nullptr, nullptr, 0, false, false, true};
    }

    static std::string module_of(const Change& whole) {
        constexpr std::string_view end = ".weight";
        return whole.module.ends_with(end) ? whole.module.substr(0, whole.module.size() - end.size()) : whole.module;
    }

    /// Tables of tokens and heads may have more or fewer rows than the base's.
    void resize(const Modules& modules) {
        for (const std::string& tensor : {vocabulary.table, vocabulary.head}) {
            const auto at = tensors.find(tensor);
            const auto copied = changes.find(tensor);
            const Change* whole = copied != changes.end() ? &copied->second : changes_of(modules, tensor).whole;
            if (whole == nullptr || at == tensors.end()) continue;
            const std::vector<std::int64_t>&own = whole->a->shape, &was = at->second.shape;
            if (own.size() != 2 || was.size() != 2 || own[1] != was[1] || own[0] == was[0]) continue;
            if (entries && *entries != own[0]) refuse_shape(*whole, tensor, at->second, "expected one vocabulary");
            entries = own[0];
            resize(at->second, own[0]);
        }
    }

    static void resize(TensorInfo& info, std::int64_t rows) {
        info.shape[0] = rows;
        info.elements = rows * info.shape[1];
        info.bytes = static_cast<std::uint64_t>(info.elements) * static_cast<std::uint64_t>(bits(info.type)) / 8;
    }

    void add(const Change& change) {
        const bool whole = change.b == nullptr;
        const std::string tensor = place_of(change, whole);
        if (tensor.empty()) {
            // The head of a task is the adapter's own, and no part of what is computed here.
            const bool task = config.task == "SEQ_CLS" || config.task == "TOKEN_CLS" || config.task == "QUESTION_ANS";
            if (whole && task) {
                left_out.push_back(change.module);
                return;
            }
            throw Error(ErrorCode::mismatch, where(change.module), "expected a tensor of that name in " + base,
                        "found none");
        }
        const TensorInfo& info = tensors.at(tensor);
        for (const TensorInfo* part : {&info, change.a, change.b == nullptr ? change.a : change.b}) {
            if (is_real(part->type)) continue;
            throw Error(ErrorCode::unsupported, where(change.module), "expected numbers of type F16, BF16, F32 or F64",
                        "found " + std::string(name(part->type)) + " in \"" + escaped(part->name) + '"');
        }
        if (const auto copied = changes.find(tensor); copied != changes.end() && copied->second.copied) {
            const TensorInfo* below = copied->second.a;
            copied->second = change;
            if (!whole) copied->second.weight = below;
        } else if (const auto [there, fresh] = changes.emplace(tensor, change); !fresh) {
            // A table that is adapted may be saved beside its adapter, as it was below it.
            if (whole && there->second.b != nullptr && change.a->shape == info.shape &&
                std::exchange(there->second.weight, change.a) == nullptr)
                return;
            throw Error(ErrorCode::mismatch, where(change.module), "expected one change of \"" + escaped(tensor) + '"',
                        "found two");
        }
        if (whole) {
            if (change.a->shape != info.shape) refuse_shape(change, tensor, info, "expected " + shape_text(info.shape));
            return;
        }
        fit(tensor, info);
    }

    [[noreturn]] void refuse_shape(const Change& change, const std::string& tensor, const TensorInfo& info,
                                   const std::string& expected) const {
        throw Error(ErrorCode::mismatch, where(change.module),
                    expected + ", for \"" + escaped(tensor) + "\" of " + base + " is " + shape_text(info.shape),
                    "found " + shape_text(change.a->shape) +
                        (change.b == nullptr ? "" : " and " + shape_text(change.b->shape)) +
                        ": this is not its base, or its vocabulary was resized");
    }

    /// Sets rank, scale and direction of what has just been added.
    void fit(const std::string& tensor, const TensorInfo& info) {
        Change& change = changes.at(tensor);
        const std::int64_t rank = config.rank_of(change.module);
        change.scale = config.scale_of(change.module);
        const std::string expected =
            "expected A [" + std::to_string(rank) + ", in] and B [out, " + std::to_string(rank) + "]";
        if (info.shape.size() != 2) refuse_shape(change, tensor, info, expected);
        const std::int64_t rows = info.shape[0], columns = info.shape[1];
        const auto fits = [&](std::int64_t in, std::int64_t out) {
            return change.a->shape == std::vector<std::int64_t>{rank, in} &&
                   change.b->shape == std::vector<std::int64_t>{out, rank};
        };
        if (change.embedding) {
            // W is [vocabulary, hidden], and its "in" the vocabulary.
            change.transposed = true;
            if (!fits(rows, columns)) refuse_shape(change, tensor, info, expected);
            return;
        }
        const bool straight = fits(columns, rows), turned = fits(rows, columns);
        if (!straight && !turned) refuse_shape(change, tensor, info, expected);
        // PEFT mends fan_in_fan_out where it is wrong for a layer: so do the shapes, unless both are the same.
        change.transposed = turned && (!straight || config.fan_in_fan_out);
        if (straight && turned && tensor != vocabulary.head) open_direction = config.fan_in_fan_out;
    }
};

std::string adapter_base(const fs::path& folder) {
    try {
        const auto document =
            read_python_json_file(folder / adapter_config_name, largest_adapter_config, "configuration");
        return JsonView(document, "").object().string_or("base_model_name_or_path", "");
    } catch (const Error&) {
        return "";
    }
}

std::string adapter_text(const fs::path& folder) {
    std::string type;
    try {
        const auto document =
            read_python_json_file(folder / adapter_config_name, largest_adapter_config, "configuration");
        type = JsonView(document, "").object().string_or("peft_type", "");
    } catch (const Error&) {
        return "an adapter (PEFT) without a configuration that can be read";
    }
    const std::string base = adapter_base(folder);
    const std::string kind = type == "LORA" ? "a LoRA adapter" : "an adapter (PEFT, " + escaped(type, 60) + ")";
    return kind + (base.empty() ? "" : " of \"" + escaped(base) + '"');
}

Adapter::Adapter(const fs::path& path, const std::map<std::string, TensorInfo>& tensors, const std::string& base,
                 const VocabularyTensors& vocabulary)
    : impl_(std::make_unique<Impl>()) {
    try {
        impl_->path = folder_of(path);
        impl_->base = base;
        impl_->tensors = tensors;
        impl_->vocabulary = vocabulary;
        if (!ends_at_regular_file(impl_->path / adapter_config_name)) {
            throw Error(ErrorCode::io, shown(path), "expected a folder with adapter_config.json, as PEFT writes it",
                        "found none");
        }
        impl_->config = read_adapter_config(impl_->path / adapter_config_name);
        impl_->weights = open_single(adapter_weights(impl_->path));
        const std::string where = shown(impl_->weights.files.front().path());
        if (!impl_->weights.unreadable.empty()) {
            const auto& [name, why] = *impl_->weights.unreadable.begin();
            throw Error(ErrorCode::unsupported, where + ", tensor \"" + escaped(name) + '"', "expected a plain tensor",
                        why);
        }
        Impl::Modules modules = impl_->modules();
        impl_->untie(modules);
        impl_->resize(modules);
        for (const bool whole : {false, true})
            for (const auto& [name, change] : modules)
                if (name.ends_with('.') != whole) impl_->add(change);
        if (impl_->changes.empty()) {
            throw Error(ErrorCode::format, where, "expected tensors that change the base", "found none");
        }
    } catch (...) {
        throw current_error(shown(path));
    }
}

Adapter::~Adapter() = default;

const fs::path& Adapter::path() const {
    return impl_->path;
}
std::string Adapter::display_name() const {
    std::error_code error;
    const fs::path whole = fs::absolute(impl_->path, error).lexically_normal();
    return (whole.has_filename() ? whole.filename() : whole.parent_path().filename()).string();
}
const std::string& Adapter::base() const {
    return impl_->config.base;
}
std::int64_t Adapter::rank() const {
    return impl_->config.rank;
}
double Adapter::alpha() const {
    return impl_->config.alpha;
}
const std::vector<std::string>& Adapter::left_out() const {
    return impl_->left_out;
}
const InputFile& Adapter::file() const {
    return impl_->weights.files.front();
}
std::optional<bool> Adapter::open_direction() const {
    return impl_->open_direction;
}

std::vector<std::string> Adapter::merged() const {
    std::vector<std::string> names;
    for (const auto& [name, change] : impl_->changes)
        if (change.b != nullptr) names.push_back(name);
    return names;
}

std::vector<std::string> Adapter::replaced() const {
    std::vector<std::string> names;
    for (const auto& [name, change] : impl_->changes)
        if (change.b == nullptr) names.push_back(name);
    return names;
}

const std::map<std::string, TensorInfo>& Adapter::tensors() const {
    return impl_->tensors;
}
std::optional<std::int64_t> Adapter::vocabulary() const {
    return impl_->entries;
}
bool Adapter::unties() const {
    return impl_->unties;
}
const std::string& Adapter::shared_table() const {
    return impl_->shared_table;
}

bool Adapter::changes(const std::string& tensor) const {
    return impl_->changes.count(tensor) != 0;
}

const TensorInfo* Adapter::own(const std::string& tensor) const {
    const auto found = impl_->changes.find(tensor);
    if (found == impl_->changes.end()) return nullptr;
    return found->second.b == nullptr ? found->second.a : found->second.weight;
}

std::shared_ptr<const LowRankUpdate> Adapter::update(const std::string& tensor,
                                                     const Cancellation& cancellation) const {
    const auto found = impl_->changes.find(tensor);
    if (found == impl_->changes.end() || found->second.b == nullptr) return nullptr;
    const Impl::Change& change = found->second;
    const auto read = [&](const TensorInfo& info) { return load_tensor(file(), info, info.type, cancellation); };
    return std::make_shared<const LowRankUpdate>(read(*change.a), read(*change.b), change.scale, change.transposed);
}

std::uint64_t Adapter::update_bytes(const std::string& tensor) const {
    const auto found = impl_->changes.find(tensor);
    if (found == impl_->changes.end() || found->second.b == nullptr) return 0;
    return found->second.a->bytes + found->second.b->bytes;
}

}  // namespace headscope::checkpoint
