// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace headscope {

/// Kind of an Error; the edge (command line, window) acts on it.
enum class ErrorCode {
    io,           ///< the operating system said no: open, read, write, rename, no space
    format,       ///< a file is not what its format demands
    mismatch,     ///< two things that must agree do not: configuration and tensors, shard and index
    unsupported,  ///< well formed, but of a kind that Headscope does not know
    limit,        ///< a stated limit was passed: positions, ids, sizes
    usage,        ///< the caller or the user asked for something that cannot be
    memory,       ///< memory could not be had
    internal,     ///< a bug of ours
};

/// The one error type of core: place, what was expected, what was found. what() is the single line
/// "[where] expected; found", with everything that came from a file escaped. Thrown, never printed, by core.
class Error : public std::runtime_error {
public:
    Error(ErrorCode code, std::string where, std::string expected, std::string found);

    ErrorCode code() const noexcept { return code_; }
    const std::string& where() const noexcept { return where_; }
    const std::string& expected() const noexcept { return expected_; }
    const std::string& found() const noexcept { return found_; }

private:
    ErrorCode code_;
    std::string where_;
    std::string expected_;
    std::string found_;
};

/// The one way in which a cancelled job ends. Not an Error: nothing went wrong.
class Stopped : public std::runtime_error {
public:
    Stopped() : std::runtime_error("stopped") {}
};

/// Text from a file or the user, made safe to show on one line of a terminal: control characters, line ends,
/// invalid UTF-8 and bidirectional overrides become \xNN or \u{N}; cut to `limit` bytes with an ellipsis.
std::string escaped(std::string_view text, std::size_t limit = 200);

/// Turns what is being handled in a catch (...) block into an Error: Error itself, kernels' and torch's errors (first
/// line, without a backtrace), others. Refused allocations become "[memory] expected 1.20 GB for WHERE; found none
/// left". Lets Stopped pass through: rethrows it. Call in a catch only.
Error current_error(std::string_view where);

}  // namespace headscope
