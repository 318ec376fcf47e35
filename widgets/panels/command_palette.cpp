// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/command_palette.h"

#include <QDialogButtonBox>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTableWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "widgets/fitted_columns.h"

namespace headscope::widgets {
namespace {

QString plain(const QAction& action) {
    QString text = action.text();
    text.remove(QLatin1Char('&'));
    return text;
}

constexpr int kKeysRole = Qt::UserRole + 1;

/// Keys stand at the right end of their command.
class KeysAtEnd final : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        QStyledItemDelegate::paint(painter, option, index);
        const bool chosen = option.state & QStyle::State_Selected;
        painter->setPen(option.palette.color(chosen ? QPalette::HighlightedText : QPalette::PlaceholderText));
        painter->drawText(option.rect.adjusted(0, 0, -8, 0), Qt::AlignRight | Qt::AlignVCenter,
                          index.data(kKeysRole).toString());
    }
};

}  // namespace

CommandPalette::CommandPalette(QList<QAction*> actions, QWidget* parent)
    : QDialog(parent), actions_(std::move(actions)), field_(new QLineEdit(this)), list_(new QListWidget(this)) {
    setWindowTitle(tr("Commands"));
    setObjectName(QStringLiteral("command_palette"));
    field_->setPlaceholderText(tr("Type the name of a command"));
    field_->setAccessibleName(tr("Command"));
    field_->setObjectName(QStringLiteral("palette_field"));
    list_->setAccessibleName(tr("Matching commands"));
    list_->setFocusPolicy(Qt::NoFocus);
    list_->setItemDelegate(new KeysAtEnd(list_));
    auto* column = new QVBoxLayout(this);
    column->addWidget(field_);
    column->addWidget(list_);
    resize(520, 400);
    field_->installEventFilter(this);
    connect(field_, &QLineEdit::textChanged, this, &CommandPalette::list);
    connect(field_, &QLineEdit::returnPressed, this, &CommandPalette::run);
    connect(list_, &QListWidget::itemClicked, this, &CommandPalette::run);
    list({});
}

int CommandPalette::score(const QString& text, const QString& typed) {
    int total = 0;
    for (const QString& word : typed.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
        const auto at = text.indexOf(word, 0, Qt::CaseInsensitive);
        if (at < 0) return -1;
        const bool begins = at == 0 || !text.at(at - 1).isLetterOrNumber();
        total += 100 - std::min<int>(static_cast<int>(at), 50) + (begins ? 100 : 0);
    }
    return total;
}

void CommandPalette::list(const QString& typed) {
    struct Hit {
        int score;
        QAction* action;
    };
    std::vector<Hit> hits;
    for (QAction* action : actions_) {
        const int points = score(plain(*action), typed);
        if (points >= 0) hits.push_back({points, action});
    }
    std::stable_sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.score > b.score; });
    list_->clear();
    QStringList listed;  // a command that two menus have is one
    for (const Hit& hit : hits) {
        if (listed.contains(plain(*hit.action))) continue;
        listed << plain(*hit.action);
        const QString keys = hit.action->shortcut().toString(QKeySequence::NativeText);
        auto* item = new QListWidgetItem(plain(*hit.action), list_);
        item->setData(kKeysRole, keys);
        item->setData(Qt::AccessibleTextRole, QString(plain(*hit.action) + QLatin1Char(' ') + keys));
        item->setData(Qt::UserRole, QVariant::fromValue(static_cast<void*>(hit.action)));
        item->setToolTip(hit.action->toolTip());
        if (!hit.action->isEnabled()) item->setFlags(item->flags() & ~Qt::ItemIsEnabled);
    }
    list_->setCurrentRow(0);
}

void CommandPalette::run() {
    const QListWidgetItem* item = list_->currentItem();
    if (!item || !(item->flags() & Qt::ItemIsEnabled)) return;
    auto* action = static_cast<QAction*>(item->data(Qt::UserRole).value<void*>());
    accept();
    // After the palette has gone: an action may want the focus that comes back with that.
    QMetaObject::invokeMethod(action, &QAction::trigger, Qt::QueuedConnection);
}

bool CommandPalette::eventFilter(QObject* object, QEvent* event) {
    if (event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        const int rows = list_->count();
        const int step = key == Qt::Key_Down       ? 1
                         : key == Qt::Key_Up       ? -1
                         : key == Qt::Key_PageDown ? 8
                         : key == Qt::Key_PageUp   ? -8
                                                   : 0;
        if (step != 0 && rows > 0) {
            list_->setCurrentRow(std::clamp(list_->currentRow() + step, 0, rows - 1));
            return true;
        }
    }
    return QDialog::eventFilter(object, event);
}

void show_shortcuts(const QList<QAction*>& actions, const std::vector<std::pair<QString, QList<QAction*>>>& of_views,
                    QWidget* parent) {
    auto* dialog = new QDialog(parent);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(CommandPalette::tr("Keys"));
    dialog->setObjectName(QStringLiteral("shortcuts"));
    std::vector<std::pair<QString, QString>> rows;
    for (const QAction* action : actions)
        if (!action->shortcut().isEmpty())
            rows.emplace_back(action->shortcut().toString(QKeySequence::NativeText), plain(*action));
    const auto keys = [&](const QString& key, const QString& text) { rows.emplace_back(key, text); };
    for (const auto& [view, commands] : of_views)
        for (const QAction* command : commands)
            if (!command->shortcut().isEmpty())
                keys(command->shortcut().toString(QKeySequence::NativeText),
                     CommandPalette::tr("In %1: %2").arg(view, plain(*command)));
    keys(CommandPalette::tr("Left, Right"), CommandPalette::tr("In a view: previous or next head"));
    keys(CommandPalette::tr("Up, Down"), CommandPalette::tr("In a view: previous or next layer"));
    keys(CommandPalette::tr("Wheel, drag"), CommandPalette::tr("In a map, figure or curve: zoom or move"));
    keys(CommandPalette::tr("Double click"), CommandPalette::tr("In a map: show all; on a head: open its map"));
    keys(CommandPalette::tr("Shift+arrows"), CommandPalette::tr("In a map: move the visible part"));
    keys(CommandPalette::tr("Ctrl+arrows"),
         CommandPalette::tr("In a map: move the chosen pair; in a text: next or previous token"));
    keys(CommandPalette::tr("Ctrl+Shift+arrows"), CommandPalette::tr("In a map: extend a region from the chosen pair"));
    keys(CommandPalette::tr("Space, Shift+Space"),
         CommandPalette::tr("On a head's chip in Lines: show or hide it, or show only it"));
    keys(CommandPalette::tr("+, -, 0"), CommandPalette::tr("In a map or curve: zoom in, zoom out, show all"));
    keys(CommandPalette::tr("Space"), CommandPalette::tr("In the timeline: play or pause"));
    keys(CommandPalette::tr("1 to 7"), CommandPalette::tr("In the layer column: set the mixer of the chosen layers"));
    keys(CommandPalette::tr("Tab, Shift+Tab"), CommandPalette::tr("Next or previous control"));
    auto* table = new QTableWidget(static_cast<int>(rows.size()), 2, dialog);
    table->setHorizontalHeaderLabels({CommandPalette::tr("Key"), CommandPalette::tr("What it does")});
    table->verticalHeader()->hide();
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    for (int row = 0; row < static_cast<int>(rows.size()); ++row) {
        table->setItem(row, 0, new QTableWidgetItem(rows[static_cast<std::size_t>(row)].first));
        table->setItem(row, 1, new QTableWidgetItem(rows[static_cast<std::size_t>(row)].second));
    }
    auto* fitted = new FittedColumns(table);
    fitted->set_stretched({1});
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, dialog);
    QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
    auto* column = new QVBoxLayout(dialog);
    column->addWidget(table);
    column->addWidget(buttons);
    dialog->resize(560, 520);
    dialog->open();
}

}  // namespace headscope::widgets
