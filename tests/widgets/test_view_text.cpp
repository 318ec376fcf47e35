// SPDX-License-Identifier: GPL-3.0-or-later
// On text: tokens coloured by attention.
#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "core/figures/make_figure.h"
#include "core/store/analysis/analysis_writer.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_recurrent.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/panels/expert_cells.h"
#include "widgets/panels/token_weights.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/text/banner.h"
#include "widgets/text/text_area.h"
#include "widgets/text/token_table.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

tests::SyntheticAnalysis with_maps() {
    tests::SyntheticAnalysis a;
    a.record.maps = true;
    return a;
}

struct Shown {
    explicit Shown(const tests::SyntheticAnalysis& a) {
        tests::write_synthetic_analysis(folder / "a.headscope.h5", a);
        study = tests::open_study(desk, folder / "a.headscope.h5");
        view.reset(tests::view_kind("on_text").make(&desk, nullptr));
        view->resize(1000, 600);
        view->show();
        tests::settle(desk);
    }
    TokenTextArea& text() { return *view->findChild<TokenTextArea*>("text"); }
    QString banner() { return view->findChild<Banner*>("banner")->text(); }
    QString heading() { return view->findChild<QLabel*>("heading")->text(); }
    void choose(const char* box, const char* value) {
        auto* found = view->findChild<QComboBox*>(box);
        REQUIRE(found->findData(value) >= 0);
        found->setCurrentIndex(found->findData(value));
        tests::settle(desk);
    }
    void click(std::int64_t token, Qt::KeyboardModifiers keys = {}) {
        QTest::mouseClick(text().viewport(), Qt::LeftButton, keys, text().token_rect(token).center());
        tests::settle(desk);
    }
    /// The row of a head, read the plain way.
    std::vector<float> row(std::int64_t site, std::int64_t head, std::int64_t query) {
        for (int i = 0; i < 2; ++i) {
            study->row(0, site, head, query);
            tests::settle(desk);
        }
        return study->row(0, site, head, query)->weights;
    }

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    Study* study = nullptr;
    std::unique_ptr<View> view;
};

bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
               return (std::isnan(x) && std::isnan(y)) || std::abs(x - y) < 1e-6F;
           });
}

}  // namespace

TEST_CASE("Words are coloured by the means of their pieces' rows and the sums of their columns", "[text][words]") {
    auto wish = with_maps();
    wish.lengths = {24};
    Shown s(wish);
    s.choose("units", "words");
    tests::settle(s.desk);
    REQUIRE(s.text().text()->tokens.size() == 19);
    CHECK(s.heading().contains("words: rows averaged, columns summed"));
    s.click(4);  // "," and "ow"
    CHECK(s.desk.selection().query == 5);
    CHECK(s.heading().contains("‘,ow’ (word 4)"));
    const auto first = s.row(s.desk.selection().site, s.desk.selection().head, 5);
    const auto second = s.row(s.desk.selection().site, s.desk.selection().head, 6);
    tests::settle(s.desk);
    const double expected = (first[0] + first[1] + second[0] + second[1]) / 2.0;
    CHECK(static_cast<double>(s.text().values().at(0)) == Approx(expected).epsilon(1e-5));
    s.choose("colouring", "mass");
    CHECK(s.text().values().size() == 19);
    CHECK(s.view->figure()->options.units == figures::Units::words);
}

TEST_CASE("A click on a token colours the text by what it looks at", "[on_text]") {
    Shown s(with_maps());
    s.desk.select_head(1, 2);
    s.click(9);
    CHECK(s.desk.selection().query == 9);
    CHECK(s.text().outlined() == 9);
    CHECK(same(s.text().values(), s.row(1, 2, 9)));
    CHECK(std::isnan(s.text().values()[10]));
    CHECK_FALSE(s.text().colour(10).isValid());
    CHECK(s.heading().contains("layer 1, head 2"));
    CHECK(s.banner().isEmpty());
    CHECK(s.text().description(4).contains("id 8"));
    s.click(4, Qt::ShiftModifier);
    CHECK(s.desk.selection().query == 9);
    CHECK(s.desk.selection().key == 4);
    CHECK(s.text().underlined() == 4);
}

TEST_CASE("Ctrl with an arrow steps through tokens, an arrow alone through heads", "[on_text]") {
    Shown s(with_maps());
    s.click(9);
    QTest::keyClick(&s.text(), Qt::Key_Right, Qt::ControlModifier);
    tests::settle(s.desk);
    CHECK(s.desk.selection().query == 10);
    CHECK(same(s.text().values(), s.row(0, 0, 10)));
    QTest::keyClick(s.view.get(), Qt::Key_Left, Qt::ControlModifier);
    CHECK(s.desk.selection().query == 9);
    QTest::keyClick(&s.text(), Qt::Key_Right);
    tests::settle(s.desk);
    CHECK(s.desk.selection().head == 1);
    CHECK(s.desk.selection().query == 9);
    CHECK(same(s.text().values(), s.row(0, 1, 9)));
}

TEST_CASE("The mean of a layer, and of all layers", "[on_text]") {
    Shown s(with_maps());
    s.click(7);
    s.choose("scope", "layer");
    std::vector<std::vector<float>> rows;
    for (int head = 0; head < 4; ++head) rows.push_back(s.row(0, head, 7));
    CHECK(same(s.text().values(), mean_of({&rows[0], &rows[1], &rows[2], &rows[3]})));
    s.choose("scope", "all");
    double sum = 0;
    for (int site = 0; site < 3; ++site)
        for (int head = 0; head < 4; ++head) sum += s.row(site, head, 7)[2];
    CHECK(s.text().values()[2] == Approx(sum / 12).epsilon(1e-5));
    CHECK(s.heading().contains("all heads of 3 layers"));
}

TEST_CASE("Who looks at a token", "[on_text]") {
    Shown s(with_maps());
    s.choose("colouring", "column");
    s.click(3);
    CHECK(s.desk.selection().key == 3);
    CHECK(s.text().underlined() == 3);
    CHECK(s.text().values()[8] == Approx(s.row(0, 0, 8)[3]).epsilon(1e-5));
    CHECK(std::isnan(s.text().values()[2]));
    s.choose("scope", "layer");
    double sum = 0;
    for (int head = 0; head < 4; ++head) sum += s.row(0, head, 8)[3];
    CHECK(s.text().values()[8] == Approx(sum / 4).epsilon(1e-5));
}

TEST_CASE("Without maps, attention received is there and the maps are offered", "[on_text]") {
    Shown s(tests::SyntheticAnalysis{});
    CHECK(s.banner().contains("maps"));
    CHECK(s.text().values().empty());
    QSignalSpy wanted(&s.desk, &Desk::run_wanted);
    QTest::mouseClick(s.view->findChild<QPushButton*>("banner_action"), Qt::LeftButton);
    REQUIRE(wanted.count() == 1);
    CHECK(wanted[0][0].value<RunRequest>().maps);
    CHECK(wanted[0][0].value<RunRequest>().study == s.study->id());
    s.choose("colouring", "mass");
    CHECK(s.banner().isEmpty());
    const auto mass = s.study->column_mass(0, 0);
    REQUIRE(mass);
    CHECK(s.text().values()[5] == Approx(mass->data[5]));
    s.choose("scope", "layer");
    const double mean = (mass->data[5] + mass->data[29] + mass->data[53] + mass->data[77]) / 4;
    CHECK(s.text().values()[5] == Approx(mean).epsilon(1e-5));
    s.choose("scope", "all");
    CHECK(s.text().values().size() == 24);
}

TEST_CASE("The list names the largest values and chooses by a click", "[on_text]") {
    Shown s(with_maps());
    s.click(20);
    auto* table = s.view->findChild<TokenTable*>("largest");
    const QAbstractItemModelTester tester(&table->model_of_tokens(),
                                          QAbstractItemModelTester::FailureReportingMode::Fatal);
    const auto& rows = table->model_of_tokens().rows();
    REQUIRE(rows.size() > 3);
    for (std::size_t i = 1; i < rows.size(); ++i) CHECK(rows[i - 1].value >= rows[i].value);
    CHECK(rows[0].value == Approx(s.text().values()[static_cast<std::size_t>(rows[0].number)]));
    const std::int64_t wanted = rows[1].number;
    QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(table->model()->index(1, 0)).center());
    tests::settle(s.desk);
    CHECK(s.desk.selection().key == wanted);
    CHECK(s.desk.selection().query == 20);
}

TEST_CASE("Every colouring is a figure with the same numbers and colours", "[on_text]") {
    Shown s(with_maps());
    s.desk.select_tokens(17, 3);
    for (const char* colouring : {"row", "column", "mass"}) {
        for (const char* scope : {"head", "layer", "all"}) {
            for (const char* range : {"largest", "fixed"}) {
                INFO(colouring << " " << scope << " " << range);
                s.choose("colouring", colouring);
                s.choose("scope", scope);
                s.choose("range", range);
                s.choose("scale", "log");
                const auto wish = s.view->figure();
                REQUIRE(wish);
                CHECK(wish->recipe == "text");
                const auto figure = figures::make_figure(
                    wish->recipe, std::vector{store::AnalysisFile::open(s.folder / "a.headscope.h5")}, wish->options);
                const auto& block = std::get<figures::TextBlock>(figure.panels.at(0).content);
                std::vector<float> drawn;
                for (const auto& chip : block.chips) drawn.insert(drawn.end(), chip.values.begin(), chip.values.end());
                CHECK(same(drawn, s.text().values()));
                const auto& scale = s.text().scale();
                CHECK(block.colours.scale == scale.scale);
                CHECK(block.colours.minimum == Approx(scale.minimum).epsilon(1e-5));
                CHECK(block.colours.maximum == Approx(scale.maximum).epsilon(1e-5));
            }
        }
    }
}

TEST_CASE("Under each token are the experts of the selected layer that took it", "[on_text]") {
    auto a = with_maps();
    a.record.experts = true;
    a.plain_layers = {2};
    Shown s(a);
    const auto file = store::AnalysisFile::open(s.folder / "a.headscope.h5");
    auto* button = s.view->findChild<QToolButton*>("experts_shown");
    CHECK(button->isVisibleTo(s.view.get()));
    for (const std::int64_t layer : {0, 1}) {
        s.desk.select_head(layer, 0);
        tests::settle(s.desk);
        const auto found = file->experts(0, layer);
        double largest = 0;
        for (const double weight : found->weight.data) largest = std::max(largest, weight);
        for (std::int64_t token = 0; token < 24; ++token) {
            for (int row = 0; row < 2; ++row) {
                const auto at = static_cast<std::size_t>(2 * token + row);
                const QColor cell = s.text().strip_colour(token, row);
                REQUIRE(cell.isValid());
                CHECK(cell.rgb() ==
                      expert_colour(s.desk.theme(), static_cast<std::int64_t>(found->index.data[at]), 6).rgb());
                CHECK(cell.alphaF() == Approx(0.15 + 0.85 * found->weight.data[at] / largest).margin(1e-3));
            }
        }
        const QString words = expert_words(*found, 4);
        CHECK(words.startsWith(QStringLiteral("experts %1 (").arg(static_cast<int>(found->index.data[8]))));
        CHECK(s.text().description(4).contains(words));
        CHECK(s.heading().contains(QStringLiteral("experts of layer %1").arg(layer)));
        REQUIRE(s.view->figure());
        CHECK(s.view->figure()->note.contains("experts"));
    }
    const QImage with = s.text().viewport()->grab().toImage();
    s.desk.select_head(2, 0);
    tests::settle(s.desk);
    CHECK_FALSE(s.text().strip_colour(4, 0).isValid());
    CHECK(s.heading().contains("layer 2 has no experts"));
    CHECK_FALSE(s.text().description(4).contains("experts"));
    // A click between the lines, on the cells, chooses the token above them.
    s.desk.select_head(1, 0);
    tests::settle(s.desk);
    const QRect rect = s.text().token_rect(5);
    CHECK(s.text().token_at({rect.center().x(), rect.bottom() + 8}) == 5);
    QTest::mouseClick(button, Qt::LeftButton);
    tests::settle(s.desk);
    CHECK_FALSE(s.text().strip_colour(4, 0).isValid());
    CHECK_FALSE(s.view->state()["experts"].toBool());
    CHECK(s.text().viewport()->grab().toImage() != with);
}

TEST_CASE("Under each token of NAtS-L is the type of its chunk at the selected head", "[on_text]") {
    ensure_application();
    const test::TemporaryFolder folder;
    tests::write_recurrent_analysis(folder / "a.headscope.h5");
    Desk desk;
    tests::open_study(desk, folder / "a.headscope.h5");
    desk.select_head(tests::kSoftmaxBranch, 1);
    const std::unique_ptr<View> view(tests::view_kind("on_text").make(&desk, nullptr));
    view->resize(1000, 600);
    view->show();
    tests::settle(desk);
    tests::settle(desk);
    auto& text = *view->findChild<TokenTextArea*>("text");
    auto* button = view->findChild<QToolButton*>("types_shown");
    CHECK(button->isVisibleTo(view.get()));
    CHECK(text.strip_colour(15, 0) == type_colour(0, desk.theme()));
    CHECK(text.strip_colour(16, 0) == type_colour(1, desk.theme()));
    CHECK(text.description(16).contains("linear attention"));
    REQUIRE(view->figure());
    CHECK(view->figure()->note.contains("token-types"));
    QTest::mouseClick(button, Qt::LeftButton);
    tests::settle(desk);
    CHECK_FALSE(text.strip_colour(15, 0).isValid());
    CHECK_FALSE(view->state()["types"].toBool(true));

    Shown plain(with_maps());
    CHECK_FALSE(plain.view->findChild<QToolButton*>("types_shown")->isVisibleTo(plain.view.get()));
}

TEST_CASE("Missing experts are offered if the model has some", "[on_text]") {
    Shown plain(with_maps());
    CHECK_FALSE(plain.view->findChild<QToolButton*>("experts_shown")->isVisibleTo(plain.view.get()));
    CHECK(plain.banner().isEmpty());

    const auto a = with_maps();
    const test::TemporaryFolder folder;
    auto header = tests::synthetic_header(a);
    header.config_json = R"({"experts": 8, "experts_per_token": 2})";
    {
        store::AnalysisWriter writer(folder / "a.headscope.h5", header);
        for (std::int32_t layer = 0; layer < 3; ++layer) tests::write_synthetic_layer(writer, a, 0, layer);
        tests::write_synthetic_output(writer, a, 0);
        writer.publish();
    }
    Desk desk;
    tests::open_study(desk, folder / "a.headscope.h5");
    const std::unique_ptr<View> view(tests::view_kind("on_text").make(&desk, nullptr));
    view->resize(1000, 600);
    view->show();
    tests::settle(desk);
    CHECK(view->findChild<Banner*>("banner")->text().contains("Experts were not recorded"));
    QSignalSpy wanted(&desk, &Desk::run_wanted);
    QTest::mouseClick(view->findChild<QPushButton*>("banner_action"), Qt::LeftButton);
    REQUIRE(wanted.count() == 1);
    CHECK(wanted[0][0].value<RunRequest>().experts);
    QTest::mouseClick(view->findChild<QToolButton*>("experts_shown"), Qt::LeftButton);
    tests::settle(desk);
    CHECK(view->findChild<Banner*>("banner")->text().isEmpty());
}

TEST_CASE("Colours of experts differ, light and dark, as many as there are", "[on_text]") {
    for (const bool dark : {false, true}) {
        const Theme theme = make_theme(dark);
        for (const std::int64_t experts : {5, 64}) {
            std::set<QRgb> colours;
            for (std::int64_t expert = 0; expert < experts; ++expert)
                colours.insert(expert_colour(theme, expert, experts).rgb());
            CHECK(std::ssize(colours) == experts);
        }
    }
}

TEST_CASE("What is chosen in the view comes back", "[on_text]") {
    Shown s(with_maps());
    s.choose("colouring", "mass");
    s.choose("scope", "all");
    s.choose("scale", "log");
    s.choose("range", "fixed");
    const QJsonObject state = s.view->state();
    Desk desk;
    const std::unique_ptr<View> other(tests::view_kind("on_text").make(&desk, nullptr));
    other->restore(state);
    CHECK(other->state() == state);
    other->restore({{"scale", 7}, {"scope", "nonsense"}});
    CHECK(other->state() == state);
}

TEST_CASE("Layers that are not there yet are said to be missing, and fill in", "[on_text]") {
    ensure_application();
    const test::TemporaryFolder folder;
    const auto a = with_maps();
    auto header = tests::synthetic_header(a);
    store::AnalysisWriter writer(folder / "a.headscope.h5", header);
    tests::write_synthetic_layer(writer, a, 0, 0);
    std::filesystem::path partial;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) partial = entry.path();
    Desk desk;
    Study* study = tests::open_study(desk, partial);
    study->set_running();
    const std::unique_ptr<View> view(tests::view_kind("on_text").make(&desk, nullptr));
    view->resize(900, 500);
    view->restore({{"scope", "all"}});
    view->show();
    desk.select_tokens(9, {});
    tests::settle(desk);
    CHECK(view->findChild<QLabel*>("heading")->text().contains("1 of 3"));
    view->restore({{"scope", "head"}});
    desk.select_head(1, 0);
    tests::settle(desk);
    CHECK(view->findChild<Banner*>("banner")->text().contains("not computed yet"));
    tests::write_synthetic_layer(writer, a, 0, 1);
    study->tell_site_done(0, 1);
    tests::settle(desk);
    CHECK(view->findChild<Banner*>("banner")->text().isEmpty());
    CHECK(view->findChild<TokenTextArea*>("text")->values().size() == 24);
}

TEST_CASE("Rollout and norms colour the text, and what was not recorded is offered", "[on_text][rollout]") {
    auto made = with_maps();
    made.record.norms = GENERATE(false, true);
    Shown s(made);
    s.desk.select_head(1, 2);
    s.click(9);
    s.choose("what", "rollout");
    CHECK(s.heading().contains("rollout through the layers up to layer 1"));
    const auto rollout = s.text().values();
    REQUIRE(rollout.size() == 24);
    double sum = 0;
    for (std::size_t i = 0; i < 10; ++i) sum += static_cast<double>(rollout[i]);
    CHECK(sum == Approx(1).margin(1e-4));
    CHECK(std::isnan(rollout[10]));
    auto wish = s.view->figure();
    REQUIRE(wish);
    CHECK(wish->options.values == figures::MapValues::rollout);
    CHECK(wish->options.layer == 1);
    CHECK_FALSE(wish->options.head);
    const QJsonObject state = s.view->state();
    s.choose("what", "norms");
    if (made.record.norms) {
        CHECK(s.banner().isEmpty());
        const auto products = tests::synthetic_products(made, 24, made.seed + 1);
        const auto weights = s.row(1, 2, 9);
        for (std::size_t j = 0; j < 10; ++j)
            CHECK(s.text().values()[j] ==
                  Approx(weights[j] * std::sqrt(products[(j * 4 + 2) * 4 + 2])).epsilon(1e-4).margin(1e-6));
        CHECK(s.view->figure()->options.head == 2);
        s.choose("scope", "layer");
        CHECK(s.heading().contains("all heads together"));
        CHECK(s.view->figure()->options.values == figures::MapValues::layer_norms);
    } else {
        CHECK(s.banner().contains("not recorded"));
        RunRequest wanted;
        QObject::connect(&s.desk, &Desk::run_wanted, &s.desk, [&](const RunRequest& run) { wanted = run; });
        s.view->findChild<Banner*>("banner")->findChild<QPushButton*>()->click();
        CHECK((wanted.maps && wanted.norms));
    }
    s.view->restore(state);
    tests::settle(s.desk);
    CHECK(s.view->state() == state);
}
