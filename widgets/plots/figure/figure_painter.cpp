// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure/figure_painter.h"

#include <QApplication>
#include <QBuffer>
#include <QImage>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <QThread>
#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "widgets/fonts.h"
#include "widgets/plots/figure/figure_layout.h"
#include "widgets/plots/figure/figure_plot.h"
#include "widgets/quiet_qt.h"

namespace headscope::widgets {
namespace {

constexpr int kPdfDpi = 1440;          ///< a multiple of kUnitsPerInch: coordinates stay short
constexpr double kMostPixels = 400e6;  ///< of a PNG
constexpr int kLongestSide = 32767;    ///< QImage, QPainter

void check(const FigureStyle& style) {
    const auto demand = [](bool good, const char* where, const char* expected, double found) {
        if (!good) throw Error(ErrorCode::usage, where, expected, "found " + std::to_string(found));
    };
    demand(style.width_mm >= 30 && style.width_mm <= 2000, "figure width", "expected 30 to 2000 mm", style.width_mm);
    demand(style.height_mm == 0 || (style.height_mm >= 20 && style.height_mm <= 4000), "figure height",
           "expected 20 to 4000 mm, or 0", style.height_mm);
    demand(style.font_points >= 3 && style.font_points <= 40, "figure font", "expected 3 to 40 points",
           style.font_points);
    if (figures::find_colour_map(style.sequential_map) == nullptr ||
        figures::find_colour_map(style.diverging_map) == nullptr) {
        throw Error(ErrorCode::usage, "figure colors", "expected a color map of list color-maps",
                    "found " + escaped(style.sequential_map) + ", " + escaped(style.diverging_map));
    }
    demand(style.dpi >= 20 && style.dpi <= 2400, "figure resolution", "expected 20 to 2400 dpi", style.dpi);
}

void draw(QCustomPlot& plot, QPaintDevice* device, const QSizeF& size, double scale, bool vector) {
    QCPPainter painter;
    if (!painter.begin(device)) {
        throw Error(ErrorCode::memory, "figure", "expected a device to draw on", "found that it could not be opened");
    }
    painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing | QPainter::LosslessImageRendering);
    if (vector) painter.setMode(QCPPainter::pmVectorized);
    painter.scale(scale, scale);
    plot.toPainter(&painter, static_cast<int>(size.width()), static_cast<int>(size.height()));
    painter.end();
}

/// The number of `digits` digits, padded with zeros, at this place of a PDF file.
qint64 number_at(const QByteArray& bytes, qsizetype at, qsizetype digits) {
    return bytes.mid(at, digits).toLongLong();
}

/// Qt writes when a file was made by the local clock: its zone gets into the file, and moves what follows. The time is
/// blanked, the zone UTC, and the table of places at the file's end follows.
void set_date(QByteArray& bytes) {
    const QByteArray begin = "/CreationDate (D:", date = "20000101000000Z";
    const qsizetype first = bytes.indexOf(begin) + begin.size(), end = bytes.indexOf(')', first);
    const qsizetype table = bytes.lastIndexOf("xref\n0 "), last = bytes.lastIndexOf("startxref\n");
    if (first < begin.size() || end < 0 || table < first || last < table) return;
    const qint64 moved = date.size() - (end - first);
    // Each line of the table has 20 bytes, and begins with the place of an object in ten digits.
    const qsizetype lines = bytes.indexOf('\n', table + 5) + 1;
    for (qsizetype line = lines; line + 20 <= last && bytes[line + 10] == ' '; line += 20) {
        const qint64 place = number_at(bytes, line, 10);
        if (place > first) bytes.replace(line, 10, QByteArray::number(place + moved).rightJustified(10, '0'));
    }
    const qsizetype number = last + 10, until = bytes.indexOf('\n', number);
    bytes.replace(number, until - number, QByteArray::number(number_at(bytes, number, until - number) + moved));
    bytes.replace(first, end - first, date);
}

/// XML 1.0 has no place for control characters but white space: whatever a text holds of them is shown as unknown.
QByteArray without_controls(const QByteArray& bytes) {
    QByteArray kept;
    kept.reserve(bytes.size());
    for (qsizetype i = 0; i < bytes.size(); ++i) {
        const auto byte = static_cast<unsigned char>(bytes[i]);
        const bool space = byte == '\t' || byte == '\n' || byte == '\r';
        const bool none = byte == 0xEF && i + 2 < bytes.size() && bytes[i + 1] == '\xBF' &&
                          static_cast<unsigned char>(bytes[i + 2]) >= 0xBE;  // U+FFFE, U+FFFF
        if (none) i += 2;
        if (none || (byte < 0x20 && !space))
            kept += "\xEF\xBF\xBD";
        else
            kept += bytes[i];
    }
    return kept;
}

QByteArray pdf(QCustomPlot& plot, const QSizeF& size, const std::string& title) {
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    {
        QPdfWriter writer(&buffer);
        writer.setResolution(kPdfDpi);
        const QSizeF points(size.width() * 72 / kUnitsPerInch, size.height() * 72 / kUnitsPerInch);
        writer.setPageSize(QPageSize(points, QPageSize::Point, QString(), QPageSize::ExactMatch));
        writer.setPageMargins(QMarginsF(0, 0, 0, 0));
        writer.setTitle(QString::fromStdString(title));
        writer.setCreator("Headscope");
        draw(plot, &writer, size, static_cast<double>(kPdfDpi) / kUnitsPerInch, true);
    }
    set_date(bytes);
    return bytes;
}

QByteArray svg(QCustomPlot& plot, const QSizeF& size, const std::string& title) {
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    {
        QSvgGenerator generator;
        generator.setOutputDevice(&buffer);
        generator.setResolution(kUnitsPerInch);
        generator.setSize(size.toSize());
        generator.setViewBox(QRectF(QPointF(0, 0), size));
        generator.setTitle(QString::fromStdString(title).toHtmlEscaped());  // Qt does not
        generator.setDescription("Headscope");
        draw(plot, &generator, size, 1, true);
    }
    // A viewer without the first family must know the others; one that enlarges images must not smooth cells.
    bytes.replace("font-family=\"" + figure_font(8).families().constFirst().toHtmlEscaped().toUtf8() + "\"",
                  "font-family=\"" + font_family_list().toHtmlEscaped().toUtf8() + "\"");
    bytes.replace("<image ", "<image style=\"image-rendering:pixelated\" ");
    return without_controls(bytes);
}

QByteArray png(QCustomPlot& plot, const QSizeF& size, double dpi, const QColor& background) {
    const double scale = dpi / kUnitsPerInch;
    const QSize pixels(static_cast<int>(std::lround(size.width() * scale)),
                       static_cast<int>(std::lround(size.height() * scale)));
    const double area = static_cast<double>(pixels.width()) * pixels.height();
    if (std::max(pixels.width(), pixels.height()) > kLongestSide || area > kMostPixels) {
        throw Error(ErrorCode::limit, "figure", "expected at most 32767 pixels a side and 400 million pixels",
                    "found " + std::to_string(pixels.width()) + " x " + std::to_string(pixels.height()));
    }
    QImage image(pixels, QImage::Format_RGB32);
    if (image.isNull()) throw Error(ErrorCode::memory, "figure", "expected memory for its pixels", "found none");
    image.fill(background);
    draw(plot, &image, size, scale, false);
    const auto per_metre = static_cast<int>(std::lround(dpi / 0.0254));
    image.setDotsPerMeterX(per_metre);
    image.setDotsPerMeterY(per_metre);
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    if (!image.save(&buffer, "PNG"))
        throw Error(ErrorCode::internal, "figure", "expected a PNG file", "found that it could not be encoded");
    return bytes;
}

Theme themed(const FigureStyle& style) {
    Theme theme = make_theme(style.dark);
    theme.sequential_map = style.sequential_map;
    theme.diverging_map = style.diverging_map;
    return theme;
}

std::string ending(const std::string& path) {
    std::string end = std::filesystem::path(path).extension().string();
    for (char& c : end) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return end.empty() ? end : end.substr(1);
}

void check_format(const std::string& format, const std::string& where) {
    if (format != "pdf" && format != "svg" && format != "png") {
        throw Error(ErrorCode::usage, where, "expected a name that ends in .pdf, .svg or .png",
                    "found " + (format.empty() ? std::string("none") : escaped(format)));
    }
}

}  // namespace

std::string render_figure(const figures::FigureData& figure, const FigureStyle& style, const std::string& format) {
    check_format(format, "figure");
    check(style);
    if (qApp == nullptr || QThread::currentThread() != qApp->thread()) {
        throw Error(ErrorCode::internal, "figure", "expected a QApplication and its thread",
                    "found another thread or none");
    }
    const QuietQt quiet;
    const FigureFont font(style.font_family);
    const FigureLayout layout = make_layout(figure, style);
    const Theme theme = themed(style);
    const auto plot = make_plot(layout, theme);
    const std::string& own = figure.title.empty() ? figure.recipe : figure.title;
    const std::string& title = style.title_text.empty() ? own : style.title_text;
    const QByteArray bytes = format == "pdf"   ? pdf(*plot, layout.size, title)
                             : format == "svg" ? svg(*plot, layout.size, title)
                                               : png(*plot, layout.size, style.dpi, theme.background);
    return bytes.toStdString();
}

void export_figure(const figures::FigureData& figure, const FigureStyle& style, const std::string& path) {
    const std::string format = ending(path);
    check_format(format, escaped(path));
    OutputFile::check_target(path);
    const std::string bytes = render_figure(figure, style, format);
    write_whole_file(path, bytes, "figure");
}

}  // namespace headscope::widgets
