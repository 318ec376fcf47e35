// SPDX-License-Identifier: GPL-3.0-or-later
// Tensors: names as a tree, and the numbers of one of them.
#include <QAbstractItemModelTester>
#include <QApplication>
#include <QElapsedTimer>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>
#include <QTreeView>
#include <catch2/catch.hpp>
#include <set>

#include "tests/widgets/desk_fixture.h"
#include "tests/widgets/made_tensors.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/views/tensors/tensor_model.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

std::shared_ptr<const TensorTree> tree_of(const std::shared_ptr<TensorTable>& table, const TensorFilter& filter = {}) {
    return std::make_shared<const TensorTree>(table, filter, Cancellation());
}

/// Every index below `parent`, opened.
void walk(TensorModel& model, const QModelIndex& parent, std::multiset<std::string>& leaves) {
    while (model.canFetchMore(parent)) model.fetchMore(parent);
    for (int r = 0; r < model.rowCount(parent); ++r) {
        const QModelIndex index = model.index(r, 0, parent);
        REQUIRE(model.parent(index) == parent);
        if (const TensorRow* tensor = model.tensor(index)) {
            leaves.insert(tensor->name);
            REQUIRE(model.rowCount(index) == 0);
        } else {
            REQUIRE(model.rowCount(index) > 0);
            walk(model, index, leaves);
        }
    }
}

QModelIndex child(const QAbstractItemModel& model, const QString& label, const QModelIndex& parent = {}) {
    for (int r = 0; r < model.rowCount(parent); ++r)
        if (model.index(r, 0, parent).data().toString() == label) return model.index(r, 0, parent);
    return {};
}

class MadeUpSource : public TensorSource {
public:
    std::vector<Model> models() const override { return made; }
    void want_table(int model) override { asked.push_back(model); }
    void want_numbers(int, const QString& tensor) override { numbers.push_back(tensor); }
    void stop_numbers() override { ++stops; }

    std::vector<Model> made{{1, QStringLiteral("made up")}};
    std::vector<int> asked;
    std::vector<QString> numbers;
    int stops = 0;
};

struct Shown {
    Shown() {
        desk.set_tensors(&source);
        view.reset(tests::view_kind("tensors").make(&desk, nullptr));
        view->resize(1000, 600);
        view->show();
        tests::settle(desk);
    }
    void fill() {
        Q_EMIT source.table_ready(tests::usual_tensors());
        tests::settle(desk);
    }
    template <class T>
    T* find(const char* name) {
        return view->findChild<T*>(QLatin1String(name));
    }
    QAbstractItemModel& model() { return *find<QTreeView>("tensors")->model(); }
    void select(const std::string& name) {
        const auto index = static_cast<TensorModel&>(model()).index_of(name);
        REQUIRE(index.isValid());
        find<QTreeView>("tensors")->setCurrentIndex(index);
    }
    std::size_t leaves() {
        std::multiset<std::string> all;
        walk(static_cast<TensorModel&>(model()), {}, all);
        return all.size();
    }

    bool application = (ensure_application(), true);
    MadeUpSource source;
    Desk desk;
    std::unique_ptr<View> view;
};

}  // namespace

TEST_CASE("The tree of names holds every tensor once, whatever its name", "[tensors]") {
    ensure_application();
    const auto made = tests::usual_tensors();
    TensorModel model;
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
    model.set_tree(tree_of(made));
    std::multiset<std::string> leaves, wanted;
    walk(model, {}, leaves);
    for (const auto& one : made->rows) wanted.insert(one.name);
    CHECK(leaves == wanted);
    for (const auto& one : made->rows) {
        const QModelIndex at = model.index_of(one.name);
        REQUIRE(at.isValid());
        CHECK(model.tensor(at)->name == one.name);
    }
    CHECK_FALSE(model.index_of("model.layer").isValid());
    model.set_tree(nullptr);
    CHECK(model.rowCount() == 0);
}

TEST_CASE("Layers come in the order of their numbers, and branches add up what is in them", "[tensors]") {
    ensure_application();
    TensorModel model;
    model.set_tree(tree_of(tests::usual_tensors()));
    const QModelIndex top = child(model, "model");
    const QModelIndex layers = child(model, "layers", top);
    REQUIRE(layers.isValid());
    const QModelIndex branch = model.rowCount(layers) > 0 ? layers : layers.siblingAtRow(layers.row() + 1);
    REQUIRE(model.rowCount(branch) == 12);
    for (int r = 0; r < 12; ++r) CHECK(model.index(r, 0, branch).data().toString() == QString::number(r));
    CHECK(branch.siblingAtColumn(TensorModel::shape).data().toString() == "36 tensors");
    CHECK(branch.siblingAtColumn(TensorModel::parameters).data().toString() == "288");
    // A branch with a single one below it is one with it.
    CHECK(child(model, "mlp.weight", model.index(3, 0, branch)).isValid());
}

TEST_CASE("Half a million tensors are listed and filtered in time", "[tensors]") {
    ensure_application();
    std::vector<TensorRow> rows;
    for (int layer = 0; layer < 500; ++layer)
        for (int expert = 0; expert < 500; ++expert)
            for (const char* part : {"up", "down"})
                rows.push_back(tests::tensor_row("layers." + std::to_string(layer) + ".experts." +
                                                 std::to_string(expert) + "." + part));
    for (int i = 0; i < 20000; ++i) rows.push_back(tests::tensor_row("flat" + std::to_string(i)));
    const auto made = tests::tensor_table(std::move(rows));
    QElapsedTimer clock;
    clock.start();
    const auto tree = tree_of(made);
    const auto build = clock.restart();
    TensorModel model;
    QTreeView view;
    view.setUniformRowHeights(true);
    view.setModel(&model);
    view.resize(600, 600);
    view.show();
    clock.restart();
    model.set_tree(tree);
    const QModelIndex layers = child(model, "layers");
    REQUIRE(layers.isValid());
    view.expand(layers);
    view.expand(model.index(499, 0, layers));
    QApplication::processEvents();
    const auto opened = clock.restart();
    CHECK(model.rowCount(layers) == 500);
    CHECK(model.rowCount() < 20001);  // the first ones
    CHECK(model.canFetchMore({}));
    TensorFilter filter;
    filter.text = "LAYERS.17. experts.3. up";
    CHECK(tree_of(made, filter)->size() == 1);
    INFO("built " << build << " ms, opened " << opened << " ms, filtered " << clock.elapsed() << " ms");
    CHECK(opened < 10'000);  // far below on a quiet machine; quadratic work would take minutes
    CHECK(build < 50'000);
}

TEST_CASE("Without a checkpoint the view shows a notice; with one it requests its table", "[tensors]") {
    Shown shown;
    CHECK(shown.source.asked == std::vector<int>{1});
    CHECK_FALSE(shown.find<QTreeView>("tensors")->isVisible());
    shown.fill();
    CHECK(shown.find<QTreeView>("tensors")->isVisible());
    CHECK(shown.leaves() == 46);
    shown.source.made.push_back({2, QStringLiteral("second")});
    shown.source.choose(2);
    tests::settle(shown.desk);
    CHECK(shown.source.asked == std::vector<int>{1, 2});
    shown.source.made.clear();
    Q_EMIT shown.source.models_changed();
    tests::settle(shown.desk);
    CHECK_FALSE(shown.find<QTreeView>("tensors")->isVisible());
}

TEST_CASE("Names are filtered by words, and by what the model makes of them", "[tensors]") {
    Shown shown;
    shown.fill();
    auto* left_over = shown.find<QToolButton>("status_3");
    CHECK(left_over->text() == "Left over 2");
    CHECK(shown.find<QToolButton>("status_2")->text() == "Missing 1");
    CHECK_FALSE(shown.find<QToolButton>("status_4")->isVisible());
    left_over->click();
    tests::settle(shown.desk);
    CHECK(shown.leaves() == 2);
    shown.find<QToolButton>("status_2")->click();
    tests::settle(shown.desk);
    CHECK(shown.leaves() == 3);
    const QJsonObject state = shown.view->state();
    left_over->click();
    shown.find<QToolButton>("status_2")->click();
    QTest::keyClicks(shown.find<QLineEdit>("filter"), "ATTN .1");
    QTest::qWait(250);
    tests::settle(shown.desk);
    CHECK(shown.leaves() == 6);  // layers 1, 10, 11
    shown.view->restore(state);
    QTest::qWait(250);
    tests::settle(shown.desk);
    CHECK(shown.view->state() == state);
    CHECK(shown.leaves() == 3);
}

TEST_CASE("The list of tensors is a table that is saved as the filter leaves it", "[tensors]") {
    Shown shown;
    const auto save = [&] {
        for (const QAction* action : shown.view->commands())
            if (action->objectName() == QLatin1String("tensors_save_table")) return true;
        return false;
    };
    CHECK_FALSE(save());
    shown.fill();
    CHECK(save());
    TensorFilter filter;
    filter.text = "weight";
    const TensorTree tree(tests::usual_tensors(), filter, {});
    REQUIRE(tree.size() > 0);
    const QStringList lines = QString::fromStdString(tree.csv()).split(QStringLiteral("\r\n"), Qt::SkipEmptyParts);
    REQUIRE(lines.size() == static_cast<int>(tree.size()) + 1);
    CHECK(lines[0] == "name,type,shape,elements,bytes,file,status");
    CHECK(lines[1].startsWith(QString::fromStdString(tree.row(0).name) + ','));
    CHECK(lines[1].contains(',' + QString::number(tree.row(0).bytes) + ','));
}

TEST_CASE("The figure is of the chosen tensor, where it has numbers", "[tensors]") {
    Shown shown;
    shown.source.made.front().path = QStringLiteral("/models/made up");
    shown.fill();
    CHECK_FALSE(shown.view->figure());
    const auto table = tests::usual_tensors();
    for (const TensorRow& row : table->rows) {
        INFO(row.name);
        shown.select(row.name);
        const auto wish = shown.view->figure();
        const bool numbers = row.status != TensorStatus::missing && row.status != TensorStatus::unreadable;
        REQUIRE(wish.has_value() == (numbers && !row.name.empty()));  // an option's value is never empty
        if (!wish) continue;
        CHECK(wish->recipe == "tensors");
        CHECK(wish->options.tensors == std::vector<std::string>{row.name});
        CHECK(wish->paths == QStringList{QStringLiteral("/models/made up")});
    }
}

TEST_CASE("A small tensor is read at once, a large one when asked, and either can be stopped", "[tensors]") {
    Shown shown;
    shown.fill();
    shown.select("model.norm.weight");
    CHECK(shown.source.numbers == std::vector<QString>{"model.norm.weight"});
    CHECK(shown.find<QPushButton>("stop")->isVisible());
    auto numbers = std::make_shared<TensorNumbers>();
    numbers->elements = 8;
    numbers->nans = 2;
    numbers->minimum = -1;
    numbers->maximum = 3;
    numbers->norm = 12.5;
    numbers->edges = {-1, 1, 3};
    numbers->counts = {5, 1};
    Q_EMIT shown.source.numbers_ready(1, "model.layers", numbers);  // of another: dropped
    CHECK(shown.find<QPushButton>("stop")->isVisible());
    Q_EMIT shown.source.numbers_ready(1, "model.norm.weight", numbers);
    CHECK_FALSE(shown.find<QPushButton>("stop")->isVisible());
    QStringList values;
    for (const QLabel* label : shown.view->findChildren<QLabel*>(QRegularExpression(QStringLiteral("^value_"))))
        values << label->text();
    CHECK(values.contains("12.5"));
    CHECK(values.contains("2 (25 %)"));
    CHECK(values.contains("2 × 4"));

    shown.select("model.embed.weight");  // 64 MB
    CHECK(shown.source.numbers.size() == 1);
    shown.find<QPushButton>("read")->click();
    CHECK(shown.source.numbers.size() == 2);
    const int stops = shown.source.stops;
    shown.find<QPushButton>("stop")->click();
    CHECK(shown.source.stops > stops);
    CHECK(shown.find<QPushButton>("read")->isVisible());
    shown.find<QPushButton>("read")->click();
    Q_EMIT shown.source.failed(1, "model.embed.weight", "the disk is gone");
    CHECK(shown.find<QLabel>("failure")->text() == "the disk is gone");
    shown.select("lm_head.weight");
    CHECK_FALSE(shown.find<QPushButton>("read")->isVisible());
}
