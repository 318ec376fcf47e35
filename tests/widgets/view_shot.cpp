// SPDX-License-Identifier: GPL-3.0-or-later
// view_shot VIEW OUT.png
// FILE.headscope.h5|RUN|made|FILE.evaluation.h5|evaluated|long_texts|task_results|recurrent|lazy|
//           alibi|heads|asked-TOOL|FILE.ask.h5...
//           [--size WxH] [--dark] [--all] [--sequence N] [--site N] [--head N]
//           [--query N] [--key N] [--filter HEADS] [--state JSON] [--compare APPROVED.png]
// Draws one view of the window on the offscreen platform: to look at it, and for pictures that tests compare. RUN is
// the folder of a training run, `made` a run that never was (run_fixture.h), the word twice two of them; `evaluated`,
// `long_texts` and `task_results` are made-up results (sample_records.h), `recurrent`, `lazy` and
// `alibi` and `heads` analyses of models that never were (synthetic_recurrent.h, synthetic_lazy.h, synthetic_heads.h);
// `asked-lens` and other tools ask files of no model (sample_asks.h);
// the view `tensors` shows a
// checkpoint that never was (made_tensors.h), `stepper` a generation of no model (ask/made_steps.h). With
// --compare the picture is held against one that was looked at and approved; it ends with 3 when they differ.
#include <QApplication>
#include <QImage>
#include <QJsonDocument>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "core/run/journal_reader.h"
#include "core/run/run_folder.h"
#include "core/store/ask/ask_file.h"
#include "core/store/evaluation/evaluation_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/figures/sample_asks.h"
#include "tests/core/figures/sample_records.h"
#include "tests/core/store/synthetic_heads.h"
#include "tests/core/store/synthetic_lazy.h"
#include "tests/core/store/synthetic_recurrent.h"
#include "tests/widgets/ask/made_steps.h"
#include "tests/widgets/desk_fixture.h"
#include "tests/widgets/made_tensors.h"
#include "tests/widgets/run_fixture.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/palette.h"
#include "widgets/desk/style.h"
#include "widgets/desk/view.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;

namespace {

constexpr int kCell = 8;               ///< pixels: a cell's mean colour does not see how a letter's edge was smoothed
constexpr double kSeen = 16;           ///< of 255: what an eye sees as another colour
constexpr double kMostOtherCells = 1;  ///< per cent: a number that rounds the other way, not a line that is gone

std::array<double, 3> mean_colour(const QImage& image, int left, int top) {
    std::array<double, 3> sum{};
    const int right = std::min(left + kCell, image.width()), bottom = std::min(top + kCell, image.height());
    for (int y = top; y < bottom; ++y) {
        for (int x = left; x < right; ++x) {
            const QRgb pixel = image.pixel(x, y);
            sum[0] += qRed(pixel);
            sum[1] += qGreen(pixel);
            sum[2] += qBlue(pixel);
        }
    }
    for (double& part : sum) part /= (right - left) * (bottom - top);
    return sum;
}

/// Per cent of cells whose colour differs; 100 for pictures of different sizes.
double other_cells(const QImage& one, const QImage& two) {
    if (one.size() != two.size()) return 100;
    int cells = 0, other = 0;
    for (int top = 0; top < one.height(); top += kCell) {
        for (int left = 0; left < one.width(); left += kCell) {
            const auto a = mean_colour(one, left, top), b = mean_colour(two, left, top);
            ++cells;
            if (std::max({std::abs(a[0] - b[0]), std::abs(a[1] - b[1]), std::abs(a[2] - b[2])}) > kSeen) ++other;
        }
    }
    return 100.0 * other / cells;
}

int compare(const QImage& picture, const std::string& path) {
    const QImage approved(QString::fromStdString(path));
    if (approved.isNull()) {
        std::fprintf(stderr, "view_shot: no picture at %s\n", path.c_str());
        return 3;
    }
    const double percent = other_cells(picture, approved);
    std::printf("%.2f %% of the picture differs\n", percent);
    return percent <= kMostOtherCells ? 0 : 3;
}

void open_run(widgets::RunShelf& shelf, const std::string& path, std::size_t number) {
    if (path == "made") {
        tests::MadeRun made;
        made.seed = static_cast<unsigned>(number);
        made.level = 0.8 + 0.2 * static_cast<double>(number);
        const auto name = QString::fromLatin1(number % 2 == 0 ? "hybrid, even layers standard" : "uniform");
        shelf.take(shelf.add(QStringLiteral("/made/%1").arg(number), name), tests::made_run(made));
        return;
    }
    auto run = std::make_shared<workspace::LiveRun>();
    for (const auto& event : training::read_journal(training::RunFolder{path}.journal())) run->add(event);
    shelf.take(shelf.add(QString::fromStdString(path), QString::fromStdString(std::filesystem::path(path).filename())),
               run);
}

}  // namespace

int main(int argc, char** argv) try {
    widgets::ensure_application();
    QApplication::setStyle(new widgets::Style);
    std::vector<std::string> plain;
    widgets::Selection selection;
    QJsonObject state;
    int width = 1000, height = 700;
    bool dark = false;
    std::string approved, filter;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
        if (word == "--size") {
            const std::string size = value();
            std::sscanf(size.c_str(), "%dx%d", &width, &height);
        } else if (word == "--dark") {
            dark = true;
        } else if (word == "--all") {
            selection.sequence.reset();
        } else if (word == "--sequence") {
            selection.sequence = std::stoll(value());
        } else if (word == "--site") {
            selection.site = std::stoll(value());
        } else if (word == "--head") {
            selection.head = std::stoll(value());
        } else if (word == "--query") {
            selection.query = std::stoll(value());
        } else if (word == "--key") {
            selection.key = std::stoll(value());
        } else if (word == "--state") {
            state = QJsonDocument::fromJson(QByteArray::fromStdString(value())).object();
        } else if (word == "--filter") {
            filter = value();
        } else if (word == "--compare") {
            approved = value();
        } else {
            plain.push_back(word);
        }
    }
    if (plain.size() < 3) {
        std::fprintf(stderr, "view_shot: VIEW OUT.png FILE... expected\n");
        return 2;
    }
    const test::TemporaryFolder folder;
    tests::write_recurrent_analysis(folder / "recurrent.headscope.h5");
    tests::LazySample lazy;
    lazy.analysis.record.maps = lazy.analysis.record.states = true;
    tests::write_lazy_analysis(folder / "lazy.headscope.h5", lazy);
    tests::write_lazy_analysis(folder / "alibi.headscope.h5", tests::alibi_sample());
    tests::write_head_embeddings_analysis(folder / "heads.headscope.h5");
    tests::AnsweringTensors tensors;
    tests::MadeSteps steps(6);
    widgets::Desk desk;
    desk.set_tensors(&tensors);
    desk.set_stepper(&steps);
    desk.runs().draft().set_choices(tests::made_choices());
    desk.runs().draft().set_estimate(
        tests::made_estimate({"approximate", "standard", "approximate", "non_approximate", "mlp", "standard"}));
    for (std::size_t i = 2; i < plain.size(); ++i) {
        if (plain[i] == "evaluated" || plain[i] == "long_texts" || plain[i] == "task_results" ||
            plain[i].ends_with(".evaluation.h5"))
            desk.evaluations().take(QString::fromStdString(plain[i]),
                                    std::make_shared<const store::Evaluation>(
                                        plain[i] == "evaluated"      ? test::sample_evaluation()
                                        : plain[i] == "long_texts"   ? test::sample_long_evaluation()
                                        : plain[i] == "task_results" ? test::sample_task_evaluation()
                                                                     : store::read_evaluation(plain[i])));
        else if (plain[i].starts_with("asked-") || plain[i].ends_with(".ask.h5"))
            desk.asks().take(QString::fromStdString(plain[i]),
                             std::make_shared<const store::AskRecord>(plain[i].ends_with(".ask.h5")
                                                                          ? store::read_ask(plain[i])
                                                                          : test::sample_ask(plain[i].substr(6))));
        else if (plain[i] == "made" || std::filesystem::is_directory(plain[i]))
            open_run(desk.runs(), plain[i], i);
        else if (plain[i] == "recurrent" || plain[i] == "lazy" || plain[i] == "alibi" || plain[i] == "heads")
            tests::open_study(desk, folder / (plain[i] + ".headscope.h5"));
        else
            tests::open_study(desk, plain[i]);
    }
    if (!desk.studies().empty()) {
        selection.study = desk.studies().front()->id();
        desk.select(selection);
    }
    desk.set_head_filter(QString::fromStdString(filter));
    desk.set_dark(dark);
    qApp->setPalette(widgets::make_palette(desk.theme()));
    const std::unique_ptr<widgets::View> view(tests::view_kind(plain[0]).make(&desk, nullptr));
    view->resize(width, height);
    view->restore(state);
    view->show();
    tests::settle(desk);
    tests::settle(desk.runs());
    // The window may or may not be active by now.
    if (QWidget* focus = QApplication::focusWidget()) focus->clearFocus();
    tests::settle(desk);
    const QImage picture = view->grab().toImage().convertToFormat(QImage::Format_RGB32);
    if (!picture.save(QString::fromStdString(plain[1]))) return 1;
    return approved.empty() ? 0 : compare(picture, approved);
} catch (const std::exception& error) {
    std::fprintf(stderr, "view_shot: %s\n", error.what());
    return 1;
}
