// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview/overview_words.h"

#include <QCoreApplication>
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "core/workspace/measures.h"
#include "widgets/views/overview/overview_cells.h"

namespace headscope::widgets {
namespace {

QString say(const char* text) {
    return QCoreApplication::translate("HeadWords", text);
}

struct Pattern {
    const char* measure;
    double least;  ///< from which share of weight on it is worth saying
    const char* text;
};

constexpr std::array kPatterns{
    Pattern{"sink", 0.3, QT_TRANSLATE_NOOP("HeadWords", "puts %1 of its weight on the first token")},
    Pattern{"virtual_sink", 0.3, QT_TRANSLATE_NOOP("HeadWords", "puts %1 of its weight on its learned sink")},
    Pattern{"local_focus_1", 0.25, QT_TRANSLATE_NOOP("HeadWords", "looks at the token before (%1)")},
    Pattern{"local_focus_0", 0.25, QT_TRANSLATE_NOOP("HeadWords", "looks at the token itself (%1)")},
    Pattern{"local_focus_2", 0.25, QT_TRANSLATE_NOOP("HeadWords", "looks two tokens back (%1)")},
    Pattern{"local_focus_3", 0.25, QT_TRANSLATE_NOOP("HeadWords", "looks three tokens back (%1)")},
    Pattern{"induction", 0.1, QT_TRANSLATE_NOOP("HeadWords", "looks at tokens that followed earlier copies (%1)")},
    Pattern{"duplicate", 0.1, QT_TRANSLATE_NOOP("HeadWords", "looks at earlier copies of the token (%1)")},
    Pattern{"sparsity", 0.1, QT_TRANSLATE_NOOP("HeadWords", "releases %1 of its mass")},
};

std::optional<double> value_of(const workspace::HeadTable& table, std::size_t row, const char* measure) {
    const auto column = table.column(measure);
    if (!column || !std::isfinite(table.value(row, *column))) return std::nullopt;
    return table.value(row, *column);
}

QString share(double value) {
    return QString::number(std::lround(value * 100)) + QStringLiteral(" %");
}

struct Standing {
    std::size_t column = 0, rank = 1, count = 0;
    bool high = false;
    double distance = 0;  ///< from the mean of all heads, in deviations
};

std::optional<Standing> standing(const workspace::HeadTable& table, std::size_t row, std::size_t column) {
    const double own = table.value(row, column);
    if (!std::isfinite(own)) return std::nullopt;
    double sum = 0, squares = 0;
    Standing standing{column};
    std::size_t above = 0, below = 0;
    for (std::size_t other = 0; other < table.rows.size(); ++other) {
        const double value = table.value(other, column);
        if (!std::isfinite(value)) continue;
        ++standing.count;
        sum += value;
        squares += value * value;
        above += value > own;
        below += value < own;
    }
    const auto n = static_cast<double>(standing.count);
    const double mean = sum / n, variance = squares / n - mean * mean;
    if (standing.count < 4 || !(variance > 1e-12 * std::max(1.0, mean * mean))) return std::nullopt;
    standing.high = own > mean;
    standing.rank = 1 + (standing.high ? above : below);
    standing.distance = std::abs(own - mean) / std::sqrt(variance);
    return standing;
}

QString ordinal(std::size_t rank, bool high) {
    if (rank == 1) return high ? say("highest") : say("lowest");
    const char* ending = rank % 100 / 10 == 1 ? "th"
                         : rank % 10 == 2     ? "nd"
                         : rank % 10 == 3     ? "rd"
                         : rank % 10 == 1     ? "st"
                                              : "th";
    return QString::number(rank) + QLatin1String(ending) + QLatin1Char(' ') + (high ? say("highest") : say("lowest"));
}

}  // namespace

QStringList words_of_head(const workspace::HeadTable& table, std::size_t row) {
    QStringList words;
    for (const Pattern& pattern : kPatterns) {
        const auto value = value_of(table, row, pattern.measure);
        if (value && *value >= pattern.least) words << say(pattern.text).arg(share(*value));
    }
    if (words.isEmpty() && value_of(table, row, "density")) words << say("no single pattern holds most of its weight");

    std::vector<Standing> standings;
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
        const workspace::Measure* measure = workspace::find_measure(table.columns[column]);
        if (!measure || measure->of_layer) continue;
        const auto found = standing(table, row, column);
        if (found && found->distance >= 1.5) standings.push_back(*found);
    }
    std::stable_sort(standings.begin(), standings.end(),
                     [](const Standing& a, const Standing& b) { return a.distance > b.distance; });
    constexpr std::size_t kMost = 3;
    for (std::size_t i = 0; i < std::min(kMost, standings.size()); ++i) {
        const Standing& at = standings[i];
        const workspace::Measure& measure = *workspace::find_measure(table.columns[at.column]);
        const double value = table.value(row, at.column);
        QString text = QString::fromUtf8(measure.title.data(), static_cast<qsizetype>(measure.title.size())) +
                       QLatin1Char(' ') + number_format(std::array{value}).text(value);
        if (!measure.unit.empty())
            text +=
                QLatin1Char(' ') + QString::fromUtf8(measure.unit.data(), static_cast<qsizetype>(measure.unit.size()));
        words << say("%1: %2 of %3").arg(text, ordinal(at.rank, at.high)).arg(at.count);
    }
    return words;
}

}  // namespace headscope::widgets
