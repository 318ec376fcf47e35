// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/expert_cells.h"

#include <QCoreApplication>
#include <QJsonDocument>
#include <QJsonObject>
#include <QStringList>
#include <algorithm>
#include <cmath>

#include "widgets/plots/ticks.h"

namespace headscope::widgets {
namespace {

constexpr std::int64_t kThemeColours = 7;
constexpr double kGoldenPart = 0.6180339887498949;
constexpr double kFaintestExpert = 0.15;  ///< opacity of a weight of 0: that there is an expert stays to be seen

}  // namespace

QColor expert_colour(const Theme& theme, std::int64_t expert, std::int64_t experts) {
    if (experts <= kThemeColours) return theme.categorical(static_cast<int>(expert));
    const double turns = 0.6 + static_cast<double>(expert) * kGoldenPart;
    return QColor::fromHslF(static_cast<float>(turns - std::floor(turns)), 0.6F, theme.dark ? 0.62F : 0.45F);
}

std::vector<QColor> expert_cells(const store::AnalysisFile::Experts& found, std::int64_t tokens, std::int64_t experts,
                                 const Theme& theme) {
    const auto& index = found.index.data;
    const auto& weight = found.weight.data;
    double largest = 0;
    for (const double one : weight)
        if (std::isfinite(one)) largest = std::max(largest, one);
    const auto count = std::min(index.size(), static_cast<std::size_t>(tokens * found.index.shape.at(1)));
    std::vector<QColor> cells(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (index[i] < 0) continue;
        const double share = largest > 0 && std::isfinite(weight[i]) ? std::clamp(weight[i] / largest, 0.0, 1.0) : 0;
        cells[i] = expert_colour(theme, static_cast<std::int64_t>(index[i]), experts);
        cells[i].setAlphaF(static_cast<float>(kFaintestExpert + (1 - kFaintestExpert) * share));
    }
    return cells;
}

QString expert_words(const store::AnalysisFile::Experts& found, std::int64_t token) {
    const std::int64_t each = found.index.shape.at(1);
    if (token < 0 || token >= found.index.shape.at(0)) return {};
    QStringList words;
    for (std::int64_t i = token * each; i < (token + 1) * each; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (found.index.data[at] < 0) continue;
        words << QStringLiteral("%1 (%2)")
                     .arg(static_cast<qint64>(found.index.data[at]))
                     .arg(number_label(found.weight.data[at]));
    }
    if (words.isEmpty()) return {};
    return QCoreApplication::translate("OnTextView", "experts %1").arg(words.join(QStringLiteral(", ")));
}

bool has_experts(const store::AnalysisHeader& header) {
    if (header.record.experts) return true;
    const auto config = QJsonDocument::fromJson(QByteArray::fromStdString(header.config_json)).object();
    return config[QLatin1String("experts")].toInteger() > 0;
}

}  // namespace headscope::widgets
