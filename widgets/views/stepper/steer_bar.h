// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <memory>

#include "widgets/views/stepper/step_source.h"

class QComboBox;
class QDoubleSpinBox;
class QSlider;

namespace headscope::widgets {

struct OpenAsk;

/// Layer and factor of the vectors of a steer file: a slider with its number. Hidden without a file.
class SteerBar : public QWidget {
    Q_OBJECT
public:
    explicit SteerBar(QWidget* parent);

    /// Null: none. The slider's range is the largest factor of the file, to both sides.
    void set_file(const OpenAsk* open);
    StepVector vector() const;

Q_SIGNALS:
    void changed();  ///< not while the slider is dragged, but at its release

private:
    void report();

    QComboBox* layer_;
    QSlider* slider_;
    QDoubleSpinBox* factor_;
    std::shared_ptr<const store::AskRecord> file_;
    double most_ = 1;  ///< factor at the slider's end
};

}  // namespace headscope::widgets
