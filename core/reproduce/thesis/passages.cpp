// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/thesis/passages.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.h"

namespace headscope::reproduce::thesis {
namespace {

constexpr std::int64_t kWords = 24, kEachTested = 5, kFewest = 10;
constexpr const char* kSpace = " \t\n\v\f\r";

}  // namespace

Passages passages_of(std::string_view text, std::int64_t classes, std::int64_t most) {
    std::vector<std::string> all;
    std::int64_t words = 0;
    for (std::size_t begin = text.find_first_not_of(kSpace); begin != std::string_view::npos;) {
        const std::size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
        if (words++ % kWords == 0)
            all.emplace_back();
        else
            all.back() += ' ';
        all.back() += text.substr(begin, end - begin);
        begin = text.find_first_not_of(kSpace, end);
    }
    if (words % kWords != 0) all.pop_back();
    const auto count = static_cast<std::int64_t>(all.size());
    if (count < kFewest * classes)
        throw Error(ErrorCode::usage, "--data",
                    "expected a text of at least " + std::to_string(kFewest * classes * kWords) + " words",
                    "found " + std::to_string(words));
    const std::int64_t chosen = std::min(count, most);
    Passages passages;
    for (std::int64_t i = 0; i < chosen; ++i) {
        const std::int64_t place = i * count / chosen;
        const nlohmann::json line{{"text", all[static_cast<std::size_t>(place)]}, {"label", classes * place / count}};
        (i % kEachTested == kEachTested - 1 ? passages.test : passages.train) +=
            line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    }
    return passages;
}

}  // namespace headscope::reproduce::thesis
