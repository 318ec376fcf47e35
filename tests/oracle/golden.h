// SPDX-License-Identifier: GPL-3.0-or-later
// Paths of the committed results in tests/oracle.
#pragma once

#include <filesystem>
#include <string>

namespace headscope::test {

/// A file or folder that a script in tests/oracle/generate wrote.
inline std::filesystem::path golden_file(const std::string& name) {
    return std::filesystem::path(HEADSCOPE_SOURCE_DIR) / "tests/oracle/generate/data" / name;
}

/// The folder of tiny models, which scripts in tests/oracle/models wrote.
inline std::filesystem::path golden_models() {
    return std::filesystem::path(HEADSCOPE_SOURCE_DIR) / "tests/oracle/models/data";
}

/// One of them: configuration, shapes of tensors, inputs and results.
inline std::filesystem::path golden_model_file(const std::string& name) {
    return golden_models() / (name + ".json");
}

}  // namespace headscope::test
