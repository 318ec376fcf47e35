// SPDX-License-Identifier: GPL-3.0-or-later
// A safetensors file: whole, or "sN", a line feed and the header's text, from which a file with a true header length
// and N bytes of data is made. The reader must accept exactly what the rules of safetensors_header.h, written down here
// once more over another JSON reader, accept.
#include "core/checkpoint/safetensors_header.h"

#include <array>
#include <cstring>
#include <map>

#include "tests/fuzz/check.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/other_json.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {
namespace {

__extension__ using Wide = unsigned __int128;

struct Extent {
    std::uint64_t begin = 0, end = 0;  // behind the header
};

const std::map<std::string_view, unsigned> bits_of_types = {
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},   {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"I16", 16}, {"F8_E5M2FNUZ", 8},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32}, {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};

std::optional<Extent> extent(const OtherJson& entry) {
    const OtherJson* type = entry.find("dtype");
    const OtherJson* shape = entry.find("shape");
    const OtherJson* offsets = entry.find("data_offsets");
    if (entry.object() == nullptr || entry.object()->size() != 3 || !type || !shape || !offsets) return std::nullopt;
    if (!type->string() || !shape->array() || !offsets->array() || offsets->array()->size() != 2) return std::nullopt;
    const auto known = bits_of_types.find(*type->string());
    if (known == bits_of_types.end() || shape->array()->size() > 64) return std::nullopt;
    Wide bits = 1;  // elements first, as they are counted: a product that passes 2^64 on the way is refused
    for (const OtherJson& size : *shape->array()) {
        if (!size.whole() || *size.whole() >> 63U != 0) return std::nullopt;
        bits *= *size.whole();
        if (bits >> 64U != 0) return std::nullopt;
    }
    bits *= known->second;
    if (bits >> 64U != 0 || bits % 8 != 0) return std::nullopt;
    const std::uint64_t* begin = (*offsets->array())[0].whole();
    const std::uint64_t* end = (*offsets->array())[1].whole();
    if (!begin || !end || *begin > *end || *end - *begin != bits / 8) return std::nullopt;
    return Extent{*begin, *end};
}

/// The number of tensors of a file that is as it must be.
std::optional<std::size_t> tensors_of(std::string_view file) {
    std::uint64_t length = 0;
    if (file.size() < 8) return std::nullopt;
    std::memcpy(&length, file.data(), 8);
    if (length < 2 || length > 100'000'000 || length > file.size() - 8) return std::nullopt;
    const auto header = other_json(file.substr(8, length));
    if (!header || !header->object()) return std::nullopt;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> extents;
    std::size_t count = 0;
    for (const auto& [name, entry] : *header->object()) {
        if (name == "__metadata__") {
            if (!entry.object()) return std::nullopt;
            for (const auto& [key, value] : *entry.object()) {
                if (!value.string()) return std::nullopt;
            }
            continue;
        }
        const auto at = extent(entry);
        if (!at) return std::nullopt;
        ++extents[{at->begin, at->end}];
        ++count;
    }
    std::uint64_t reached = 0;
    for (const auto& [at, times] : extents) {
        if (at.first != reached || (times > 1 && at.first != at.second)) return std::nullopt;
        reached = at.second;
    }
    if (reached != file.size() - 8 - length) return std::nullopt;
    return count;
}

std::string whole_file(std::string_view input) {
    if (input.substr(0, 1) != "s") return std::string(input);
    input.remove_prefix(1);
    const std::size_t data = take_number(input, 1U << 16U);
    take_line(input);
    const std::uint64_t length = input.size();
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    return file.append(input).append(data, '\x3f');
}

}  // namespace

void run_safetensors(std::string_view input) {
    static MemoryFile memory;
    const std::string bytes = whole_file(input);
    memory.set(bytes);
    checkpoint::SafetensorsHeader header;
    const auto error = refusal([&] {
        const InputFile file(memory.path(), "weight file");
        header = checkpoint::read_safetensors_header(file);
    });
    const auto count = tensors_of(bytes);
    if (error) {
        expect(!count, "a file that follows the rules to be read");
        return;
    }
    expect(count.has_value(), "a file that breaks the rules to be refused");
    expect(header.tensors.size() == *count, "all of its tensors");
    for (const auto& [name, tensor] : header.tensors) {
        expect(tensor.name == name && tensor.file == 0, "a tensor under its own name");
        expect(tensor.begin <= bytes.size() && tensor.bytes <= bytes.size() - tensor.begin, "its data in the file");
    }
}

}  // namespace headscope::fuzz
