// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/evaluate_dialog.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPushButton>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "core/figures/options/figure_arguments.h"
#include "widgets/file_dialog.h"

namespace headscope::widgets {
namespace {

constexpr int kEvaluateKey = Qt::UserRole;

QStringList ticked_keys(const QListWidget& list) {
    QStringList keys;
    for (int i = 0; i < list.count(); ++i)
        if (list.item(i)->checkState() == Qt::Checked) keys << list.item(i)->data(kEvaluateKey).toString();
    return keys;
}

}  // namespace

EvaluateDialog::EvaluateDialog(QWidget* parent) : QDialog(parent) {
    setWindowTitle(tr("Evaluate"));
    setObjectName(QStringLiteral("evaluate_dialog"));
    resize(760, 560);
    build();
    update_state();
}

void EvaluateDialog::build() {
    const auto named = [](QWidget* made, const char* name, const QString& label, const QString& about) {
        made->setObjectName(QLatin1String(name));
        made->setAccessibleName(label);
        made->setToolTip(about);
    };
    const auto touched = [this] {
        if (filling_) return;
        update_state();
        Q_EMIT changed();
    };
    models_ = new QListWidget(this);
    named(models_, "evaluate_models", tr("Models"), tr("Open checkpoints, and the best snapshots of open runs"));
    tasks_ = new QListWidget(this);
    named(tasks_, "evaluate_tasks", tr("Tasks"), tr("Tasks to evaluate. Point at one for its data set"));
    for (QListWidget* list : {models_, tasks_}) {
        list->setSelectionMode(QAbstractItemView::SingleSelection);
        list->setWordWrap(true);
        connect(list, &QListWidget::itemChanged, this, touched);
    }
    set_ = new QComboBox(this);
    named(set_, "evaluate_set", tr("Set of tasks"), tr("Tick exactly the tasks of a paper's table"));
    connect(set_, &QComboBox::currentIndexChanged, this, [this] {
        if (!filling_) take_set();
    });
    auto* lists = new QHBoxLayout;
    auto* left = new QVBoxLayout;
    left->addWidget(new QLabel(tr("Models"), this));
    left->addWidget(models_, 1);
    auto* right = new QVBoxLayout;
    auto* heading = new QHBoxLayout;
    heading->addWidget(new QLabel(tr("Tasks"), this));
    heading->addWidget(set_, 1);
    right->addLayout(heading);
    right->addWidget(tasks_, 1);
    lists->addLayout(left, 1);
    lists->addLayout(right, 1);

    data_ = new QLineEdit(this);
    named(data_, "evaluate_data", tr("Data"),
          tr("Folder of the data sets (TASK/SPLIT.jsonl). For tasks on text: a file or folder of text, or a corpus"));
    texts_ = new QToolButton(this);
    texts_->setText(tr("Texts"));
    texts_->setPopupMode(QToolButton::InstantPopup);
    texts_->setMenu(new QMenu(texts_));
    named(texts_, "evaluate_texts", tr("Texts"), tr("Bundled texts, corpora, and the texts of the text panel"));
    auto* browse = new QPushButton(tr("Choose…"), this);
    named(browse, "evaluate_browse", tr("Choose the folder of the data"), tr("Choose the folder of the data sets"));
    connect(browse, &QPushButton::clicked, this, [this] {
        ask_for_file(this, {tr("Choose the folder of the data sets"), {}, QFileDialog::Directory},
                     [this](const QString& path) { data_->setText(path); });
    });
    auto* data_row = new QHBoxLayout;
    data_row->addWidget(data_, 1);
    data_row->addWidget(texts_);
    data_row->addWidget(browse);
    lengths_ = new QLineEdit(this);
    lengths_->setPlaceholderText(tr("as each model reads"));
    named(lengths_, "evaluate_lengths", tr("Lengths"), tr("Tokens of context, separated by commas: 512,1024,2048"));
    shots_ = new QSpinBox(this);
    shots_->setRange(0, 64);
    named(shots_, "evaluate_shots", tr("Examples"), tr("Solved examples before each item"));
    limit_ = new QSpinBox(this);
    limit_->setRange(0, 1'000'000);
    limit_->setSpecialValueText(tr("all"));
    named(limit_, "evaluate_limit", tr("Items"), tr("At most this many items of each task"));
    baselines_ = new QCheckBox(tr("Add rows for guessing and for the most frequent answer"), this);
    named(baselines_, "evaluate_baselines", tr("Baselines"), tr("Rows for chance and for the majority answer"));
    device_label_ = new QLabel(tr("Device"), this);
    device_ = new DeviceBox(this);
    named(device_, "evaluate_device", tr("Device"), tr("Where the models are computed"));
    device_label_->hide();
    device_->hide();
    connect(device_, &QComboBox::currentIndexChanged, this, touched);
    for (QLineEdit* edit : {data_, lengths_}) connect(edit, &QLineEdit::textChanged, this, touched);
    for (QSpinBox* box : {shots_, limit_}) connect(box, &QSpinBox::valueChanged, this, touched);
    connect(baselines_, &QCheckBox::toggled, this, touched);
    auto* form = new QFormLayout;
    form->addRow(tr("Data"), data_row);
    form->addRow(tr("Lengths"), lengths_);
    form->addRow(tr("Examples"), shots_);
    form->addRow(tr("Items"), limit_);
    form->addRow(tr("Baselines"), baselines_);
    form->addRow(device_label_, device_);
    command_ = new QLineEdit(this);
    command_->setReadOnly(true);
    named(command_, "evaluate_command", tr("Command"), tr("The command that does the same"));
    form->addRow(tr("Command"), command_);

    problem_ = new QLabel(this);
    problem_->setObjectName(QStringLiteral("evaluate_problem"));
    problem_->setTextFormat(Qt::PlainText);
    problem_->setWordWrap(true);
    evaluate_ = new QPushButton(tr("Evaluate"), this);
    evaluate_->setDefault(true);
    named(evaluate_, "evaluate_begin", evaluate_->text(),
          tr("Start the evaluation in a process of its own, at low priority"));
    connect(evaluate_, &QPushButton::clicked, this, [this] {
        const EvaluateChoice chosen = choice();
        QStringList names;
        for (const auto& model : offer_.models)
            if (chosen.models.contains(model.place)) names << model.name;
        hide();
        Q_EMIT evaluate_wanted(evaluate_words(offer_, chosen), names);
    });
    auto* close = new QPushButton(tr("Close"), this);
    named(close, "evaluate_close", close->text(), tr("Close; the choices stay"));
    connect(close, &QPushButton::clicked, this, &QDialog::hide);
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(problem_, 1);
    buttons->addWidget(evaluate_);
    buttons->addWidget(close);
    auto* column = new QVBoxLayout(this);
    column->addLayout(lists, 1);
    column->addLayout(form);
    column->addLayout(buttons);
}

void EvaluateDialog::set_offer(const EvaluateOffer& offer) {
    if (offer == offer_) return;  // lists keep their place: offers come with each change of the text panel
    const EvaluateChoice before = choice();
    offer_ = offer;
    filling_ = true;
    const auto add = [](QListWidget* list, const QString& key, const QString& text, const QString& about, bool able) {
        auto* item = new QListWidgetItem(text, list);
        item->setData(kEvaluateKey, key);
        item->setToolTip(about);
        item->setFlags(able ? Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsUserCheckable : Qt::NoItemFlags);
        item->setCheckState(Qt::Unchecked);
    };
    models_->clear();
    for (const auto& model : offer_.models) {
        const bool able = model.refusal.isEmpty();
        add(models_, model.place, able ? model.name : QStringLiteral("%1: %2").arg(model.name, model.refusal),
            model.about, able);
    }
    tasks_->clear();
    for (const auto& task : offer_.tasks) {
        const QString summary = task.about.section(QLatin1Char('\n'), 0, 0);
        add(tasks_, task.name, summary.isEmpty() ? task.name : QStringLiteral("%1: %2").arg(task.name, summary),
            task.about, true);
    }
    set_->clear();
    set_->addItem(tr("Own choice"));
    for (const auto& set : offer_.sets) {
        set_->addItem(tr("%1 (%2 tasks)").arg(set.title).arg(set.tasks.size()), set.tasks);
        set_->setItemData(set_->count() - 1, set.about, Qt::ToolTipRole);
    }
    fill_texts();
    filling_ = false;
    set_choice(before);
}

void EvaluateDialog::fill_texts() {
    QMenu* menu = texts_->menu();
    menu->clear();
    for (const auto& text : offer_.texts) {
        const bool able = text.refusal.isEmpty();
        QAction* action = menu->addAction(able ? text.title : QStringLiteral("%1: %2").arg(text.title, text.refusal),
                                          this, [this, text] {
                                              if (text.content.isEmpty())
                                                  set_data(text.value);
                                              else
                                                  Q_EMIT text_wanted(text.title, text.content);
                                          });
        action->setEnabled(able);
    }
    texts_->setEnabled(!offer_.texts.empty());
}

void EvaluateDialog::set_data(const QString& paths) {
    data_->setText(paths);
}

void EvaluateDialog::set_devices(const std::vector<DeviceCard>& devices) {
    filling_ = true;
    device_->set_devices(devices);
    filling_ = false;
    device_label_->setHidden(devices.empty());
    device_->setHidden(devices.empty());
    update_state();
}

void EvaluateDialog::set_choice(const EvaluateChoice& choice) {
    filling_ = true;
    const auto tick = [](QListWidget* list, const QStringList& keys) {
        for (int i = 0; i < list->count(); ++i) {
            QListWidgetItem* item = list->item(i);
            const bool on = (item->flags() & Qt::ItemIsEnabled) && keys.contains(item->data(kEvaluateKey).toString());
            item->setCheckState(on ? Qt::Checked : Qt::Unchecked);
        }
    };
    tick(models_, choice.models);
    tick(tasks_, choice.tasks);
    if (models_->count() == 1 && (models_->item(0)->flags() & Qt::ItemIsEnabled))
        models_->item(0)->setCheckState(Qt::Checked);
    data_->setText(choice.data);
    lengths_->setText(choice.lengths);
    shots_->setValue(choice.shots);
    limit_->setValue(static_cast<int>(choice.limit));
    baselines_->setChecked(choice.baselines);
    device_->choose(choice.device);
    filling_ = false;
    update_state();
}

EvaluateChoice EvaluateDialog::choice() const {
    EvaluateChoice choice;
    choice.models = ticked_keys(*models_);
    choice.tasks = ticked_keys(*tasks_);
    choice.data = data_->text().trimmed();
    choice.lengths = lengths_->text().trimmed();
    choice.shots = shots_->value();
    choice.limit = limit_->value();
    choice.baselines = baselines_->isChecked();
    choice.device = device_->device();
    return choice;
}

void EvaluateDialog::set_busy(bool busy) {
    busy_ = busy;
    update_state();
}

void EvaluateDialog::take_set() {
    if (set_->currentIndex() <= 0) return;
    EvaluateChoice chosen = choice();
    chosen.tasks = set_->currentData().toStringList();
    set_choice(chosen);
    Q_EMIT changed();
}

/// Shows the set that the ticks make up, the command, and what is missing.
void EvaluateDialog::update_state() {
    const EvaluateChoice chosen = choice();
    filling_ = true;
    int same = 0;
    for (int i = 1; i < set_->count() && same == 0; ++i) {
        const QStringList tasks = set_->itemData(i).toStringList();
        const bool all =
            std::all_of(tasks.begin(), tasks.end(), [&](const QString& task) { return chosen.tasks.contains(task); });
        if (all && tasks.size() == chosen.tasks.size()) same = i;
    }
    set_->setCurrentIndex(same);
    filling_ = false;
    const QString problem = problem_of(offer_, chosen);
    problem_->setText(busy_ ? tr("An evaluation is running: wait for it, or stop it") : problem);
    evaluate_->setEnabled(problem.isEmpty() && !busy_);
    std::vector<std::string> words;
    for (const QString& word : evaluate_words(offer_, chosen)) words.push_back(word.toStdString());
    command_->setText(QString::fromStdString(figures::shell_command(words)));
    command_->setCursorPosition(0);
}

}  // namespace headscope::widgets
