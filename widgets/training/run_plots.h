// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QTimer>
#include <QWidget>
#include <string>
#include <vector>

#include "core/training/job/job.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/training/curve_maker.h"
#include "widgets/training/curve_plot.h"

class QCheckBox;
class QComboBox;
class QGridLayout;
class QSlider;
class QLabel;

namespace headscope::widgets {

/// The curves of all shown runs over one x axis: loss large, with accuracy below it where there is one, then rate,
/// gradient norm, speed and memory. A cursor in one reads all of them; zoom and pan go together.
class RunPlots : public QWidget {
    Q_OBJECT
public:
    explicit RunPlots(RunShelf* shelf, QWidget* parent = nullptr);
    void set_theme(const Theme& theme);
    void refresh();
    QJsonObject state() const;
    void restore(const QJsonObject& state);
    bool idle() const { return maker_.idle(); }
    workspace::RunCurveOptions options() const;
    bool logarithmic() const;

Q_SIGNALS:
    void state_changed();

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    QWidget* make_bar();
    void arrange();
    void draw();
    void set_axis();
    void share_range(const CurvePlot* from);
    /// Name of the run's loss.
    const training::LossWords& words_of(const Run& run);

    RunShelf* shelf_;
    CurveMaker maker_;
    Theme theme_;
    QComboBox* axis_;
    QSlider* smoothing_;
    QLabel* smoothing_words_;
    QCheckBox *log_, *perplexity_;
    QGridLayout* grid_;
    CurvePlot *loss_, *accuracy_, *rate_, *norm_, *speed_, *memory_;
    std::vector<CurvePlot*> plots_;
    std::optional<CurvePlot::Range> range_;
    bool wide_ = false, arranged_ = false, accurate_ = false;
    std::string job_;  ///< whose loss_words_ these are
    training::LossWords loss_words_ = training::loss_words({});
    QTimer soon_;  ///< after zooming: finer curves
};

}  // namespace headscope::widgets
