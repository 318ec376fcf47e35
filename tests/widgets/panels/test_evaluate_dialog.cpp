// SPDX-License-Identifier: GPL-3.0-or-later
// What is chosen to be evaluated: what does not go together, the words of the command, the dialog.
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QToolButton>
#include <catch2/catch.hpp>

#include "tests/widgets/child.h"
#include "widgets/panels/evaluate_dialog.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope::widgets;

namespace {

using headscope::tests::child;
using Data = EvaluateOffer::Data;

EvaluateOffer offer() {
    EvaluateOffer offer;
    offer.models = {{"/models/small", "small", "", "", false},
                    {"/runs/short", "short", "", "", true},
                    {"/models/bare", "bare", "", "it has no tokenizer", false},
                    {"/models/large\n/adapters/one", "large + one", "", "", false}};
    offer.tasks = {{"copa", "", Data::items, true},
                   {"lambada_openai", "", Data::items, false},
                   {"perplexity", "", Data::text, false},
                   {"niah_single_1", "", Data::made, false}};
    offer.sets = {{"Both", "", {"copa", "lambada_openai"}}, {"Lookup", "", {"niah_single_1"}}};
    offer.texts = {{"Bundled text prose", "/texts/prose.txt", "", ""},
                   {"Text “In the”", "", "In the beginning", ""},
                   {"Corpus The Bible", "kjv", "", "install the package bible"}};
    return offer;
}

EvaluateChoice chosen(const QStringList& models, const QStringList& tasks, const QString& data = {}) {
    EvaluateChoice choice;
    choice.models = models;
    choice.tasks = tasks;
    choice.data = data;
    return choice;
}

bool refused(const EvaluateChoice& choice, const char* words) {
    const QString problem = problem_of(offer(), choice);
    INFO(problem.toStdString());
    CHECK(problem.contains(QLatin1String(words)));
    return !problem.isEmpty();
}

QListWidgetItem* entry(QListWidget& list, const QString& text) {
    for (int i = 0; i < list.count(); ++i)
        if (list.item(i)->text().startsWith(text)) return list.item(i);
    FAIL("no entry " << text.toStdString());
    return nullptr;
}

}  // namespace

TEST_CASE("What does not go together is refused with its reason", "[evaluate_dialog]") {
    CHECK(refused(chosen({}, {"copa"}, "/data"), "a model"));
    CHECK(refused(chosen({"/models/gone"}, {"copa"}, "/data"), "a model"));
    CHECK(refused(chosen({"/models/small"}, {}), "a task"));
    CHECK(refused(chosen({"/models/bare"}, {"copa"}, "/data"), "no tokenizer"));
    CHECK(refused(chosen({"/models/small"}, {"copa"}), "folder of the data sets for copa"));
    CHECK(refused(chosen({"/models/small"}, {"copa", "perplexity"}, "/data"), "one after the other"));
    CHECK(refused(chosen({"/models/small"}, {"niah_single_1", "perplexity"}, "/data"), "one after the other"));
    CHECK(refused(chosen({"/models/small"}, {"perplexity"}), "choose one under Texts"));
    CHECK(refused(chosen({"/models/small", "/models/large\n/adapters/one"}, {"copa"}, "/data"), "adapter"));
    EvaluateChoice choice = chosen({"/models/small"}, {"copa", "lambada_openai"}, "/data");
    choice.shots = 5;
    CHECK(refused(choice, "lambada_openai takes no examples"));
    choice.shots = 0;
    for (const char* lengths : {"128,", "0", "a", "-1"}) {
        choice.lengths = QLatin1String(lengths);
        CHECK(refused(choice, "Lengths"));
    }
    choice.lengths = QStringLiteral("128, 256");
    CHECK(problem_of(offer(), choice).isEmpty());
    CHECK(problem_of(offer(), chosen({"/runs/short"}, {"perplexity"})).isEmpty());
    CHECK(problem_of(offer(), chosen({"/models/small"}, {"niah_single_1"})).isEmpty());
    CHECK(problem_of(offer(), chosen({"/models/small"}, {"copa", "niah_single_1"}, "/data")).isEmpty());
}

TEST_CASE("A choice becomes the words of the command", "[evaluate_dialog]") {
    EvaluateChoice choice = chosen({"/models/small", "/runs/short"}, {"lambada_openai", "copa"}, "/data sets");
    CHECK(evaluate_words(offer(), choice) == QStringList{"evaluate", "/models/small", "/runs/short", "--task",
                                                         "copa,lambada_openai", "--data", "/data sets"});
    choice.tasks = QStringList{"copa"};
    choice.lengths = QStringLiteral("128, 256");
    choice.shots = 5;
    choice.limit = 100;
    choice.baselines = true;
    CHECK(evaluate_words(offer(), choice) == QStringList{"evaluate", "/models/small", "/runs/short", "--task", "copa",
                                                         "--data", "/data sets", "--length", "128,256", "--shots", "5",
                                                         "--limit", "100", "--baselines"});
    // Options that a task does not have are left out.
    choice = chosen({"/models/large\n/adapters/one"}, {"niah_single_1"});
    choice.limit = 20;
    choice.baselines = true;
    CHECK(evaluate_words(offer(), choice) == QStringList{"evaluate", "/models/large", "--adapter", "/adapters/one",
                                                         "--task", "niah_single_1", "--sequences", "20"});
    choice = chosen({"/runs/short"}, {"perplexity"});
    choice.device = QStringLiteral("cuda:1");
    CHECK(evaluate_words(offer(), choice) ==
          QStringList{"evaluate", "/runs/short", "--task", "perplexity", "--device", "cuda:1"});
}

TEST_CASE("A choice is kept, whatever its file has become", "[evaluate_dialog]") {
    EvaluateChoice choice = chosen({}, {"copa"}, "/data");
    choice.lengths = QStringLiteral("64");
    choice.shots = 3;
    choice.limit = 7;
    choice.baselines = true;
    choice.device = QStringLiteral("cuda:1");
    CHECK(evaluate_choice_from(to_json(choice)) == choice);
    CHECK(evaluate_choice_from({}) == EvaluateChoice());
    CHECK(evaluate_choice_from({{"tasks", 3}, {"shots", -4}, {"limit", 1e300}, {"data", true}}) == EvaluateChoice());
}

TEST_CASE("The dialog offers what can be evaluated, and says why the rest cannot", "[evaluate_dialog]") {
    ensure_application();
    EvaluateDialog dialog;
    dialog.set_offer(offer());
    dialog.show();
    auto* models = child<QListWidget>(dialog, "evaluate_models");
    auto* tasks = child<QListWidget>(dialog, "evaluate_tasks");
    auto* begin = child<QPushButton>(dialog, "evaluate_begin");
    auto* problem = child<QLabel>(dialog, "evaluate_problem");
    CHECK(models->count() == 4);
    const QListWidgetItem* bare = entry(*models, QStringLiteral("bare"));
    CHECK(bare->text().contains(QStringLiteral("it has no tokenizer")));
    CHECK_FALSE(bare->flags() & Qt::ItemIsEnabled);
    CHECK_FALSE(begin->isEnabled());
    CHECK_FALSE(problem->text().isEmpty());

    QSignalSpy changed(&dialog, &EvaluateDialog::changed);
    entry(*models, QStringLiteral("small"))->setCheckState(Qt::Checked);
    entry(*models, QStringLiteral("short"))->setCheckState(Qt::Checked);
    CHECK(changed.count() == 2);
    auto* set = child<QComboBox>(dialog, "evaluate_set");
    set->setCurrentIndex(set->findText(QStringLiteral("Both (2 tasks)")));
    CHECK(entry(*tasks, QStringLiteral("copa"))->checkState() == Qt::Checked);
    CHECK(entry(*tasks, QStringLiteral("lambada_openai"))->checkState() == Qt::Checked);
    CHECK(entry(*tasks, QStringLiteral("perplexity"))->checkState() == Qt::Unchecked);
    CHECK(problem->text().contains(QStringLiteral("copa")));
    child<QLineEdit>(dialog, "evaluate_data")->setText(QStringLiteral("/data sets"));
    CHECK(problem->text().isEmpty());
    CHECK(begin->isEnabled());
    CHECK(
        child<QLineEdit>(dialog, "evaluate_command")->text() ==
        QStringLiteral("headscope evaluate /models/small /runs/short --task copa,lambada_openai --data '/data sets'"));
    // One task less is no set any more.
    entry(*tasks, QStringLiteral("lambada_openai"))->setCheckState(Qt::Unchecked);
    CHECK(set->currentIndex() == 0);

    dialog.set_busy(true);
    CHECK_FALSE(begin->isEnabled());
    dialog.set_busy(false);
    QSignalSpy wanted(&dialog, &EvaluateDialog::evaluate_wanted);
    begin->click();
    REQUIRE(wanted.count() == 1);
    CHECK(wanted.front().at(0).toStringList() == evaluate_words(offer(), dialog.choice()));
    CHECK(wanted.front().at(1).toStringList() == QStringList{"small", "short"});
    CHECK_FALSE(dialog.isVisible());

    // A newer offer leaves what is ticked, as far as it is there.
    EvaluateOffer less = offer();
    std::erase_if(less.models, [](const auto& model) { return model.name == "short"; });
    dialog.set_offer(less);
    CHECK(dialog.choice().models == QStringList{"/models/small"});
    CHECK(dialog.choice().data == QStringLiteral("/data sets"));
    less.models.assign(1, offer().models[1]);
    dialog.set_offer(less);
    CHECK(dialog.choice().models == QStringList{"/runs/short"});  // there is nothing to choose
    for (const QWidget* widget : dialog.findChildren<QWidget*>()) {
        const bool control = qobject_cast<const QAbstractButton*>(widget) || qobject_cast<const QComboBox*>(widget) ||
                             qobject_cast<const QListWidget*>(widget);
        if (!control || widget->objectName().startsWith(QStringLiteral("qt_"))) continue;
        INFO(widget->objectName().toStdString());
        CHECK_FALSE(widget->accessibleName().isEmpty());
        CHECK_FALSE(widget->toolTip().isEmpty());
    }
}

TEST_CASE("The dialog offers the GPUs of the machine, and no device without any", "[evaluate_dialog]") {
    ensure_application();
    EvaluateDialog dialog;
    dialog.set_offer(offer());
    EvaluateChoice choice = chosen({"/runs/short"}, {"perplexity"});
    choice.device = QStringLiteral("cuda:1");
    dialog.set_choice(choice);
    auto* box = child<QComboBox>(dialog, "evaluate_device");
    CHECK(box->isHidden());
    CHECK(dialog.choice().device == "cuda:1");  // of a session, before the GPUs are listed
    const QString none = QStringLiteral("no libheadscope_gpu_cuda.so");
    dialog.set_devices({{QStringLiteral("cuda:0"), QStringLiteral("A card"), -1, none},
                        {QStringLiteral("cuda:1"), QStringLiteral("B card"), 70.3e9, {}}});
    CHECK_FALSE(box->isHidden());
    REQUIRE(box->count() == 3);
    CHECK(box->currentText() == "cuda:1 B card, 70.3 GB free");
    CHECK(box->itemData(1, Qt::ToolTipRole).toString() == "Found " + none);
    CHECK(child<QLineEdit>(dialog, "evaluate_command")->text().contains(QStringLiteral("--device")));
    dialog.set_offer({});
    CHECK(dialog.choice().device == "cuda:1");
    QSignalSpy changed(&dialog, &EvaluateDialog::changed);
    box->setCurrentIndex(0);
    CHECK(changed.count() == 1);
    CHECK(dialog.choice().device == "cpu");
    CHECK_FALSE(child<QLineEdit>(dialog, "evaluate_command")->text().contains(QStringLiteral("--device")));
    dialog.set_choice(choice);
    dialog.set_devices({});
    CHECK(box->isHidden());
    CHECK(dialog.choice().device == "cpu");
}

TEST_CASE("An equal offer leaves the lists where they are", "[evaluate_dialog]") {
    ensure_application();
    EvaluateDialog dialog;
    dialog.set_offer(offer());
    auto* tasks = child<QListWidget>(dialog, "evaluate_tasks");
    tasks->setCurrentRow(2);
    dialog.set_offer(offer());
    CHECK(tasks->currentRow() == 2);
}

TEST_CASE("Texts and corpora are offered as data", "[evaluate_dialog]") {
    ensure_application();
    EvaluateDialog dialog;
    dialog.set_offer(offer());
    auto* data = child<QLineEdit>(dialog, "evaluate_data");
    const QList<QAction*> texts = child<QToolButton>(dialog, "evaluate_texts")->menu()->actions();
    REQUIRE(texts.size() == 3);
    CHECK(texts[0]->text() == "Bundled text prose");
    texts[0]->trigger();
    CHECK(data->text() == "/texts/prose.txt");
    // A typed text is written to a file first.
    QSignalSpy wanted(&dialog, &EvaluateDialog::text_wanted);
    texts[1]->trigger();
    REQUIRE(wanted.count() == 1);
    CHECK(wanted.front().at(1).toString() == "In the beginning");
    dialog.set_data(QStringLiteral("/evaluations/texts/a.txt"));
    CHECK(dialog.choice().data == "/evaluations/texts/a.txt");
    CHECK_FALSE(texts[2]->isEnabled());
    CHECK(texts[2]->text().contains("install the package bible"));
}
