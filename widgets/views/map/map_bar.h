// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "widgets/views/map/map_look.h"

class QComboBox;
class QLayout;
class QLabel;
class QLineEdit;
class QToolButton;

namespace headscope::widgets {

/// The map view's controls, in one line: what is shown, how it becomes colours, jump, region, profiles, zoom.
class MapBar : public QWidget {
    Q_OBJECT
public:
    explicit MapBar(QWidget* parent = nullptr);

    /// Shows the choices without emitting.
    void set_look(const MapLook& look);
    void set_profiles(bool shown);
    void set_region_mode(bool on);
    void set_title(const QString& title);
    /// Without maps there are no logits, rows, columns, regions.
    void set_maps(bool there);

    QLineEdit* jump() const { return jump_; }

Q_SIGNALS:
    void look_chosen(const headscope::widgets::MapLook& look);
    void jump_wanted(const QString& text, bool query);
    void region_mode_chosen(bool on);
    void profiles_chosen(bool shown);
    void zoom_wanted(double factor);
    void all_wanted();

private:
    void tell_look();
    QToolButton* add_button(QLayout* line, const char* name, const QString& text, const QString& says);

    QLabel* title_;
    QComboBox *values_, *scale_, *pooling_, *units_, *axis_;
    QLineEdit* jump_;
    QToolButton *region_, *profiles_;
    MapLook look_;
    bool maps_ = true;
};

}  // namespace headscope::widgets
