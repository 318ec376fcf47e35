// SPDX-License-Identifier: GPL-3.0-or-later
// A whole checkpoint folder: the input is config.json, a NUL byte, and a line "NAME TYPE 2,3" for each tensor of
// model.safetensors (at most 64 kB of data), quantized or not. Opened, inspected, every tensor loaded as it is stored
// and as float32; where all of it fits together, the model is built and reads three tokens.
#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/remainder.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/checkpoint/checkpoint.h"
#include "core/model/model.h"
#include "kernels/parallel.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {
namespace {

constexpr std::uint64_t most_data = 1U << 16U;
constexpr std::size_t most_tensors = 200;
constexpr std::int64_t most_parameters = 1 << 14;

std::uint64_t bits_of(const std::string& type) {
    static const std::map<std::string, std::uint64_t> known = {{"BOOL", 8},  {"U8", 8},   {"I8", 8},   {"F16", 16},
                                                               {"BF16", 16}, {"I32", 32}, {"F32", 32}, {"F64", 64},
                                                               {"I64", 64},  {"F4", 4},   {"C64", 64}, {"U32", 32}};
    const auto found = known.find(type);
    return found == known.end() ? 8 : found->second;
}

/// A good file of the tensors that the lines ask for, but for types and names that may be odd.
std::string safetensors(std::string_view lines) {
    nlohmann::json header = nlohmann::json::object();
    std::uint64_t reached = 0;
    while (!lines.empty() && header.size() < most_tensors) {
        std::istringstream line{std::string(take_line(lines))};
        std::string name, type, sizes;
        line >> name >> type >> sizes;
        std::string_view left = sizes;
        nlohmann::json shape = nlohmann::json::array();
        std::uint64_t bits = bits_of(type);
        while (!left.empty()) {
            const std::size_t size = take_number(left, most_data);
            shape.push_back(size);
            bits = std::min(bits * size, 16 * most_data);
            left.remove_prefix(std::min<std::size_t>(1, left.size()));
        }
        const std::uint64_t end = reached + bits / 8;
        if (name.empty() || end > most_data || header.contains(name)) continue;
        header[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {reached, end}}};
        reached = end;
    }
    const std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    const std::uint64_t length = text.size();
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    file += text;
    // Small numbers of either sign in every type, and no two rows alike.
    for (std::uint64_t i = 0; i < reached; ++i) {
        file += static_cast<char>(i % 4 == 3 ? 0x3c + (i / 4 % 2) * 0x80 : i * 37);
    }
    return file;
}

void run_model(const checkpoint::Checkpoint& checkpoint) {
    const model::Inspection inspection = model::inspect(checkpoint);
    expect(inspection.parameters >= 0 && !inspection.sites.empty(), "a model to have sites");
    if (inspection.parameters > most_parameters || inspection.config.vocabulary > most_parameters) return;
    const auto model = model::Model::build(checkpoint);
    model::Batch batch;
    batch.ids = at::remainder(at::arange(3, at::kLong), inspection.config.vocabulary).unsqueeze(0);
    const at::Tensor hidden = model->forward(batch);
    if (model->has_head()) model->next_token_loss(batch, hidden);
}

}  // namespace

void run_checkpoint(std::string_view input) {
    static const bool single = [] {
        at::set_num_threads(1);
        kernels::set_threads(1);
        return true;
    }();
    static_cast<void>(single);
    static const MemoryFolder folder;
    const std::string_view config = input.substr(0, input.find('\0'));
    const std::string_view tensors = input.substr(std::min(config.size() + 1, input.size()));
    folder.write("config.json", config);
    folder.write("model.safetensors", safetensors(tensors));
    refusal([&] {
        const auto checkpoint = checkpoint::Checkpoint::open(folder.path());
        for (const auto& entry : checkpoint->tensors()) {
            for (const auto as : {checkpoint::LoadAs::stored, checkpoint::LoadAs::float32}) {
                refusal([&] { checkpoint->load(entry.first, as); });
            }
        }
        run_model(*checkpoint);
    });
}

}  // namespace headscope::fuzz
