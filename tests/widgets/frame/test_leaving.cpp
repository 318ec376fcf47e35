// SPDX-License-Identifier: GPL-3.0-or-later
// What leaves the window or begins beside it: dragged files, printed pages, commands as dialogs, the guide.
#include <QBuffer>
#include <QComboBox>
#include <QFile>
#include <QLineEdit>
#include <QMimeData>
#include <QPdfWriter>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableWidget>
#include <QTest>
#include <QTextBrowser>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/core/base/temporary_folder.h"
#include "tests/widgets/child.h"
#include "widgets/desk/view.h"
#include "widgets/frame/figure_handle.h"
#include "widgets/frame/print_picture.h"
#include "widgets/panels/convert_dialog.h"
#include "widgets/panels/guide_window.h"
#include "widgets/panels/reproduce_dialog.h"
#include "widgets/panels/start_page.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::child;

namespace {

QString guide() {
    QFile file(QStringLiteral(HEADSCOPE_SOURCE_DIR "/docs/user-guide.md"));
    REQUIRE(file.open(QIODevice::ReadOnly));
    return QString::fromUtf8(file.readAll());
}

ReproduceDialog::Paper paper(const char* name) {
    return {QLatin1String(name), QStringLiteral("Title of ") + QLatin1String(name), QStringLiteral("What is trained")};
}

}  // namespace

TEST_CASE("A dragged figure is a file, and its bytes for programs that take no files", "[frame][drag]") {
    ensure_application();
    const test::TemporaryFolder folder;
    const QString path = QString::fromStdString((folder / "map-1.png").string());
    QImage picture(20, 10, QImage::Format_RGB32);
    picture.fill(Qt::red);
    REQUIRE(picture.save(path));
    const std::unique_ptr<QMimeData> data(FigureHandle::carried(path));
    CHECK(data->urls() == QList<QUrl>{QUrl::fromLocalFile(path)});
    CHECK(qvariant_cast<QImage>(data->imageData()).size() == QSize(20, 10));
    CHECK(QImage::fromData(data->data("image/png")).size() == QSize(20, 10));
    const QString vector = QString::fromStdString((folder / "map-1.svg").string());
    QFile file(vector);
    REQUIRE(file.open(QIODevice::WriteOnly));
    file.write("<svg/>");
    file.close();
    const std::unique_ptr<QMimeData> drawn(FigureHandle::carried(vector));
    CHECK(drawn->data("image/svg+xml") == "<svg/>");
    CHECK_FALSE(drawn->hasImage());
}

TEST_CASE("The handle asks for the file when it is pressed, in the format that was chosen", "[frame][drag]") {
    ensure_application();
    FigureHandle handle;
    handle.show();
    QSignalSpy wanted(&handle, &FigureHandle::file_wanted);
    QTest::mousePress(&handle, Qt::LeftButton);
    REQUIRE(wanted.count() == 1);
    CHECK(wanted[0][0].toString() == "png");
    QTest::mouseRelease(&handle, Qt::LeftButton);
    handle.begin("/nowhere.png");  // it came too late: no drag begins
    handle.set_format("pdf");
    QTest::mousePress(&handle, Qt::LeftButton);
    CHECK(wanted[1][0].toString() == "pdf");
    CHECK(handle.toolTip().contains("PDF"));
    QTest::mouseRelease(&handle, Qt::LeftButton);
}

TEST_CASE("A picture is printed at its true size, or as large as the page", "[frame][print]") {
    ensure_application();
    const auto ink_of = [](int width, int height) {
        // A page of 100 x 100 dots at 100 dots an inch.
        constexpr int kDotsPerMeter = 3937;
        QImage page(100, 100, QImage::Format_RGB32);
        page.setDotsPerMeterX(kDotsPerMeter);
        page.setDotsPerMeterY(kDotsPerMeter);
        page.fill(Qt::white);
        QImage picture(width, height, QImage::Format_RGB32);
        picture.fill(Qt::black);
        REQUIRE(print_picture(page, picture, 200));
        QRect ink;
        for (int y = 0; y < 100; ++y)
            for (int x = 0; x < 100; ++x)
                if (qGray(page.pixel(x, y)) < 128) ink |= QRect(x, y, 1, 1);
        return ink;
    };
    // 100 x 60 dots of 200 an inch are 50 x 30 of 100, in the middle of the page's top.
    CHECK(ink_of(100, 60) == QRect(25, 0, 50, 30));
    CHECK(ink_of(400, 200) == QRect(0, 0, 100, 50));
    QBuffer bytes;
    bytes.open(QIODevice::WriteOnly);
    QPdfWriter pdf(&bytes);
    CHECK_FALSE(print_picture(pdf, QImage(), 200));
}

TEST_CASE("Layers with other mixers become the command's ranges", "[frame][tasks]") {
    ensure_application();
    ConvertDialog dialog(ConvertDialog::What::mixers);
    auto* start = child<QPushButton>(dialog, "swap_dialog_start");
    CHECK_FALSE(start->isEnabled());
    dialog.set_sources({{"/models/a", "", "a", 6}, {"/models/b", "/adapters/x", "b", 4}}, "/models/b");
    auto* layers = child<QTableWidget>(dialog, "swap_dialog_layers");
    CHECK(layers->rowCount() == 4);
    child<QComboBox>(dialog, "swap_dialog_source")->setCurrentIndex(0);
    CHECK(layers->rowCount() == 6);
    const auto give = [&](int layer, const char* mixer) {
        auto* box = static_cast<QComboBox*>(layers->cellWidget(layer, 1));
        REQUIRE(box->findText(mixer) > 0);
        box->setCurrentIndex(box->findText(mixer));
    };
    for (const int layer : {0, 2, 3, 4}) give(layer, "mlp");
    give(5, "approximate");
    CHECK_FALSE(start->isEnabled());
    child<QLineEdit>(dialog, "swap_dialog_destination")->setText("/out");
    CHECK(start->isEnabled());
    CHECK(dialog.words() ==
          QStringList{"convert", "/models/a", "/out", "--swap", "5=approximate", "--swap", "0,2-4=mlp"});
    CHECK(child<QLineEdit>(dialog, "swap_dialog_command")->text() ==
          "headscope convert /models/a /out --swap 5=approximate --swap 0,2-4=mlp");
    QSignalSpy wanted(&dialog, &TaskDialog::start_wanted), opened(&dialog, &TaskDialog::open_wanted);
    start->click();
    CHECK(wanted.count() == 1);
    dialog.set_running(true, true);
    dialog.set_progress("40 %  layer 3");
    CHECK_FALSE(start->isEnabled());
    CHECK(child<QPushButton>(dialog, "swap_dialog_stop")->isEnabled());
    dialog.set_running(false, true);
    dialog.set_result("Done");
    child<QPushButton>(dialog, "swap_dialog_open")->click();
    REQUIRE(opened.count() == 1);
    CHECK(opened[0][0].toString() == "/out");
}

TEST_CASE("A conversion names its adapter and its type", "[frame][tasks]") {
    ensure_application();
    ConvertDialog dialog(ConvertDialog::What::type);
    CHECK(dialog.problem() == "Open a checkpoint first");
    dialog.set_sources({{"/models/b", "/adapters/x", "b", 4}}, {});
    child<QLineEdit>(dialog, "convert_dialog_destination")->setText(" /out ");
    child<QComboBox>(dialog, "convert_dialog_type")->setCurrentIndex(2);
    CHECK(dialog.words() ==
          QStringList{"convert", "/models/b", "/out", "--adapter", "/adapters/x", "--dtype", "bfloat16"});
    CHECK(dialog.problem().isEmpty());
    dialog.set_running(true, false);
    CHECK_FALSE(child<QPushButton>(dialog, "convert_dialog_start")->isEnabled());
    CHECK_FALSE(child<QPushButton>(dialog, "convert_dialog_stop")->isEnabled());
}

TEST_CASE("A replay's dialog makes its command", "[frame][tasks]") {
    ensure_application();
    ReproduceDialog dialog({paper("deconattn"), paper("lazy")}, 40);
    CHECK(dialog.problem() == "Choose a new folder");
    child<QComboBox>(dialog, "reproduce_dialog_paper")->setCurrentIndex(1);
    child<QLineEdit>(dialog, "reproduce_dialog_folder")->setText("/replays/lazy");
    CHECK(dialog.words() == QStringList{"reproduce", "lazy", "-o", "/replays/lazy", "--minutes", "40"});
    child<QSpinBox>(dialog, "reproduce_dialog_seeds")->setValue(2);
    child<QDoubleSpinBox>(dialog, "reproduce_dialog_minutes")->setValue(2.5);
    CHECK(dialog.words() ==
          QStringList{"reproduce", "lazy", "-o", "/replays/lazy", "--minutes", "2.5", "--seeds", "2"});
    // The plan that is followed has its own.
    child<QCheckBox>(dialog, "reproduce_dialog_resume")->setChecked(true);
    CHECK(dialog.words() == QStringList{"reproduce", "lazy", "-o", "/replays/lazy", "--resume"});
    CHECK_FALSE(child<QDoubleSpinBox>(dialog, "reproduce_dialog_minutes")->isEnabled());
    child<QLineEdit>(dialog, "reproduce_dialog_data_sets")->setText("/sets");
    CHECK(dialog.words() ==
          QStringList{"reproduce", "lazy", "-o", "/replays/lazy", "--data-sets", "/sets", "--resume"});
}

TEST_CASE("A replay's dialog warns of minutes that decide nothing", "[frame][tasks]") {
    ensure_application();
    ReproduceDialog dialog({paper("deconattn"), paper("lazy")}, 40);
    QStringList asked;
    QObject::connect(&dialog, &ReproduceDialog::outlook_wanted, &dialog,
                     [&](const QString& name, double minutes, int, int) {
                         asked << name + QLatin1Char(' ') + QString::number(minutes);
                     });
    auto* warning = child<QLabel>(dialog, "reproduce_dialog_warning");
    child<QComboBox>(dialog, "reproduce_dialog_paper")->setCurrentIndex(1);
    child<QDoubleSpinBox>(dialog, "reproduce_dialog_minutes")->setValue(6);
    CHECK(asked == QStringList{"lazy 40", "lazy 6"});
    dialog.set_outlook("lazy", 40, "of an older choice");
    CHECK(warning->isHidden());
    dialog.set_outlook("lazy", 6, "6 minutes are too few");
    CHECK_FALSE(warning->isHidden());
    CHECK(warning->text() == "6 minutes are too few");
    child<QDoubleSpinBox>(dialog, "reproduce_dialog_minutes")->setValue(60);
    CHECK(warning->isHidden());
    dialog.set_outlook("lazy", 60, {});
    CHECK(warning->isHidden());
}

TEST_CASE("The guide has a paragraph on every view", "[frame][guide]") {
    ensure_application();
    GuideWindow window([](const QString& page) { return page == "user-guide.md" ? guide() : QString(); });
    window.show();
    for (const ViewKind* kind : view_kinds()) {
        INFO(kind->title);
        CHECK(window.show_topic("user-guide.md", QString::fromUtf8(kind->title)));
        auto* text = child<QTextBrowser>(window, "guide_text");
        CHECK(text->textCursor().selectedText().startsWith(QString::fromUtf8(kind->title)));
    }
    CHECK_FALSE(window.show_topic("user-guide.md", "No such view"));
    CHECK(GuideWindow::plain("<!-- licence -->\nA\n![x](y.png)\nB") == "A\nB");
}

TEST_CASE("Analyses that did not end are offered, and can be removed", "[frame][start]") {
    ensure_application();
    StartPage page;
    page.resize(600, 480);
    page.show();
    page.offer_leftovers({"/data/analyses/a.headscope.h5.partial", "/data/analyses/b.headscope.h5.partial"});
    QSignalSpy opened(&page, &StartPage::path_wanted), removed(&page, &StartPage::removal_wanted);
    child<QPushButton>(page, "start_leftover_0")->click();
    child<QPushButton>(page, "start_leftover_remove_1")->click();
    REQUIRE((opened.count() == 1 && removed.count() == 1));
    CHECK(opened[0][0].toString() == "/data/analyses/a.headscope.h5.partial");
    CHECK(removed[0][0].toString() == "/data/analyses/b.headscope.h5.partial");
    page.offer_leftovers({});
    CHECK_FALSE(page.findChild<QPushButton*>("start_leftover_0"));
}
