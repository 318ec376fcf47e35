// SPDX-License-Identifier: GPL-3.0-or-later
// Columns of tables and trees in any width: no sideways scrolling, numbers whole, words elided, the rest in a menu.
#include <QApplication>
#include <QHeaderView>
#include <QHelpEvent>
#include <QMenu>
#include <QPushButton>
#include <QScrollBar>
#include <QStandardItemModel>
#include <QTableWidget>
#include <QTest>
#include <QToolTip>
#include <QTreeView>
#include <catch2/catch.hpp>

#include "widgets/fitted_columns.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/table_copy.h"

using namespace headscope::widgets;

namespace {

/// Words, four columns of numbers, words.
QStandardItemModel* fill(QObject* parent, int rows = 5) {
    auto* model = new QStandardItemModel(rows, 6, parent);
    model->setHorizontalHeaderLabels({"Name", "Layers", "Loss", "Tokens", "Bytes", "Path"});
    for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < 6; ++column) {
            const bool words = column == 0 || column == 5;
            const QString text =
                words ? QStringLiteral("a name of some length, number %1").arg(row) : QString::number(1'000'000 + row);
            auto* item = new QStandardItem(text);
            if (!words) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
            model->setItem(row, column, item);
        }
    }
    return model;
}

struct Shown {
    explicit Shown(int width) {
        table.setModel(fill(&table));
        fitted = new FittedColumns(&table);
        table.resize(width, 200);
        table.show();
        QApplication::processEvents();
    }
    void resize(int width) {
        table.resize(width, 200);
        QApplication::processEvents();
    }
    int used() const { return table.horizontalHeader()->length(); }
    int room() const { return table.viewport()->width(); }
    bool whole(int column) const {
        return table.columnWidth(column) >= static_cast<const QAbstractItemView&>(table).sizeHintForColumn(column);
    }
    std::vector<int> columns() const {
        std::vector<int> shown;
        for (int column = 0; column < 6; ++column)
            if (!table.isColumnHidden(column)) shown.push_back(column);
        return shown;
    }

    bool application = (ensure_application(), true);
    QTableView table;
    FittedColumns* fitted = nullptr;
};

}  // namespace

TEST_CASE("No width makes a table scroll sideways, and no number is cut", "[columns]") {
    Shown shown(1200);
    CHECK(shown.columns().size() == 6);
    for (int column = 0; column < 6; ++column) CHECK(shown.whole(column));
    for (int width = 1200; width > 40; width -= 37) {
        shown.resize(width);
        INFO(width);
        CHECK(shown.used() <= shown.room());
        CHECK_FALSE(shown.table.horizontalScrollBar()->isVisible());
        CHECK(shown.table.horizontalScrollBar()->maximum() == 0);
        for (const int column : shown.columns())
            if (column > 0 && column < 5) CHECK(shown.whole(column));
        CHECK_FALSE(shown.columns().empty());
    }
    shown.resize(1200);
    CHECK(shown.columns().size() == 6);
    CHECK(shown.whole(0));
}

TEST_CASE("Words give way first, then the least important columns", "[columns]") {
    Shown shown(1200);
    const int all = shown.used() + shown.table.width() - shown.room();
    shown.resize(all - 60);
    CHECK(shown.columns().size() == 6);
    CHECK(shown.whole(0));  // has a third of the room
    CHECK_FALSE(shown.whole(5));
    shown.fitted->set_whole({5});
    shown.fitted->fit();
    CHECK(shown.fitted->left_out(5));  // whole, or not at all
    CHECK(shown.used() <= shown.room());
    shown.fitted->set_whole({});
    shown.fitted->set_order({2, 0, 5});
    shown.resize(260);
    CHECK(shown.columns().front() == 0);
    CHECK_FALSE(shown.table.isColumnHidden(2));
    CHECK(shown.table.isColumnHidden(4));
    CHECK(shown.fitted->left_out(4));
    CHECK(shown.fitted->wanted(4));
    shown.fitted->prefer(4);
    CHECK_FALSE(shown.table.isColumnHidden(4));
    // An unwanted column is not shown in any width.
    shown.fitted->set_wanted(4, false);
    shown.resize(1200);
    CHECK(shown.columns() == std::vector<int>{0, 1, 2, 3, 5});
    CHECK_FALSE(shown.fitted->left_out(4));
}

TEST_CASE("Rows to come widen their columns; a width that was dragged stays", "[columns]") {
    Shown shown(700);
    auto* model = static_cast<QStandardItemModel*>(shown.table.model());
    const int before = shown.table.columnWidth(2);
    model->item(1, 2)->setText(QStringLiteral("123456789012"));
    QTest::qWait(10);
    CHECK(shown.table.columnWidth(2) > before);
    CHECK(shown.whole(2));
    CHECK(shown.used() <= shown.room());
    shown.table.horizontalHeader()->resizeSection(0, 123);
    QTest::qWait(10);
    CHECK(shown.table.columnWidth(0) == 123);
    CHECK(shown.used() <= shown.room());
    // A model with other columns is measured again.
    model->setColumnCount(2);
    QTest::qWait(10);
    CHECK(shown.used() <= shown.room());
    CHECK_FALSE(shown.table.isColumnHidden(1));
}

TEST_CASE("What is left over goes to the columns that stretch", "[columns]") {
    Shown shown(1400);
    CHECK(shown.used() < shown.room());
    shown.fitted->set_stretched({5});
    shown.fitted->fit();
    CHECK(shown.used() == shown.room());
    CHECK(shown.table.columnWidth(5) > shown.table.columnWidth(0));
}

TEST_CASE("Columns without room are copied, listed in the header's menu, and elided words are tips", "[columns]") {
    Shown shown(260);
    REQUIRE(shown.fitted->left_out(4));
    CHECK(rows_text(shown.table).section(QLatin1Char('\n'), 0, 0).split(QLatin1Char('\t')).size() == 6);
    Q_EMIT shown.table.horizontalHeader()->customContextMenuRequested(QPoint(3, 3));
    auto* menu = shown.table.findChild<QMenu*>(QStringLiteral("columns_menu"));
    REQUIRE(menu);
    REQUIRE(menu->actions().size() == 6);
    QAction* bytes = menu->actions().at(4);
    CHECK(bytes->text() == QStringLiteral("Bytes (no room)"));
    CHECK_FALSE(bytes->isChecked());
    bytes->trigger();
    CHECK_FALSE(shown.table.isColumnHidden(4));
    CHECK(shown.used() <= shown.room());
    menu->close();
    const QPoint place = shown.table.visualRect(shown.table.model()->index(0, 0)).center();
    QHelpEvent wanted(QEvent::ToolTip, place, shown.table.viewport()->mapToGlobal(place));
    QApplication::sendEvent(shown.table.viewport(), &wanted);
    CHECK(QToolTip::text() == shown.table.model()->index(0, 0).data().toString());
    QToolTip::hideText();
}

TEST_CASE("A tree fits as a table does, and buttons in cells are not cut", "[columns]") {
    ensure_application();
    QTreeView tree;
    auto* model = fill(&tree);
    tree.setModel(model);
    const FittedColumns fitted(&tree);
    CHECK(FittedColumns::of(tree) == &fitted);
    QTableWidget table(1, 2);
    CHECK(FittedColumns::of(table) == nullptr);
    table.setItem(0, 0, new QTableWidgetItem(QStringLiteral("the snapshot of some step of the run")));
    table.setCellWidget(0, 1, new QPushButton(QStringLiteral("Analyze")));
    new FittedColumns(&table);
    for (QAbstractItemView* list : {static_cast<QAbstractItemView*>(&tree), static_cast<QAbstractItemView*>(&table)}) {
        for (const int width : {600, 300, 150}) {
            list->resize(width, 160);
            list->show();
            QApplication::processEvents();
            INFO(width);
            CHECK(list->horizontalScrollBar()->maximum() == 0);
        }
    }
    CHECK(tree.header()->length() <= tree.viewport()->width());
    CHECK(table.columnWidth(1) >= table.cellWidget(0, 1)->sizeHint().width());
}
