// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <QTableView>
#include <vector>

#include "widgets/theme.h"

class QSortFilterProxyModel;

namespace headscope::widgets {

/// Tokens with a number each: rows of a list of the largest ones.
class TokenTableModel : public QAbstractTableModel {
    Q_OBJECT
public:
    struct Row {
        QString token;
        std::int64_t number = 0;  ///< its position, or its id
        double value = 0;
        bool strong = false;  ///< stressed
        bool operator==(const Row&) const = default;
    };
    enum Column { token_column, number_column, value_column, columns };
    static constexpr int kSortRole = Qt::UserRole;

    explicit TokenTableModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
    void set_titles(const QString& token, const QString& number, const QString& value);
    void set_rows(std::vector<Row> rows);
    const std::vector<Row>& rows() const { return rows_; }
    double highest() const { return highest_; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::vector<Row> rows_;
    QString titles_[columns];
    double highest_ = 0;
};

/// A table of a TokenTableModel that sorts by its header and draws values as bars with their number.
class TokenTable : public QTableView {
    Q_OBJECT
public:
    explicit TokenTable(QWidget* parent = nullptr);
    TokenTableModel& model_of_tokens() const { return *model_; }
    void set_theme(const Theme& theme);
    QSize sizeHint() const override { return {260, 200}; }
    QSize minimumSizeHint() const override { return {140, 80}; }

Q_SIGNALS:
    void chosen(qint64 number);  ///< of the row clicked, or entered with the return key

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    void choose(const QModelIndex& index);
    TokenTableModel* model_;
    QSortFilterProxyModel* sorted_;
    class Bars;
    Bars* bars_;
};

}  // namespace headscope::widgets
