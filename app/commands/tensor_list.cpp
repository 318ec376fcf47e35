// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/tensor_list.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "core/base/json/json.h"
#include "core/base/text/text.h"

namespace headscope::app {
namespace {

using checkpoint::TensorInfo;
using nlohmann::json;
using Row = std::array<std::string, 4>;

constexpr std::size_t block = std::size_t{1} << 16U;

Row row_of(const TensorInfo& tensor) {
    std::string shape;
    for (const std::int64_t size : tensor.shape) shape += (shape.empty() ? "" : " x ") + std::to_string(size);
    return {escaped(tensor.name), checkpoint::stored_type(tensor), shape.empty() ? "scalar" : shape,
            size_text(tensor.bytes)};
}

std::string line(const Row& row, const std::array<std::size_t, 4>& widths) {
    std::string text;
    for (std::size_t c = 0; c < row.size(); ++c) {
        const std::string pad(widths[c] - std::min(widths[c], display_width(row[c])), ' ');
        text += c + 1 == row.size() ? pad + row[c] : row[c] + pad + "  ";
    }
    return text + "\n";
}

/// Hands pieces of text on in blocks.
class Printer {
public:
    void add(const std::string& text) {
        text_ += text;
        if (text_.size() < block) return;
        print(text_);
        text_.clear();
    }
    void finish() { print(text_); }

private:
    std::string text_;
};

}  // namespace

void print_tensor_table(const checkpoint::Checkpoint& checkpoint) {
    const Row heading = {"tensor", "type", "shape", "size"};
    std::array<std::size_t, 4> widths{};
    const auto widen = [&](const Row& row) {
        for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
    };
    widen(heading);
    for (const auto& [name, tensor] : checkpoint.tensors()) widen(row_of(tensor));
    Printer printer;
    printer.add(line(heading, widths));
    for (const auto& [name, tensor] : checkpoint.tensors()) printer.add(line(row_of(tensor), widths));
    printer.finish();
}

void print_json_with_tensors(const json& document, const checkpoint::Checkpoint& checkpoint) {
    std::string head = showable_json(document.dump(2, ' ', false, json::error_handler_t::replace));
    head.resize(head.rfind('\n'));  // the closing brace comes behind the tensors
    Printer printer;
    printer.add(head + ",\n  \"tensors\": [");
    bool first = true;
    for (const auto& [name, tensor] : checkpoint.tensors()) {
        const json entry = {{"name", tensor.name},
                            {"type", checkpoint::stored_type(tensor)},
                            {"shape", tensor.shape},
                            {"bytes", tensor.bytes}};
        printer.add((first ? "\n    " : ",\n    ") +
                    showable_json(entry.dump(-1, ' ', false, json::error_handler_t::replace)));
        first = false;
    }
    printer.add(first ? "]\n}\n" : "\n  ]\n}\n");
    printer.finish();
}

}  // namespace headscope::app
