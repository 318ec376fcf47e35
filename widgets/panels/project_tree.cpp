// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/project_tree.h"

#include <QHeaderView>
#include <QLocale>
#include <QMenu>
#include <algorithm>

#include "core/workspace/computed_on.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/training/facts.h"

namespace headscope::widgets {
namespace {

constexpr int kIdRole = Qt::UserRole;
constexpr Qt::ItemFlags kUsual = Qt::ItemIsEnabled | Qt::ItemIsSelectable;

QTreeWidgetItem* section(QTreeWidget* tree, const QString& text) {
    auto* item = new QTreeWidgetItem(tree, {text});
    item->setFlags(Qt::ItemIsEnabled);
    QFont bold = tree->font();
    bold.setBold(true);
    item->setFont(0, bold);
    item->setExpanded(true);
    return item;
}

}  // namespace

ProjectTree::ProjectTree(Desk* desk, QWidget* parent) : QTreeWidget(parent), desk_(desk) {
    setObjectName(QStringLiteral("project_tree"));
    setAccessibleName(tr("Open models, texts, analyses, runs, evaluations and ask files"));
    setHeaderHidden(true);
    setContextMenuPolicy(Qt::CustomContextMenu);
    setFrameShape(QFrame::NoFrame);
    models_ = section(this, tr("Models"));
    texts_ = section(this, tr("Texts"));
    studies_ = section(this, tr("Analyses"));
    runs_ = section(this, tr("Runs"));
    evaluations_ = section(this, tr("Evaluations"));
    asks_ = section(this, tr("Ask files"));
    connect(&desk_->asks(), &AskShelf::changed, this, &ProjectTree::fill_asks);
    connect(&desk_->evaluations(), &EvaluationShelf::changed, this, &ProjectTree::fill_evaluations);
    connect(&desk_->runs(), &RunShelf::runs_changed, this, &ProjectTree::fill_runs);
    connect(&desk_->runs(), &RunShelf::moment_changed, this, &ProjectTree::fill_runs);
    connect(desk_, &Desk::studies_changed, this, &ProjectTree::fill_studies);
    connect(desk_, &Desk::selection_changed, this, &ProjectTree::follow);
    connect(this, &QTreeWidget::customContextMenuRequested, this, &ProjectTree::open_menu);
    connect(this, &QTreeWidget::currentItemChanged, this, [this](QTreeWidgetItem* item) {
        if (filling_ || !item) return;
        const int id = item->data(0, kIdRole).toInt();
        const QTreeWidgetItem* in = item->parent();  // a slot may delete the item
        if (in == models_) return Q_EMIT model_chosen(id);
        if (in == texts_) return Q_EMIT text_chosen(id);
        if (in == studies_) return desk_->select_study(id);
        if (in == runs_) return Q_EMIT run_chosen(id);
        if (in == evaluations_) return Q_EMIT evaluation_chosen(id);
        if (in == asks_) return Q_EMIT ask_chosen(id);
    });
    fill_studies();
    fill_runs();
    fill_evaluations();
    fill_asks();
    set_models({});
    set_texts({});
}

void ProjectTree::set_models(const std::vector<ModelCard>& models) {
    filling_ = true;
    qDeleteAll(models_->takeChildren());
    for (const ModelCard& card : models) {
        auto* item = new QTreeWidgetItem(models_, {card.name});
        item->setData(0, kIdRole, card.id);
        if (card.tensors_only) {
            item->setText(0, tr("%1 – tensors only").arg(card.name));
            item->setToolTip(0, card.path + QLatin1Char('\n') + card.note);
            continue;
        }
        item->setToolTip(0, tr("%1\n%2: %3 layers, %4 parameters%5")
                                .arg(card.path, card.family)
                                .arg(card.layers)
                                .arg(QLocale::c().toString(static_cast<qlonglong>(card.parameters)))
                                .arg(card.loaded ? tr("\nweights in memory") : QString()));
    }
    if (models.empty()) {
        auto* hint = new QTreeWidgetItem(models_, {tr("none open")});
        hint->setFlags(Qt::NoItemFlags);
    }
    filling_ = false;
}

void ProjectTree::set_texts(const QStringList& texts) {
    if (texts == shown_texts_) return;
    shown_texts_ = texts;
    filling_ = true;
    qDeleteAll(texts_->takeChildren());
    for (int i = 0; i < texts.size(); ++i) {
        auto* item = new QTreeWidgetItem(texts_, {texts[i]});
        item->setData(0, kIdRole, i);
        item->setToolTip(0, texts[i]);
    }
    texts_->setHidden(texts.isEmpty());
    filling_ = false;
}

void ProjectTree::fill_studies() {
    filling_ = true;
    const auto studies = desk_->studies();
    const std::vector<QString> labels = study_labels({studies.begin(), studies.end()});
    const int rows = std::max(1, static_cast<int>(studies.size()));  // a hint where there is none
    while (studies_->childCount() > rows) delete studies_->takeChild(studies_->childCount() - 1);
    while (studies_->childCount() < rows) new QTreeWidgetItem(studies_);
    for (int i = 0; i < static_cast<int>(studies.size()); ++i) {
        const Study* study = studies[static_cast<std::size_t>(i)];
        QString state;
        if (study->running())
            state = tr(" – running");
        else if (!study->complete())
            state = tr(" – incomplete");
        else if (!study->problems().isEmpty())
            state = tr(" – contains NaN or infinity");
        QTreeWidgetItem* item = studies_->child(i);
        item->setText(0, labels[static_cast<std::size_t>(i)] + state);
        item->setFlags(kUsual);
        item->setData(0, kIdRole, study->id());
        QStringList tip(tr("%1\n%2, %3")
                            .arg(QString::fromStdString(study->path().string()), study->model_name(),
                                 sequences_words(study->sequences())));
        if (const auto computed = workspace::computed_on(study->header()); !computed.device.empty())
            tip << tr("Computed on %1, %2 kernels")
                       .arg(QString::fromStdString(computed.device), QString::fromStdString(computed.kernels));
        item->setToolTip(0, (tip + study->problems()).join(QLatin1Char('\n')));
    }
    if (studies.empty()) {
        QTreeWidgetItem* hint = studies_->child(0);
        hint->setText(0, tr("none yet"));
        hint->setToolTip(0, {});
        hint->setData(0, kIdRole, 0);
        hint->setFlags(Qt::NoItemFlags);
    }
    filling_ = false;
    follow();
}

void ProjectTree::fill_runs() {
    filling_ = true;
    const auto& runs = desk_->runs().runs();
    while (runs_->childCount() > static_cast<int>(runs.size())) delete runs_->takeChild(runs_->childCount() - 1);
    while (runs_->childCount() < static_cast<int>(runs.size())) new QTreeWidgetItem(runs_);
    for (int i = 0; i < runs_->childCount(); ++i) {
        const Run& run = runs[static_cast<std::size_t>(i)];
        QTreeWidgetItem* item = runs_->child(i);
        item->setText(0, tr("%1 – %2").arg(run.name, status_words(run.status())));
        item->setData(0, kIdRole, run.id);
        item->setToolTip(0, run.path);
    }
    runs_->setHidden(runs.empty());
    filling_ = false;
}

void ProjectTree::fill_evaluations() {
    filling_ = true;
    const auto& all = desk_->evaluations().all();
    while (evaluations_->childCount() > static_cast<int>(all.size()))
        delete evaluations_->takeChild(evaluations_->childCount() - 1);
    while (evaluations_->childCount() < static_cast<int>(all.size())) new QTreeWidgetItem(evaluations_);
    for (int i = 0; i < evaluations_->childCount(); ++i) {
        const OpenEvaluation& one = all[static_cast<std::size_t>(i)];
        QTreeWidgetItem* item = evaluations_->child(i);
        item->setText(0, one.name);
        item->setData(0, kIdRole, one.id);
        item->setToolTip(0, one.path + QLatin1Char('\n') + EvaluationShelf::about(*one.record));
    }
    evaluations_->setHidden(all.empty());
    filling_ = false;
}

void ProjectTree::fill_asks() {
    filling_ = true;
    const auto& all = desk_->asks().all();
    while (asks_->childCount() > static_cast<int>(all.size())) delete asks_->takeChild(asks_->childCount() - 1);
    while (asks_->childCount() < static_cast<int>(all.size())) new QTreeWidgetItem(asks_);
    for (int i = 0; i < asks_->childCount(); ++i) {
        const OpenAsk& one = all[static_cast<std::size_t>(i)];
        QTreeWidgetItem* item = asks_->child(i);
        item->setText(0, one.name);
        item->setData(0, kIdRole, one.id);
        item->setToolTip(0, one.path + QLatin1Char('\n') + AskShelf::about(*one.record));
    }
    asks_->setHidden(all.empty());
    filling_ = false;
}

void ProjectTree::follow() {
    filling_ = true;
    for (int i = 0; i < studies_->childCount(); ++i) {
        QTreeWidgetItem* item = studies_->child(i);
        if (item->data(0, kIdRole).toInt() == desk_->selection().study && desk_->selection().study != 0)
            setCurrentItem(item);
    }
    filling_ = false;
}

void ProjectTree::open_menu(const QPoint& place) {
    const QTreeWidgetItem* item = itemAt(place);
    if (!item || !item->parent() || !(item->flags() & Qt::ItemIsEnabled)) return;
    const int id = item->data(0, kIdRole).toInt();
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    if (item->parent() == models_) {
        menu->addAction(tr("Use for the next run"), this, [this, id] { Q_EMIT model_chosen(id); });
        menu->addAction(tr("Tensors"), this, [this, id] { Q_EMIT tensors_wanted(id); });
        menu->addAction(tr("Close"), this, [this, id] { Q_EMIT model_close_wanted(id); });
    } else if (item->parent() == studies_) {
        const Study* study = desk_->study(id);
        if (!study) return;
        const QString folder = QString::fromStdString(study->path().parent_path().string());
        menu->addAction(tr("Rename…"), this, [this, id] { Q_EMIT study_rename_wanted(id); });
        menu->addAction(tr("Save a copy as…"), this, [this, id] { Q_EMIT study_save_wanted(id); })
            ->setEnabled(study->complete());
        menu->addAction(tr("Show its folder"), this, [this, folder] { Q_EMIT folder_wanted(folder); });
        menu->addAction(tr("Close"), this, [this, id] { Q_EMIT study_close_wanted(id); });
    } else if (item->parent() == runs_) {
        RunShelf& shelf = desk_->runs();
        menu->addAction(tr("Show its folder"), this, [&shelf, id] { Q_EMIT shelf.folder_wanted(id); });
        menu->addAction(tr("Close (training continues)"), this, [&shelf, id] { Q_EMIT shelf.close_wanted(id); });
    } else if (item->parent() == evaluations_) {
        const OpenEvaluation* one = desk_->evaluations().find(id);
        const QString folder = one ? one->path.section(QLatin1Char('/'), 0, -2) : QString();
        menu->addAction(tr("Show its folder"), this, [this, folder] { Q_EMIT folder_wanted(folder); });
        menu->addAction(tr("Close"), this, [this, id] { Q_EMIT evaluation_close_wanted(id); });
    } else if (item->parent() == asks_) {
        const OpenAsk* one = desk_->asks().find(id);
        const QString folder = one ? one->path.section(QLatin1Char('/'), 0, -2) : QString();
        menu->addAction(tr("Show its folder"), this, [this, folder] { Q_EMIT folder_wanted(folder); });
        menu->addAction(tr("Close"), this, [this, id] { Q_EMIT ask_close_wanted(id); });
    } else {
        delete menu;
        return;
    }
    menu->popup(viewport()->mapToGlobal(place));
}

}  // namespace headscope::widgets
