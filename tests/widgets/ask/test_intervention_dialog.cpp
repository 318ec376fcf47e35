// SPDX-License-Identifier: GPL-3.0-or-later
// Interventions as a table and as text, each of which changes the other; the text panel keeps them.
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableWidget>
#include <QToolButton>
#include <catch2/catch.hpp>

#include "tests/widgets/child.h"
#include "widgets/panels/ask/intervention_dialog.h"
#include "widgets/panels/text_panel.h"
#include "widgets/plain_edit.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope::widgets;

namespace {

using headscope::tests::child;

const QString kSilence =
    QStringLiteral("[[intervention]]\npoint = \"head_output\"\nlayer = [3]\nheads = [1, 4]\nwhat = \"zero\"\n");

}  // namespace

TEST_CASE("The table of interventions writes their text, and is filled from it", "[intervention_dialog]") {
    ensure_application();
    InterventionDialog dialog;
    auto* table = child<QTableWidget>(dialog, "intervention_table");
    auto* text = child<PlainEdit>(dialog, "intervention_text");
    CHECK(table->rowCount() == 0);
    child<QPushButton>(dialog, "intervention_add")->click();
    REQUIRE(table->rowCount() == 1);
    table->item(0, 1)->setText("3");
    table->item(0, 2)->setText("1,4");
    CHECK(text->toPlainText() == kSilence);
    auto* what = qobject_cast<QComboBox*>(table->cellWidget(0, 4));
    REQUIRE(what);
    what->setCurrentText("mean");
    CHECK(text->toPlainText().contains("what = \"mean\""));
    text->setPlainText(kSilence + "\n[[intervention]]\npoint = \"scores\"\nwhat = \"forbid\"\nkeys = \"0\"\n");
    REQUIRE(table->rowCount() == 2);
    CHECK(table->item(1, 5)->text() == "keys = \"0\"");
    CHECK(qobject_cast<QComboBox*>(table->cellWidget(1, 0))->currentText() == "scores");
    table->setCurrentCell(1, 1);
    child<QPushButton>(dialog, "intervention_remove")->click();
    CHECK(text->toPlainText() == kSilence);
}

TEST_CASE("A wrong cell or text cannot be used, and says why", "[intervention_dialog]") {
    ensure_application();
    InterventionDialog dialog;
    dialog.set_interventions({kSilence, {}});
    auto* table = child<QTableWidget>(dialog, "intervention_table");
    auto* apply = child<QPushButton>(dialog, "intervention_apply");
    auto* problem = child<QLabel>(dialog, "intervention_problem");
    CHECK(apply->isEnabled());
    table->item(0, 2)->setText("first");
    CHECK_FALSE(apply->isEnabled());
    CHECK(problem->text().contains("intervention 1: heads"));
    table->item(0, 2)->setText("0");
    CHECK(apply->isEnabled());
    CHECK(problem->text().isEmpty());
    child<PlainEdit>(dialog, "intervention_text")->setPlainText("[[intervention");
    CHECK_FALSE(apply->isEnabled());
    CHECK_FALSE(problem->text().isEmpty());
}

TEST_CASE("The text panel keeps interventions with its other choices", "[intervention_dialog]") {
    ensure_application();
    TextPanel panel;
    auto* button = child<QToolButton>(panel, "text_interventions");
    QSignalSpy wanted(&panel, &TextPanel::interventions_wanted), changed(&panel, &TextPanel::changed);
    CHECK(button->text() == "None…");
    button->click();
    CHECK(wanted.count() == 1);
    InterventionDialog dialog;
    QObject::connect(&dialog, &InterventionDialog::applied, &panel, &TextPanel::set_interventions);
    dialog.set_interventions({kSilence, "/plans/silence.toml"});
    child<QPushButton>(dialog, "intervention_apply")->click();
    CHECK(button->text() == "1 intervention…");
    CHECK(changed.count() == 1);
    const TextChoice choice = panel.choice();
    CHECK(choice.interventions == InterventionText{kSilence, "/plans/silence.toml"});
    CHECK(text_choice_from(to_json(choice)).interventions == choice.interventions);
    child<QPushButton>(dialog, "intervention_none")->click();
    CHECK(panel.choice().interventions == InterventionText{});
    panel.set_choice(choice);
    CHECK(panel.interventions() == choice.interventions);
}
