// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/fresh/average.h"

#include <algorithm>
#include <string>
#include <tuple>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/process/free_memory.h"
#include "core/base/process/os_error.h"
#include "core/base/text/shape_text.h"
#include "core/base/text/text.h"
#include "core/checkpoint/convert.h"
#include "core/checkpoint/not_finite.h"
#include "core/checkpoint/torch_types.h"

namespace headscope::model {
namespace {

using checkpoint::Checkpoint;
using checkpoint::LoadAs;
using checkpoint::TensorInfo;
using Files = std::vector<std::shared_ptr<const Checkpoint>>;

[[noreturn]] void refuse(const Checkpoint& file, const std::string& part, const std::string& expected,
                         const std::string& found) {
    throw Error(ErrorCode::mismatch, shown(file.path()) + ", " + part, expected, found);
}

std::string tensor_place(const std::string& name) {
    return "tensor \"" + escaped(name) + '"';
}

/// A tensor's mean is that of its numbers; of integers and booleans there is none.
bool has_mean(const TensorInfo& info) {
    return checkpoint::loaded_type(info.type, LoadAs::float64) != info.type || info.type == checkpoint::DataType::f64;
}

void check_config(const Checkpoint& first, const Checkpoint& file) {
    nlohmann::json all = first.config();
    all.update(file.config());
    for (const auto& [key, value] : all.items()) {
        if (key == "_name_or_path" || key == "transformers_version") continue;
        const std::string name = key;
        const auto text = [&name](const Checkpoint& one) {
            const auto found = one.config().find(name);
            return found == one.config().end() ? std::string("none") : escaped(found->dump(), 60);
        };
        const std::string expected = text(first), found = text(file);
        if (first.config().value(key, nlohmann::json()) != file.config().value(key, nlohmann::json()))
            refuse(file, "config.json, " + escaped(key, 40), "expected " + expected + ", as in " + shown(first.path()),
                   "found " + found);
    }
}

void check_tensors(const Checkpoint& first, const Checkpoint& file) {
    for (const auto& [name, info] : file.tensors())
        if (first.tensors().count(name) == 0)
            refuse(file, tensor_place(name), "expected the tensors of " + shown(first.path()),
                   "found one that it lacks");
    for (const auto& [name, info] : first.tensors()) {
        const auto other = file.tensors().find(name);
        if (other == file.tensors().end())
            refuse(file, tensor_place(name), "expected the tensors of " + shown(first.path()), "found none");
        if (other->second.shape != info.shape)
            refuse(file, tensor_place(name), "expected the shape " + shape_text(info.shape),
                   "found " + shape_text(other->second.shape));
        if (other->second.type != info.type)
            refuse(file, tensor_place(name), "expected the type " + checkpoint::stored_type(info),
                   "found " + checkpoint::stored_type(other->second));
    }
}

void check_integers(const Files& files, const Cancellation& cancellation) {
    for (const auto& [name, info] : files.front()->tensors()) {
        if (has_mean(info)) continue;
        const at::Tensor wanted = files.front()->load(name, LoadAs::stored, cancellation);
        for (std::size_t i = 1; i < files.size(); ++i)
            if (!wanted.equal(files[i]->load(name, LoadAs::stored, cancellation)))
                refuse(*files[i], tensor_place(name), "expected the integers of " + shown(files.front()->path()),
                       "found others");
    }
}

at::Tensor mean_of(const Files& files, const TensorInfo& info, LoadAs as, const Cancellation& cancellation) {
    at::Tensor sum = files.front()->load(info.name, LoadAs::float64, cancellation);
    for (std::size_t i = 1; i < files.size(); ++i) sum.add_(files[i]->load(info.name, LoadAs::float64, cancellation));
    sum.div_(static_cast<double>(files.size()));
    at::Tensor mean = sum.to(checkpoint::torch_type(checkpoint::loaded_type(info.type, as)).value()).contiguous();
    if (checkpoint::count_not_finite(mean) != checkpoint::count_not_finite(sum))
        throw Error(
            ErrorCode::limit, tensor_place(info.name),
            "expected means that " + std::string(checkpoint::name(checkpoint::loaded_type(info.type, as))) + " holds",
            "found larger ones");
    return mean;
}

}  // namespace

void convert_average(const Files& files, const std::filesystem::path& destination, LoadAs as, Progress& progress,
                     const Cancellation& cancellation) {
    if (files.size() < 2)
        throw Error(ErrorCode::usage, "--average", "expected at least two snapshots",
                    "found " + std::to_string(files.size()));
    const Checkpoint& first = *files.front();
    for (const auto& file : files) {
        if (!file->packed_format().empty())
            throw Error(ErrorCode::unsupported, shown(file->path()), "expected weights that are not quantized",
                        "found " + file->packed_format());
        if (file != files.front()) check_tensors(first, *file);
        if (file != files.front()) check_config(first, *file);
    }
    check_integers(files, cancellation);

    const Checkpoint& last = *files.back();
    std::vector<const TensorInfo*> order;
    std::int64_t largest = 0;
    for (const auto& [name, info] : last.tensors()) {
        if (!has_mean(info)) continue;
        order.push_back(&info);
        largest = std::max(largest, info.elements);
    }
    std::sort(order.begin(), order.end(), [](const TensorInfo* a, const TensorInfo* b) {
        return std::tie(a->file, a->begin, a->name) < std::tie(b->file, b->begin, b->name);
    });
    expect_memory("the mean of the largest tensor", 3 * 8.0 * static_cast<double>(largest), {}, "");
    checkpoint::ConvertChanges changes;
    for (const TensorInfo* info : order) {
        changes.left_out.insert(info->name);
        changes.added.push_back({{info->name, checkpoint::loaded_type(info->type, as), info->shape},
                                 [&files, info, as, &cancellation](const auto& sink) {
                                     const at::Tensor mean = mean_of(files, *info, as, cancellation);
                                     sink(mean.const_data_ptr(), static_cast<std::size_t>(mean.nbytes()));
                                 }});
    }
    checkpoint::convert(last, destination, as, changes, progress, cancellation);
}

}  // namespace headscope::model
