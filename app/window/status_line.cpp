// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/status_line.h"

#include <QCoreApplication>
#include <QFontMetrics>
#include <QLabel>
#include <QLocale>
#include <QStatusBar>
#include <algorithm>

namespace headscope::app {
namespace {

// Pixels: the status bar must fit a narrow window.
constexpr int kMostModel = 200, kMostWork = 300, kLeastMessage = 200;

}  // namespace

StatusLine::StatusLine(QStatusBar* bar, int threads)
    : bar_(bar),
      work_(new QLabel(bar)),
      model_(new QLabel(bar)),
      compute_(
          new QLabel(threads == 1 ? QObject::tr("CPU, 1 thread") : QObject::tr("CPU, %1 threads").arg(threads), bar)),
      memory_(new QLabel(bar)) {
    work_->setObjectName(QStringLiteral("status_training"));
    model_->setObjectName(QStringLiteral("status_model"));
    memory_->setObjectName(QStringLiteral("status_memory"));
    for (QLabel* label : {work_, model_, compute_, memory_}) bar->addPermanentWidget(label);
}

void StatusLine::set_work(const QString& words) {
    work_->setText(bar_->fontMetrics().elidedText(words, Qt::ElideRight, kMostWork));
}

void StatusLine::set_model(const QString& name) {
    model_->setText(bar_->fontMetrics().elidedText(name, Qt::ElideMiddle, kMostModel));
    model_->setToolTip(name);
}

void StatusLine::set_memory(double bytes) {
    memory_->setText(
        QObject::tr("memory %1")
            .arg(QLocale::c().formattedDataSize(static_cast<qint64>(bytes), 1, QLocale::DataSizeSIFormat)));
}

void StatusLine::show(const QString& text, int milliseconds) {
    int room = bar_->width() - 40;
    for (const QLabel* label : {work_, model_, compute_, memory_}) room -= label->sizeHint().width() + 8;
    bar_->showMessage(bar_->fontMetrics().elidedText(text, Qt::ElideMiddle, std::max(kLeastMessage, room)),
                      milliseconds);
}

}  // namespace headscope::app
