// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/device_box.h"

#include <QCoreApplication>
#include <QStandardItemModel>

namespace headscope::widgets {
namespace {

QString device_words(const char* text) {
    return QCoreApplication::translate("headscope::widgets::DeviceBox", text);
}

QString device_label(const DeviceCard& card) {
    QString label = QStringLiteral("%1 %2").arg(card.choice, card.name);
    if (card.free >= 0) label += device_words(", %1 GB free").arg(card.free / 1e9, 0, 'f', 1);
    return label;
}

}  // namespace

void add_devices(QComboBox& box, const std::vector<DeviceCard>& devices) {
    const auto* items = qobject_cast<QStandardItemModel*>(box.model());
    for (const DeviceCard& card : devices) {
        box.addItem(device_label(card), card.choice);
        const int row = box.count() - 1;
        if (card.problem.isEmpty() || items == nullptr) continue;
        items->item(row)->setEnabled(false);
        box.setItemData(row, device_words("Found %1").arg(card.problem), Qt::ToolTipRole);
    }
}

DeviceBox::DeviceBox(QWidget* parent) : QComboBox(parent) {
    addItem(device_words("Processor"), QStringLiteral("cpu"));
    connect(this, &QComboBox::activated, this, [this] { wanted_ = currentData().toString(); });
}

void DeviceBox::set_devices(const std::vector<DeviceCard>& devices) {
    listed_ = true;
    while (count() > 1) removeItem(1);
    add_devices(*this, devices);
    choose(wanted_);
}

void DeviceBox::choose(const QString& device) {
    wanted_ = device;
    const int row = findData(device);
    const auto* items = qobject_cast<QStandardItemModel*>(model());
    const bool usable = row >= 0 && (items == nullptr || items->item(row)->isEnabled());
    setCurrentIndex(usable ? row : 0);
}

}  // namespace headscope::widgets
