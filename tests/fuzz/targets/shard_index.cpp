// SPDX-License-Identifier: GPL-3.0-or-later
// An index of shards (model.safetensors.index.json) beside two good shards: "one.safetensors" with the tensors a and b,
// "two.safetensors" with c. Accepted exactly if weight_map lists them so; nothing outside the folder is ever opened.
#include <cstring>

#include "core/checkpoint/shards.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/other_json.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {
namespace {

std::string shard(std::string_view header, std::size_t data) {
    const std::uint64_t length = header.size();
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    return file.append(header).append(data, '\0');
}

struct Folder : MemoryFolder {
    Folder() {
        write("one.safetensors", shard(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                       R"("b":{"dtype":"I8","shape":[1],"data_offsets":[8,9]}})",
                                       9));
        write("two.safetensors", shard(R"({"c":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})", 8));
    }
};

bool follows_the_rules(std::string_view text) {
    const auto index = other_json(text);
    const OtherJson* map = index ? index->find("weight_map") : nullptr;
    if (!map || !map->object()) return false;
    const auto lies_in = [&](const char* tensor, const char* file) {
        const OtherJson* entry = map->find(tensor);
        return entry && entry->string() && *entry->string() == file;
    };
    // Tensors of a shard beyond the index are read, too.
    const std::size_t listed = (lies_in("a", "one.safetensors") ? 1U : 0U) +
                               (lies_in("b", "one.safetensors") ? 1U : 0U) +
                               (lies_in("c", "two.safetensors") ? 1U : 0U);
    return listed > 0 && listed == map->object()->size();
}

}  // namespace

void run_shard_index(std::string_view input) {
    static const Folder folder;
    const auto index = folder.write("model.safetensors.index.json", input);
    const auto error = refusal([&] {
        const checkpoint::Weights weights = checkpoint::open_sharded(index);
        for (const InputFile& file : weights.files) {
            expect(file.path().parent_path() == folder.path(), "shards in the index's folder only");
        }
        for (const auto& [name, tensor] : weights.tensors) {
            expect(tensor.file < weights.files.size() && tensor.name == name, "each tensor in a file that is open");
        }
    });
    expect(error.has_value() != follows_the_rules(input), "an index to be accepted where it is true of the shards");
}

}  // namespace headscope::fuzz
