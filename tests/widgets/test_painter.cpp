// SPDX-License-Identifier: GPL-3.0-or-later
#include <unistd.h>

#include <QApplication>
#include <QImage>
#include <QRegularExpression>
#include <QXmlStreamReader>
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/widgets/sample_figures.h"
#include "widgets/plots/figure/figure_painter.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

class Folder : public test::TemporaryFolder {
public:
    std::string file(const std::string& name) const { return (*this / name).string(); }
    std::size_t count() const { return names().size(); }
};

std::vector<figures::FigureData> one_of_each() {
    using namespace tests;
    return {sample_heat_map(20, true), sample_heat_map(700, false), sample_radars(5),    sample_ridges(12),
            sample_curves(),           sample_mosaic(3, 4, false),  sample_multiples(5), sample_text(60),
            sample_links(9, 2),        sample_labelled_curves()};
}

/// All text nodes inside <text> elements; the reader refuses what is not well-formed XML.
QStringList svg_texts(const std::string& svg) {
    QXmlStreamReader reader(QByteArray::fromStdString(svg));
    QStringList texts;
    while (!reader.atEnd()) {
        if (reader.readNext() == QXmlStreamReader::StartElement && reader.name() == u"text") {
            texts += reader.readElementText().trimmed();
        }
    }
    CHECK(reader.errorString().toStdString().empty());
    return texts;
}

std::string output_of(const std::string& command) {
    std::string text;
    std::array<char, 256> buffer{};
    FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr) text += buffer.data();
    CHECK(pclose(pipe) == 0);
    return text;
}

}  // namespace

TEST_CASE("An application on the offscreen platform is there in no time", "[widgets]") {
    // Processor time: a busy machine must not fail the test.
    const std::clock_t start = std::clock();
    ensure_application();
    ensure_application();
    CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 0.5);
    CHECK(QApplication::platformName() == "offscreen");
}

TEST_CASE("Every kind of panel is drawn in every format, light and dark", "[widgets][painter]") {
    ensure_application();
    for (const auto& figure : one_of_each()) {
        for (const bool dark : {false, true}) {
            FigureStyle style;
            style.dark = dark;
            style.width_mm = dark ? 85 : 180;
            style.dpi = 60;
            CHECK(render_figure(figure, style, "pdf").starts_with("%PDF-"));
            CHECK(render_figure(figure, style, "svg").find("</svg>") != std::string::npos);
            CHECK(render_figure(figure, style, "png").starts_with("\x89PNG"));
        }
    }
}

TEST_CASE("PDF pages are true to size", "[widgets][painter]") {
    ensure_application();
    for (const double width : {85.0, 180.0}) {
        FigureStyle style;
        style.width_mm = width;
        const std::string pdf = render_figure(tests::sample_curves(), style, "pdf");
        const auto match = QRegularExpression(R"(MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\])")
                               .match(QString::fromLatin1(pdf.data(), static_cast<qsizetype>(pdf.size())));
        REQUIRE(match.hasMatch());
        // Qt rounds pages to whole points.
        CHECK(match.captured(1).toDouble() == Approx(width * 72 / 25.4).margin(0.51));
    }
}

TEST_CASE("PNG pictures have the pixels asked for", "[widgets][painter]") {
    ensure_application();
    FigureStyle style;
    style.width_mm = 85;
    for (const double dpi : {72.0, 300.0, 301.0}) {
        style.dpi = dpi;
        const std::string png = render_figure(tests::sample_heat_map(200, false), style, "png");
        const QImage image = QImage::fromData(QByteArray::fromStdString(png), "PNG");
        REQUIRE(!image.isNull());
        CHECK(image.width() == Approx(85 / 25.4 * dpi).margin(1.5));
        CHECK(image.dotsPerMeterX() == Approx(dpi / 0.0254).margin(1));
    }
}

TEST_CASE("A diagonal one cell wide reaches the picture whole", "[widgets][painter]") {
    ensure_application();
    auto figure = tests::sample_heat_map(2000, false);
    figure.panels[0].markers.clear();
    FigureStyle style;
    style.width_mm = 85;
    style.dpi = 100;
    const QImage image = QImage::fromData(QByteArray::fromStdString(render_figure(figure, style, "png")), "PNG");
    // Every row of the map's interior has a pixel of the darkest colour.
    int with = 0, without = 0;
    for (int y = 0; y < image.height(); ++y) {
        int none = 0, darkest = 0;
        for (int x = 0; x < image.width(); ++x) {
            const QColor c = image.pixelColor(x, y);
            none += c == QColor(0xe9, 0xe9, 0xe9) ? 1 : 0;
            darkest += c.lightness() < 80 && c.blue() > c.red() + 20 ? 1 : 0;
        }
        if (none < 8) continue;
        (darkest > 0 ? with : without) += 1;
    }
    CHECK(with > 200);
    CHECK(without == 0);
}

TEST_CASE("SVG keeps text as text, in named families, and is well-formed", "[widgets][painter]") {
    ensure_application();
    const std::string svg = render_figure(tests::sample_heat_map(20, true), {}, "svg");
    const auto texts = svg_texts(svg);
    // A label in two fonts is two text elements.
    for (const char* label :
         {"␣", "the", "wind", "↵", "月光", "‹xE6›", "&<\">", "key", "query", "attention weight", "trained to here"}) {
        INFO(label);
        CHECK(texts.contains(QString(label)));
    }
    CHECK(texts.join(' ').contains("Attention & <more>, layer 1"));
    CHECK(svg.find("'Noto Sans', 'DejaVu Sans'") != std::string::npos);
    CHECK(svg.find("image-rendering:pixelated") != std::string::npos);
    CHECK(svg.find("width=\"180.0") != std::string::npos);
}

TEST_CASE("The same figure gives the same bytes", "[widgets][painter]") {
    ensure_application();
    FigureStyle style;
    style.width_mm = 85;
    style.dpi = 80;
    for (const std::string format : {"svg", "png", "pdf"}) {
        for (const auto& figure : one_of_each()) {
            CHECK((render_figure(figure, style, format) == render_figure(figure, style, format)));
        }
    }
}

TEST_CASE("SVG with control characters in its texts is XML", "[widgets][painter]") {
    ensure_application();
    auto figure = tests::sample_heat_map(20, true);
    figure.title = std::string(
                       "a\x01\x1F"
                       "b\xEF\xBF\xBF") +
                   " c\n";
    const std::string svg = render_figure(figure, {}, "svg");
    QXmlStreamReader reader(QByteArray::fromStdString(svg));
    while (!reader.atEnd()) reader.readNext();
    INFO(reader.errorString().toStdString());
    CHECK_FALSE(reader.hasError());
    CHECK(svg.find('\x01') == std::string::npos);
}

TEST_CASE("A PDF has the same bytes in every time zone, and its table of places is right", "[widgets][painter]") {
    ensure_application();
    const auto figure = tests::sample_heat_map(20, true);
    const auto in_zone = [&](const char* zone) {
        ::setenv("TZ", zone, 1);
        ::tzset();
        return render_figure(figure, {}, "pdf");
    };
    const char* before = std::getenv("TZ");
    const std::string own = before == nullptr ? "" : before;
    const std::string universal = in_zone("UTC"), nepal = in_zone("XST-5:45"), west = in_zone("XST+3");
    before == nullptr ? ::unsetenv("TZ") : ::setenv("TZ", own.c_str(), 1);
    ::tzset();
    CHECK((universal == nepal));
    CHECK((universal == west));
    for (const std::string& pdf : {universal, nepal}) {
        const std::size_t table = std::stoul(pdf.substr(pdf.rfind("startxref\n") + 10));
        REQUIRE(pdf.compare(table, 5, "xref\n") == 0);
        std::size_t line = pdf.find('\n', table + 5) + 1;
        const int objects = std::stoi(pdf.substr(pdf.find("0 ", table + 5) + 2));
        REQUIRE(objects > 5);
        for (int object = 1; object < objects; ++object) {
            line += 20;
            const std::size_t place = std::stoul(pdf.substr(line, 10));
            const std::string begin = std::to_string(object) + " 0 obj";
            CHECK(pdf.compare(place, begin.size(), begin) == 0);
        }
    }
}

TEST_CASE("A PDF file with emoji leaves later pictures as they were", "[widgets][painter]") {
    ensure_application();
    const auto figure = tests::sample_heat_map(20, true);
    const std::string before = render_figure(figure, {}, "png");
    CHECK(render_figure(figure, {}, "pdf").find("Emoji") == std::string::npos);
    CHECK((render_figure(figure, {}, "png") == before));
}

TEST_CASE("Nothing is drawn outside its plot: SVG from Qt clips nothing", "[widgets][painter]") {
    ensure_application();
    for (const auto& figure : {tests::sample_ridges(6), tests::sample_curves()}) {
        const QString svg = QString::fromStdString(render_figure(figure, {}, "svg"));
        const auto box = QRegularExpression(R"re(viewBox="0 0 ([0-9.]+) ([0-9.]+)")re").match(svg);
        REQUIRE(box.hasMatch());
        const double width = box.captured(1).toDouble();
        auto lines = QRegularExpression(R"re(<polyline[^>]*points="([^"]+)")re").globalMatch(svg);
        int points = 0;
        while (lines.hasNext()) {
            for (const auto& point : lines.next().captured(1).split(' ', Qt::SkipEmptyParts)) {
                const double x = point.section(',', 0, 0).toDouble(), y = point.section(',', 1, 1).toDouble();
                CHECK((x >= 0 && x <= width && y >= 0 && y <= box.captured(2).toDouble()));
                ++points;
            }
        }
        CHECK(points > 0);
    }
}

TEST_CASE("Export writes a whole file or none", "[widgets][painter]") {
    ensure_application();
    const Folder folder;
    const auto figure = tests::sample_curves();
    export_figure(figure, {}, folder.file("a.SVG"));
    CHECK(folder.count() == 1);
    for (const std::string name : {"a", "a.jpg", "a.csv"}) {
        try {
            export_figure(figure, {}, folder.file(name));
            FAIL("wrote " << name);
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::usage);
        }
    }
    try {
        export_figure(figure, {}, folder.file("missing/a.pdf"));
        FAIL("wrote into a folder that is not there");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::io);
    }
    CHECK_THROWS_AS(export_figure(figure, {}, "/dev/null.png/x.png"), Error);
    std::filesystem::create_directory(folder.file("d.png"));
    CHECK_THROWS_AS(export_figure(figure, {}, folder.file("d.png")), Error);
    CHECK(folder.count() == 2);
}

TEST_CASE("Font, title, token labels and colours are as the style says", "[widgets][painter]") {
    ensure_application();
    const auto figure = tests::sample_heat_map(20, true);
    const std::string plain = render_figure(figure, {}, "svg");
    FigureStyle style;
    style.font_family = "dejavu serif";  // as installed, whatever the case
    const std::string serif = render_figure(figure, style, "svg");
    CHECK(serif.find("'DejaVu Serif', 'Noto Sans'") != std::string::npos);
    CHECK(plain.find("DejaVu Serif") == std::string::npos);
    // Only while it is drawn.
    CHECK((render_figure(figure, {}, "svg") == plain));
    style = {};
    style.title_text = "Heads <that> look back";
    CHECK(svg_texts(render_figure(figure, style, "svg")).contains("Heads <that> look back"));
    CHECK(!svg_texts(render_figure(figure, style, "svg")).join(" ").contains("layer 1"));
    style.title = false;
    CHECK(!svg_texts(render_figure(figure, style, "svg")).join(" ").contains("look back"));
    style = {};
    CHECK(svg_texts(plain).join(" ").contains("wind"));
    style.labels = false;
    const auto texts = svg_texts(render_figure(figure, style, "svg"));
    CHECK(!texts.join(" ").contains("wind"));
    CHECK(texts.contains("4"));
    style = {};
    style.sequential_map = "magma";
    CHECK((render_figure(figure, style, "svg") != plain));
}

TEST_CASE("Fonts and colour maps that there are not are refused", "[widgets][painter]") {
    ensure_application();
    FigureStyle style;
    style.font_family = "No Such Font";
    try {
        render_figure(tests::sample_curves(), style, "svg");
        FAIL("drawn");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::usage);
        CHECK(std::string(error.what()).find("--font-family") != std::string::npos);
        CHECK(std::string(error.what()).find("No Such Font") != std::string::npos);
    }
    style = {};
    style.diverging_map = "jet";
    CHECK_THROWS_AS(render_figure(tests::sample_curves(), style, "svg"), Error);
}

TEST_CASE("Impossible styles are refused", "[widgets][painter]") {
    ensure_application();
    FigureStyle style;
    style.width_mm = 0;
    CHECK_THROWS_AS(render_figure(tests::sample_curves(), style, "pdf"), Error);
    style.width_mm = 2000;
    style.dpi = 2400;
    CHECK_THROWS_AS(render_figure(tests::sample_curves(), style, "png"), Error);
    CHECK_THROWS_AS(render_figure(tests::sample_curves(), {}, "bmp"), Error);
}

TEST_CASE("PDF files embed every font, and other programs read both vector formats", "[.slow]") {
    ensure_application();
    const Folder folder;
    const auto figure = tests::sample_heat_map(20, true);
    export_figure(figure, {}, folder.file("a.pdf"));
    export_figure(figure, {}, folder.file("a.svg"));
    if (std::system("command -v pdffonts rsvg-convert pdftotext > /dev/null 2>&1") != 0) {
        WARN("skipped: poppler-utils and librsvg2-bin are not installed");
        return;
    }
    const QString fonts = QString::fromStdString(output_of("pdffonts '" + folder.file("a.pdf") + "'"));
    const auto rows = fonts.split('\n', Qt::SkipEmptyParts).mid(2);
    CHECK(rows.size() >= 3);
    for (const auto& row : rows) {
        INFO(row.toStdString());
        CHECK(QRegularExpression(R"(\s(yes)\s+(yes|no)\s+(yes|no)\s+\d+\s+\d+\s*$)").match(row).hasMatch());
    }
    CHECK(fonts.contains("NotoSans"));
    CHECK(output_of("pdftotext '" + folder.file("a.pdf") + "' -").find("attention weight") != std::string::npos);
    CHECK(output_of("rsvg-convert '" + folder.file("a.svg") + "'").substr(1, 3) == "PNG");
}

TEST_CASE("Files have every point of a curve, as one line", "[figures][painter]") {
    ensure_application();
    figures::FigureData figure = tests::sample_curves();
    figures::Panel& panel = figure.panels.front();
    panel.x = panel.y = {};
    auto& curves = std::get<figures::Curves>(panel.content);
    curves.curves.resize(1);
    figures::Curve& curve = curves.curves.front();
    constexpr int kPoints = 3000;
    curve.x.clear();
    curve.y.clear();
    curve.error.clear();
    for (int i = 0; i < kPoints; ++i) {
        curve.x.push_back(i);
        curve.y.push_back(std::sin(i * 0.7));
    }
    const QString svg = QString::fromStdString(render_figure(figure, {}, "svg"));
    qsizetype most = 0;
    for (const auto& line : QRegularExpression(R"re(points="([^"]*)")re").globalMatch(svg))
        most = std::max(most, line.captured(1).count(QLatin1Char(',')));
    CHECK(most == kPoints);
}
