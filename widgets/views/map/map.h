// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>
#include <memory>
#include <optional>

#include "widgets/desk/view.h"
#include "widgets/views/map/map_look.h"
#include "widgets/views/map/map_probe.h"
#include "widgets/views/map/map_sources.h"

class QFrame;

namespace headscope::widgets {

class MapBar;
class MapPlot;
class MapProfiles;
class UprightScale;

/// One head's attention map, of any length: tiles that pan and zoom, weights, logits or ranks, the cell under the
/// pointer and the chosen one in words and as row and column, the mass of a region.
class MapView : public View {
    Q_OBJECT
public:
    MapView(Desk* desk, QWidget* parent);

    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

    MapPlot* plot() const { return plot_; }
    const MapLook& look() const { return look_; }
    void set_look(const MapLook& look);
    void set_profiles(bool shown);
    /// The next token that `text` names is chosen, see find_token(). False: there is none.
    bool jump(const QString& text, bool query);
    void copy_value();
    void copy_shown();
    void clear_region();
    void zoom_to_region();
    /// Moves the chosen pair by this number of tokens; without one, to the middle of the shown cells.
    void step_pair(int queries, int keys);
    /// Moves the region's corner opposite the chosen pair by this number of tokens.
    void stretch_region(int queries, int keys);

protected:
    void refresh() override;
    void keyPressEvent(QKeyEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;

private:
    /// The shown content; everything derived from it is made again when it changes.
    struct Shown {
        int study = 0;
        std::optional<std::int64_t> sequence;  ///< empty: the mean over all
        std::int64_t site = -1, head = -1;
        std::shared_ptr<const maps::PairMap> map;
        std::shared_ptr<const store::Values> thumbnail;
        std::shared_ptr<const std::vector<QString>> query_labels, key_labels;
        std::shared_ptr<const StudyWords> query_words, key_words;  ///< null: rows and columns are pieces
        std::shared_ptr<const store::Values> types;                ///< of the head's keys; null: they have none
        std::int64_t queries = 0, keys = 0;
        MapLook look;
        bool zeros = false;  ///< some weights of the head are exactly 0
        double largest = 0;  ///< magnitude of the head's logits; 0: not known yet
        bool operator==(const Shown&) const = default;
    };
    void make_widgets();
    void connect_widgets();
    void make_commands();
    std::optional<Shown> ask();
    void ask_labels(Shown& next);
    void ask_types(Shown& next);
    /// Type of each shown key's chunk (NAtS-L); empty: none.
    std::vector<std::int32_t> key_types(const Shown& next) const;
    /// Norms or rollout, if that is wanted and there is such a map: else weights, and why. False: it is being read.
    bool ask_computed(Shown& next);
    QString sequences_words() const;
    QString replaced_;  ///< why weights are shown where something else was wanted
    /// For a pair of texts: the head's mean weights from one to the other.
    QString regions_words() const;
    /// A mean is as long as the longest sequence; so may be what is chosen in it.
    /// Counted in what is shown, as everything here is; the desk counts in pieces.
    Selection chosen() const;
    void select_units(std::optional<std::int64_t> query, std::optional<std::int64_t> key);
    /// Tokens of what is shown; none of a mean, whose positions hold other tokens in every sequence.
    const store::SequenceTokens& shown_tokens(bool query) const;
    void show_strip();
    void show_map(const Shown& next);
    void show_colours();
    void show_tokens();
    void show_theme();
    void show_words();
    void show_region_words();
    void probe();
    void take_region();
    /// Neither chosen nor under the pointer: row and column are of the last query and the first key until then.
    bool nothing_named() const { return !pointed_ && !query_ && !key_; }

    MapLook look_;
    bool show_profiles_ = true;
    Theme theme_;
    Shown shown_;
    bool noticed_ = false;  ///< a notice has taken its place
    MapSources sources_;
    MapBar* bar_ = nullptr;
    MapPlot* plot_ = nullptr;
    MapProfiles* profiles_ = nullptr;
    UprightScale* scale_ = nullptr;
    QFrame* strip_ = nullptr;
    QLabel *strip_text_ = nullptr, *cell_text_ = nullptr, *region_text_ = nullptr;
    QPushButton* strip_action_ = nullptr;
    QWidget* region_line_ = nullptr;
    std::optional<std::pair<std::int64_t, std::int64_t>> pointed_;
    std::optional<std::int64_t> query_, key_;                      ///< of the desk, as shown last
    std::optional<std::pair<std::int64_t, std::int64_t>> corner_;  ///< of the region that keys stretch
    std::optional<maps::Cells> wanted_cells_;                      ///< restored before there was a map
    QTimer rest_;                                                  ///< after a pan or a zoom
    MapProbe probe_;
};

}  // namespace headscope::widgets
