// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/analyze/layer_list.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "app/commands/context.h"
#include "core/base/error.h"

namespace headscope::app {

std::set<int> parse_layers(const std::string& option, const std::string& text) {
    std::set<int> layers;
    const auto refuse = [&] { throw UsageError(option + ": a list like 0,2,5-8 is expected; found " + escaped(text)); };
    const auto number = [&](std::string_view digits) {
        int value = -1;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error != std::errc() || end != digits.data() + digits.size() || value < 0 || value > 100'000) refuse();
        return value;
    };
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        const std::string_view item = rest.substr(0, comma);
        const std::size_t dash = item.find('-');
        const int first = number(item.substr(0, dash));
        const int last = dash == std::string_view::npos ? first : number(item.substr(dash + 1));
        if (last < first) refuse();
        for (int layer = first; layer <= last; ++layer) layers.insert(layer);
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
        if (rest.empty()) refuse();
    }
    return layers;
}

void check_layers(const std::string& option, const std::set<int>& layers, std::int64_t count) {
    if (!layers.empty() && *layers.rbegin() >= count)
        throw Error(ErrorCode::limit, option, "expected layers from 0 to " + std::to_string(count - 1),
                    "found " + std::to_string(*layers.rbegin()));
}

std::vector<std::int64_t> parse_lengths(const std::string& option, const std::string& text) {
    std::vector<std::int64_t> lengths;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data() + at, text.data() + comma, value);
        if (error != std::errc() || end != text.data() + comma || value < 1)
            throw UsageError(option + ": numbers from 1 on like 128,256 are expected; found " + escaped(text));
        lengths.push_back(value);
        at = comma + 1;
    }
    return lengths;
}

}  // namespace headscope::app
