// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace headscope::fuzz {

/// A finding: says what is wrong and aborts, so that libFuzzer and the plain main keep the input.
[[noreturn]] void finding(const std::string& what);

/// finding(what) unless `true_here`.
void expect(bool true_here, const char* what);

/// Runs a reader. The only way in which it may fail is one headscope::Error: of another kind than internal or memory,
/// with a place, one line of valid UTF-8 without control characters, of at most a few kB. Everything else is a finding.
/// Empty when the reader accepted.
std::optional<Error> refusal(const std::function<void()>& read);

/// The next line of the input, without its line feed, which is taken off; for targets whose inputs have parts.
std::string_view take_line(std::string_view& input);

/// Takes a decimal number from the front; `highest` where it is larger, 0 where there is none.
std::size_t take_number(std::string_view& input, std::size_t highest);

}  // namespace headscope::fuzz
