// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/tensors/tensor_model.h"

#include <QLocale>
#include <algorithm>

#include "core/base/error.h"
#include "core/base/text/text.h"

namespace headscope::widgets {
namespace {

constexpr std::size_t kStep = 1000;  ///< rows that are shown at once below one branch

QString shown(std::string_view text) {
    return QString::fromStdString(escaped(std::string(text), 200));
}

}  // namespace

struct TensorModel::Node {
    Node* parent = nullptr;
    int row = 0;
    TensorTree::Branch branch;
    bool found = false;  ///< `below` is known
    std::vector<TensorTree::Branch> below;
    std::vector<std::unique_ptr<Node>> nodes;  ///< of the first ones of `below`: those that are shown
};

TensorModel::TensorModel(QObject* parent)
    : QAbstractItemModel(parent), root_(std::make_unique<Node>()), theme_(make_theme(false)) {}

TensorModel::~TensorModel() = default;

void TensorModel::set_tree(std::shared_ptr<const TensorTree> tree) {
    beginResetModel();
    tree_ = std::move(tree);
    root_ = std::make_unique<Node>();
    if (tree_) root_->branch = tree_->root();
    endResetModel();
}

void TensorModel::set_theme(const Theme& theme) {
    theme_ = theme;
    if (const int rows = rowCount(); rows > 0) Q_EMIT dataChanged(index(0, 0), index(rows - 1, columns - 1));
}

TensorModel::Node* TensorModel::node(const QModelIndex& index) const {
    return index.isValid() ? static_cast<Node*>(index.internalPointer()) : root_.get();
}

/// The first rows come with the branch itself, before views are notified of another number.
void TensorModel::find_children(Node& node) const {
    if (node.found || !tree_) return;
    node.found = true;
    node.below = tree_->children(node.branch);
    const std::size_t count = std::min(kStep, node.below.size());
    for (std::size_t i = 0; i < count; ++i) {
        node.nodes.push_back(std::make_unique<Node>());
        node.nodes.back()->parent = &node;
        node.nodes.back()->row = static_cast<int>(i);
        node.nodes.back()->branch = node.below[i];
    }
}

QModelIndex TensorModel::index(int row, int column, const QModelIndex& parent) const {
    if (!hasIndex(row, column, parent)) return {};
    return createIndex(row, column, node(parent)->nodes[static_cast<std::size_t>(row)].get());
}

QModelIndex TensorModel::parent(const QModelIndex& child) const {
    if (!child.isValid()) return {};
    Node* above = node(child)->parent;
    return above == root_.get() ? QModelIndex() : createIndex(above->row, 0, above);
}

int TensorModel::rowCount(const QModelIndex& parent) const {
    if (parent.column() > 0 || !tree_) return 0;
    Node* above = node(parent);
    find_children(*above);
    return static_cast<int>(above->nodes.size());
}

int TensorModel::columnCount(const QModelIndex&) const {
    return columns;
}

bool TensorModel::hasChildren(const QModelIndex& parent) const {
    if (parent.column() > 0 || !tree_) return false;
    const auto& branch = node(parent)->branch;
    return !branch.leaf && branch.end > branch.begin;
}

bool TensorModel::canFetchMore(const QModelIndex& parent) const {
    if (parent.column() > 0 || !tree_) return false;
    const Node* above = node(parent);
    return above->found && above->nodes.size() < above->below.size();
}

void TensorModel::fetchMore(const QModelIndex& parent) {
    if (!canFetchMore(parent)) return;
    Node* above = node(parent);
    const std::size_t first = above->nodes.size(), end = std::min(above->below.size(), first + kStep);
    beginInsertRows(parent, static_cast<int>(first), static_cast<int>(end) - 1);
    for (std::size_t i = first; i < end; ++i) {
        above->nodes.push_back(std::make_unique<Node>());
        above->nodes.back()->parent = above;
        above->nodes.back()->row = static_cast<int>(i);
        above->nodes.back()->branch = above->below[i];
    }
    endInsertRows();
}

const TensorRow* TensorModel::tensor(const QModelIndex& index) const {
    if (!index.isValid() || !tree_) return nullptr;
    const auto& branch = node(index)->branch;
    return branch.leaf ? &tree_->row(branch.begin) : nullptr;
}

QModelIndex TensorModel::index_of(std::string_view tensor) {
    if (!tree_) return {};
    const std::size_t place = tree_->find(tensor);
    QModelIndex at;
    if (place == tree_->size()) return at;
    for (;;) {
        rowCount(at);  // opens it
        const Node* above = node(at);
        const auto found =
            std::find_if(above->below.begin(), above->below.end(),
                         [&](const TensorTree::Branch& branch) { return branch.begin <= place && place < branch.end; });
        if (found == above->below.end()) return {};
        const auto row = static_cast<std::size_t>(found - above->below.begin());
        while (above->nodes.size() <= row) fetchMore(at);
        at = index(static_cast<int>(row), 0, at);
        if (found->leaf) return at;
    }
}

QString TensorModel::text(const Node& node, int column) const {
    const auto& branch = node.branch;
    const TensorRow* row = branch.leaf ? &tree_->row(branch.begin) : nullptr;
    const bool absent = row && row->status == TensorStatus::missing;
    const QLocale plain = QLocale::c();
    switch (column) {
        case name: {
            const QString label = shown(tree_->label(branch));
            return label.isEmpty() ? tr("(no name)") : label;
        }
        case shape:
            if (row) return absent || row->type.empty() ? QString() : shape_text(row->shape);
            return tr("%1 tensors").arg(branch.end - branch.begin);
        case type:
            return row ? QString::fromStdString(row->type) : QString();
        case bytes:
            return absent ? QString()
                          : QString::fromStdString(size_text(static_cast<std::uint64_t>(tree_->bytes(branch))));
        case parameters:
            return absent ? QString()
                          : QString::fromStdString(count_text(static_cast<std::uint64_t>(tree_->elements(branch))));
        case file:
            if (!row || row->file < 0) return {};
            return tree_->table().files[static_cast<std::size_t>(row->file)];
        default:
            return {};
    }
}

QString TensorModel::hint(const Node& node) const {
    QString text = shown(tree_->path(node.branch));
    if (node.branch.leaf) text += QLatin1Char('\n') + status_text(tree_->row(node.branch.begin).status);
    return text;
}

QVariant TensorModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || !tree_) return {};
    const Node& at = *node(index);
    const TensorRow* row = tensor(index);
    switch (role) {
        case Qt::DisplayRole:
            return text(at, index.column());
        case Qt::ToolTipRole:
            return hint(at);
        case Qt::AccessibleTextRole:
            return index.column() == name && row ? text(at, name) + QStringLiteral(", ") + status_text(row->status)
                                                 : text(at, index.column());
        case Qt::TextAlignmentRole:
            if (index.column() == bytes || index.column() == parameters)
                return QVariant::fromValue<int>(Qt::AlignRight | Qt::AlignVCenter);
            return QVariant::fromValue<int>(Qt::AlignLeft | Qt::AlignVCenter);
        case Qt::ForegroundRole:
            if (row) return status_colour(row->status, theme_);
            return index.column() == name ? QVariant() : QVariant(theme_.muted);
        default:
            return {};
    }
}

QVariant TensorModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    switch (section) {
        case name:
            return tr("Tensor");
        case shape:
            return tr("Shape");
        case type:
            return tr("Type");
        case bytes:
            return tr("Bytes");
        case parameters:
            return tr("Parameters");
        case file:
            return tr("File");
        default:
            return {};
    }
}

QString shape_text(const std::vector<std::int64_t>& shape) {
    if (shape.empty()) return QObject::tr("a number");
    QStringList sizes;
    for (const std::int64_t size : shape) sizes << QString::number(size);
    return sizes.join(QStringLiteral(" × "));
}

QString status_text(TensorStatus status) {
    switch (status) {
        case TensorStatus::matched:
            return QObject::tr("used by the model");
        case TensorStatus::missing:
            return QObject::tr("missing: the model could use it");
        case TensorStatus::left_over:
            return QObject::tr("left over: the model does not use it");
        case TensorStatus::unreadable:
            return QObject::tr("of a type that Headscope does not read");
        case TensorStatus::plain:
            break;
    }
    return QObject::tr("use unknown: the checkpoint cannot be run");
}

QColor status_colour(TensorStatus status, const Theme& theme) {
    switch (status) {
        case TensorStatus::missing:
            return theme.accent;
        case TensorStatus::left_over:
            return theme.categorical(0);
        case TensorStatus::unreadable:
            return theme.muted;
        case TensorStatus::plain:
        case TensorStatus::matched:
            break;
    }
    return theme.text;
}

}  // namespace headscope::widgets
