// SPDX-License-Identifier: GPL-3.0-or-later
// A PyTorch file: a whole one, or "p" and the sizes of storages "0", "1", ... ("p24,8"), a line feed and a
// pickle, around which a good archive is made. Opened as a checkpoint; every tensor loaded.
#include <ATen/core/Tensor.h>

#include <algorithm>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/pytorch/pickle_reader.h"
#include "core/checkpoint/pytorch/state_dict.h"
#include "tests/core/checkpoint/pytorch_builder.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {
namespace {

constexpr std::size_t most_storages = 8;
constexpr std::size_t largest_storage = 4096;
constexpr std::uint64_t largest_loaded = 1U << 20U;

struct Parts {
    std::string pickle;
    std::vector<std::size_t> storages;
};

Parts parts_of(std::string_view input) {
    Parts parts;
    input.remove_prefix(1);
    std::string_view sizes = take_line(input);
    while (!sizes.empty() && parts.storages.size() < most_storages) {
        parts.storages.push_back(take_number(sizes, largest_storage));
        sizes.remove_prefix(std::min<std::size_t>(1, sizes.size()));
    }
    parts.pickle = input;
    return parts;
}

std::string archive_of(const Parts& parts) {
    std::vector<test::ZipEntry> entries = {{"archive/data.pkl", parts.pickle}, {"archive/byteorder", "little"}};
    for (std::size_t i = 0; i < parts.storages.size(); ++i) {
        std::string data(parts.storages[i], '\0');
        for (std::size_t k = 0; k < data.size(); ++k) data[k] = static_cast<char>(i * 64 + k);
        entries.push_back({"archive/data/" + std::to_string(i), data});
    }
    entries.push_back({"archive/version", "3\n"});
    return test::zip_parts(entries).bytes();
}

/// Reads the whole content of a pickle.
void read_pickle(const Parts& parts) {
    refusal([&] {
        const auto size_of = [&](std::string_view key) -> std::optional<std::uint64_t> {
            const std::size_t number = key.size() == 1 ? static_cast<std::size_t>(key[0] - '0') : most_storages;
            if (number >= parts.storages.size()) return std::nullopt;
            return parts.storages[number];
        };
        const auto objects = checkpoint::read_pickle(parts.pickle, "archive/data.pkl", size_of);
        expect(objects.root < objects.nodes.size(), "a pickle to hold something");
        for (checkpoint::PickleRef i = 0; i < std::min<std::size_t>(objects.nodes.size(), 256); ++i) {
            objects.describe(i);
            objects.text(i);
        }
        for (const auto& tensor : objects.tensors) {
            expect(objects.integers(tensor.sizes).size() == objects.integers(tensor.strides).size(),
                   "a stride for each size");
        }
        for (const auto& entry : checkpoint::find_state_dict(objects, "archive").entries) {
            expect(entry.value < objects.nodes.size(), "entries that are there");
        }
    });
}

}  // namespace

void run_pytorch(std::string_view input) {
    static MemoryFile memory;
    const bool structured = input.substr(0, 1) == "p";
    if (structured) {
        const Parts parts = parts_of(input);
        read_pickle(parts);
        memory.set(archive_of(parts));
    } else {
        memory.set(input);
    }
    refusal([&] {
        const auto checkpoint = checkpoint::Checkpoint::open(memory.path());
        for (const auto& entry : checkpoint->tensors()) {  // clang 14 captures no structured bindings
            const checkpoint::TensorInfo& tensor = entry.second;
            expect(tensor.name == entry.first, "a tensor under its own name");
            if (tensor.elements > static_cast<std::int64_t>(largest_loaded)) continue;
            refusal([&] {
                const at::Tensor loaded = checkpoint->load(tensor.name);
                expect(loaded.sizes().vec() == tensor.shape && loaded.numel() == tensor.elements, "its shape");
            });
        }
    });
}

}  // namespace headscope::fuzz
