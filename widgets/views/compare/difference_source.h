// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QPointer>
#include <list>
#include <memory>

#include "core/maps/pair_map.h"
#include "widgets/plots/map/tile_service.h"
#include "widgets/views/compare/token_link.h"

namespace headscope::widgets {

/// Operands of a difference.
struct DifferenceOf {
    std::shared_ptr<const maps::PairMap> left, right;  ///< of weights, or implicit
    std::shared_ptr<const TokenLink> queries, keys;
    bool logits = false;  ///< of the scores before the normaliser instead of the weights, which both have
    explicit operator bool() const { return left && right && queries && keys; }
    bool operator==(const DifferenceOf&) const = default;
};

/// The differences of a view that the tile service knows, a few of the last, and the largest one of the last: from the
/// one tile that shows the whole map, in which no single cell vanishes. Window's thread.
class DifferenceSource : public QObject {
    Q_OBJECT
public:
    explicit DifferenceSource(TileService* service, QObject* parent = nullptr);
    ~DifferenceSource() override;

    /// The service's id; 0: nothing to subtract.
    std::uint64_t show(const DifferenceOf& of);
    /// Greatest magnitude of the difference shown last; NaN: no pair is in both; nothing: not known yet.
    std::optional<float> largest() const;

Q_SIGNALS:
    void measured();  ///< largest() is known

private:
    struct Known {
        DifferenceOf of;
        std::uint64_t id = 0;
        std::optional<float> largest;
    };
    void look();

    QPointer<TileService> service_;
    std::list<Known> known_;  ///< front: shown last
    bool shown_ = false;
};

}  // namespace headscope::widgets
