// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>
#include <QWidget>
#include <array>
#include <memory>

#include "widgets/plots/map/map_plot.h"
#include "widgets/views/compare/difference_source.h"
#include "widgets/views/compare/sides.h"
#include "widgets/views/map/map_look.h"
#include "widgets/views/map/map_probe.h"
#include "widgets/views/map/map_sources.h"

class QComboBox;
class QLabel;

namespace headscope::widgets {

class Banner;
class LinkMarks;
class MapPlot;
class UprightScale;

/// Two maps side by side and their signed difference, right minus left, which is laid out as the left one. They pan and
/// zoom together, share the cursor and the chosen pair; tokens of different texts are followed to their partners.
class CompareMaps : public QWidget {
    Q_OBJECT
public:
    enum Which { left, right, difference };

    CompareMaps(Desk* desk, QWidget* parent);

    /// Asks for what is missing; call it again when values have arrived.
    void show_sides(const CompareSides& sides);
    MapPlot* plot(Which which) const { return plots_[which]; }
    LinkMarks* marks(Which which) const { return marks_[which]; }
    /// Largest magnitude of the difference's color scale.
    double reach() const { return reach_; }

    QJsonObject state() const;
    void restore(const QJsonObject& state);
    bool has_maps() const { return shown_.difference.left && shown_.difference.right; }
    const MapLook& look() const { return look_; }
    /// Scale of both maps, resolved; by_length where each has its own.
    figures::CellScale scale() const;
    /// The difference's colors are linear, not by square root.
    bool linear_difference() const { return scale() == figures::CellScale::linear; }

Q_SIGNALS:
    void state_changed();

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Shown {
        CompareSides sides;
        DifferenceOf difference;
        std::array<std::shared_ptr<const store::Values>, 2> thumbnails;
        std::array<std::shared_ptr<const std::vector<QString>>, 2> queries, keys;
        double largest = 0;                    ///< magnitude of both heads' logits, where those are shown
        bool zeros = false;                    ///< weights of one of them are exactly 0
        std::array<double, 2> coefficients{};  ///< what none of a side's implicit matrix is above; else 0
        bool operator==(const Shown&) const = default;
    };
    /// A pair of tokens on both sides; what has no partner is empty.
    struct Place {
        std::optional<std::int64_t> left_query, left_key, right_query, right_key;
        /// Query and key on one side.
        std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>> of(Which which) const {
            return which == right ? std::pair(right_query, right_key) : std::pair(left_query, left_key);
        }
        bool operator==(const Place&) const = default;
    };
    Which selected_side() const { return shown_.sides.selected_right ? right : left; }
    void make_widgets();
    QComboBox* make_choice(const char* name, const QString& title, const QString& tip);
    std::int64_t longest() const;  ///< tokens along a side
    double equal_below() const;    ///< differences that are none
    bool implicit(Which which) const;
    MapLook look_of(Which which) const;
    figures::ColourScale colours_of(Which which) const;
    void show_titles();
    void make_square();
    void show_maps();
    MapContent content(Which which);
    struct Thumbnail {
        std::vector<float> values;
        std::int64_t rows = 0, columns = 0;
    };
    Thumbnail thumbnail_of(Which which) const;
    void show_colours();
    void show_theme();
    void show_chosen();
    void show_message();
    void show_words();
    void link_from(Which which);
    Place place(Which which, std::optional<std::int64_t> query, std::optional<std::int64_t> key) const;
    void point(Which which, qint64 query, qint64 key);
    void choose(Which which, qint64 query, qint64 key);
    void probe();
    QString missing(const CompareSide& side) const;

    Desk* desk_;
    Shown shown_;
    TokenLinks links_;
    MapSources sources_;
    DifferenceSource differences_;
    MapProbe left_probe_, right_probe_;
    MapLook look_;
    Theme theme_;
    double reach_ = 1;
    bool linking_ = false, pending_ = false;
    std::optional<Place> pointed_;
    Place chosen_;
    std::optional<maps::Cells> wanted_cells_;  ///< restored before there was a map
    QTimer rest_;
    std::array<MapPlot*, 3> plots_{};
    std::array<LinkMarks*, 3> marks_{};
    std::array<QLabel*, 3> titles_{};
    QWidget *maps_ = nullptr, *below_ = nullptr;
    QComboBox *values_ = nullptr, *scale_ = nullptr;
    UprightScale *weights_ = nullptr, *signed_ = nullptr;
    Banner* banner_ = nullptr;
    QLabel* words_ = nullptr;
};

}  // namespace headscope::widgets
