// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/tensors/tensors.h"

#include <QComboBox>
#include <QHeaderView>
#include <QLineEdit>
#include <QLocale>
#include <QPushButton>
#include <QSplitter>
#include <QToolButton>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>

#include "core/base/error.h"
#include "widgets/desk/presence.h"
#include "widgets/fitted_columns.h"
#include "widgets/table_copy.h"
#include "widgets/text/banner.h"
#include "widgets/text/flow_layout.h"
#include "widgets/views/overview/overview_files.h"
#include "widgets/views/tensors/tensor_details.h"

namespace headscope::widgets {
namespace {

constexpr int kTyping = 150;                  // ms after the last key before names are filtered
constexpr std::int64_t kAtOnce = 16LL << 20;  // bytes of a tensor that is read without being asked for
constexpr std::size_t kOpened = 40;           // tensors that a filter leaves: all are shown
constexpr int kNarrowTensors = 720;

QString status_title(TensorStatus status) {
    switch (status) {
        case TensorStatus::matched:
            return QObject::tr("Used");
        case TensorStatus::missing:
            return QObject::tr("Missing");
        case TensorStatus::left_over:
            return QObject::tr("Left over");
        case TensorStatus::unreadable:
            return QObject::tr("Not readable");
        case TensorStatus::plain:
            break;
    }
    return QObject::tr("All");
}

/// It has numbers.
bool there(const TensorRow& row) {
    return row.status != TensorStatus::missing && row.status != TensorStatus::unreadable;
}

}  // namespace

TensorsView::TensorsView(Desk* desk, QWidget* parent) : View(desk, parent) {
    build();
    typing_.setSingleShot(true);
    typing_.setInterval(kTyping);
    connect(&typing_, &QTimer::timeout, this, &TensorsView::filter);
    connect(desk, &Desk::tensors_changed, this, &TensorsView::join);
    join();
}

void TensorsView::build() {
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 4);
    column->setSpacing(6);
    auto* tools = new FlowLayout;
    column->addLayout(tools);
    models_ = new QComboBox(content());
    models_->setObjectName(QStringLiteral("models"));
    models_->setAccessibleName(tr("Checkpoint"));
    models_->setToolTip(tr("Checkpoint"));
    connect(models_, &QComboBox::activated, this, [this] {
        if (source_) source_->choose(models_->currentData().toInt());
    });
    text_ = new QLineEdit(content());
    text_->setObjectName(QStringLiteral("filter"));
    text_->setAccessibleName(tr("Filter by name"));
    text_->setPlaceholderText(tr("Filter: layers.3 weight"));
    text_->setToolTip(tr("Show tensors whose names contain all of these words"));
    text_->setClearButtonEnabled(true);
    text_->setMinimumWidth(200);
    connect(text_, &QLineEdit::textChanged, this, [this] {
        typing_.start();
        Q_EMIT state_changed();
    });
    tools->addWidget(models_);
    tools->addWidget(text_);
    for (const TensorStatus status :
         {TensorStatus::matched, TensorStatus::missing, TensorStatus::left_over, TensorStatus::unreadable}) {
        auto* button = new QToolButton(content());
        button->setObjectName(QStringLiteral("status_%1").arg(static_cast<int>(status)));
        button->setCheckable(true);
        button->setToolButtonStyle(Qt::ToolButtonTextOnly);
        button->setToolTip(tr("Show only tensors %1").arg(status_text(status)));
        connect(button, &QToolButton::toggled, this, [this] {
            filter();
            Q_EMIT state_changed();
        });
        statuses_[static_cast<std::size_t>(status)] = button;
        add_command(button, tr("Tensors %1: only them, or all").arg(status_text(status)));
        tools->addWidget(button);
    }
    notes_ = new Banner(content());
    column->addWidget(notes_);
    split_ = new QSplitter(content());
    split_->setChildrenCollapsible(false);
    tree_ = new QTreeView(split_);
    copy_rows_by_key(tree_);
    tree_->setObjectName(QStringLiteral("tensors"));
    tree_->setAccessibleName(tr("Tensors, grouped by the parts of their names"));
    tree_->setUniformRowHeights(true);  // else every row of a long list is asked for its height
    tree_->setAlternatingRowColors(true);
    tree_->setFrameShape(QFrame::NoFrame);
    tree_->setSelectionBehavior(QAbstractItemView::SelectRows);
    model_ = new TensorModel(this);
    tree_->setModel(model_);
    tree_->header()->setSectionsMovable(false);
    auto* columns = new FittedColumns(tree_);
    columns->set_order({TensorModel::name, TensorModel::shape, TensorModel::bytes, TensorModel::parameters,
                        TensorModel::type, TensorModel::file});
    columns->set_whole({TensorModel::shape, TensorModel::type});
    columns->set_stretched({TensorModel::file});
    details_ = new TensorDetails(split_);
    split_->setStretchFactor(0, 1);
    split_->setStretchFactor(1, 0);
    column->addWidget(split_, 1);
    connect(tree_->selectionModel(), &QItemSelectionModel::currentChanged, this,
            [this](const QModelIndex& index) { choose(index); });
    add_command(
        "tensors_save_table", tr("Save the list of tensors as CSV…"), {},
        tr("Save the filtered tensors with shape, type, bytes, file and use"), [this] { ask_where_to_save(); },
        [this] { return model_->tree() && model_->tree()->size() > 0; });
    for (QPushButton* button : details_->findChildren<QPushButton*>()) add_command(button);
    connect(details_, &TensorDetails::numbers_wanted, this, &TensorsView::read);
    connect(details_, &TensorDetails::stop_wanted, this, [this] {
        if (source_) source_->stop_numbers();
        if (const TensorRow* row = model_->tensor(tree_->currentIndex())) show(*row);
    });
}

int TensorsView::model_id() const {
    if (!source_) return 0;
    const auto models = source_->models();
    const auto known =
        std::find_if(models.begin(), models.end(), [this](const auto& model) { return model.id == source_->chosen(); });
    if (known != models.end()) return known->id;
    return models.empty() ? 0 : models.back().id;
}

void TensorsView::join() {
    if (source_) source_->disconnect(this);
    source_ = desk().tensors();
    if (!source_) return;
    connect(source_, &TensorSource::models_changed, this, &TensorsView::refresh_later);
    connect(source_, &TensorSource::chosen_changed, this, &TensorsView::refresh_later);
    connect(source_, &TensorSource::table_ready, this, &TensorsView::take_table);
    const auto mine = [this](int model, const QString& tensor) {
        return table_ && model == table_->model && tensor.toStdString() == chosen_;
    };
    connect(source_, &TensorSource::numbers_progressed, this,
            [=, this](int model, const QString& tensor, double share) {
                if (mine(model, tensor)) details_->show_progress(share);
            });
    connect(source_, &TensorSource::numbers_ready, this,
            [=, this](int model, const QString& tensor, const std::shared_ptr<const TensorNumbers>& numbers) {
                if (mine(model, tensor)) details_->show_numbers(numbers);
            });
    connect(source_, &TensorSource::failed, this, [=, this](int model, const QString& tensor, const QString& message) {
        if (tensor.isEmpty() && model == asked_) {
            failure_ = message;
            refresh_later();
        } else if (mine(model, tensor)) {
            details_->show_failure(message);
        }
    });
    refresh_later();
}

void TensorsView::fill_models() {
    const QSignalBlocker quiet(models_);
    models_->clear();
    const auto models = source_->models();
    for (const auto& model : models) models_->addItem(model.name, model.id);
    models_->setCurrentIndex(models_->findData(model_id()));
    models_->setVisible(models.size() > 1);
}

void TensorsView::refresh() {
    const int wanted = model_id();
    if (wanted == 0) {
        table_.reset();
        asked_ = 0;
        model_->set_tree(nullptr);
        show_notice(
            tr("No checkpoint is open"),
            tr("Open a checkpoint from the start page, or drop one onto this window. An analysis holds no tensors."));
        return;
    }
    fill_models();
    model_->set_theme(desk().theme());
    details_->set_theme(desk().theme());
    if (asked_ != wanted) {
        asked_ = wanted;
        failure_.clear();
        source_->want_table(wanted);
    }
    if (!failure_.isEmpty()) return show_failure(failure_);
    if (!table_ || table_->model != wanted) return show_reading();
    show_content();
}

void TensorsView::take_table(std::shared_ptr<const TensorTable> table) {
    if (table->model != asked_) return;
    if (!table_ || table_->model != table->model) model_->set_tree(nullptr);  // rows of other files
    table_ = std::move(table);
    QStringList notes;
    for (const QString& note : table_->notes) notes << note;
    notes_->set(notes.join(QLatin1Char('\n')));
    shown_.clear();
    details_->show_nothing(tr("Choose a tensor."));
    filter();
    refresh_later();
}

/// Names are looked through on the reader's thread; a newer filter takes the place of an older one.
void TensorsView::filter() {
    if (!table_) return;
    typing_.stop();
    TensorFilter filter;
    filter.text = text_->text().toStdString();
    const bool some = std::any_of(statuses_.begin(), statuses_.end(),
                                  [](const QToolButton* button) { return button && button->isChecked(); });
    for (std::size_t s = 0; some && s < kTensorStatuses; ++s)
        filter.statuses[s] = statuses_[s] && statuses_[s]->isChecked();
    desk().reader().cancel(&kFilters);
    desk().reader().post(&kFilters, [this, table = table_, filter, send = mailbox_.sender()](const Cancellation& stop) {
        try {
            auto tree = std::make_shared<const TensorTree>(table, filter, stop);
            if (!stop.requested()) send([this, tree] { take_tree(tree); });
        } catch (const Stopped&) {
        } catch (const std::bad_alloc&) {
            send([this] { Q_EMIT desk().failed(tr("Not enough memory for the list of tensors")); });
        }
    });
}

void TensorsView::take_tree(std::shared_ptr<const TensorTree> tree) {
    if (!table_ || &tree->table() != table_.get()) return;
    const std::size_t shown = tree->size();
    const std::string before = chosen_;
    {
        const QSignalBlocker quiet(tree_->selectionModel());  // what is chosen stays, where it is still shown
        model_->set_tree(std::move(tree));
    }
    show_totals();
    if (shown <= kOpened)
        tree_->expandAll();
    else if (model_->rowCount() <= 3)
        tree_->expandToDepth(0);
    const QModelIndex again = model_->index_of(before);
    if (again.isValid()) {
        tree_->setCurrentIndex(again);
        tree_->scrollTo(again);
    }
}

void TensorsView::show_totals() {
    const auto& totals = model_->tree()->totals();
    for (std::size_t s = 0; s < kTensorStatuses; ++s) {
        QToolButton* button = statuses_[s];
        if (!button) continue;
        const auto status = static_cast<TensorStatus>(s);
        button->setText(status_title(status) + QLatin1Char(' ') +
                        QLocale::c().toString(static_cast<qulonglong>(totals[s])));
        button->setAccessibleName(tr("Show only %1: %2 tensors").arg(status_title(status)).arg(totals[s]));
        // A file without a configuration has no such groups, most checkpoints nothing that cannot be read.
        const bool pointless = status == TensorStatus::unreadable ? totals[s] == 0 : totals[0] > 0;
        button->setVisible(!pointless || button->isChecked());
        QPalette colours = palette();
        const QColor colour = totals[s] > 0 ? status_colour(status, desk().theme()) : desk().theme().muted;
        colours.setColor(QPalette::ButtonText, colour);
        button->setPalette(colours);
    }
}

void TensorsView::choose(const QModelIndex& index) {
    const TensorRow* row = model_->tensor(index);
    if (row && row->name == shown_) return;  // another filter, the same tensor
    if (source_) source_->stop_numbers();
    shown_.clear();
    if (!row) {
        if (index.isValid()) chosen_.clear();
        details_->show_nothing(tr("Choose a tensor."));
        return;
    }
    chosen_ = row->name;
    show(*row);
    if (there(*row) && row->bytes <= kAtOnce) read();
    Q_EMIT state_changed();
}

void TensorsView::show(const TensorRow& row) {
    shown_ = row.name;
    details_->show_tensor(row,
                          row.file < 0 ? QString() : model_->tree()->table().files[static_cast<std::size_t>(row.file)]);
}

void TensorsView::read() {
    if (!source_ || !table_ || chosen_.empty()) return;
    details_->show_progress(0);
    source_->want_numbers(table_->model, QString::fromStdString(chosen_));
}

/// Figure of the chosen tensor; the list of them is a table.
std::optional<FigureRequest> TensorsView::figure() const {
    const TensorRow* row = model_->tensor(tree_->currentIndex());
    if (!source_ || !table_ || !row || row->name.empty() || row->name != shown_ || !there(*row)) return std::nullopt;
    for (const auto& model : source_->models()) {
        if (model.id != table_->model || model.path.isEmpty()) continue;
        FigureRequest wish{"tensors", {}, {}};
        wish.options.tensors = {row->name};
        wish.paths << model.path;
        return wish;
    }
    return std::nullopt;
}

void TensorsView::ask_where_to_save() {
    ask_for_path(this, tr("Save the list of tensors"), QStringLiteral("tensors"), TableFormat::csv,
                 [this](const std::filesystem::path& path) {
                     if (const auto tree = model_->shared_tree())
                         save_text(&desk(), mailbox_.sender(), path, [tree] { return tree->csv(); });
                 });
}

void TensorsView::resizeEvent(QResizeEvent* event) {
    View::resizeEvent(event);
    const auto wanted = width() < kNarrowTensors ? Qt::Vertical : Qt::Horizontal;
    if (split_->orientation() == wanted && split_->sizes().value(1) > 0) return;
    split_->setOrientation(wanted);
    split_->setSizes(wanted == Qt::Horizontal ? QList<int>{700, 300} : QList<int>{300, 300});
}

QJsonObject TensorsView::state() const {
    QJsonObject state{{"filter", text_->text()}, {"tensor", QString::fromStdString(chosen_)}};
    for (std::size_t s = 0; s < kTensorStatuses; ++s)
        if (statuses_[s] && statuses_[s]->isChecked()) state[QStringLiteral("only_%1").arg(s)] = true;
    return state;
}

void TensorsView::restore(const QJsonObject& state) {
    if (const QJsonValue text = state.value(QLatin1String("filter")); text.isString()) text_->setText(text.toString());
    if (const QJsonValue tensor = state.value(QLatin1String("tensor")); tensor.isString())
        chosen_ = tensor.toString().toStdString();
    for (std::size_t s = 0; s < kTensorStatuses; ++s)
        if (statuses_[s]) statuses_[s]->setChecked(state.value(QStringLiteral("only_%1").arg(s)).toBool());
}

extern const ViewKind kTensors{
    "tensors",
    "Tensors",
    "What a checkpoint's files hold, and what the model makes use of",
    [](Desk* desk, QWidget* parent) -> View* { return new TensorsView(desk, parent); },
    ViewGroup::other,
    [](const Desk& desk) { return filled_if(desk.tensors() && !desk.tensors()->models().empty()); }};

}  // namespace headscope::widgets
