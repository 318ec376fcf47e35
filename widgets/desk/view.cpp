// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/view.h"

#include <QAbstractButton>
#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QKeySequence>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QStackedLayout>
#include <QVBoxLayout>
#include <algorithm>

#include "widgets/idle_queue.h"

namespace headscope::widgets {

View::View(Desk* desk, QWidget* parent, Of of)
    : QWidget(parent),
      desk_(desk),
      stack_(new QStackedLayout(this)),
      content_(new QWidget(this)),
      notice_(new QWidget(this)),
      title_(new QLabel(notice_)),
      text_(new QLabel(notice_)),
      action_(new QPushButton(notice_)),
      copy_(new QPushButton(tr("Copy details"), notice_)) {
    stack_->setContentsMargins(0, 0, 0, 0);
    stack_->addWidget(content_);
    stack_->addWidget(notice_);
    QFont large = title_->font();
    large.setPointSizeF(large.pointSizeF() * 1.3);
    title_->setFont(large);
    for (QLabel* label : {title_, text_}) {
        label->setAlignment(Qt::AlignHCenter);
        label->setWordWrap(true);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse);
        label->setTextFormat(Qt::PlainText);
    }
    auto* buttons = new QHBoxLayout;
    buttons->addStretch();
    buttons->addWidget(action_);
    buttons->addWidget(copy_);
    buttons->addStretch();
    auto* column = new QVBoxLayout(notice_);
    column->addStretch(2);
    column->addWidget(title_);
    column->addWidget(text_);
    column->addLayout(buttons);
    column->addStretch(3);
    title_->setObjectName(QStringLiteral("notice_title"));
    action_->setObjectName(QStringLiteral("notice_action"));
    connect(action_, &QPushButton::clicked, this, [this] {
        if (act_) act_();
    });
    add_command(action_);
    connect(copy_, &QPushButton::clicked, this,
            [this] { QApplication::clipboard()->setText(title_->text() + QLatin1Char('\n') + text_->text()); });
    connect(desk_, &Desk::theme_changed, this, &View::refresh_later);
    if (of == Of::training) return;
    connect(desk_, &Desk::selection_changed, this, &View::refresh_later);
    connect(desk_, &Desk::studies_changed, this, &View::refresh_later);
    connect(desk_, &Desk::arrived, this, &View::refresh_later);
}

int View::heightForWidth(int width) const {
    const QLayout* inside = stack_->currentWidget()->layout();
    if (!inside) return -1;
    return inside->hasHeightForWidth() ? inside->totalMinimumHeightForWidth(width)
                                       : inside->totalMinimumSize().height();
}

void View::refresh_later() {
    outdated_ = true;
    if (waiting_ || !isVisible()) return;
    waiting_ = true;
    IdleQueue::of_window().post(this, [this] {
        waiting_ = false;
        if (!isVisible() || !outdated_) return;
        outdated_ = false;
        refresh();
    });
}

void View::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    if (outdated_) {
        outdated_ = false;
        refresh();
    }
}

void View::show_content() {
    stack_->setCurrentWidget(content_);
}

void View::show_notice(const QString& title, const QString& text, const QString& action, std::function<void()> act) {
    title_->setText(title);
    text_->setText(text);
    text_->setVisible(!text.isEmpty());
    action_->setText(action);
    action_->setVisible(!action.isEmpty());
    copy_->hide();
    act_ = std::move(act);
    stack_->setCurrentWidget(notice_);
}

bool View::notice_without_study() {
    if (study()) return false;
    show_notice(tr("No analysis is open"), tr("Choose or type a text in the text panel and press Run (Ctrl+Enter). "
                                              "Or open a checkpoint or an analysis (Ctrl+O)."));
    return true;
}

void View::show_reading() {
    show_notice(tr("Reading…"));
}

void View::show_failure(const QString& text) {
    show_notice(tr("This could not be read"), text);
    copy_->show();
}

QAction* View::add_command(const char* name, const QString& text, const QKeySequence& keys, const QString& tip,
                           std::function<void()> act, std::function<bool()> possible) {
    auto* action = new QAction(text, this);
    action->setObjectName(QLatin1String(name));
    action->setToolTip(tip);
    // On no widget: keyPressEvent() gets keys that the view's own widgets leave; a shortcut would come before them.
    action->setShortcut(keys);
    commands_.push_back({action, std::move(act), std::move(possible), nullptr});
    connect(action, &QAction::triggered, this, [this, at = commands_.size() - 1] {
        const Command& command = commands_[at];
        if (this->possible(command)) command.act();
    });
    return action;
}

QAction* View::add_command(QAbstractButton* button, const QString& text) {
    QAction* action = add_command(
        qPrintable(button->objectName()), text, {}, button->toolTip(), [button] { button->click(); },
        [this, button] { return button->isVisibleTo(this) && button->isEnabled(); });
    if (text.isEmpty()) commands_.back().button = button;
    return action;
}

bool View::possible(const Command& command) const {
    const bool of_notice = command.button == action_;
    if (of_notice != (stack_->currentWidget() == notice_)) return false;
    return !command.possible || command.possible();
}

FigureRequest View::named(FigureRequest wish) const {
    std::vector<const Study*> studies;
    for (const int id : wish.studies)
        if (const Study* one = desk_->study(id)) studies.push_back(one);
    if (wish.paths.isEmpty()) wish.options.names = given_names(studies);
    return wish;
}

bool View::can_export() const {
    const auto wish = figure();
    return wish && std::all_of(wish->studies.begin(), wish->studies.end(), [this](int id) {
               const Study* one = desk_->study(id);
               return one && one->complete();
           });
}

void View::copy_picture() {
    if (can_export()) {
        const FigureRequest wish = *figure();
        Q_EMIT desk_->copy_wanted(wish, QStringLiteral("png"));
        return;
    }
    QApplication::clipboard()->setPixmap(stack_->currentWidget()->grab());
    Q_EMIT desk_->told(tr("Copied as it is on the screen: there is no figure of it yet"));
}

bool View::copy_numbers() {
    if (!can_export()) return false;
    const FigureRequest wish = *figure();
    Q_EMIT desk_->copy_wanted(wish, QStringLiteral("csv"));
    return true;
}

void View::add_figure_actions(QMenu* menu) {
    const bool drawn = can_export();
    if (!menu->isEmpty()) menu->addSeparator();
    const auto add = [menu](const char* name, const QString& text, const QKeySequence& keys) {
        QAction* action = menu->addAction(text);
        action->setObjectName(QLatin1String(name));
        action->setShortcut(keys);
        action->setShortcutVisibleInContextMenu(true);
        return action;
    };
    connect(add("menu_copy_picture", tr("Copy the picture"), QKeySequence::Copy), &QAction::triggered, this,
            &View::copy_picture);
    QAction* numbers = add("menu_copy_numbers", tr("Copy the numbers as CSV"), {});
    connect(numbers, &QAction::triggered, this, &View::copy_numbers);
    QAction* exported = add("menu_export", tr("Export the figure…"), {});
    connect(exported, &QAction::triggered, this, [this] {
        if (const auto wish = figure()) Q_EMIT desk_->export_wanted(*wish);
    });
    numbers->setEnabled(drawn);
    exported->setEnabled(drawn);
}

void View::contextMenuEvent(QContextMenuEvent* event) {
    auto* menu = new QMenu(this);
    menu->setObjectName(QStringLiteral("view_menu"));
    menu->setAttribute(Qt::WA_DeleteOnClose);
    add_figure_actions(menu);
    menu->popup(event->globalPos());
}

QList<QAction*> View::commands() const {
    QList<QAction*> able;
    for (const Command& command : commands_) {
        if (!possible(command)) continue;
        if (command.button) command.action->setText(command.button->text());
        able << command.action;
    }
    return able;
}

QList<QAction*> View::all_commands() const {
    QList<QAction*> all;
    for (const Command& command : commands_) all << command.action;
    return all;
}

void View::keyPressEvent(QKeyEvent* event) {
    const QKeySequence pressed(
        QKeyCombination(event->modifiers() & ~Qt::KeypadModifier, static_cast<Qt::Key>(event->key())));
    for (const Command& command : commands_) {
        if (command.action->shortcut() != pressed || !possible(command)) continue;
        command.action->trigger();
        return;
    }
    if (event->matches(QKeySequence::Copy)) return copy_picture();
    const bool plain = !(event->modifiers() & ~Qt::KeypadModifier);
    switch (plain ? event->key() : 0) {
        case Qt::Key_Left:
            desk_->step(0, -1);
            return;
        case Qt::Key_Right:
            desk_->step(0, 1);
            return;
        case Qt::Key_Up:
            desk_->step(-1, 0);
            return;
        case Qt::Key_Down:
            desk_->step(1, 0);
            return;
        default:
            QWidget::keyPressEvent(event);
    }
}

}  // namespace headscope::widgets
