// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A named setting with kind, range, default and help: job keys, options of mixers, data sets, tasks, figures and
// analyses. One checker, one wording of errors: "[place] expected a whole number from 1 to 64; found 0". Threads: any.

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"

namespace headscope {

enum class OptionKind {
    flag,
    whole,  ///< also written 5e6
    number,
    text,
    choice,          ///< one of Option::choices
    path,            ///< of a file or folder
    texts,           ///< a list, or one
    paths,           ///< a list of files, folders, patterns, or one
    choices,         ///< a list of Option::choices, or one
    pair,            ///< two numbers
    share_or_paths,  ///< a number, or a list of paths
    table,           ///< an object; its owner checks the content
};

using OptionValue = std::variant<bool, std::int64_t, double, std::string>;

struct Option {
    Option() = default;
    /// The default's type determines the kind; a text with choices is a choice.
    Option(std::string name, OptionValue standard, std::vector<std::string> choices = {},
           double lowest = -std::numeric_limits<double>::infinity(),
           double highest = std::numeric_limits<double>::infinity(), std::string help = {});

    std::string name;
    OptionKind kind = OptionKind::text;
    OptionValue standard = std::string();  ///< default
    std::vector<std::string> choices;      ///< of a number: words that its owner accepts too
    double lowest = -std::numeric_limits<double>::infinity(), highest = std::numeric_limits<double>::infinity();
    bool above = false;  ///< `lowest` itself is not allowed
    std::string help;    ///< one line
    /// Tests the form of a text, which `form` describes in errors and lists; null: any text.
    bool (*accepts)(const std::string& text) = nullptr;
    std::string form = {};
};

/// `a whole number from 1 to 64`, `a number above 0 and up to 1`, `one of "a", "b"`, `a list of paths`.
std::string expected_text(const Option& option);

/// "512", "0.5", "1e+15": digits for whole numbers, else the shortest text that reads back.
std::string plain_number(double number);

/// ErrorCodes for values of another kind and for numbers out of range.
struct OptionErrors {
    ErrorCode kind = ErrorCode::format, range = ErrorCode::limit;
};

/// The value in its kind's form: int64 for whole numbers, double for numbers, arrays for lists. `place` names the
/// option in errors.
nlohmann::json checked_value(const Option& option, const nlohmann::json& value, const std::string& place,
                             OptionErrors errors = {});

/// The same for a number; usage errors. Of whole and number.
void check_number(const Option& option, double number, const std::string& place);

/// The number in `text`, checked; usage errors with the text as it is. Of whole and number.
double read_number(const Option& option, const std::string& text, const std::string& place);

/// Usage error that lists `choices`, with the nearest to `text`.
Error choice_error(const std::vector<std::string>& choices, const std::string& text, const std::string& place);
/// Throws it where `text` is none of them.
void check_choice(const std::vector<std::string>& choices, const std::string& text, const std::string& place);

nlohmann::json json_of(const OptionValue& value);
double number_of(const OptionValue& value);  ///< of whole and number

}  // namespace headscope
