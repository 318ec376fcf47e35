// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/check.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "core/base/progress.h"
#include "core/base/text/text.h"

namespace headscope::fuzz {
namespace {

constexpr std::size_t longest_message = 8192;

void check_message(const Error& error) {
    const std::string_view line = error.what();
    const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
    if (error.code() == ErrorCode::internal || error.code() == ErrorCode::memory) {
        finding("an error of our own: " + std::string(line));
    }
    if (error.where().empty() || error.expected().rfind("expected", 0) != 0 || error.found().empty()) {
        finding("an error without place, expectation or what was found: " + std::string(line));
    }
    if (line.size() > longest_message) finding("an error of " + std::to_string(line.size()) + " bytes");
    if (std::any_of(line.begin(), line.end(), control)) finding("control characters in: " + escaped(line, 1000));
    if (find_invalid_utf8(line) != std::string_view::npos) finding("no UTF-8 in: " + escaped(line, 1000));
}

}  // namespace

void finding(const std::string& what) {
    std::fprintf(stderr, "finding: %s\n", what.c_str());
    std::abort();
}

void expect(bool true_here, const char* what) {
    if (!true_here) finding(std::string("expected ") + what);
}

std::optional<Error> refusal(const std::function<void()>& read) {
    try {
        read();
        return std::nullopt;
    } catch (const Error& error) {
        check_message(error);
        return error;
    } catch (const Stopped&) {
        finding("it stopped without a cancellation");
    } catch (const std::exception& error) {
        finding(std::string("an exception that is no Error: ") + error.what());
    }
}

std::string_view take_line(std::string_view& input) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    const std::string_view line = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    return line;
}

std::size_t take_number(std::string_view& input, std::size_t highest) {
    std::size_t number = 0;
    while (!input.empty() && input.front() >= '0' && input.front() <= '9') {
        number = std::min(highest, number * 10 + static_cast<std::size_t>(input.front() - '0'));
        input.remove_prefix(1);
    }
    return number;
}

}  // namespace headscope::fuzz
