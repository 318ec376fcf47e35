// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/figures/table.h"
#include "widgets/views/tensors/tensor_tree.h"

namespace headscope::widgets {

std::string TensorTree::csv() const {
    // In the order of TensorStatus.
    constexpr std::array<const char*, kTensorStatuses> statuses{"", "used", "missing", "left over", "not readable"};
    std::vector<std::string> names, types, shapes, files, makes;
    std::vector<std::int64_t> elements, bytes;
    for (std::size_t place = 0; place < size(); ++place) {
        const TensorRow& one = row(place);
        std::string shape;
        for (const std::int64_t length : one.shape) shape += (shape.empty() ? "" : " x ") + std::to_string(length);
        names.push_back(one.name);
        types.emplace_back(one.type);
        shapes.push_back(std::move(shape));
        elements.push_back(one.elements);
        bytes.push_back(one.bytes);
        files.push_back(one.file < 0 ? std::string() : table_->files[static_cast<std::size_t>(one.file)].toStdString());
        makes.emplace_back(statuses[static_cast<std::size_t>(one.status)]);
    }
    return figures::csv({{{"name", std::move(names)},
                          {"type", std::move(types)},
                          {"shape", std::move(shapes)},
                          {"elements", std::move(elements)},
                          {"bytes", std::move(bytes)},
                          {"file", std::move(files)},
                          {"status", std::move(makes)}}});
}

}  // namespace headscope::widgets
