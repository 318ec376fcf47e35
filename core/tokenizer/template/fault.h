// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>

#include "core/base/error.h"

namespace headscope::tokenizer::chat {

/// Something wrong whose place in the template the one who catches it knows: lexer, parser and evaluator keep it.
struct Fault {
    ErrorCode code;
    std::string expected;
    std::string found;
};

[[noreturn]] inline void refuse(ErrorCode code, std::string expected, std::string found) {
    throw Fault{code, std::move(expected), std::move(found)};
}
[[noreturn]] inline void refuse(std::string expected, std::string found) {
    throw Fault{ErrorCode::format, std::move(expected), std::move(found)};
}

/// Limit of one use of a template, whatever its text. Charged before the work is done.
class Budget {
public:
    /// `input`: bytes of what is put into the template.
    explicit Budget(std::size_t input) : bytes_left_(base_bytes + 16 * input) {}

    void steps(std::size_t count) {
        if (count > steps_left_)
            refuse(ErrorCode::limit, "expected a template that ends within 4 000 000 steps", "found more");
        steps_left_ -= count;
    }
    /// Text made on the way.
    void bytes(std::size_t count) {
        if (count > bytes_left_)
            refuse(ErrorCode::limit, "expected a template that makes at most 64 MB of text", "found more");
        bytes_left_ -= count;
    }

private:
    static constexpr std::size_t base_bytes = 64'000'000;
    std::size_t steps_left_ = 4'000'000, bytes_left_;
};

}  // namespace headscope::tokenizer::chat
