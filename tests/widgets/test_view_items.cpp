// SPDX-License-Identifier: GPL-3.0-or-later
// The items of an evaluation: the list and its filters, one item with its tokens, the way to an analysis.
#include <QAbstractItemModelTester>
#include <QAction>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QElapsedTimer>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/core/base/temporary_folder.h"
#include "tests/widgets/child.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/text/banner.h"
#include "widgets/text/text_area.h"
#include "widgets/views/items/items.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

using tests::child;

store::EvaluatedItem copa_item(std::int64_t model, std::int64_t number, std::int64_t chosen) {
    store::EvaluatedItem item;
    item.model = model;
    item.task = "copa";
    item.length = 64;
    item.item = number;
    item.gold = 1;
    item.chosen = chosen;
    item.right = chosen == 1;
    const std::string context = "It rained on day " + std::to_string(number) + " because";
    item.texts = R"({"requests": [{"context": ")" + context + R"(", "continuation": "  the sun shone.",
        "loglikelihood": -9.5, "greedy": false, "pieces": [["  the", -1.5], [" sun\n", -6.0], [" shone.", -2.0]]},
        {"context": ")" +
                 context + R"(", "continuation": "  clouds came.", "loglikelihood": -4.25, "greedy": true,
        "pieces": [["  clouds", -4.0], [" came.", -0.25]]}]})";
    return item;
}

/// Two models on copa, of which the second was asked less; one on winogrande, fda and wikitext.
store::Evaluation sample(std::int64_t items = 6) {
    store::Evaluation evaluation;
    for (const char* name : {"small", "large"}) {
        store::EvaluatedModel model;
        model.name = name;
        model.path = std::string("/made/") + name;
        model.mixer = model.layout = model.layer_mixers = "standard";
        model.layers = 1;
        evaluation.models.push_back(model);
        store::EvaluationResult result;
        result.model = static_cast<std::int64_t>(evaluation.models.size()) - 1;
        result.task = "copa";
        result.metric = "acc";
        result.length = 64;
        result.value = 0.5;
        result.count = items;
        evaluation.results.push_back(result);
    }
    for (std::int64_t i = 0; i < items; ++i) evaluation.items.push_back(copa_item(0, i, i % 2));
    for (std::int64_t i = 0; i + 1 < items; ++i) evaluation.items.push_back(copa_item(1, i, i % 3 == 0 ? 0 : 1));
    store::EvaluatedItem partial = copa_item(0, 0, 0);
    partial.task = "winogrande";
    partial.texts = R"({"requests": [{"context": "Ann saw", "continuation": " him.", "loglikelihood": -1.0,
        "greedy": false, "pieces": [[" him.", -1.0]]}, {"context": "Bob saw", "continuation": " him.",
        "loglikelihood": -2.0, "greedy": false, "pieces": [[" him.", -2.0]]}]})";
    evaluation.items.push_back(partial);
    store::EvaluatedItem said = copa_item(0, 0, -1);
    said.task = "fda";
    said.gold = -1;
    said.right = true;
    said.texts = R"({"prompt": "Serial K12. The serial is", "generated": " k12, k12", "answers": ["K12", "none"]})";
    evaluation.items.push_back(said);
    store::EvaluatedItem page = said;
    page.task = "wikitext";
    page.right = false;
    page.texts = R"({"requests": [{"context": "", "continuation": "a page", "loglikelihood": -3.0, "greedy": false,
        "pieces": [["a", -1.0], [" page", -2.0]]}]})";
    evaluation.items.push_back(page);
    store::EvaluationResult result = evaluation.results.front();
    result.task = "wikitext";
    result.metric = "word_perplexity";
    evaluation.results.push_back(result);
    return evaluation;
}

struct Page {
    explicit Page(const store::Evaluation& evaluation = sample()) {
        store::write_evaluation(file, evaluation);
        path = QString::fromStdString(file.string());
        desk.evaluations().take(path, std::make_shared<const store::Evaluation>(store::read_evaluation(file)));
        view.reset(tests::view_kind("items").make(&desk, nullptr));
        view->resize(1000, 600);
        view->show();
        settle();
    }
    /// Words and finds begin a moment after they are asked for.
    void settle() {
        QTest::qWait(60);
        tests::settle(desk);
    }
    void find(const QString& text) {
        child<QLineEdit>(*view, "items_find")->setText(text);
        QTest::qWait(350);
        tests::settle(desk);
    }
    void choose(const char* box, const QString& text) {
        auto* combo = child<QComboBox>(*view, box);
        REQUIRE(combo->findText(text) >= 0);
        combo->setCurrentIndex(combo->findText(text));
        settle();
    }
    ItemTable* list() { return child<ItemTable>(*view, "items_list"); }
    /// Numbers of the items in the list.
    QList<qlonglong> numbers() {
        QList<qlonglong> all;
        for (int row = 0; row < list()->model()->rowCount(); ++row)
            all << list()->model()->index(row, ItemModel::number_column).data().toLongLong();
        return all;
    }
    TokenTextArea* text() { return child<TokenTextArea>(*view, "items_text"); }
    QString shown() { return text()->text() ? text()->text()->text : QString(); }
    QString token(std::size_t index) {
        const auto& one = text()->text()->tokens.at(index);
        return text()->text()->text.mid(one.begin, one.end - one.begin);
    }

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    std::filesystem::path file = folder / "scores.evaluation.h5";
    QString path;
    Desk desk;
    std::unique_ptr<View> view;
};

}  // namespace

TEST_CASE("Without items there is a way to some", "[items]") {
    ensure_application();
    Desk desk;
    const std::unique_ptr<View> view(tests::view_kind("items").make(&desk, nullptr));
    view->show();
    QSignalSpy plan(&desk.evaluations(), &EvaluationShelf::plan_wanted);
    child<QPushButton>(*view, "notice_action")->click();
    CHECK(plan.count() == 1);
    // A file without items shows a notice.
    desk.evaluations().take(QStringLiteral("/made/one.evaluation.h5"), std::make_shared<const store::Evaluation>());
    tests::settle(desk);
    CHECK(child<QLabel>(*view, "notice_title")->text().contains(QStringLiteral("has items")));
    desk.evaluations().set_evaluating(QStringLiteral("Evaluating small"));
    desk.evaluations().set_progress(QStringLiteral("40 %  copa"));
    tests::settle(desk);
    QSignalSpy stop(&desk.evaluations(), &EvaluationShelf::evaluate_unwanted);
    child<QPushButton>(*view, "notice_action")->click();
    CHECK(stop.count() == 1);
}

TEST_CASE("Items are listed with what was chosen, and filtered", "[items]") {
    Page page;
    CHECK(page.numbers() == QList<qlonglong>{0, 1, 2, 3, 4, 5});
    const auto cell = [&](int row, int column) { return page.list()->model()->index(row, column).data().toString(); };
    CHECK(cell(0, ItemModel::right_column) == QStringLiteral("✗"));
    CHECK(cell(1, ItemModel::right_column) == QStringLiteral("✓"));
    CHECK(cell(0, ItemModel::gold_column) == QStringLiteral("2"));
    CHECK(cell(0, ItemModel::chosen_column) == QStringLiteral("1"));
    CHECK(cell(3, ItemModel::words_column) == QStringLiteral("It rained on day 3 because"));
    CHECK(child<QLabel>(*page.view, "items_count")->text().contains(QStringLiteral("3 are wrong")));
    CHECK(page.list()->isColumnHidden(ItemModel::other_column));

    child<QCheckBox>(*page.view, "items_wrong")->click();
    page.settle();
    CHECK(page.numbers() == QList<qlonglong>{0, 2, 4});
    page.list()->setFocus();
    QTest::keyClick(page.list(), Qt::Key_W);
    page.settle();
    CHECK(page.numbers().size() == 6);

    // Beside each other: the second model has 0 and 3 wrong, and not been asked 5.
    page.choose("items_other", QStringLiteral("large"));
    CHECK_FALSE(page.list()->isColumnHidden(ItemModel::other_column));
    CHECK(cell(1, ItemModel::other_column) == QStringLiteral("✓ 2"));
    CHECK(cell(5, ItemModel::other_column).isEmpty());
    child<QCheckBox>(*page.view, "items_disagree")->click();
    page.settle();
    CHECK(page.numbers() == QList<qlonglong>{2, 3, 4});
    child<QCheckBox>(*page.view, "items_wrong")->click();
    page.settle();
    CHECK(page.numbers() == QList<qlonglong>{2, 4});
    page.find(QStringLiteral("DAY 4"));
    CHECK(page.numbers() == QList<qlonglong>{4});
    page.find(QStringLiteral("no item has this"));
    CHECK(page.numbers().isEmpty());
    CHECK_FALSE(child<QPushButton>(*page.view, "items_analyse")->isEnabled());
    page.find({});
    CHECK(page.numbers() == QList<qlonglong>{2, 4});

    page.choose("items_model", QStringLiteral("large"));
    CHECK(page.numbers() == QList<qlonglong>{0, 3});
    page.choose("items_model", QStringLiteral("small"));
    page.choose("items_task", QStringLiteral("winogrande"));
    CHECK(page.numbers() == QList<qlonglong>{0});
}

TEST_CASE("An item shows its options, their tokens and what they sum to", "[items]") {
    Page page;
    REQUIRE(page.text()->text());
    CHECK(page.shown().count(QStringLiteral("It rained on day 0 because")) == 1);  // one context for both
    const QStringList lines = page.shown().split(QLatin1Char('\n'));
    const auto heading = [&](const char* begin) {
        const auto found = std::find_if(lines.begin(), lines.end(),
                                        [&](const QString& line) { return line.startsWith(QLatin1String(begin)); });
        return found == lines.end() ? QString() : *found;
    };
    CHECK(heading("Option 1").contains(QStringLiteral("● chosen")));
    CHECK_FALSE(heading("Option 1").contains(QStringLiteral("right")));
    CHECK(heading("Option 1").contains(QStringLiteral("-9.500")));
    CHECK(heading("Option 2").contains(QStringLiteral("✓ right")));
    CHECK(heading("Option 2").contains(QStringLiteral("likeliest")));
    // By character without the delimiter: " clouds came." has 13.
    CHECK(heading("Option 2").contains(QString::number(-4.25 / 13, 'f', 4)));

    const auto& values = page.text()->values();
    CHECK(values == std::vector<float>{1.5F, 6, 2, 4, 0.25F});
    CHECK(page.token(1) == QStringLiteral(" sun↵\n"));
    CHECK(page.text()->scale().maximum == 6);
    CHECK(page.text()->colour(0).isValid());
    CHECK(page.text()->colour(0) != page.text()->colour(1));
    CHECK(page.text()->description(1).contains(QStringLiteral("-6.0000")));
    CHECK(page.text()->description(-1).isEmpty());

    // Keys step through the list, from the text too.
    QSignalSpy changed(page.view.get(), &View::state_changed);
    QTest::keyClick(page.text(), Qt::Key_Down);
    page.settle();
    CHECK(page.list()->currentIndex().row() == 1);
    CHECK(changed.count() == 1);
    CHECK(page.shown().contains(QStringLiteral("day 1")));
    CHECK(child<QLabel>(*page.view, "items_title")->text().contains(QStringLiteral("✓ right")));
    QTest::keyClick(page.text(), Qt::Key_Up);
    QTest::keyClick(page.text(), Qt::Key_Up);  // there is none before the first
    page.settle();
    CHECK(page.list()->currentIndex().row() == 0);
}

TEST_CASE("Options that are a head's classes have their names", "[items]") {
    store::Evaluation evaluation = sample();
    evaluation.settings_json = R"({"class_names": {"0": ["not_entailment", "entailment"]}})";
    Page page(evaluation);
    const auto cell = [&](int row, int column) { return page.list()->model()->index(row, column).data().toString(); };
    CHECK(cell(0, ItemModel::gold_column) == QStringLiteral("entailment"));
    CHECK(cell(0, ItemModel::chosen_column) == QStringLiteral("not_entailment"));
    page.choose("items_other", QStringLiteral("large"));
    CHECK(cell(1, ItemModel::other_column) == QStringLiteral("✓ 2"));  // of a model without classes
    REQUIRE(page.text()->text());
    const QStringList lines = page.shown().split(QLatin1Char('\n'));
    CHECK(std::any_of(lines.begin(), lines.end(), [](const QString& line) {
        return line.startsWith(QStringLiteral("not_entailment")) && line.contains(QStringLiteral("● chosen"));
    }));
    CHECK_FALSE(page.shown().contains(QStringLiteral("Option")));
    auto* options = child<QComboBox>(*page.view, "items_option");
    CHECK(options->itemText(0) == QStringLiteral("not_entailment, chosen"));
    CHECK(options->itemText(1) == QStringLiteral("entailment, right"));
}

TEST_CASE("Contexts that are chosen from stand before what follows each", "[items]") {
    Page page;
    page.choose("items_task", QStringLiteral("winogrande"));
    REQUIRE(page.text()->text());
    CHECK(page.text()->values() == std::vector<float>{1, 2});
    CHECK(page.token(1) == QStringLiteral(" him."));
    CHECK(page.shown().contains(QStringLiteral("Ann saw him.")));
    CHECK(page.shown().contains(QStringLiteral("Bob saw him.")));
    CHECK_FALSE(page.shown().startsWith(QStringLiteral("Context")));
}

TEST_CASE("Of said answers it is shown where they occur", "[items]") {
    Page page;
    page.choose("items_task", QStringLiteral("fda"));
    REQUIRE(page.text()->text());
    QStringList marked;
    for (std::size_t i = 0; i < page.text()->values().size(); ++i)
        if (page.text()->values()[i] == 1) marked << page.token(i);
    CHECK(marked == QStringList{QStringLiteral("K12"), QStringLiteral("k12"), QStringLiteral("k12")});
    CHECK(page.shown().contains(QStringLiteral("✓ said, from character 2 on:  K12")));
    CHECK(page.shown().contains(QStringLiteral("✗ not said:  none")));
}

TEST_CASE("Pages are neither right nor wrong", "[items]") {
    Page page;
    child<QCheckBox>(*page.view, "items_wrong")->click();
    page.choose("items_task", QStringLiteral("wikitext"));
    CHECK(page.numbers() == QList<qlonglong>{0});
    CHECK(page.list()->model()->index(0, ItemModel::right_column).data().toString().isEmpty());
    CHECK_FALSE(child<QCheckBox>(*page.view, "items_wrong")->isEnabled());
    CHECK_FALSE(child<QLabel>(*page.view, "items_count")->text().contains(QStringLiteral("wrong")));
    CHECK(page.text()->values() == std::vector<float>{1, 2});
    page.choose("items_task", QStringLiteral("copa"));
    CHECK(page.numbers() == QList<qlonglong>{0, 2, 4});
}

TEST_CASE("An item opens as an analysis by the model that was evaluated", "[items]") {
    Page page;
    std::vector<ItemAnalysis> wanted;
    QObject::connect(&page.desk.evaluations(), &EvaluationShelf::analyse_wanted,
                     [&](const ItemAnalysis& item) { wanted.push_back(item); });
    auto* option = child<QComboBox>(*page.view, "items_option");
    CHECK(option->count() == 2);
    CHECK(option->currentText() == QStringLiteral("option 1, chosen"));
    auto* analyse = child<QPushButton>(*page.view, "items_analyse");
    analyse->click();
    option->setCurrentIndex(1);
    analyse->click();
    REQUIRE(wanted.size() == 2);
    CHECK(wanted[0].model == QStringLiteral("/made/small"));
    CHECK(wanted[0].context == QStringLiteral("It rained on day 0 because"));
    CHECK(wanted[0].continuation == QStringLiteral("  the sun shone."));
    CHECK(wanted[1].continuation == QStringLiteral("  clouds came."));
    page.choose("items_task", QStringLiteral("fda"));
    analyse->click();
    REQUIRE(wanted.size() == 3);
    CHECK(wanted[2].context + wanted[2].continuation == QStringLiteral("Serial K12. The serial is k12, k12"));
    store::Evaluation adapted = sample();
    adapted.settings_json = R"({"adapter": "/made/adapter"})";
    Page other(adapted);
    QObject::connect(&other.desk.evaluations(), &EvaluationShelf::analyse_wanted,
                     [&](const ItemAnalysis& item) { wanted.push_back(item); });
    child<QPushButton>(*other.view, "items_analyse")->click();
    CHECK(wanted.back().adapter == QStringLiteral("/made/adapter"));
}

TEST_CASE("What is chosen comes back with the session", "[items]") {
    Page page;
    page.choose("items_other", QStringLiteral("large"));
    child<QCheckBox>(*page.view, "items_wrong")->click();
    page.settle();
    page.list()->setCurrentIndex(page.list()->model()->index(2, 0));
    page.settle();
    const QJsonObject state = page.view->state();
    CHECK(state["item"].toInt() == 4);
    const std::unique_ptr<View> again(tests::view_kind("items").make(&page.desk, nullptr));
    again->restore(state);
    again->resize(1000, 600);
    again->show();
    page.settle();
    CHECK(again->state() == state);
    CHECK(child<ItemTable>(*again, "items_list")->currentIndex().row() == 2);
    CHECK(child<QComboBox>(*again, "items_other")->currentText() == QStringLiteral("large"));
    // Unknown values are ignored.
    again->restore({{"shown", 3}, {"item", QStringLiteral("x")}, {"other", QJsonObject{{"model", -7}}}});
    page.settle();
    CHECK(child<ItemTable>(*again, "items_list")->model()->rowCount() == 6);
}

TEST_CASE("A list of many items is a model as Qt wants it and asks for what is in sight", "[items]") {
    Page page(sample(10'000));
    CHECK(page.list()->model()->rowCount() == 10'000);
    const QAbstractItemModelTester tester(page.list()->model(), QAbstractItemModelTester::FailureReportingMode::Fatal);
    const auto words = [&](int row) {
        return page.list()->model()->index(row, ItemModel::words_column).data().toString();
    };
    CHECK_FALSE(words(0).isEmpty());
    CHECK(words(9'999).isEmpty());
    page.list()->scrollToBottom();
    page.settle();
    CHECK(words(9'999).contains(QStringLiteral("day 9999")));
    CHECK(words(5'000).isEmpty());
    page.list()->selectRow(9'999);
    page.settle();
    CHECK(page.shown().contains(QStringLiteral("day 9999")));
}

TEST_CASE("Items that cannot be read are said, and another file can be chosen", "[items]") {
    Page page;
    store::Evaluation claimed;
    claimed.item_count = 3;
    page.desk.evaluations().take(QStringLiteral("/nowhere/gone.evaluation.h5"),
                                 std::make_shared<const store::Evaluation>(claimed));
    page.settle();
    page.choose("items_file", QStringLiteral("gone.evaluation.h5"));
    CHECK(child<Banner>(*page.view, "items_failure")->text().contains(QStringLiteral("/nowhere/gone.evaluation.h5")));
    CHECK(page.numbers().isEmpty());
    page.choose("items_file", child<QComboBox>(*page.view, "items_file")->itemText(0));
    CHECK(child<Banner>(*page.view, "items_failure")->text().isEmpty());
    CHECK(page.numbers().size() == 6);
    // One item whose texts are no JSON: its own place shows the error.
    store::Evaluation broken = sample();
    broken.items[0].texts = "{";
    Page other(broken);
    CHECK_FALSE(child<Banner>(*other.view, "items_failure")->text().isEmpty());
    QTest::keyClick(other.list(), Qt::Key_Down);
    other.settle();
    CHECK(child<Banner>(*other.view, "items_failure")->text().isEmpty());
    CHECK(other.shown().contains(QStringLiteral("day 1")));
}

TEST_CASE("The list of items never scrolls sideways, and its numbers are whole", "[items]") {
    store::Evaluation evaluation = sample();
    evaluation.settings_json = R"({"class_names": {"0": ["not_entailment, whatever the premise", "entailment"]}})";
    Page page(evaluation);
    page.choose("items_other", QStringLiteral("large"));
    for (const int width : {1400, 900, 700, 500}) {
        page.view->resize(width, 600);
        page.settle();
        INFO(width);
        CHECK_FALSE(page.list()->horizontalScrollBar()->isVisible());
        CHECK(page.list()->horizontalScrollBar()->maximum() == 0);
        const QFontMetrics metrics(page.list()->font());
        for (const int column : {ItemModel::number_column, ItemModel::right_column}) {
            const QString text = page.list()->model()->index(5, column).data().toString();
            CHECK(page.list()->columnWidth(column) > metrics.horizontalAdvance(text));
        }
    }
}

TEST_CASE("Every control of the items has a name, and they fit", "[items]") {
    Page page;
    page.view->resize(800, 400);
    page.settle();
    for (const QWidget* widget : page.view->findChildren<QWidget*>()) {
        const bool control = qobject_cast<const QAbstractButton*>(widget) || qobject_cast<const QComboBox*>(widget) ||
                             qobject_cast<const QLineEdit*>(widget);
        const bool internal = widget->objectName().startsWith(QStringLiteral("qt_")) ||
                              qobject_cast<const QTableView*>(widget->parentWidget()) ||
                              qobject_cast<const QLineEdit*>(widget->parentWidget());
        if (!control || internal || !widget->isVisible()) continue;
        INFO(widget->metaObject()->className() << " " << widget->objectName().toStdString());
        CHECK_FALSE(widget->accessibleName().isEmpty());
        CHECK_FALSE(widget->toolTip().isEmpty());
    }
    CHECK(page.view->minimumSizeHint().width() <= 800);
    CHECK(page.view->minimumSizeHint().height() <= 400);
}
