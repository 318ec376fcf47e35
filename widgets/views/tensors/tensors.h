// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>
#include <QTimer>
#include <array>

#include "widgets/desk/view.h"
#include "widgets/views/tensors/tensor_model.h"

class QComboBox;
class QLineEdit;
class QSplitter;
class QToolButton;
class QTreeView;

namespace headscope::widgets {

class Banner;
class TensorDetails;

/// The tensors of an open checkpoint by the parts of their names: what the model uses, what it misses, what is left
/// over, and the numbers of a chosen one.
class TensorsView : public View {
    Q_OBJECT
public:
    TensorsView(Desk* desk, QWidget* parent);

    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

protected:
    void refresh() override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void build();
    void join();  ///< the desk has another source
    void fill_models();
    void take_table(std::shared_ptr<const TensorTable> table);
    void filter();
    void take_tree(std::shared_ptr<const TensorTree> tree);
    void show_totals();
    void choose(const QModelIndex& index);
    void show(const TensorRow& row);
    void read();
    void ask_where_to_save();
    int model_id() const;

    QComboBox* models_ = nullptr;
    QLineEdit* text_ = nullptr;
    std::array<QToolButton*, kTensorStatuses> statuses_{};
    Banner* notes_ = nullptr;
    QSplitter* split_ = nullptr;
    QTreeView* tree_ = nullptr;
    TensorModel* model_ = nullptr;
    TensorDetails* details_ = nullptr;

    QPointer<TensorSource> source_;
    std::shared_ptr<const TensorTable> table_;
    int asked_ = 0;  ///< model whose table is on its way or here
    QString failure_;
    std::string chosen_;  ///< tensor, also while a filter hides it
    std::string shown_;   ///< the one in `details_`
    QTimer typing_;
    static inline const char kFilters = 0;  ///< owner of filtering tasks on the reader
    Mailbox mailbox_{this};
};

}  // namespace headscope::widgets
