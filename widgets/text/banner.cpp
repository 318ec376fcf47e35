// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/text/banner.h"

#include <QBoxLayout>
#include <QLabel>
#include <QPushButton>

namespace headscope::widgets {
namespace {

constexpr int kTextWidth = 240;  ///< pixels: with less room beside the button the text stands above it

}  // namespace

Banner::Banner(QWidget* parent) : QFrame(parent), text_(new QLabel(this)), action_(new QPushButton(this)) {
    setFrameShape(QFrame::StyledPanel);
    setObjectName(QStringLiteral("banner"));
    text_->setObjectName(QStringLiteral("banner_text"));
    text_->setWordWrap(true);
    text_->setTextFormat(Qt::PlainText);
    text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    action_->setObjectName(QStringLiteral("banner_action"));
    auto* row = new QBoxLayout(QBoxLayout::LeftToRight, this);
    row->setContentsMargins(8, 4, 8, 4);
    row->addWidget(text_, 1);
    row->addWidget(action_);
    connect(action_, &QPushButton::clicked, this, [this] {
        if (act_) act_();
    });
    hide();
}

void Banner::set(const QString& text, const QString& action, std::function<void()> act) {
    text_->setText(text);
    action_->setText(action);
    action_->setVisible(!action.isEmpty());
    act_ = std::move(act);
    setVisible(!text.isEmpty());
}

void Banner::resizeEvent(QResizeEvent* event) {
    QFrame::resizeEvent(event);
    const bool narrow = action_->isVisibleTo(this) && width() < kTextWidth + action_->sizeHint().width();
    static_cast<QBoxLayout*>(layout())->setDirection(narrow ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
}

QString Banner::text() const {
    return isHidden() ? QString() : text_->text();
}

}  // namespace headscope::widgets
