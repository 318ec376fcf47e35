// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/text_sources.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/analysis/input.h"
#include "core/base/input_file.h"
#include "core/base/json.h"
#include "core/base/os_error.h"
#include "core/base/text.h"

namespace headscope::analysis {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_text = std::uint64_t{1} << 30U;
constexpr std::uint64_t largest_token_file = std::uint64_t{256} << 20U;

std::string read_standard_input(const Cancellation* cancellation) {
    std::string text;
    std::vector<char> buffer(std::size_t{1} << 16U);
    for (;;) {
        // A terminal or a pipe may stay silent for ever: look up for a stop now and then.
        struct pollfd input = {STDIN_FILENO, POLLIN, 0};
        const int ready = ::poll(&input, 1, 200);
        if (cancellation) cancellation->check();
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw os_error(errno, "standard input", "expected a text");
        if (count == 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(count));
        if (text.size() > largest_text) {
            throw Error(ErrorCode::limit, "standard input", "expected a text of at most " + size_text(largest_text),
                        "found a longer one");
        }
    }
}

}  // namespace

std::string read_text_file(const fs::path& path, const Cancellation* cancellation) {
    const bool standard = path == "-";
    std::string text = standard ? read_standard_input(cancellation) : read_small_file(path, largest_text, "text file");
    const std::size_t invalid = find_invalid_utf8(text);
    if (invalid != std::string::npos) {
        throw Error(ErrorCode::format, standard ? "standard input" : shown(path), "expected text in UTF-8",
                    "found no UTF-8 at byte " + std::to_string(invalid));
    }
    return text;
}

std::vector<std::string> bundled_texts(const fs::path& resources) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(resources / "texts", error)) {
        if (entry.path().extension() == ".txt" && ends_at_regular_file(entry.path()))
            names.push_back(entry.path().stem());
    }
    std::sort(names.begin(), names.end());
    return names;
}

fs::path bundled_text_path(const fs::path& resources, const std::string& name) {
    const auto names = bundled_texts(resources);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        throw Error(ErrorCode::usage, "--example", "expected the name of a bundled text: " + list_text(names),
                    "found " + list_text({name}));
    }
    return resources / "texts" / (name + ".txt");
}

std::vector<std::vector<std::int32_t>> read_token_file(const fs::path& path, std::int64_t vocabulary) {
    const nlohmann::json document = read_json_file(path, largest_token_file, "token file");
    const JsonView view(document, shown(path));
    if (!view.is_array()) view.refuse(ErrorCode::format, "an array of arrays of token ids");
    const std::int64_t highest = vocabulary > 0 ? vocabulary - 1 : std::numeric_limits<std::int32_t>::max();
    std::vector<std::vector<std::int32_t>> sequences;
    for (std::size_t i = 0; i < view.size(); ++i) {
        const JsonView entry = view.at(i);
        if (!entry.is_array()) entry.refuse(ErrorCode::format, "an array of token ids");
        if (entry.size() == 0) entry.refuse(ErrorCode::usage, "at least one token id");
        const auto ids = entry.integers({0, highest});
        sequences.emplace_back(ids.begin(), ids.end());
    }
    if (sequences.empty()) view.refuse(ErrorCode::usage, "at least one array of token ids");
    return sequences;
}

}  // namespace headscope::analysis
