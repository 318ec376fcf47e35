// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace headscope {

/// Events of a strict JSON text, in order, for readers that need no document tree. Handlers throw to refuse; they also
/// refuse duplicate keys (parse_json does).
class JsonEvents {
public:
    virtual ~JsonEvents() = default;
    virtual void begin_object() = 0;
    virtual void key(std::string& name) = 0;  ///< may be moved from, as all strings here
    virtual void end_object() = 0;
    virtual void begin_array() = 0;
    virtual void end_array() = 0;
    virtual void string(std::string& value) = 0;
    virtual void unsigned_integer(std::uint64_t value) = 0;
    virtual void negative_integer(std::int64_t value) = 0;         ///< -0 too
    virtual void real(double value, const std::string& text) = 0;  ///< integers beyond 64 bits too
    virtual void boolean(bool value) = 0;
    virtual void null() = 0;

    /// Byte just behind the token that is announced, from the start of the text; set by read_json_events.
    std::size_t position() const noexcept { return position_; }

private:
    friend class JsonEventDriver;
    std::size_t position_ = 0;
};

constexpr int deepest_json = 64;                         ///< nested arrays and objects
constexpr std::size_t longest_json_string = 64'000'000;  ///< bytes of the text, between its quotes

/// One JSON value (RFC 8259) and nothing but white space around it: valid UTF-8 without byte order mark, no comments,
/// NaN or Infinity, no number beyond float64, at most deepest_json nested containers, no string beyond
/// longest_json_string. Iterative; memory besides the handler's is that of the longest string. Throws Error format,
/// `where` and the byte (from `first_byte` on) as place; and Stopped within a CancellationScope.
void read_json_events(std::string_view text, const std::string& where, JsonEvents& events, std::size_t first_byte = 0);

/// The same, where something else than a byte says what is wrong where: `place` gets the byte of `text`.
void read_json_events(std::string_view text, const std::function<std::string(std::size_t byte)>& place,
                      JsonEvents& events);

}  // namespace headscope
