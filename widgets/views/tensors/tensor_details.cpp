// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/tensors/tensor_details.h"

#include <QGridLayout>
#include <QLabel>
#include <QLocale>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "widgets/views/tensors/tensor_model.h"
#include "widgets/views/tensors/value_histogram.h"

namespace headscope::widgets {
namespace {

QLabel* plain(QWidget* parent, const char* name) {
    auto* label = new QLabel(parent);
    label->setObjectName(QLatin1String(name));
    label->setTextFormat(Qt::PlainText);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    return label;
}

QString number(double value) {
    return std::isnan(value) ? QStringLiteral("–")
                             : QString::number(value, 'g', 7).replace(QLatin1Char('-'), QChar(0x2212));
}

QString count(std::int64_t value) {
    return QString::fromStdString(count_text(static_cast<std::uint64_t>(value)));
}

QString share_of(std::int64_t value, std::int64_t all) {
    if (value == 0 || all == 0) return count(value);
    const double share = 100.0 * static_cast<double>(value) / static_cast<double>(all);
    return QStringLiteral("%1 (%2 %)").arg(count(value), QString::number(share, 'g', 3));
}

}  // namespace

TensorDetails::TensorDetails(QWidget* parent) : QScrollArea(parent) {
    setObjectName(QStringLiteral("tensor_details"));
    setAccessibleName(tr("The selected tensor"));
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setMinimumWidth(200);
    auto* inside = new QWidget(this);
    auto* column = new QVBoxLayout(inside);
    column->setContentsMargins(8, 2, 4, 4);
    hint_ = plain(inside, "hint");
    name_ = plain(inside, "tensor_name");
    QFont strong = name_->font();
    strong.setBold(true);
    name_->setFont(strong);
    status_ = plain(inside, "tensor_status");
    const auto grid = [&](QWidget*& box, QGridLayout*& layout) {
        box = new QWidget(inside);
        layout = new QGridLayout(box);
        layout->setContentsMargins(0, 0, 0, 0);
        layout->setVerticalSpacing(3);
        layout->setColumnStretch(1, 1);
    };
    grid(facts_, fact_grid_);
    read_ = new QPushButton(inside);
    read_->setObjectName(QStringLiteral("read"));
    read_->setToolTip(tr("Read the tensor's values: histogram, mean, norm, zeros, NaN and infinities"));
    progress_ = new QProgressBar(inside);
    progress_->setObjectName(QStringLiteral("progress"));
    progress_->setAccessibleName(tr("Progress of reading the tensor"));
    progress_->setRange(0, 1000);
    progress_->setFormat(tr("reading, %p %"));
    stop_ = new QPushButton(tr("Stop"), inside);
    stop_->setObjectName(QStringLiteral("stop"));
    stop_->setToolTip(tr("Stop reading this tensor"));
    failure_ = plain(inside, "failure");
    histogram_ = new ValueHistogram(inside);
    grid(values_, value_grid_);
    for (QWidget* part : std::initializer_list<QWidget*>{hint_, name_, status_, facts_, read_, progress_, stop_,
                                                         failure_, histogram_, values_})
        column->addWidget(part);
    column->addStretch(1);
    setWidget(inside);
    connect(read_, &QPushButton::clicked, this, &TensorDetails::numbers_wanted);
    connect(stop_, &QPushButton::clicked, this, &TensorDetails::stop_wanted);
    show_nothing({});
}

void TensorDetails::set_mode(Mode mode) {
    const bool some = mode != Mode::nothing;
    hint_->setVisible(!some);
    for (QWidget* part : std::initializer_list<QWidget*>{name_, status_, facts_}) part->setVisible(some);
    read_->setVisible(mode == Mode::asking || mode == Mode::failed);
    progress_->setVisible(mode == Mode::reading);
    stop_->setVisible(mode == Mode::reading);
    failure_->setVisible(mode == Mode::failed);
    histogram_->setVisible(mode == Mode::numbers);
    values_->setVisible(mode == Mode::numbers);
}

void TensorDetails::fill(QGridLayout* grid, const std::vector<std::pair<QString, QString>>& rows) {
    // Labels stay: numbers come while one's text is dragged away, too.
    const auto label = [&](int line, int column) {
        return static_cast<QLabel*>(grid->itemAtPosition(line, column)->widget());
    };
    const int lines = static_cast<int>(rows.size());
    int made = grid->count() / 2;
    for (; made < lines; ++made) {
        auto* title = plain(grid->parentWidget(), "title");
        title->setEnabled(false);
        title->setWordWrap(false);
        auto* value = plain(grid->parentWidget(), "value");
        value->setObjectName(QStringLiteral("value_%1_%2").arg(grid == fact_grid_ ? 0 : 1).arg(made));
        grid->addWidget(title, made, 0, Qt::AlignTop);
        grid->addWidget(value, made, 1, Qt::AlignTop);
    }
    for (int line = 0; line < made; ++line) {
        for (int column = 0; column < 2; ++column) label(line, column)->setVisible(line < lines);
        if (line >= lines) continue;
        const auto& [title, value] = rows[static_cast<std::size_t>(line)];
        label(line, 0)->setText(title);
        label(line, 1)->setText(value);
        label(line, 1)->setAccessibleName(title);
    }
}

void TensorDetails::show_nothing(const QString& hint) {
    hint_->setText(hint);
    set_mode(Mode::nothing);
}

void TensorDetails::show_tensor(const TensorRow& row, const QString& file) {
    // A place to break long names.
    name_->setText(
        QString::fromStdString(escaped(row.name, 1000)).replace(QLatin1Char('.'), QStringLiteral(".\u200b")));
    status_->setText(status_text(row.status));
    histogram_->set_numbers(nullptr);
    const bool there = row.status != TensorStatus::missing && row.status != TensorStatus::unreadable;
    std::vector<std::pair<QString, QString>> facts;
    if (there) {
        const QString type = QString::fromStdString(row.type);
        facts = {{tr("Shape"), shape_text(row.shape)},
                 {tr("Type"), type},
                 {tr("Numbers"), count(row.elements)},
                 {tr("Size"), QString::fromStdString(size_text(static_cast<std::uint64_t>(row.bytes)))},
                 {tr("File"), file}};
    }
    fill(fact_grid_, facts);
    read_->setText(
        tr("Read its values (%1)").arg(QString::fromStdString(size_text(static_cast<std::uint64_t>(row.bytes)))));
    set_mode(Mode::asking);
    read_->setVisible(there);
}

void TensorDetails::show_progress(double share) {
    progress_->setValue(static_cast<int>(share * 1000));
    set_mode(Mode::reading);
}

void TensorDetails::show_numbers(std::shared_ptr<const TensorNumbers> numbers) {
    const std::int64_t all = numbers->elements;
    fill(value_grid_, {{tr("Minimum"), number(numbers->minimum)},
                       {tr("Maximum"), number(numbers->maximum)},
                       {tr("Mean"), number(numbers->mean)},
                       {tr("Deviation"), number(numbers->deviation)},
                       {tr("L2 norm"), number(numbers->norm)},
                       {tr("Zeros"), share_of(numbers->zeros, all)},
                       {tr("NaN"), share_of(numbers->nans, all)},
                       {tr("+ infinity"), share_of(numbers->positive_infinities, all)},
                       {tr("− infinity"), share_of(numbers->negative_infinities, all)}});
    histogram_->set_numbers(numbers);
    set_mode(Mode::numbers);
    histogram_->setVisible(!numbers->counts.empty());
}

void TensorDetails::show_failure(const QString& message) {
    failure_->setText(message);
    set_mode(Mode::failed);
}

void TensorDetails::set_theme(const Theme& theme) {
    histogram_->set_theme(theme);
    QPalette warning = palette();
    warning.setColor(QPalette::WindowText, theme.accent);
    failure_->setPalette(warning);
}

}  // namespace headscope::widgets
