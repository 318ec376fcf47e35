// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/save.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/io/free_space.h"
#include "core/base/io/output_folder.h"
#include "core/base/json/json.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/data_type.h"
#include "core/checkpoint/torch_types.h"

namespace headscope::checkpoint {
namespace {

namespace fs = std::filesystem;

std::uint64_t bytes_of(const TensorPlan& plan) {
    std::int64_t elements = 0;
    return checked_bits(plan.shape, plan.type, elements).value_or(UINT64_MAX) / 8;
}

/// One run of save_checkpoint: the folder that is filled, and what its manifest will say.
class Saver {
public:
    Saver(const SaveRequest& request, Progress& progress, const Cancellation& cancellation)
        : request_(request),
          progress_(progress),
          cancellation_(cancellation),
          folder_(request.destination, request.input_folders, "checkpoint") {
        for (const OutputTensor& tensor : request.tensors) total_ += static_cast<double>(bytes_of(tensor.plan));
        for (const auto& [name, tensors] : request_.side_tensors)
            for (const OutputTensor& tensor : tensors) total_ += static_cast<double>(bytes_of(tensor.plan));
    }

    std::uint64_t run() {
        check_space();
        write_weights();
        if (request_.config != nullptr) write_text("config.json", json_text(*request_.config));
        for (const fs::path& file : request_.side_files) copy(file);
        for (const auto& [name, text] : request_.texts) write_text(name, text);
        for (const auto& [name, tensors] : request_.side_tensors) {
            Shard all;
            for (const OutputTensor& tensor : tensors) all.push_back(&tensor);
            write_shard(name, all);
        }
        const nlohmann::json manifest = {{"format", "headscope-manifest"}, {"format_version", 1}, {"files", manifest_}};
        write_text("manifest.json", json_text(manifest));
        check();
        cancellation_.check();
        folder_.publish();
        return file_bytes_;
    }

private:
    using Shard = std::vector<const OutputTensor*>;

    /// Makes a long conversion fail at its start; the space may still run out later.
    void check_space() const { expect_free_space(folder_.target(), total_, "the weights"); }

    std::vector<Shard> shards() const {
        std::vector<Shard> all(1);
        std::uint64_t size = 0;
        for (const OutputTensor& tensor : request_.tensors) {
            const std::uint64_t bytes = bytes_of(tensor.plan);
            if (!all.back().empty() && (bytes > request_.shard_bytes || size > request_.shard_bytes - bytes)) {
                all.emplace_back();
                size = 0;
            }
            all.back().push_back(&tensor);
            size += bytes;
        }
        return all;
    }

    void write_weights() {
        const std::vector<Shard> all = shards();
        if (all.size() == 1) {
            write_shard("model.safetensors", all.front());
            return;
        }
        nlohmann::json map = nlohmann::json::object();
        for (std::size_t i = 0; i < all.size(); ++i) {
            std::array<char, 64> buffer{};
            std::snprintf(buffer.data(), buffer.size(), "model-%05zu-of-%05zu.safetensors", i + 1, all.size());
            write_shard(buffer.data(), all[i]);
            for (const OutputTensor* tensor : all[i]) map[tensor->plan.name] = buffer.data();
        }
        const nlohmann::json index = {{"metadata", {{"total_size", data_bytes_}}}, {"weight_map", std::move(map)}};
        write_text("model.safetensors.index.json", json_text(index));
    }

    void write_shard(const std::string& name, const Shard& shard) {
        std::vector<TensorPlan> plans;
        for (const OutputTensor* tensor : shard) plans.push_back(tensor->plan);
        const std::vector<std::size_t> order = file_order(plans);
        std::vector<TensorPlan> ordered;
        for (const std::size_t i : order) ordered.push_back(plans[i]);

        OutputFile file(folder_.partial_path() / name, {}, "weight file");
        SafetensorsWriter writer(file, ordered, {{"format", "pt"}});
        for (const std::size_t i : order) {
            shard[i]->write([&](const void* bytes, std::size_t size) {
                cancellation_.check();
                writer.append(bytes, size);
                data_bytes_ += size;
                progress_.advance(static_cast<double>(data_bytes_), total_, "writing " + name);
            });
        }
        const std::string hash = writer.finish();
        file.publish();
        note(name, writer.size(), hash);
    }

    void write_text(const std::string& name, const std::string& text) {
        write_whole_file(folder_.partial_path() / name, text, "output");
        note(name, text.size(), sha256_hex(text));
    }

    void copy(const fs::path& from) {
        constexpr std::uint64_t piece = 1U << 20U;
        const InputFile input(from);
        const std::string name = from.filename().string();
        OutputFile file(folder_.partial_path() / name);
        Sha256 hash;
        std::string buffer;
        for (std::uint64_t done = 0; done < input.size(); done += buffer.size()) {
            cancellation_.check();
            buffer.resize(static_cast<std::size_t>(std::min(piece, input.size() - done)));
            input.read(done, buffer.data(), buffer.size());
            hash.update(buffer);
            file.append(buffer);
        }
        input.check_unchanged();
        file.publish();
        note(name, input.size(), hash.finish());
    }

    void note(const std::string& name, std::uint64_t bytes, const std::string& hash) {
        manifest_[name] = {{"bytes", bytes}, {"sha256", hash}};
        file_bytes_ += bytes;
    }

    void check() const {
        const auto written = Checkpoint::open(folder_.partial_path());
        if (written->tensors().size() != request_.tensors.size()) {
            throw Error(ErrorCode::io, shown(folder_.target()), "expected the tensors that were written",
                        "found others when they were read back");
        }
    }

    const SaveRequest& request_;
    Progress& progress_;
    const Cancellation& cancellation_;
    OutputFolder folder_;
    nlohmann::json manifest_ = nlohmann::json::object();
    std::uint64_t data_bytes_ = 0, file_bytes_ = 0;
    double total_ = 0;
};

}  // namespace

OutputTensor output_tensor(std::string name, const at::Tensor& tensor) {
    return output_tensor(std::move(name), tensor, tensor.sizes().vec());
}

OutputTensor output_tensor(std::string name, const at::Tensor& tensor, std::vector<std::int64_t> shape) {
    const auto type = data_type(tensor.scalar_type());
    if (!type) {
        throw Error(ErrorCode::unsupported, "tensor \"" + escaped(name) + '"', "expected a type that safetensors has",
                    std::string("found ") + c10::toString(tensor.scalar_type()));
    }
    return {{std::move(name), *type, std::move(shape)}, [tensor](const OutputTensor::Sink& sink) {
                constexpr std::size_t piece = std::size_t{4} << 20U;
                const at::Tensor plain = tensor.detach().cpu().contiguous();
                const auto* bytes = static_cast<const char*>(plain.const_data_ptr());
                for (std::size_t done = 0; done < plain.nbytes(); done += piece) {
                    sink(bytes + done, std::min(piece, plain.nbytes() - done));
                }
            }};
}

std::uint64_t save_checkpoint(const SaveRequest& request, Progress& progress, const Cancellation& cancellation) {
    try {
        return Saver(request, progress, cancellation).run();
    } catch (...) {
        throw current_error(shown(request.destination));
    }
}

}  // namespace headscope::checkpoint
