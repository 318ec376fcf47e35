// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMetaObject>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "widgets/views/tensors/tensor_source.h"

namespace headscope::tests {

inline widgets::TensorRow tensor_row(const std::string& name,
                                     widgets::TensorStatus status = widgets::TensorStatus::matched,
                                     std::int64_t bytes = 32) {
    return {name, {2, 4}, "F32", 8, bytes, 0, status};
}

inline std::shared_ptr<widgets::TensorTable> tensor_table(std::vector<widgets::TensorRow> rows, int model = 1) {
    auto made = std::make_shared<widgets::TensorTable>();
    made->model = model;
    made->name = QStringLiteral("made up");
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    made->rows = std::move(rows);
    made->files = {QStringLiteral("model.safetensors")};
    return made;
}

/// Twelve layers of three tensors, with what sorts oddly, what is missing and what is left over.
inline std::shared_ptr<widgets::TensorTable> usual_tensors() {
    using widgets::TensorStatus;
    std::vector<widgets::TensorRow> rows{tensor_row("model.embed.weight", TensorStatus::matched, 64LL << 20),
                                         tensor_row("model.norm.weight"),
                                         tensor_row("lm_head.weight", TensorStatus::missing),
                                         tensor_row("optimizer.state", TensorStatus::left_over),
                                         tensor_row("model.layers"),
                                         tensor_row("model.layers-old.x", TensorStatus::left_over),
                                         tensor_row("odd..name"),
                                         tensor_row(".begins"),
                                         tensor_row("ends."),
                                         tensor_row("")};
    for (int layer = 0; layer < 12; ++layer)
        for (const char* part : {"attn.q.weight", "attn.k.weight", "mlp.weight"})
            rows.push_back(tensor_row("model.layers." + std::to_string(layer) + "." + part));
    return tensor_table(std::move(rows));
}

/// A bell of a hundred bins around 0, with what a histogram leaves out.
inline std::shared_ptr<const widgets::TensorNumbers> made_numbers() {
    auto numbers = std::make_shared<widgets::TensorNumbers>();
    constexpr int kBins = 100;
    for (int i = 0; i <= kBins; ++i) numbers->edges.push_back(-0.2 + 0.004 * i);
    for (int i = 0; i < kBins; ++i) {
        const double from_middle = (i + 0.5 - kBins / 2) / 14;
        numbers->counts.push_back(static_cast<std::int64_t>(20'000 * std::exp(-from_middle * from_middle / 2)));
        numbers->elements += numbers->counts.back();
    }
    numbers->zeros = 12;
    numbers->nans = 3;
    numbers->elements += 3;
    numbers->minimum = -0.19;
    numbers->maximum = 0.185;
    numbers->mean = -0.0002;
    numbers->deviation = 0.056;
    numbers->norm = 47.12;
    return numbers;
}

/// A checkpoint that never was; answers at once, as signals later.
class AnsweringTensors final : public widgets::TensorSource {
public:
    std::vector<Model> models() const override { return {{1, QStringLiteral("made up")}}; }
    void want_table(int) override {
        QMetaObject::invokeMethod(
            this, [this] { Q_EMIT table_ready(usual_tensors()); }, Qt::QueuedConnection);
    }
    void want_numbers(int model, const QString& tensor) override {
        QMetaObject::invokeMethod(
            this, [this, model, tensor] { Q_EMIT numbers_ready(model, tensor, made_numbers()); }, Qt::QueuedConnection);
    }
    void stop_numbers() override {}
};

}  // namespace headscope::tests
