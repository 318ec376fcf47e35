// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "core/base/error.h"

namespace headscope::test {

/// For REQUIRE_THROWS_MATCHES: an Error of this code whose line contains `part`.
class IsError : public Catch::MatcherBase<Error> {
public:
    explicit IsError(ErrorCode code, std::string part = "") : code_(code), part_(std::move(part)) {}
    bool match(const Error& error) const override {
        const std::string line = error.what();
        return error.code() == code_ && line.find(part_) != std::string::npos && line.find('\n') == std::string::npos;
    }
    std::string describe() const override {
        return "is an Error of code " + std::to_string(static_cast<int>(code_)) + " that says \"" + part_ + '"';
    }

private:
    ErrorCode code_;
    std::string part_;
};

}  // namespace headscope::test

namespace Catch {
template <>
struct StringMaker<headscope::Error> {
    static std::string convert(const headscope::Error& error) {
        return "code " + std::to_string(static_cast<int>(error.code())) + ": " + error.what();
    }
};
}  // namespace Catch
