// SPDX-License-Identifier: GPL-3.0-or-later
// Views of biases by distance, offsets and the mass of rows, and zeros that differ from small weights.
#include <QComboBox>
#include <QTest>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_lazy.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/plots/map/head_thumbnails.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

tests::LazySample lazy_sample(bool maps = false) {
    tests::LazySample sample;
    sample.analysis.record.maps = maps;
    return sample;
}

struct Shown {
    explicit Shown(const char* kind, const tests::LazySample& sample = lazy_sample()) {
        tests::write_lazy_analysis(folder / "a.headscope.h5", sample);
        study = tests::open_study(desk, folder / "a.headscope.h5");
        view.reset(tests::view_kind(kind).make(&desk, nullptr));
        view->resize(900, 600);
        view->show();
        settle();
    }
    void settle() {
        tests::settle(desk);
        QTest::qWait(20);
        tests::settle(desk);
    }
    FigureView* picture() { return view->findChild<FigureView*>(); }
    void choose(const char* name, const char* value) {
        auto* box = view->findChild<QComboBox*>(QLatin1String(name));
        REQUIRE(box);
        box->setCurrentIndex(box->findData(QLatin1String(value)));
        settle();
    }
    void click(QPoint place) {
        QTest::mouseClick(picture()->viewport(), Qt::LeftButton, {}, place);
        settle();
    }
    bool has_colour(const QColor& colour) {
        const QImage image = view->grab().toImage();
        for (int y = 0; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x)
                if (image.pixelColor(x, y) == colour) return true;
        return false;
    }

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    Study* study = nullptr;
    std::unique_ptr<View> view;
};

/// A softmax: neither offsets nor biases.
tests::LazySample plain_sample(bool maps = false) {
    tests::LazySample sample = lazy_sample(maps);
    sample.offsets = false;
    sample.window = 0;
    return sample;
}

}  // namespace

TEST_CASE("Bias: a click on a curve chooses its head, choices are the figure's options", "[views][bias]") {
    Shown shown("bias");
    REQUIRE(shown.picture()->figure());
    CHECK(shown.picture()->figure()->panels.size() == 3);
    shown.choose("distance", "linear");  // lines go through their middle
    CHECK(shown.view->figure()->options.distance == figures::ScaleKind::linear);
    shown.click(shown.picture()->row_point(1, 2));
    CHECK(shown.desk.selection().site == 1);
    CHECK(shown.desk.selection().head == 2);
    shown.choose("of", "layer");
    CHECK(shown.view->figure()->options.layer == 1);
    REQUIRE(shown.picture()->figure()->panels.size() == 1);
    shown.click(shown.picture()->row_point(0, 3));
    CHECK(shown.desk.selection().site == 1);
    CHECK(shown.desk.selection().head == 3);
    shown.choose("of", "head");
    CHECK(shown.view->figure()->options.head == 3);
    CHECK(shown.picture()->figure()->panels.size() == 3);

    // Layers of ALiBi are one panel: the selected one stays.
    Shown alibi("bias", tests::alibi_sample());
    alibi.desk.select_head(2, 1);
    alibi.choose("distance", "linear");
    REQUIRE(alibi.picture()->figure()->panels.size() == 1);
    alibi.click(alibi.picture()->row_point(0, 0));
    CHECK(alibi.desk.selection().site == 2);
    CHECK(alibi.desk.selection().head == 0);
    Shown plain("bias", plain_sample());
    CHECK_FALSE(plain.view->figure());
}

TEST_CASE("Offsets: violins and cells choose layers and heads", "[views][offsets]") {
    Shown shown("offsets");
    REQUIRE(shown.picture()->figure());
    shown.click(shown.picture()->cell_point(1, 2, 3));
    CHECK(shown.desk.selection().site == 2);
    CHECK(shown.desk.selection().head == 3);
    shown.click(shown.picture()->row_point(0, 1));
    CHECK(shown.desk.selection().site == 1);
    CHECK(shown.desk.selection().head == 3);
    Shown plain("offsets", plain_sample());
    CHECK_FALSE(plain.view->figure());
}

TEST_CASE("Mass: bars of all layers, or of the heads of one", "[views][mass]") {
    Shown shown("mass");
    REQUIRE(shown.picture()->figure());
    CHECK(shown.picture()->figure()->text_table.has_value());
    shown.desk.select_head(2, 3);
    shown.choose("of", "heads");
    CHECK(shown.view->figure()->options.layer == 2);
    CHECK(shown.picture()->figure()->panels[0].x.label == "head");
    // Four dots in a line: one in the middle.
    shown.click(shown.picture()->row_point(1, 1));
    CHECK(shown.desk.selection().site == 2);
    CHECK((shown.desk.selection().head == 1 || shown.desk.selection().head == 2));
    Shown plain("mass", plain_sample());
    CHECK(plain.view->figure());
}

TEST_CASE("Weights that are exactly 0 have the theme's colour in maps", "[views][map]") {
    for (const bool sparse : {true, false}) {
        Shown shown("map", sparse ? lazy_sample(true) : plain_sample(true));
        shown.desk.select_head(1, 1);
        for (int turn = 0; turn < 20 && shown.has_colour(shown.desk.theme().zero) != sparse; ++turn) shown.settle();
        CHECK(shown.has_colour(shown.desk.theme().zero) == sparse);
    }
}

TEST_CASE("Thumbnails set blocks of zeros apart from small weights", "[views][map]") {
    const Theme theme = make_theme(false);
    for (const bool sparse : {true, false}) {
        const test::TemporaryFolder folder;
        tests::write_lazy_analysis(folder / "a.headscope.h5", sparse ? lazy_sample() : plain_sample());
        const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
        ThumbnailRequest wish;
        wish.sequences = {0};
        wish.site = 1;
        wish.pixels = 24;
        wish.colours = colour_table(figures::ColourMap::sequential, theme);
        wish.none = theme.none.rgb();
        wish.zero = theme.zero.rgb();
        const auto strip = draw_thumbnails(*file, wish);
        int zeros = 0;
        for (const QImage& image : strip->images)
            for (int y = 0; y < image.height(); ++y)
                for (int x = 0; x <= y; ++x) zeros += image.pixel(x, y) == wish.zero ? 1 : 0;
        CHECK((zeros > 0) == sparse);
    }
}
