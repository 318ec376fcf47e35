// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/facts.h"

#include <QFrame>
#include <QLabel>
#include <QLocale>
#include <QVBoxLayout>
#include <array>
#include <cmath>

#include "widgets/text/flow_layout.h"

namespace headscope::widgets {

class Facts::Card final : public QFrame {
public:
    explicit Card(QWidget* parent) : QFrame(parent), value_(new QLabel(this)), name_(new QLabel(this)) {
        setFrameShape(QFrame::NoFrame);
        setAutoFillBackground(true);
        setBackgroundRole(QPalette::Base);
        QFont large = value_->font();
        large.setPointSizeF(large.pointSizeF() * 1.35);
        large.setBold(true);
        value_->setFont(large);
        QFont small = name_->font();
        small.setPointSizeF(small.pointSizeF() * 0.88);
        name_->setFont(small);
        name_->setForegroundRole(QPalette::PlaceholderText);
        for (QLabel* label : {value_, name_}) label->setTextFormat(Qt::PlainText);
        auto* column = new QVBoxLayout(this);
        column->setContentsMargins(10, 5, 10, 5);
        column->setSpacing(0);
        column->addWidget(value_);
        column->addWidget(name_);
    }
    void set(const Fact& fact) {
        value_->setText(fact.value);
        value_->setForegroundRole(fact.faint ? QPalette::PlaceholderText : QPalette::WindowText);
        name_->setText(fact.name);
        setToolTip(fact.hint);
        setAccessibleName(fact.name);
        setAccessibleDescription(fact.value + QLatin1Char(' ') + fact.hint);
        setObjectName(QStringLiteral("fact_") +
                      QString(fact.name).toLower().replace(QLatin1Char(' '), QLatin1Char('_')));
        value_->setObjectName(objectName() + QStringLiteral("_value"));
    }

private:
    QLabel *value_, *name_;
};

Facts::Facts(QWidget* parent) : QWidget(parent) {
    new FlowLayout(this, 6);
}

void Facts::set(const std::vector<Fact>& facts) {
    while (cards_.size() > facts.size()) {
        delete cards_.back();
        cards_.pop_back();
    }
    while (cards_.size() < facts.size()) {
        cards_.push_back(new Card(this));
        layout()->addWidget(cards_.back());
        cards_.back()->show();
    }
    for (std::size_t i = 0; i < facts.size(); ++i) cards_[i]->set(facts[i]);
    updateGeometry();
}

QString count_words(double count) {
    if (!std::isfinite(count)) return QStringLiteral("–");
    if (count < 1000) return QString::number(count, 'g', 3);
    static constexpr std::array<const char*, 5> units{"k", "M", "G", "T", "P"};
    std::size_t unit = 0;
    count /= 1000;
    while (count >= 999.5 && unit + 1 < units.size()) {
        count /= 1000;
        ++unit;
    }
    return QString::number(count, 'f',
                           count < 9.995   ? 2
                           : count < 99.95 ? 1
                                           : 0) +
           QLatin1Char(' ') + QLatin1String(units[unit]);
}

QString bytes_words(double bytes) {
    if (!std::isfinite(bytes) || bytes < 0) return QStringLiteral("–");
    return QLocale::c().formattedDataSize(static_cast<qint64>(bytes), 1, QLocale::DataSizeSIFormat);
}

QString time_words(double seconds) {
    if (!std::isfinite(seconds)) return QStringLiteral("–");
    if (seconds < 1) return Facts::tr("under 1 s");
    if (seconds < 90) return Facts::tr("%1 s").arg(std::lround(seconds));
    const auto minutes = std::lround(seconds / 60);
    if (minutes < 90) return Facts::tr("%1 min").arg(minutes);
    if (minutes < 48 * 60) return Facts::tr("%1 h %2 min").arg(minutes / 60).arg(minutes % 60);
    return Facts::tr("%1 days").arg(QString::number(static_cast<double>(minutes) / 60 / 24, 'f', 1));
}

QString sequences_words(std::int64_t count) {
    return count == 1 ? Facts::tr("1 sequence") : Facts::tr("%1 sequences").arg(count);
}

}  // namespace headscope::widgets
