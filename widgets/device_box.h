// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QComboBox>
#include <QString>
#include <vector>

namespace headscope::widgets {

/// A GPU as panels list it.
struct DeviceCard {
    QString choice;   ///< as --device takes it: "cuda:0"
    QString name;     ///< the card's
    double free = 0;  ///< bytes; negative: unknown
    QString problem;  ///< why this build cannot use it; empty if it can
};

/// Adds an item for each GPU, whose data is its choice; those with a problem are disabled and show it.
void add_devices(QComboBox& box, const std::vector<DeviceCard>& devices);

/// Chooses the processor or a GPU. A choice made before the GPUs are listed stays until then.
class DeviceBox : public QComboBox {
public:
    explicit DeviceBox(QWidget* parent = nullptr);

    void set_devices(const std::vector<DeviceCard>& devices);
    void choose(const QString& device);
    QString device() const { return listed_ ? currentData().toString() : wanted_; }

private:
    bool listed_ = false;
    QString wanted_ = QStringLiteral("cpu");
};

}  // namespace headscope::widgets
