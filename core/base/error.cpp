// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <new>
#include <optional>
#include <utility>

#include "core/base/text/text.h"

namespace headscope {
namespace {

std::string line(const std::string& where, const std::string& expected, const std::string& found) {
    std::string text = "[" + where + "] " + expected;
    if (!found.empty()) text += "; " + found;
    return text;
}

/// The same line as of a plan that does not fit (core/base/process/free_memory.h).
Error out_of_memory(const std::string& amount, std::string_view where) {
    return {ErrorCode::memory, "memory", "expected " + amount + " for " + std::string(where), "found none left"};
}

/// Bytes that LibTorch's allocator was refused, from the text of its exception.
std::optional<std::uint64_t> refused_by_torch(std::string_view text) {
    constexpr std::string_view kMark = "can't allocate memory: you tried to allocate ";
    const std::size_t at = text.find(kMark);
    if (at == text.npos) return std::nullopt;
    text.remove_prefix(at + kMark.size());
    std::uint64_t bytes = 0;
    std::from_chars(text.data(), text.data() + text.size(), bytes);
    return bytes;
}

}  // namespace

std::string escaped(std::string_view text, std::size_t limit) {
    std::string out;
    char buffer[16];
    while (!text.empty()) {
        if (out.size() >= limit) return out + "…";
        char32_t point = 0;
        const std::size_t length = decode_utf8(text, point);
        if (length == 0) {
            std::snprintf(buffer, sizeof buffer, "\\x%02X", static_cast<unsigned char>(text[0]));
            out += buffer;
            text.remove_prefix(1);
            continue;
        }
        if (!is_showable(point)) {
            std::snprintf(buffer, sizeof buffer, point < 0x80 ? "\\x%02X" : "\\u{%X}", static_cast<unsigned>(point));
            out += buffer;
        } else {
            out.append(text.substr(0, length));
        }
        text.remove_prefix(length);
    }
    return out;
}

Error::Error(ErrorCode code, std::string where, std::string expected, std::string found)
    : std::runtime_error(line(where, expected, found)),
      code_(code),
      where_(std::move(where)),
      expected_(std::move(expected)),
      found_(std::move(found)) {}

Error current_error(std::string_view where) {
    try {
        throw;
    } catch (const Error& error) {
        return error;
    } catch (const Stopped&) {
        throw;
    } catch (const std::bad_alloc&) {
        return out_of_memory("more memory", where);
    } catch (const std::exception& error) {
        std::string_view text = error.what();
        text = text.substr(0, text.find('\n'));
        if (const auto bytes = refused_by_torch(text)) return out_of_memory(size_text(*bytes), where);
        // The kernels, which know nothing of core, speak the same language: "[where] expected; found".
        const std::size_t place = text.find("] "), half = text.find("; ", place == text.npos ? 0 : place);
        if (text.starts_with('[') && place != text.npos && half != text.npos) {
            return {ErrorCode::usage, std::string(text.substr(1, place - 1)),
                    std::string(text.substr(place + 2, half - place - 2)), std::string(text.substr(half + 2))};
        }
        // LibTorch's OutOfMemoryError, which this library does not link.
        if (text.starts_with("CUDA out of memory") || text.starts_with("HIP out of memory"))
            return {ErrorCode::memory, std::string(where),
                    "expected enough memory on the GPU: take shorter texts, --dtype bfloat16, --weights file or "
                    "--device cpu",
                    "found: " + escaped(text, 400)};
        return {ErrorCode::internal, std::string(where), "expected no error from a library",
                "found: " + escaped(text, 400)};
    } catch (...) {
        return {ErrorCode::internal, std::string(where), "expected no error from a library",
                "found one of unknown type"};
    }
}

}  // namespace headscope
