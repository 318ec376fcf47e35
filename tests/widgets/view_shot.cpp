// SPDX-License-Identifier: GPL-3.0-or-later
// view_shot VIEW OUT.png FILE.headscope.h5... [--size WxH] [--dark] [--all] [--sequence N] [--site N] [--head N]
//           [--query N] [--key N] [--state JSON]
// Draws one view of the window on the offscreen platform: to look at it, and for pictures that tests compare.
#include <QApplication>
#include <QJsonDocument>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "tests/widgets/desk_fixture.h"
#include "widgets/desk/palette.h"
#include "widgets/desk/view.h"
#include "widgets/offscreen.h"

using namespace headscope;

int main(int argc, char** argv) try {
    widgets::ensure_application();
    std::vector<std::string> plain;
    widgets::Selection selection;
    QJsonObject state;
    int width = 1000, height = 700;
    bool dark = false;
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
        } else {
            plain.push_back(word);
        }
    }
    if (plain.size() < 3) {
        std::fprintf(stderr, "view_shot: VIEW OUT.png FILE... expected\n");
        return 2;
    }
    widgets::Desk desk;
    for (std::size_t i = 2; i < plain.size(); ++i) tests::open_study(desk, plain[i]);
    selection.study = desk.studies().front()->id();
    desk.select(selection);
    desk.set_dark(dark);
    qApp->setPalette(widgets::make_palette(desk.theme()));
    const std::unique_ptr<widgets::View> view(tests::view_kind(plain[0]).make(&desk, nullptr));
    view->resize(width, height);
    view->restore(state);
    view->show();
    tests::settle(desk);
    return view->grab().save(QString::fromStdString(plain[1])) ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "view_shot: %s\n", error.what());
    return 1;
}
