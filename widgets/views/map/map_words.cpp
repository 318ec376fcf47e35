// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/map/map_words.h"

#include <QCoreApplication>
#include <cmath>
#include <limits>

#include "core/maps/norm_map.h"
#include "core/maps/rollout.h"
#include "widgets/plots/ticks.h"

namespace headscope::widgets {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("MapView", text);
}

QString number(double value) {
    return std::isnan(value) ? tr("none") : number_label(QString::number(value, 'g', 4).toDouble());
}

/// "0.31", "0.31 ± 0.02".
QString number(double value, double deviation) {
    return std::isnan(deviation)
               ? number(value)
               : number(value) + QStringLiteral(" ± ") + number_label(QString::number(deviation, 'g', 2).toDouble());
}

}  // namespace

QString token_name(std::int64_t position, const std::vector<QString>* labels) {
    const QString name = QString::number(position);
    if (!labels || position < 0 || position >= std::ssize(*labels)) return name;
    return name + QStringLiteral(" “") + (*labels)[static_cast<std::size_t>(position)] + QStringLiteral("”");
}

QString cell_words(const MapReading& reading, const std::vector<QString>* queries, const std::vector<QString>* keys) {
    const MapTarget& at = reading.target;
    QStringList words;
    if (at.query) words += tr("Query %1").arg(token_name(*at.query, queries));
    if (at.key) words += (at.query ? tr("key %1") : tr("Key %1")).arg(token_name(*at.key, keys));
    QString text = words.join(QStringLiteral(" → "));
    if (!at.query || !at.key || !at.map) return text;
    const maps::PairReading& pair = reading.pair;
    if (pair.sequences == 0) return text + tr(": the mask does not allow this pair");
    // Maps without scores have descriptions of their own.
    if (dynamic_cast<const maps::Rollout*>(at.map.get())) {
        text += tr(": rollout %1").arg(number(pair.weight));
    } else if (dynamic_cast<const maps::NormMap*>(at.map.get())) {
        text += tr(": norm %1").arg(number(pair.weight));
    } else {
        text += tr(": weight %1").arg(number(pair.weight, pair.weight_deviation));
        if (!std::isnan(pair.logit)) text += tr(" · score %1").arg(number(pair.logit, pair.logit_deviation));
    }
    if (!std::isnan(reading.rank)) text += tr(" · rank in its row %1").arg(number(reading.rank));
    if (at.map->sequences() > 1) text += tr(" · %1 of %2 sequences").arg(pair.sequences).arg(at.map->sequences());
    return text;
}

QString region_words(const maps::Cells& region, const std::optional<maps::RegionMass>& mass) {
    QString text = tr("Region: queries %1–%2, keys %3–%4")
                       .arg(region.q_begin)
                       .arg(region.q_end - 1)
                       .arg(region.k_begin)
                       .arg(region.k_end - 1);
    if (!mass) return text + tr(" · summing…");
    text += tr(" · mass %1").arg(number(mass->mass, mass->mass_deviation));
    text += tr(" · %1 of a query's weight in the mean").arg(number(mass->share, mass->share_deviation));
    return text + tr(" · %1 of %2 pairs allowed").arg(mass->allowed).arg(mass->cells);
}

std::optional<std::int64_t> find_token(const QString& text, std::int64_t after, const std::vector<std::string>& pieces,
                                       const std::vector<QString>* labels, std::int64_t size) {
    if (text.isEmpty() || size <= 0) return std::nullopt;
    bool is_number = false;
    const qlonglong position = text.trimmed().toLongLong(&is_number);
    if (is_number && position >= 0 && position < size) return position;
    QString wanted = text;
    if (text.size() > 2 && text.startsWith(QLatin1Char('"')) && text.endsWith(QLatin1Char('"')))
        wanted = text.mid(1, text.size() - 2);
    const std::string bytes = wanted.toStdString();
    const auto holds = [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        if (at < pieces.size() && pieces[at].find(bytes) != std::string::npos) return true;
        return labels && at < labels->size() && (*labels)[at].contains(wanted, Qt::CaseInsensitive);
    };
    for (std::int64_t step = 1; step <= size; ++step) {
        const std::int64_t i = (after + step) % size;
        if (holds(i)) return i;
    }
    return std::nullopt;
}

void hide_future(std::vector<float>& thumbnail, std::int64_t rows, std::int64_t columns, std::int64_t queries,
                 std::int64_t keys) {
    if (std::ssize(thumbnail) != rows * columns) return;
    for (std::int64_t r = 0; r < rows; ++r) {
        // Block r holds the queries i with i * rows / queries = r.
        const std::int64_t last_query = ((r + 1) * queries + rows - 1) / rows - 1;
        for (std::int64_t c = 0; c < columns; ++c) {
            const std::int64_t first_key = (c * keys + columns - 1) / columns;
            if (first_key > last_query)
                thumbnail[static_cast<std::size_t>(r * columns + c)] = std::numeric_limits<float>::quiet_NaN();
        }
    }
}

}  // namespace headscope::widgets
