// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/data_records.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/io/sha256.h"
#include "core/base/json/json_records.h"
#include "core/base/process/os_error.h"
#include "core/data/source/parquet_rows.h"

namespace headscope::evaluation {
namespace {

constexpr std::uint64_t kLargestParquet = std::uint64_t{2} << 30U;

struct EnoughRows {};

}  // namespace

std::string read_data_records(const std::filesystem::path& path, const std::string& kind,
                              const std::function<bool(const JsonView& record)>& take) {
    if (path.extension() != ".parquet") return read_json_records(path, kind, take);
    const InputFile file(path, kind);
    std::string sha256 = sha256_hex(file.read_all(kLargestParquet));
    bool found = false;
    const auto take_row = [&](std::string_view text, std::uint64_t row) {
        const std::string where = shown(path) + ":" + std::to_string(row);
        const nlohmann::json value = parse_json(text, where);
        found = true;
        if (!take(JsonView(value, where).object())) throw EnoughRows();
    };
    try {
        data::read_parquet_rows(file, take_row, {}, {});
    } catch (const EnoughRows&) {
    }
    file.check_unchanged();
    if (!found) throw Error(ErrorCode::usage, shown(path), "expected " + kind, "found none in it");
    return sha256;
}

}  // namespace headscope::evaluation
