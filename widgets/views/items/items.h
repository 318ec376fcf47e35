// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>
#include <optional>

#include "widgets/desk/view.h"
#include "widgets/views/items/item_model.h"
#include "widgets/views/items/item_source.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSplitter;

namespace headscope::widgets {

class Banner;
class ColourKey;
class EvaluationShelf;
class FittedColumns;
class TokenTextArea;
struct OpenEvaluation;

/// The items of an evaluation, one by one: a list to step through, and what one item says, with the options' tokens
/// coloured by log-likelihood.
class ItemsView : public View {
    Q_OBJECT
public:
    ItemsView(Desk* desk, QWidget* parent);
    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;

protected:
    void refresh() override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void build();
    QWidget* make_bar();
    QWidget* make_detail();
    EvaluationShelf& shelf() const;
    const OpenEvaluation* chosen_file() const;  ///< null: none has items
    void show_nothing();
    void take_choices();
    void fill_boxes();
    bool judged(const workspace::ItemsKey& key) const;
    workspace::ItemsRequest wish() const;
    void list_items();
    void take_found(const std::vector<std::int64_t>& rows);
    void choose_wanted();
    void ask_words();
    void say_count();
    void show_current();
    void show_page();
    void go_to(int row);
    void show_unread();
    void open_as_analysis();
    const store::EvaluatedItem* current() const;
    QString name_of(std::int64_t model) const;

    ItemSource* source_;
    ItemModel* model_;
    QComboBox *file_ = nullptr, *of_model_ = nullptr, *task_ = nullptr, *other_ = nullptr, *option_ = nullptr;
    QCheckBox *wrong_ = nullptr, *disagree_ = nullptr;
    QLineEdit* find_ = nullptr;
    QLabel *count_ = nullptr, *title_ = nullptr;
    ItemTable* table_ = nullptr;
    FittedColumns* columns_ = nullptr;
    Banner* failure_ = nullptr;
    TokenTextArea* text_ = nullptr;
    ColourKey* key_ = nullptr;
    QPushButton* analyse_ = nullptr;
    QSplitter* splitter_ = nullptr;
    // Wanted choices; they may not exist.
    QString wanted_file_;
    workspace::ItemsKey wanted_;
    std::optional<workspace::ItemsKey> wanted_other_;
    std::optional<std::int64_t> wanted_item_;
    // Listed items.
    std::shared_ptr<const ItemSource::Items> listed_items_;
    workspace::ItemsRequest listed_;
    QString listed_find_;
    std::vector<workspace::ShownItem> candidates_;  ///< that are searched
    QTimer find_soon_, words_soon_;
    bool filling_ = false, choosing_ = false;  ///< not the user's doing: what boxes say, which item is shown
};

}  // namespace headscope::widgets
