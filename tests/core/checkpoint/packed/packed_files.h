// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The folders of tests/oracle/generate/data/packed in memory, where tests may change them.

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/checkpoint/packed/find_packed.h"
#include "tests/oracle/golden.h"

namespace headscope::test {

inline const std::filesystem::path packed_golden = test::golden_file("packed");

/// A quantized model: settings, and tensors with their bytes.
struct PackedModel {
    nlohmann::json config = nlohmann::json::object();
    std::string companion_file;
    nlohmann::json companion;
    std::map<std::string, checkpoint::TensorInfo> stored;
    std::map<std::string, std::vector<std::byte>> bytes;

    std::optional<checkpoint::PackedWeights> find() const;
    /// The whole tensor, or rows of it.
    std::vector<float> unpack(const checkpoint::PackedTensor& tensor, std::int64_t first = 0,
                              std::int64_t count = -1) const;
    void check(const checkpoint::PackedTensor& tensor) const;
    std::vector<std::span<const std::byte>> parts(const checkpoint::PackedTensor& tensor) const;

    void erase(const std::string& name);
    /// Adds a tensor or replaces one; zeros if `content` is empty.
    void put(const std::string& name, checkpoint::DataType type, std::vector<std::int64_t> shape,
             std::vector<std::byte> content = {});
    /// The object that quantization_config holds.
    nlohmann::json& settings() { return config["quantization_config"]; }
};

PackedModel read_packed_model(const std::string& name);
/// expected.json.
nlohmann::json packed_expectations();

}  // namespace headscope::test
