// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/map/map_probe.h"

#include <cmath>
#include <limits>

#include "core/figures/table.h"
#include "core/figures/token_text.h"
#include "kernels/backend.h"

namespace headscope::widgets {
namespace {

constexpr float kNoWeight = std::numeric_limits<float>::quiet_NaN();

float rank_of(float weight, const std::vector<float>& row) {
    double less = 0, others = -1;
    for (const float other : row) {
        if (std::isnan(other)) continue;
        ++others;
        less += other < weight ? 1.0 : (other == weight ? 0.5 : 0.0);
    }
    if (std::isnan(weight)) return kNoWeight;
    return others > 0 ? static_cast<float>((less - 0.5) / others) : 1.0F;
}

MapReading read_target(const MapTarget& target) {
    MapReading reading{target, {}, kNoWeight, {}, {}};
    if (!target.map) return reading;
    const maps::PairMap& map = *target.map;
    const auto profile = [&map](const maps::Cells& cells) { return Profile{map.values(cells), map.scores(cells)}; };
    const bool query = target.query && *target.query < map.queries(), key = target.key && *target.key < map.keys();
    const std::int64_t q = target.query.value_or(0), k = target.key.value_or(0);
    if (query && target.curves) reading.row = profile({q, q + 1, 0, map.keys()});
    if (key && target.curves) reading.column = profile({0, map.queries(), k, k + 1});
    if (!query || !key) return reading;
    reading.pair = map.read({q, q + 1, k, k + 1}).front();
    if (target.curves) reading.rank = rank_of(reading.row.weights[static_cast<std::size_t>(k)], reading.row.weights);
    return reading;
}

std::vector<std::string> visible(const store::SequenceTokens& tokens, std::int64_t begin, std::int64_t end) {
    std::vector<std::string> names;
    for (std::int64_t i = begin; i < end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        names.push_back(at < tokens.pieces.size() ? figures::visible_token(tokens.pieces[at]) : std::string());
    }
    return names;
}

}  // namespace

MapProbe::MapProbe(Desk* desk, QObject* parent) : QObject(parent), desk_(desk) {}

MapProbe::~MapProbe() {
    mailbox_.close();
    desk_->reader().cancel(this);
}

void MapProbe::look(const MapTarget& target) {
    if (target == wanted_) return;
    wanted_ = target;
    if (!busy_) start();
}

void MapProbe::start() {
    busy_ = true;
    desk_->reader().post(this, [target = wanted_, send = mailbox_.sender(), this](const Cancellation&) {
        MapReading reading{target, {}, kNoWeight, {}, {}};
        try {
            reading = read_target(target);
        } catch (const std::exception& error) {
            send([this, text = QString::fromUtf8(error.what())] { Q_EMIT failed(text); });
        }
        send([this, reading = std::move(reading)]() mutable { take(std::move(reading)); });
    });
}

void MapProbe::take(MapReading reading) {
    busy_ = false;
    reading_ = std::move(reading);
    Q_EMIT read();
    if (!(reading_.target == wanted_) && !busy_) start();
}

void MapProbe::measure(const std::shared_ptr<const maps::PairMap>& map, const std::optional<maps::Cells>& region) {
    const std::uint64_t wish = ++region_;
    mass_.reset();
    worker_.cancel(&region_);
    Q_EMIT measured();
    if (!map || !region) return;
    worker_.post(&region_, [map, cells = *region, wish, send = mailbox_.sender(), this](const Cancellation& stop) {
        try {
            const maps::RegionMass mass = map->mass(cells, *stop.flag());
            send([this, wish, mass] {
                if (wish != region_) return;
                mass_ = mass;
                Q_EMIT measured();
            });
        } catch (const kernels::Cancelled&) {
        } catch (const std::exception& error) {
            send([this, text = QString::fromUtf8(error.what())] { Q_EMIT failed(text); });
        }
    });
}

void MapProbe::write_table(const std::shared_ptr<const maps::PairMap>& map, const maps::Cells& cells,
                           const store::SequenceTokens& queries, const store::SequenceTokens& keys) {
    if (!map || cells.queries() * cells.keys() > kMostCells) return;
    auto send = mailbox_.sender();
    // Copies of the few tokens that are written; the study may be closed meanwhile.
    store::SequenceTokens rows, columns;
    const auto part = [](const store::SequenceTokens& from, std::int64_t begin, std::int64_t end) {
        store::SequenceTokens to;
        for (std::int64_t i = begin; i < std::min(end, std::ssize(from.pieces)); ++i)
            to.pieces.push_back(from.pieces[static_cast<std::size_t>(i)]);
        return to;
    };
    rows = part(queries, cells.q_begin, cells.q_end);
    columns = part(keys, cells.k_begin, cells.k_end);
    worker_.post(&mass_, [=, this](const Cancellation& stop) {
        try {
            const auto query_names = visible(rows, 0, cells.queries()), key_names = visible(columns, 0, cells.keys());
            const std::vector<maps::PairReading> pairs = map->read(cells);
            std::vector<std::int64_t> query, key, sequences;
            std::vector<std::string> query_token, key_token;
            std::vector<double> weight, logit, weight_deviation, logit_deviation;
            for (std::size_t at = 0; at < pairs.size() && !stop.requested(); ++at) {
                const maps::PairReading& pair = pairs[at];
                if (pair.sequences == 0) continue;
                const std::size_t i = at / key_names.size(), j = at % key_names.size();
                query.push_back(cells.q_begin + static_cast<std::int64_t>(i));
                key.push_back(cells.k_begin + static_cast<std::int64_t>(j));
                query_token.push_back(query_names[i]);
                key_token.push_back(key_names[j]);
                weight.push_back(static_cast<double>(pair.weight));
                logit.push_back(static_cast<double>(pair.logit));
                weight_deviation.push_back(static_cast<double>(pair.weight_deviation));
                logit_deviation.push_back(static_cast<double>(pair.logit_deviation));
                sequences.push_back(pair.sequences);
            }
            figures::Table table{{{"query", std::move(query)}, {"key", std::move(key)}}};
            const auto add = [&table](const char* name, auto values) {
                table.columns.push_back({name, std::move(values)});
            };
            if (map->sequences() == 1) {
                add("query_token", std::move(query_token));
                add("key_token", std::move(key_token));
            }
            add("weight", std::move(weight));
            add("logit", std::move(logit));
            if (map->sequences() > 1) {
                add("weight_deviation", std::move(weight_deviation));
                add("logit_deviation", std::move(logit_deviation));
                add("sequences", std::move(sequences));
            }
            const std::string text = figures::csv(table);
            if (stop.requested()) return;
            send([this, text = QString::fromStdString(text)] { Q_EMIT written(text); });
        } catch (const std::exception& error) {
            send([this, text = QString::fromUtf8(error.what())] { Q_EMIT failed(text); });
        }
    });
}

}  // namespace headscope::widgets
