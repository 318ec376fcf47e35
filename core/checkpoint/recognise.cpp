// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/recognise.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "core/base/process/os_error.h"
#include "core/checkpoint/pytorch/legacy_file.h"
#include "core/checkpoint/safetensors_header.h"

namespace headscope::checkpoint {
namespace {

constexpr std::size_t looked_at = 1024;
constexpr std::string_view zip_magic = "PK\3\4";
constexpr std::string_view llmc_magic = "\xc6\xd7\x34\x01";  // 20240326

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

std::string first_bytes(const InputFile& file) {
    std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(looked_at, file.size())), '\0');
    file.read(0, bytes.data(), bytes.size());
    return bytes;
}

bool is_html(std::string_view bytes) {
    const std::size_t first = bytes.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return false;
    std::string head(bytes.substr(first, 16));
    std::transform(head.begin(), head.end(), head.begin(), [](unsigned char c) { return std::tolower(c); });
    return starts(head, "<!doctype html") || starts(head, "<html") || starts(head, "<head");
}

/// Protocol buffers have no mark of their own: a version (field 1), then the producer's name (2) or the graph (7).
bool is_onnx(std::string_view bytes) {
    return bytes.size() > 4 && bytes[0] == 8 && bytes[1] > 0 && bytes[1] < 32 &&
           (bytes[2] == 0x12 || bytes[2] == 0x3A || bytes[2] == 0x42);
}

/// ", version 5 (bfloat16)": the second number of a model's header.
std::string llmc_version(std::string_view bytes) {
    if (!starts(bytes, llmc_magic) || bytes.size() < 8) return "";
    std::int32_t version = 0;
    std::memcpy(&version, bytes.data() + 4, sizeof version);
    return " (version " + std::to_string(version) + (version == 5 ? ", bfloat16)" : version == 3 ? ", float32)" : ")");
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
    if (starts(bytes, zip_magic)) return std::nullopt;
    struct Magic {
        std::string_view bytes;
        std::size_t offset;
        const char* kind;
    };
    constexpr Magic known[] = {
        {"GGUF"sv, 0, "a GGUF file (llama.cpp): open it by itself"},
        {"tjgg"sv, 0, "an old GGML file (llama.cpp), which is not supported"},
        {"lmgg"sv, 0, "an old GGML file (llama.cpp), which is not supported"},
        {llmc_magic, 0, "a model of llm.c, which must be converted for transformers first"},
        {"\xa3\xd9\x34\x01"sv, 0, "a Llama model of llm.c, which is not supported"},
        {"\x88\xd8\x34\x01"sv, 0, "tokens of llm.c, which are no weights"},
        {"\xa1\xd9\x34\x01"sv, 0, "tokens of llm.c, which are no weights"},
        {"\xc8\xd7\x34\x01"sv, 0, "a tokenizer of llm.c, which is no weight file"},
        {"PK\5\6"sv, 0, "an empty zip archive"},
        {"PK\7\10"sv, 0, "a part of a split zip archive"},
        {"ustar"sv, 257, "a tar archive: unpack it (or, if PyTorch wrote it before 2017, save it again)"},
        {"\x1f\x8b"sv, 0, "a gzip file, which must be unpacked first"},
        {"BZh"sv, 0, "a bzip2 file, which must be unpacked first"},
        {"\xfd"
         "7zXZ\0"sv,
         0, "an xz file, which must be unpacked first"},
        {"7z\xbc\xaf\x27\x1c"sv, 0, "a 7-Zip archive, which must be unpacked first"},
        {"\x28\xb5\x2f\xfd"sv, 0, "a Zstandard file, which must be unpacked first"},
        {"\x89HDF\r\n\x1a\n"sv, 0, "an HDF5 file (TensorFlow, Keras), which is not supported as weights"},
        {"HSEVENTS"sv, 0, "the journal of a training run: its models are in the folder snapshots beside it"},
        {"\x93NUMPY"sv, 0, "a NumPy array file, which is not supported"},
        {"TFL3"sv, 4, "a TensorFlow Lite file, which is not supported"},
        {"\x7f"
         "ELF"sv,
         0, "a program"},
        {"{"sv, 0, "a JSON file"},
    };
    for (const Magic& magic : known) {
        if (bytes.size() >= magic.offset && starts(bytes.substr(magic.offset), magic.bytes)) {
            return OtherKind{ErrorCode::unsupported, std::string("found ") + magic.kind + llmc_version(bytes)};
        }
    }
    // Looser marks come last.
    const auto byte = [&](std::size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U; };
    if (byte(0) == 0x80 && byte(1) >= 1 && byte(1) <= 5) {
        if (is_legacy_pytorch(bytes)) return std::nullopt;
        return OtherKind{ErrorCode::unsupported, "found a bare Python pickle, which is not read: save it with PyTorch"};
    }
    if (is_onnx(bytes)) return OtherKind{ErrorCode::unsupported, "found an ONNX model, which is not supported"};
    if ((byte(0) >= 0x81 && byte(0) <= 0x8F) || byte(0) == 0xDE || byte(0) == 0xDF) {
        const std::size_t key = byte(0) == 0xDE ? 3 : byte(0) == 0xDF ? 5 : 1;
        if ((byte(key) >= 0xA1 && byte(key) <= 0xBF) || byte(key) == 0xD9) {
            return OtherKind{ErrorCode::unsupported, "found a MessagePack file (Flax), which is not supported"};
        }
    }
    return std::nullopt;
}

std::optional<OtherKind> recognise_other(const std::filesystem::path& path) {
    try {
        const InputFile file(path, "weight file");
        return recognise_other(first_bytes(file), file.size());
    } catch (const Error&) {
        return std::nullopt;
    }
}

WeightFormat recognise_weights(const InputFile& file) {
    const std::string bytes = first_bytes(file);
    if (auto other = recognise_other(bytes, file.size())) {
        throw Error(other->code, shown(file.path()), "expected a weight file: safetensors or PyTorch's", other->found);
    }
    const bool pytorch =
        (starts(bytes, zip_magic) || is_legacy_pytorch(bytes)) && !may_be_safetensors(bytes, file.size());
    return pytorch ? WeightFormat::pytorch : WeightFormat::safetensors;
}

}  // namespace headscope::checkpoint
