// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <memory>
#include <optional>

#include "core/base/process/worker.h"
#include "core/maps/pair_map.h"
#include "widgets/desk/desk.h"
#include "widgets/mailbox.h"

namespace headscope::widgets {

/// Requested part of a map: a query's row, a key's column, the cell of both.
struct MapTarget {
    std::shared_ptr<const maps::PairMap> map;  ///< null: nothing
    std::optional<std::int64_t> query, key;
    bool curves = false;  ///< rows and columns, too, not the cell alone
    bool operator==(const MapTarget&) const = default;
};

/// Values of a MapTarget. NaN: not allowed, or not requested.
struct MapReading {
    MapTarget target;
    maps::PairReading pair;
    float rank = 0;  ///< among the weights of the row, 0 to 1
    Profile row, column;
};

/// Values of a map, computed on other threads. Window's thread; requests never wait, the latest one wins.
class MapProbe : public QObject {
    Q_OBJECT
public:
    explicit MapProbe(Desk* desk, QObject* parent = nullptr);
    ~MapProbe() override;

    void look(const MapTarget& target);
    const MapReading& reading() const { return reading_; }

    /// The mass of a region; nothing: forgets it.
    void measure(const std::shared_ptr<const maps::PairMap>& map, const std::optional<maps::Cells>& region);
    const std::optional<maps::RegionMass>& mass() const { return mass_; }

    static constexpr std::int64_t kMostCells = 250'000;  ///< of a table on the clipboard
    /// One pair a line: query, key, their tokens, weight, logit; of several sequences the deviations and how many have
    /// the pair, without tokens. Pairs that are not allowed are left out.
    void write_table(const std::shared_ptr<const maps::PairMap>& map, const maps::Cells& cells,
                     const store::SequenceTokens& queries, const store::SequenceTokens& keys);

Q_SIGNALS:
    void read();                        ///< reading() is another
    void measured();                    ///< mass() is another
    void written(const QString& text);  ///< the table
    void failed(const QString& text);

private:
    void start();
    void take(MapReading reading);

    Desk* desk_;
    MapTarget wanted_;
    MapReading reading_;
    std::optional<maps::RegionMass> mass_;
    std::uint64_t region_ = 0;  ///< counts requests
    bool busy_ = false;
    Mailbox mailbox_{this};
    Worker worker_{Worker::Order::newest_first};  ///< for what takes longer than a frame
};

}  // namespace headscope::widgets
