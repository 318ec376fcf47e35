// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>

#include "widgets/desk/run_shelf.h"
#include "widgets/desk/view.h"

class QComboBox;
class QLabel;
class QPushButton;
class QSlider;
class QSplitter;
class QToolButton;

namespace headscope::widgets {

class Banner;
class CurvePlot;
class FigureView;
class MomentMaker;
class ThumbnailWall;

/// Indicators of a run's probes against the step, and radars and maps of all heads at the step that the scrubber is at.
class TimelineView : public View {
    Q_OBJECT
public:
    TimelineView(Desk* desk, QWidget* parent);
    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

protected:
    void refresh() override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    QWidget* make_bar();
    QWidget* make_scrubber();
    void fill_runs();
    void fill_indicators(const workspace::LiveRun& record);
    void show_nothing(const Run& run);
    void ask();
    void draw();
    void choose_head(std::int64_t site, std::int64_t head);
    void step(int probes);
    void play(bool on);
    QString indicator() const;
    bool of_heads() const;

    RunShelf& shelf_;
    MomentMaker* maker_;
    QComboBox *run_, *indicator_, *of_, *radar_of_;
    CurvePlot* plot_;
    QSlider* scrubber_;
    QLabel *step_, *wall_title_, *radar_title_;
    QToolButton* play_;
    QPushButton* analyse_;
    FigureView* radars_;
    ThumbnailWall* wall_;
    Banner* nothing_;
    QSplitter* splitter_;
    QTimer playing_;
    QString wanted_indicator_;
    std::vector<std::string> listed_;
    bool filling_ = false, dark_ = false;
};

}  // namespace headscope::widgets
