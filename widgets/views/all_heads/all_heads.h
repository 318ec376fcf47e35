// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/workspace/head_table.h"
#include "widgets/desk/view.h"
#include "widgets/plots/map/head_thumbnails.h"

class QComboBox;
class QLabel;
class QPushButton;
class QSlider;

namespace headscope::widgets {

class HeadWall;
class ScaleBar;

/// A thumbnail of every head, layers down and heads across.
class AllHeads : public View {
    Q_OBJECT
public:
    AllHeads(Desk* desk, QWidget* parent);

    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

    HeadWall* wall() const { return wall_; }
    void set_statistic(const QString& name);  ///< mean, maximum
    void set_shared(bool shared);

protected:
    void refresh() override;

private:
    QWidget* make_bar();
    void mark();
    void open(std::int64_t site, std::int64_t head);
    void show_rows();
    /// Dims what the overview's filter leaves out.
    void show_filter();
    void ask_for_strips();
    /// The end of the shared scale, of the sites known so far; nothing: none is.
    std::optional<double> shared_end();
    /// Fills sequences_ and averaged_.
    void choose_sequences();
    bool some_zeros();
    void show_scale(std::optional<double> highest);
    void show_note();
    void show_pointed(std::int64_t site, std::int64_t head);
    void fit();
    std::string statistic() const;
    bool shared() const;
    bool drawn(std::int64_t site) const;
    ThumbnailRequest wish_for(std::int64_t site) const;
    void changed_by_hand();

    QComboBox *statistic_, *scale_;
    QSlider* slider_;
    QPushButton *fit_, *unfilter_;
    QLabel *note_, *pointed_;
    HeadWall* wall_;
    ScaleBar* bar_;
    QTimer settled_;      ///< images of a size are asked for when the wheel rests
    bool sized_ = false;  ///< by hand; else as large as the window lets all heads be
    bool fitting_ = false;
    int study_ = 0;
    std::vector<std::vector<std::int64_t>> sequences_;  ///< by site: those that are done and shown
    std::int64_t averaged_ = 0;                         ///< sequences of which the mean is shown; 0: one is shown
    QString failure_;
    QString filtered_;  ///< how many heads match; empty: there is no filter
    QString filter_;    ///< what dimmed_ was made of
    std::shared_ptr<const workspace::HeadTable> filter_table_;
};

}  // namespace headscope::widgets
