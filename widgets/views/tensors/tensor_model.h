// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractItemModel>
#include <memory>

#include "widgets/theme.h"
#include "widgets/views/tensors/tensor_tree.h"

namespace headscope::widgets {

/// A TensorTree for a tree view. Branches are made when they are opened, and their rows in steps.
class TensorModel : public QAbstractItemModel {
    Q_OBJECT
public:
    enum Column { name, shape, type, bytes, parameters, file, columns };

    explicit TensorModel(QObject* parent = nullptr);
    ~TensorModel() override;

    void set_tree(std::shared_ptr<const TensorTree> tree);
    const TensorTree* tree() const { return tree_.get(); }
    std::shared_ptr<const TensorTree> shared_tree() const { return tree_; }
    void set_theme(const Theme& theme);

    /// The tensor at an index; null: a branch.
    const TensorRow* tensor(const QModelIndex& index) const;
    /// The index of a tensor, opening what is above it; invalid: not in the tree.
    QModelIndex index_of(std::string_view tensor);

    QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    QModelIndex parent(const QModelIndex& child) const override;
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    bool hasChildren(const QModelIndex& parent = {}) const override;
    bool canFetchMore(const QModelIndex& parent) const override;
    void fetchMore(const QModelIndex& parent) override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct Node;
    Node* node(const QModelIndex& index) const;
    void find_children(Node& node) const;
    QString text(const Node& node, int column) const;
    QString hint(const Node& node) const;

    std::shared_ptr<const TensorTree> tree_;
    std::unique_ptr<Node> root_;
    Theme theme_;
};

/// "4 × 64", "a number" for no dimension.
QString shape_text(const std::vector<std::int64_t>& shape);
QString status_text(TensorStatus status);
/// Quiet for what is as it should be.
QColor status_colour(TensorStatus status, const Theme& theme);

}  // namespace headscope::widgets
