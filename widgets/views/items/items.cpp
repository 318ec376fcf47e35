// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/items/items.h"

#include <QCheckBox>
#include <QComboBox>
#include <QJsonDocument>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSplitter>
#include <algorithm>

#include "core/figures/evaluation_groups.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/presence.h"
#include "widgets/fitted_columns.h"
#include "widgets/text/banner.h"
#include "widgets/text/colour_key.h"
#include "widgets/text/text_area.h"

namespace headscope::widgets {
namespace {

constexpr int kFindPause = 250;    ///< ms
constexpr int kItemName = 36;      ///< characters of a file or a model in the row of choices
constexpr int kMostInSight = 400;  ///< rows of any list
constexpr int kBesideWidth = 700;  ///< pixels from which the item stands beside the list

QString cut_item_name(const QString& text) {
    return text.size() > kItemName ? text.left(kItemName - 1) + QStringLiteral("…") : text;
}

/// A group's key as what a box keeps.
QVariant kept_key(const workspace::ItemsKey& key) {
    return QVariantList{static_cast<qlonglong>(key.model), QString::fromStdString(key.task),
                        static_cast<qlonglong>(key.length), static_cast<qlonglong>(key.shots)};
}

workspace::ItemsKey key_from(const QVariant& kept) {
    const QVariantList parts = kept.toList();
    if (parts.size() != 4) return {};
    return {parts[0].toLongLong(), parts[1].toString().toStdString(), parts[2].toLongLong(), parts[3].toLongLong()};
}

QJsonObject key_json(const workspace::ItemsKey& key) {
    return {{"model", static_cast<double>(key.model)},
            {"task", QString::fromStdString(key.task)},
            {"length", static_cast<double>(key.length)},
            {"shots", static_cast<double>(key.shots)}};
}

workspace::ItemsKey key_from(const QJsonObject& object) {
    const auto whole = [&](const char* name) {
        const double value = object[QLatin1String(name)].toDouble();
        return value > 0 && value < 9e15 ? static_cast<std::int64_t>(value) : 0;
    };
    return {whole("model"), object["task"].toString().toStdString(), whole("length"), whole("shots")};
}

}  // namespace

ItemsView::ItemsView(Desk* desk, QWidget* parent)
    : View(desk, parent, Of::training),
      source_(new ItemSource(&desk->reader(), this)),
      model_(new ItemModel(source_, this)) {
    build();
    connect(source_, &ItemSource::items_read, this, &ItemsView::refresh_later);
    connect(source_, &ItemSource::words_read, model_, &ItemModel::tell_words);
    connect(source_, &ItemSource::page_read, this, &ItemsView::show_page);
    connect(source_, &ItemSource::found, this, &ItemsView::take_found);
    connect(&shelf(), &EvaluationShelf::changed, this, &ItemsView::refresh_later);
    connect(&shelf(), &EvaluationShelf::evaluating_changed, this, &ItemsView::refresh_later);
    connect(&shelf(), &EvaluationShelf::progressed, this, [this] {
        if (!chosen_file()) refresh_later();
    });
    find_soon_.setSingleShot(true);
    find_soon_.setInterval(kFindPause);
    connect(&find_soon_, &QTimer::timeout, this, [this] {
        refresh_later();
        Q_EMIT state_changed();
    });
    words_soon_.setSingleShot(true);
    words_soon_.setInterval(0);  // once a turn of the event loop
    connect(&words_soon_, &QTimer::timeout, this, &ItemsView::ask_words);
}

EvaluationShelf& ItemsView::shelf() const {
    return desk().evaluations();
}

const OpenEvaluation* ItemsView::chosen_file() const {
    const OpenEvaluation* first = nullptr;
    for (const OpenEvaluation& one : shelf().all()) {
        if (one.record->item_count <= 0) continue;
        if (one.path == wanted_file_) return &one;
        if (!first) first = &one;
    }
    return first;
}

void ItemsView::show_nothing() {
    if (!shelf().evaluating().isEmpty()) {
        show_notice(tr("Evaluating…"), shelf().evaluating_words(), tr("Stop"),
                    [this] { Q_EMIT shelf().evaluate_unwanted(); });
        return;
    }
    const QString none = shelf().all().empty() ? tr("No evaluation is open") : tr("No open evaluation has items");
    show_notice(none,
                tr("Tasks with right answers keep their items. Evaluate models on such a task here, or with\nheadscope "
                   "evaluate MODEL... --task copa,hellaswag --data DIR -o results.evaluation.h5"),
                tr("Evaluate…"), [this] { Q_EMIT shelf().plan_wanted(); });
}

/// The user's choice in the boxes.
void ItemsView::take_choices() {
    wanted_file_ = file_->currentData().toString();
    const workspace::ItemsKey key = key_from(task_->currentData());
    wanted_ = key;
    wanted_.model = of_model_->currentData().toLongLong();
    wanted_other_.reset();
    if (other_->currentIndex() > 0) wanted_other_ = key_from(other_->currentData());
    refresh_later();
    Q_EMIT state_changed();
}

QString ItemsView::name_of(std::int64_t model) const {
    const auto& models = source_->record()->models;
    if (model < 0 || model >= std::ssize(models)) return tr("model %1").arg(model);
    const auto& one = models[static_cast<std::size_t>(model)];
    const QString name = cut_item_name(QString::fromStdString(one.name));
    return one.skipped.empty() ? name : tr("%1 without %2").arg(name, QString::fromStdString(one.skipped));
}

/// Fills the boxes, and selects the wanted entries that exist.
void ItemsView::fill_boxes() {
    filling_ = true;
    file_->clear();
    for (const OpenEvaluation& one : shelf().all())
        if (one.record->item_count > 0) file_->addItem(cut_item_name(one.name), one.path);
    file_->setCurrentIndex(std::max(0, file_->findData(source_->path())));
    file_->setVisible(file_->count() > 1);

    const auto& groups = source_->groups();
    of_model_->clear();
    for (const auto& group : groups) {
        const auto model = static_cast<qlonglong>(group.key.model);
        if (of_model_->findData(model) < 0) of_model_->addItem(name_of(model), model);
    }
    of_model_->setCurrentIndex(std::max(0, of_model_->findData(static_cast<qlonglong>(wanted_.model))));
    of_model_->setEnabled(of_model_->count() > 1);
    const auto model = of_model_->currentData().toLongLong();

    task_->clear();
    int same_task = -1;
    for (const auto& group : groups) {
        const workspace::ItemsKey& key = group.key;
        if (key.model != model) continue;
        const auto others = std::count_if(groups.begin(), groups.end(), [&](const auto& other) {
            return other.key.model == key.model && other.key.task == key.task;
        });
        QString words = QString::fromStdString(key.task);
        if (others > 1) words += tr(", %1 tokens").arg(key.length);
        if (key.shots > 0) words += key.shots == 1 ? tr(", 1 example") : tr(", %1 examples").arg(key.shots);
        if (key.task == wanted_.task && same_task < 0) same_task = task_->count();
        task_->addItem(words, kept_key(key));
    }
    workspace::ItemsKey exact = wanted_;
    exact.model = model;
    const int found = task_->findData(kept_key(exact));
    task_->setCurrentIndex(std::max(0, found >= 0 ? found : same_task));
    task_->setEnabled(task_->count() > 1);

    other_->clear();
    other_->addItem(tr("No other model"));
    const auto shown = key_from(task_->currentData());
    for (const auto& key : workspace::items_of_others(groups, shown)) {
        const QString name = name_of(key.model);
        other_->addItem(key.length == shown.length ? name : tr("%1, %2 tokens").arg(name).arg(key.length),
                        kept_key(key));
    }
    if (wanted_other_) other_->setCurrentIndex(std::max(0, other_->findData(kept_key(*wanted_other_))));
    other_->setVisible(other_->count() > 1);
    disagree_->setVisible(other_->count() > 1);
    wrong_->setEnabled(judged(shown));
    disagree_->setEnabled(other_->currentIndex() > 0 && judged(shown));
    filling_ = false;
}

void ItemsView::refresh() {
    const OpenEvaluation* file = chosen_file();
    if (!file) return show_nothing();
    source_->open(file->path, file->record);
    if (source_->failure().isEmpty() && !source_->items()) return show_reading();
    text_->set_theme(desk().theme());
    key_->set_scale(source_->page().scale, desk().theme());
    fill_boxes();
    if (source_->items())
        list_items();
    else
        show_unread();
    show_content();
}

/// The file's items cannot be read: another one may be chosen.
void ItemsView::show_unread() {
    listed_items_.reset();
    model_->set_rows({});
    count_->clear();
    show_current();
    failure_->set(source_->failure());
}

/// True if items of a task are right or wrong: pages have perplexities alone.
bool ItemsView::judged(const workspace::ItemsKey& key) const {
    bool known = false;
    for (const auto& result : source_->record()->results) {
        if (result.model != key.model || result.task != key.task) continue;
        if (!figures::lower_is_better(result.metric)) return true;
        known = true;
    }
    return !known;
}

workspace::ItemsRequest ItemsView::wish() const {
    workspace::ItemsRequest wish;
    wish.shown = key_from(task_->currentData());
    if (other_->currentIndex() > 0) wish.other = key_from(other_->currentData());
    wish.wrong_only = wrong_->isChecked() && judged(wish.shown);
    wish.disagree_only = wish.other && disagree_->isChecked() && judged(wish.shown);
    return wish;
}

void ItemsView::list_items() {
    const workspace::ItemsRequest wanted = wish();
    const QString find = find_->text().trimmed();
    if (listed_items_ == source_->items() && listed_ == wanted && listed_find_ == find) {
        const auto* item = current();
        if (wanted_item_ && !source_->searching() && (!item || item->item != *wanted_item_)) choose_wanted();
        return;
    }
    listed_items_ = source_->items();
    listed_ = wanted;
    listed_find_ = find;
    candidates_ = workspace::shown_items(*listed_items_, wanted);
    columns_->set_wanted(ItemModel::other_column, wanted.other.has_value());
    columns_->fit();
    source_->stop_searching();
    if (find.isEmpty()) {
        model_->set_rows(candidates_, judged(wanted.shown));
    } else {
        model_->set_rows({}, judged(wanted.shown));
        std::vector<std::int64_t> rows;
        for (const auto& one : candidates_) rows.push_back(one.row);
        source_->search(find, std::move(rows));
    }
    choose_wanted();
    words_soon_.start();
    say_count();
}

void ItemsView::take_found(const std::vector<std::int64_t>& rows) {
    std::vector<workspace::ShownItem> more;
    for (const std::int64_t row : rows) {
        const auto found = std::lower_bound(candidates_.begin(), candidates_.end(), row,
                                            [](const auto& one, std::int64_t wanted) { return one.row < wanted; });
        if (found != candidates_.end() && found->row == row) more.push_back(*found);
    }
    model_->append_rows(more);
    if (!table_->currentIndex().isValid()) choose_wanted();
    say_count();
}

/// The item that was looked at, where it is in the list; else the first one.
void ItemsView::choose_wanted() {
    const int place = wanted_item_ ? model_->place_of(*wanted_item_) : -1;
    if (model_->rowCount() == 0) return show_current();
    choosing_ = true;
    go_to(std::max(0, place));
    choosing_ = false;
}

void ItemsView::ask_words() {
    if (model_->rowCount() == 0 || !source_->items()) return;
    const int first = std::max(0, table_->rowAt(0)), last = table_->rowAt(table_->viewport()->height() - 1);
    const int end = std::min(last < 0 ? model_->rowCount() : last + 1, first + kMostInSight);
    std::vector<std::int64_t> rows;
    for (int row = first; row < end; ++row) rows.push_back(model_->rows()[static_cast<std::size_t>(row)].row);
    source_->ask_words(rows);
}

void ItemsView::say_count() {
    const auto& groups = source_->groups();
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return one.key == listed_.shown; });
    if (group == groups.end()) return count_->clear();
    QString words = tr("%1 of %2 items").arg(model_->rowCount()).arg(group->count);
    if (judged(group->key)) words += tr("; %1 are wrong").arg(group->wrong);
    if (source_->searching()) words += tr("; searched %1 of %2").arg(source_->searched()).arg(source_->to_search());
    count_->setText(words);
}

const store::EvaluatedItem* ItemsView::current() const {
    const QModelIndex index = table_->currentIndex();
    if (!index.isValid() || !listed_items_ || index.row() >= std::ssize(model_->rows())) return nullptr;
    const std::int64_t row = model_->rows()[static_cast<std::size_t>(index.row())].row;
    return row < std::ssize(*listed_items_) ? &(*listed_items_)[static_cast<std::size_t>(row)] : nullptr;
}

void ItemsView::show_current() {
    const store::EvaluatedItem* item = current();
    if (!item) {
        title_->setText(tr("No item is shown"));
        text_->set_text(nullptr);
        text_->set_values({}, {});
        failure_->set({});
        option_->clear();
        analyse_->setEnabled(false);
        key_->hide();
        return;
    }
    wanted_item_ = item->item;
    source_->ask_page(model_->rows()[static_cast<std::size_t>(table_->currentIndex().row())].row);
    if (!choosing_) Q_EMIT state_changed();
}

void ItemsView::show_page() {
    const store::EvaluatedItem* item = current();
    if (!item || source_->page_row() != item - listed_items_->data()) return;
    QString title = tr("%1 of %2, item %3")
                        .arg(name_of(item->model), QString::fromStdString(item->task), QString::number(item->item));
    if (judged(workspace::key_of(*item))) title += item->right ? tr(": ✓ right") : tr(": ✗ wrong");
    title_->setText(title);
    title_->setToolTip(title_->text());
    const ItemPage& page = source_->page();
    failure_->set(source_->page_failure());
    text_->set_text(page.text);
    text_->set_values(page.values, page.scale);
    key_->set_scale(page.scale, desk().theme());
    key_->setVisible(page.scored);

    const workspace::ItemTexts& texts = source_->texts();
    option_->clear();
    if (texts.said) option_->addItem(tr("prompt and answer"), 0);
    for (std::size_t i = 0; i < texts.requests.size(); ++i) {
        const auto number = static_cast<std::int64_t>(i);
        const QString name = source_->option_name(item->model, number);
        QString words = source_->of_classes(item->model) ? name : tr("option %1").arg(name);
        if (texts.requests.size() == 1) words = tr("continuation");
        if (number == item->gold) words += tr(", right");
        if (number == item->chosen) words += tr(", chosen");
        option_->addItem(words, static_cast<int>(i));
    }
    const auto& models = source_->record()->models;
    const bool known = item->model >= 0 && item->model < std::ssize(models) &&
                       !models[static_cast<std::size_t>(item->model)].path.empty();
    option_->setCurrentIndex(std::max(0, option_->findData(static_cast<int>(item->chosen))));
    option_->setVisible(option_->count() > 1);
    analyse_->setEnabled(known && option_->count() > 0);
}

void ItemsView::go_to(int row) {
    if (row < 0 || row >= model_->rowCount()) return;
    const QModelIndex index = model_->index(row, ItemModel::number_column);
    table_->setCurrentIndex(index);
    table_->scrollTo(index);
}

void ItemsView::open_as_analysis() {
    const store::EvaluatedItem* item = current();
    if (!item || source_->page_row() != item - listed_items_->data() || option_->count() == 0) return;
    const auto& models = source_->record()->models;
    if (item->model < 0 || item->model >= std::ssize(models)) return;
    const auto& model = models[static_cast<std::size_t>(item->model)];
    const workspace::ItemTexts& texts = source_->texts();
    ItemAnalysis wanted;
    wanted.model = QString::fromStdString(model.path);
    wanted.adapter = QJsonDocument::fromJson(QByteArray::fromStdString(source_->record()->settings_json))
                         .object()["adapter"]
                         .toString();
    wanted.what = tr("item %1 of %2").arg(item->item).arg(QString::fromStdString(item->task));
    if (texts.said) {
        wanted.context = QString::fromStdString(texts.prompt);
        wanted.continuation = QString::fromStdString(texts.generated);
    } else {
        const auto option = static_cast<std::size_t>(std::max(0, option_->currentData().toInt()));
        if (option >= texts.requests.size()) return;
        wanted.context = QString::fromStdString(texts.requests[option].context);
        wanted.continuation = QString::fromStdString(texts.requests[option].continuation);
    }
    if (!model.skipped.empty())
        Q_EMIT desk().told(tr("The evaluation of %1 skipped layers %2; the analysis computes all of them")
                               .arg(name_of(item->model), QString::fromStdString(model.skipped)));
    Q_EMIT shelf().analyse_wanted(wanted);
}

/// Below each other where there is no room beside.
void ItemsView::resizeEvent(QResizeEvent* event) {
    View::resizeEvent(event);
    const Qt::Orientation wanted = width() >= kBesideWidth ? Qt::Horizontal : Qt::Vertical;
    if (wanted != splitter_->orientation()) splitter_->setOrientation(wanted);
}

QJsonObject ItemsView::state() const {
    QJsonObject state{{"file", wanted_file_},
                      {"shown", key_json(wanted_)},
                      {"wrong", wrong_->isChecked()},
                      {"disagree", disagree_->isChecked()},
                      {"find", find_->text()}};
    if (wanted_other_) state["other"] = key_json(*wanted_other_);
    if (wanted_item_) state["item"] = static_cast<double>(*wanted_item_);
    return state;
}

void ItemsView::restore(const QJsonObject& state) {
    filling_ = true;
    wanted_file_ = state["file"].toString();
    wanted_ = key_from(state["shown"].toObject());
    wanted_other_.reset();
    if (state["other"].isObject()) wanted_other_ = key_from(state["other"].toObject());
    wrong_->setChecked(state["wrong"].toBool());
    disagree_->setChecked(state["disagree"].toBool());
    find_->setText(state["find"].toString());
    wanted_item_.reset();
    if (const double item = state["item"].toDouble(-1); item >= 0 && item < 9e15)
        wanted_item_ = static_cast<std::int64_t>(item);
    filling_ = false;
    refresh_later();
}

extern const ViewKind kItems{"items",
                             "Items",
                             "What models answered, item by item: options with their tokens colored by log-likelihood",
                             [](Desk* desk, QWidget* parent) -> View* { return new ItemsView(desk, parent); },
                             ViewGroup::results,
                             with_items};

}  // namespace headscope::widgets
