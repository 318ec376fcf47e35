// SPDX-License-Identifier: GPL-3.0-or-later
// Loss: what surprises the model.
#include <QAbstractItemModelTester>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "core/store/analysis/analysis_writer.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/text/banner.h"
#include "widgets/text/text_area.h"
#include "widgets/text/token_table.h"
#include "widgets/views/loss/loss_curve.h"
#include "widgets/views/loss/predictions.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

struct Shown {
    explicit Shown(const tests::SyntheticAnalysis& a = {})
        : Shown([&a](const auto& path) { tests::write_synthetic_analysis(path, a); }) {}
    explicit Shown(const std::function<void(const std::filesystem::path&)>& write) {
        write(folder / "a.headscope.h5");
        study = tests::open_study(desk, folder / "a.headscope.h5");
        view.reset(tests::view_kind("loss").make(&desk, nullptr));
        view->resize(1000, 700);
        view->show();
        tests::settle(desk);
    }
    TokenTextArea& text() { return *view->findChild<TokenTextArea*>("text"); }
    TokenTable& table(const char* name) { return *view->findChild<TokenTable*>(name); }
    QString label(const char* name) { return view->findChild<QLabel*>(name)->text(); }
    void click(std::int64_t token) {
        QTest::mouseClick(text().viewport(), Qt::LeftButton, {}, text().token_rect(token).center());
        tests::settle(desk);
    }

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    Study* study = nullptr;
    std::unique_ptr<View> view;
};

}  // namespace

TEST_CASE("A token has the loss with which it was predicted", "[loss]") {
    Shown s;
    REQUIRE(s.text().values().size() == 24);
    CHECK(std::isnan(s.text().values()[0]));
    double sum = 0;
    for (std::size_t i = 0; i < 23; ++i) {
        const double loss = 2.0 + 4.0 / static_cast<double>(i + 1);
        sum += loss;
        CHECK(s.text().values()[i + 1] == Approx(loss).epsilon(1e-6));
    }
    const QString heading = s.label("heading");
    CHECK(heading.contains(QString::number(sum / 23, 'g', 3) + " nats"));
    CHECK(heading.contains("perplexity " + QString::number(std::exp(sum / 23), 'g', 3)));
    CHECK(heading.contains("23 tokens"));
}

TEST_CASE("The most surprising tokens are listed, and chosen by a click", "[loss]") {
    Shown s;
    TokenTable& table = s.table("surprises");
    const QAbstractItemModelTester tester(&table.model_of_tokens(),
                                          QAbstractItemModelTester::FailureReportingMode::Fatal);
    REQUIRE(table.model_of_tokens().rows().size() == 23);
    CHECK(table.model_of_tokens().rows()[0].number == 1);
    QTest::mouseClick(table.viewport(), Qt::LeftButton, {}, table.visualRect(table.model()->index(2, 0)).center());
    tests::settle(s.desk);
    CHECK(s.desk.selection().query == 3);
    CHECK(s.text().outlined() == 3);
    table.sortByColumn(TokenTableModel::number_column, Qt::DescendingOrder);
    CHECK(table.model()->index(0, TokenTableModel::number_column).data().toInt() == 23);
}

TEST_CASE("What the model expected in place of a token", "[loss]") {
    tests::SyntheticAnalysis a;
    a.record.logits = true;
    Shown s(a);
    CHECK(s.label("predictions_title").contains("Choose a token"));
    s.click(5);
    // The fixture's logits are i mod 13 over all numbers of the matrix; token 5 is predicted by row 4.
    std::vector<double> logits;
    for (int id = 0; id < 32; ++id) logits.push_back((4 * 32 + id) % 13);
    const auto wanted = predictions_of(logits, 5 * 7 % 10, 10);
    const auto& rows = s.table("predictions").model_of_tokens().rows();
    REQUIRE(rows.size() == (wanted.rank >= 10 ? 11 : 10));
    for (std::size_t i = 0; i < 10; ++i) {
        CHECK(rows[i].number == wanted.best[i].id);
        CHECK(rows[i].value == Approx(wanted.best[i].probability).epsilon(1e-3));
    }
    CHECK(s.label("predictions_title").contains(QString("choice %1").arg(wanted.rank + 1)));
    CHECK(s.view->findChild<Banner*>("no_logits")->text().isEmpty());
    s.study->spell = [](std::int32_t id) { return QString("word %1").arg(id); };
    s.click(6);
    bool spelt = false;
    for (const auto& row : s.table("predictions").model_of_tokens().rows()) {
        if (row.number >= 10) CHECK(row.token == QString("word %1").arg(row.number));
        spelt |= row.number >= 10;
    }
    CHECK(spelt);
}

TEST_CASE("Classes of tokens and of a text stand where choices do", "[loss]") {
    tests::SyntheticAnalysis a;
    a.causal = false;
    const auto write = [&a](const std::filesystem::path& path, const char* head, std::int64_t classes) {
        store::AnalysisHeader header = tests::synthetic_header(a);
        header.config_json = std::string(R"({"causal": false, "head": ")") + head + "\"}";
        header.classes = classes;
        store::AnalysisWriter writer(path, header);
        for (std::int32_t layer = 0; layer < a.layers; ++layer) tests::write_synthetic_layer(writer, a, 0, layer);
        if (a.record.logits) {
            std::vector<float> logits(24 * 3, 0.0F);
            logits[7 * 3 + 2] = std::log(6.0F);
            writer.write_logits(0, 0, logits);
        }
        if (classes > 0) writer.write_class_logits(0, std::vector<float>(static_cast<std::size_t>(classes), 2.5F));
        writer.publish();
    };
    a.vocabulary = 3;
    a.record.logits = true;
    Shown tokens([&](const auto& path) { write(path, "token_classes", 0); });
    CHECK(tokens.label("predictions_title").contains("Choose a token"));
    CHECK_FALSE(tokens.table("surprises").isVisible());
    CHECK_FALSE(tokens.view->figure());  // there is no loss to draw
    REQUIRE(tokens.text().values().size() == 24);
    CHECK(tokens.text().values()[7] == 2);  // each token has its class's colour and number
    CHECK(tokens.text().values()[6] == 0);
    tokens.click(7);
    const auto& rows = tokens.table("predictions").model_of_tokens().rows();
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].token == "class 2");
    CHECK(rows[0].value == Approx(0.75));
    CHECK(tokens.label("predictions_title").contains("class 2 with probability 0.75"));

    a.record.logits = false;
    Shown text([&](const auto& path) { write(path, "sequence_classes", 2); });
    REQUIRE(text.table("predictions").model_of_tokens().rows().size() == 2);
    CHECK(text.label("predictions_title").contains("class 0 with probability 0.5"));
    Shown number([&](const auto& path) { write(path, "sequence_classes", 1); });
    CHECK(number.label("predictions_title").contains("2.5"));

    // The notice offers to record missing values.
    Shown without([&](const auto& path) { write(path, "token_classes", 0); });
    QSignalSpy wanted(&without.desk, &Desk::run_wanted);
    QTest::mouseClick(without.view->findChild<QPushButton*>("notice_action"), Qt::LeftButton);
    REQUIRE(wanted.count() == 1);
    CHECK(wanted[0][0].value<RunRequest>().logits);
}

TEST_CASE("An encoder's loss is that of the token where it stands", "[loss]") {
    tests::SyntheticAnalysis a;
    a.causal = false;
    Shown s(a);
    CHECK(s.text().values()[0] == Approx(6));
    CHECK(s.text().values()[5] == Approx(2.0 + 4.0 / 6).epsilon(1e-6));
    CHECK(std::isnan(s.text().values()[23]));
}

TEST_CASE("Probabilities are those of a softmax, ties in the order of ids", "[loss]") {
    const Predictions found = predictions_of({1, 3, 3, 0, -INFINITY}, 0, 2);
    const double sum = std::exp(1.0) + 2 * std::exp(3.0) + 1;
    REQUIRE(found.best.size() == 2);
    CHECK(found.best[0].id == 1);
    CHECK(found.best[1].id == 2);
    CHECK(found.best[0].probability == Approx(std::exp(3.0) / sum));
    CHECK(found.rank == 2);
    CHECK(found.actual.probability == Approx(std::exp(1.0) / sum));
    CHECK(predictions_of({1, 2}, -1, 5).rank == -1);
}

TEST_CASE("Without logits they are offered", "[loss]") {
    Shown s;
    CHECK(s.view->findChild<Banner*>("no_logits")->text().contains("logits"));
    QSignalSpy wanted(&s.desk, &Desk::run_wanted);
    auto* offer = s.view->findChild<Banner*>("no_logits")->findChild<QPushButton*>();
    QTest::mouseClick(offer, Qt::LeftButton);
    REQUIRE(wanted.count() == 1);
    CHECK(wanted[0][0].value<RunRequest>().logits);
}

TEST_CASE("The curve chooses a token, and marks the chosen one", "[loss]") {
    Shown s;
    auto* curve = s.view->findChild<LossCurve*>("loss_curve");
    curve->replot();
    const int x = static_cast<int>(std::lround(curve->xAxis->coordToPixel(11)));
    const QPoint place(x, curve->axisRect()->center().y());
    QTest::mouseClick(curve, Qt::LeftButton, {}, place);
    tests::settle(s.desk);
    CHECK(s.desk.selection().query == 11);
    QTest::keyClick(&s.text(), Qt::Key_Left, Qt::ControlModifier);
    CHECK(s.desk.selection().query == 10);
}

TEST_CASE("Where the selection is of another text the view's own token is saved and comes back", "[loss]") {
    const tests::SyntheticAnalysis a;
    store::AnalysisHeader header = tests::synthetic_header(a);
    for (std::size_t n = 0; n < header.sites.size(); ++n) {
        if (n == 0) continue;  // the encoder's
        header.sites[n].stack = "decoder";
        header.sites[n].query_stream = header.sites[n].key_stream = "target";
    }
    header.streams["target"] = header.sequences;
    const test::TemporaryFolder folder;
    {
        store::AnalysisWriter writer(folder / "pair.headscope.h5", header);
        for (std::int32_t layer = 0; layer < a.layers; ++layer) tests::write_synthetic_layer(writer, a, 0, layer);
        tests::write_synthetic_output(writer, a, 0);
        writer.publish();
    }
    Shown s;
    Study* study = tests::open_study(s.desk, folder / "pair.headscope.h5");
    s.desk.select_study(study->id());
    s.desk.select_head(0, 0);
    tests::settle(s.desk);
    QSignalSpy changed(s.view.get(), &View::state_changed);
    const QJsonObject before = s.view->state();
    s.click(5);
    CHECK_FALSE(s.desk.selection().query);
    CHECK(s.text().outlined() == 5);
    CHECK(changed.count() == 1);
    const QJsonObject after = s.view->state();
    CHECK(after["token"] == 5);
    s.view->restore(before);
    tests::settle(s.desk);
    CHECK_FALSE(s.text().outlined());
    s.view->restore(after);
    tests::settle(s.desk);
    CHECK(s.text().outlined() == 5);
}

TEST_CASE("Losses that are not finite have no place in the curve", "[loss]") {
    constexpr float kImpossible = std::numeric_limits<float>::infinity();
    ensure_application();
    LossCurve curve;
    curve.set_values({kNone, 2, kImpossible, 4});
    CHECK(curve.yAxis->range().upper == Approx(4 * 1.05));
}

TEST_CASE("All sequences: the text shows one, the mean is of all", "[loss]") {
    tests::SyntheticAnalysis a;
    a.lengths = {24, 12};
    Shown s(a);
    Selection all = s.desk.selection();
    all.sequence.reset();
    s.desk.select(all);
    tests::settle(s.desk);
    CHECK(s.label("heading").contains("the mean of 2 is"));
    const QJsonObject state{{"range", "fixed"}, {"numbers", false}};
    s.view->restore(state);
    CHECK(s.view->state() == state);
}
