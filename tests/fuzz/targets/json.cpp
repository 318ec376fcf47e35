// SPDX-License-Identifier: GPL-3.0-or-later
// Any text as JSON: accepted by us and by a second reader or by neither, with the same values; and the views that
// every other reader looks through.
#include "core/base/json/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/fuzz/check.h"
#include "tests/fuzz/other_json.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {
namespace {

bool equal(const nlohmann::json& ours, const OtherJson& other) {
    if (other.object() != nullptr) {
        if (!ours.is_object() || ours.size() != other.object()->size()) return false;
        for (const auto& [key, value] : *other.object()) {
            const auto entry = ours.find(key);
            if (entry == ours.end() || !equal(*entry, value)) return false;
        }
        return true;
    }
    if (other.array() != nullptr) {
        if (!ours.is_array() || ours.size() != other.array()->size()) return false;
        for (std::size_t i = 0; i < ours.size(); ++i) {
            if (!equal(ours[i], (*other.array())[i])) return false;
        }
        return true;
    }
    if (other.string() != nullptr) return ours.is_string() && ours.get_ref<const std::string&>() == *other.string();
    if (other.whole() != nullptr) return ours.is_number_unsigned() && ours.get<std::uint64_t>() == *other.whole();
    if (const auto* integer = std::get_if<std::int64_t>(&other.value)) {
        return ours.is_number_integer() && !ours.is_number_unsigned() && ours.get<std::int64_t>() == *integer;
    }
    if (const auto* real = std::get_if<double>(&other.value))
        return ours.is_number_float() && ours.get<double>() == *real;
    if (const auto* boolean = std::get_if<bool>(&other.value)) return ours.is_boolean() && ours.get<bool>() == *boolean;
    return ours.is_null();
}

/// Every getter on every value, right kind or wrong: one Error or an answer that the value justifies.
void look(const JsonView& view, int& left) {
    if (--left < 0) return;
    refusal([&] {
        const std::int64_t value = view.integer({-5, 1000});
        expect(value >= -5 && value <= 1000 && view.value().is_number(), "an integer within its range");
    });
    refusal([&] { view.integer(); });
    refusal([&] { expect(std::isfinite(view.number()), "a finite number"); });
    refusal([&] { view.number(0, 1); });
    refusal([&] { view.boolean(); });
    refusal([&] { view.string(); });
    refusal([&] { view.integers(); });
    refusal([&] { view.numbers(); });
    refusal([&] { view.strings(); });
    refusal([&] { view.integer_or("a", 3); });
    refusal([&] { view.string_or("a", "b"); });
    refusal([&] { view.refuse(ErrorCode::format, "expected something else"); });
    if (view.is_object()) {
        for (const std::string& key : view.keys()) {
            if (const auto entry = view.find(key)) look(*entry, left);
        }
    } else if (view.is_array()) {
        for (std::size_t i = 0; i < view.size(); ++i) look(view.at(i), left);
    }
}

}  // namespace

void run_json(std::string_view input) {
    nlohmann::json document;
    const auto error = refusal([&] { document = parse_json(input, "input"); });
    const std::optional<OtherJson> other = other_json(input);
    expect(error.has_value() != other.has_value(), "both JSON readers to accept or neither");
    if (error) {
        expect(error->code() == ErrorCode::format, "a format error");
        return;
    }
    expect(equal(document, *other), "both JSON readers to find the same");
    expect(parse_json(json_text(document), "written") == document, "a document to be read as it was written");
    int left = 100;
    look(JsonView(document, "input"), left);
}

}  // namespace headscope::fuzz
