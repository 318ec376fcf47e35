// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/recognise.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "core/base/os_error.h"
#include "core/checkpoint/safetensors_header.h"

namespace headscope::checkpoint {
namespace {

constexpr std::size_t looked_at = 1024;

bool starts(std::string_view text, std::string_view with) {
    return text.substr(0, with.size()) == with;
}

/// A plausible length followed by an object: to be judged by the safetensors reader, whatever else it looks like.
bool may_be_safetensors(std::string_view bytes, std::uint64_t size) {
    if (bytes.size() < 9) return false;
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    return length >= 2 && length <= largest_header && length <= size - 8 &&
           std::string_view("{ \t\r\n").find(bytes[8]) != std::string_view::npos;
}

bool is_html(std::string_view bytes) {
    const std::size_t first = bytes.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return false;
    std::string head(bytes.substr(first, 16));
    std::transform(head.begin(), head.end(), head.begin(), [](unsigned char c) { return std::tolower(c); });
    return starts(head, "<!doctype html") || starts(head, "<html") || starts(head, "<head");
}

}  // namespace

std::optional<OtherKind> recognise_other(std::string_view bytes, std::uint64_t size) {
    using namespace std::string_view_literals;
    if (size == 0) return OtherKind{ErrorCode::format, "found an empty file"};
    if (may_be_safetensors(bytes, size)) return std::nullopt;
    if (starts(bytes, "version https://git-lfs.github.com/spec/")) {
        return OtherKind{ErrorCode::format,
                         "found a Git LFS pointer: the file itself was not downloaded (git lfs pull)"};
    }
    if (is_html(bytes)) {
        return OtherKind{ErrorCode::format, "found an HTML page, perhaps a download that asked for a login"};
    }
    struct Magic {
        std::string_view bytes;
        std::size_t offset;
        const char* kind;
    };
    constexpr std::array<Magic, 16> known = {{
        {"GGUF"sv, 0, "a GGUF file (llama.cpp), which is not supported"},
        {"tjgg"sv, 0, "an old GGML file (llama.cpp), which is not supported"},
        {"lmgg"sv, 0, "an old GGML file (llama.cpp), which is not supported"},
        {"PK\3\4"sv, 0, "a zip archive, as PyTorch writes (.bin, .pt, .pth), which is not supported yet"},
        {"PK\5\6"sv, 0, "an empty zip archive"},
        {"\x80\x02\x8a\x0al\xfc\x9c"sv, 0, "a PyTorch file of before version 1.6, which is not supported"},
        {"\x80\x02"sv, 0, "a Python pickle, which is not supported"},
        {"\x80\x03"sv, 0, "a Python pickle, which is not supported"},
        {"\x80\x04"sv, 0, "a Python pickle, which is not supported"},
        {"\x80\x05"sv, 0, "a Python pickle, which is not supported"},
        {"ustar"sv, 257, "a tar archive, which must be unpacked first"},
        {"\x1f\x8b"sv, 0, "a gzip file, which must be unpacked first"},
        {"\x28\xb5\x2f\xfd"sv, 0, "a Zstandard file, which must be unpacked first"},
        {"\x89HDF\r\n\x1a\n"sv, 0, "an HDF5 file, which holds no safetensors"},
        {"\x93NUMPY"sv, 0, "a NumPy array file, which is not supported"},
        {"{"sv, 0, "a JSON file"},
    }};
    for (const Magic& magic : known) {
        if (bytes.size() >= magic.offset && starts(bytes.substr(magic.offset), magic.bytes)) {
            return OtherKind{ErrorCode::unsupported, std::string("found ") + magic.kind};
        }
    }
    return std::nullopt;
}

void require_safetensors(const InputFile& file) {
    std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(looked_at, file.size())), '\0');
    file.read(0, bytes.data(), bytes.size());
    if (auto other = recognise_other(bytes, file.size())) {
        throw Error(other->code, shown(file.path()), "expected a safetensors file", other->found);
    }
}

}  // namespace headscope::checkpoint
