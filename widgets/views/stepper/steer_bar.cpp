// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/stepper/steer_bar.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QSignalBlocker>
#include <QSlider>
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

#include "core/store/ask/ask_file.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/plain_controls.h"
#include "widgets/text/flow_layout.h"

namespace headscope::widgets {
namespace {

constexpr int kSteerSteps = 40;   // of the slider, to each side
constexpr int kSteerWidth = 160;  // pixels
constexpr double kMostSteered = 10'000;

/// Layers that have a vector.
std::vector<int> steered_layers(const store::AskRecord& file) {
    const store::AskTable* vectors = file.find("/steer/vector");
    std::vector<int> layers;
    if (!vectors) return layers;
    const std::vector<std::int64_t> shape = file.shape_of(*vectors);
    if (shape.size() != 2) return layers;
    for (std::int64_t layer = 0; layer < shape.front(); ++layer) {
        const auto first = static_cast<std::size_t>(layer * shape.back());
        if (first >= vectors->values.size()) break;
        if (!std::isnan(vectors->values[first])) layers.push_back(static_cast<int>(layer));
    }
    return layers;
}

/// The largest factor of the file, without its sign; 1 where it has none.
double largest_factor(const store::AskRecord& file) {
    const store::AskTable* factors = file.find("/steer/factor");
    double most = 0;
    if (factors)
        for (const double one : factors->values)
            if (std::isfinite(one)) most = std::max(most, std::abs(one));
    return most > 0 ? std::min(most, kMostSteered) : 1;
}

}  // namespace

SteerBar::SteerBar(QWidget* parent)
    : QWidget(parent),
      layer_(make_combo(this, "step_steer_layer", tr("Layers whose output gets the vector of the steer file"),
                        tr("Steered layer"))),
      slider_(described(new QSlider(Qt::Horizontal, this), QStringLiteral("step_steer_slider"),
                        tr("Factor of the vector"),
                        tr("Steers the chosen token: factor times the vector is added to the layer's output at all "
                           "positions; applied on release"))),
      factor_(described(new QDoubleSpinBox(this), QStringLiteral("step_steer_factor"),
                        tr("Factor of the vector as a number"), tr("0 does not steer"))) {
    slider_->setRange(-kSteerSteps, kSteerSteps);
    slider_->setPageStep(kSteerSteps / 4);
    slider_->setFixedWidth(kSteerWidth);
    factor_->setRange(-kMostSteered, kMostSteered);
    factor_->setDecimals(3);
    factor_->setPrefix(tr("Factor "));
    factor_->setKeyboardTracking(false);
    auto* row = new FlowLayout(this);
    for (QWidget* control : std::initializer_list<QWidget*>{layer_, slider_, factor_}) row->addWidget(control);
    connect(layer_, &QComboBox::currentIndexChanged, this, &SteerBar::report);
    connect(slider_, &QSlider::valueChanged, this, [this](int value) {
        const QSignalBlocker quiet(factor_);
        factor_->setValue(most_ * value / kSteerSteps);
        report();
    });
    connect(slider_, &QSlider::sliderReleased, this, &SteerBar::report);
    connect(factor_, &QDoubleSpinBox::valueChanged, this, [this](double factor) {
        const QSignalBlocker quiet(slider_);
        slider_->setValue(static_cast<int>(std::lround(kSteerSteps * std::clamp(factor / most_, -1.0, 1.0))));
        report();
    });
    hide();
}

void SteerBar::set_file(const OpenAsk* open) {
    setVisible(open != nullptr);
    const auto file = open ? open->record : nullptr;
    if (file == file_) return;
    file_ = file;
    if (!file) return;
    const QSignalBlocker quiet_layers(layer_), quiet_slider(slider_), quiet_factor(factor_);
    const QVariant layer = layer_->currentData();
    layer_->clear();
    layer_->addItem(tr("Steer every layer"), -1);
    for (const int one : steered_layers(*file)) layer_->addItem(tr("Steer layer %1").arg(one), one);
    layer_->setCurrentIndex(std::max(0, layer_->findData(layer)));
    layer_->setToolTip(tr("Layers whose output gets the vector of %1").arg(open->name));
    most_ = largest_factor(*file);
    factor_->setSingleStep(most_ / kSteerSteps);
    factor_->setValue(0);
    slider_->setValue(0);
}

StepVector SteerBar::vector() const {
    return {file_, layer_->currentData().toInt(), factor_->value()};
}

void SteerBar::report() {
    slider_->setAccessibleDescription(factor_->text());
    if (!slider_->isSliderDown()) Q_EMIT changed();
}

}  // namespace headscope::widgets
