// SPDX-License-Identifier: GPL-3.0-or-later
// What the text panel says of a run: rate and time left, between the ends of layers too.
#include <catch2/catch.hpp>

#include "app/window/training/run_progress.h"

using namespace headscope::app;

namespace {

RunProgress::Time at(double seconds) {
    return RunProgress::Time() + std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
}

std::string text(const RunProgress& progress, double seconds) {
    return progress.shown(at(seconds)).text.toStdString();
}

}  // namespace

TEST_CASE("A run reports its rate and the time left, also within a layer", "[app][progress]") {
    RunProgress progress;
    CHECK(text(progress, 0).empty());
    // 1200 units of work on 600 tokens; this machine did 40 a second before.
    progress.begin(1200, 600, 40, at(0));
    CHECK(text(progress, 0) == "the first layer, about 30 s left");
    CHECK(text(progress, 6) == "the first layer, about 24 s left");
    CHECK(progress.shown(at(6)).share == Approx(0.2));
    // It takes 10 s for a twelfth: 10 units a second, 5 tokens a second through all layers.
    progress.advance(100, 1200, "layer 0 of 12", at(10));
    CHECK(text(progress, 10) == "layer 0 of 12, 5 tokens/s, 1:50 min left");
    CHECK(text(progress, 15) == "layer 0 of 12, 5 tokens/s, 1:45 min left");
    CHECK(progress.shown(at(15)).share == Approx(150.0 / 1200));
    // A step that takes longer than the others: not further than where it ends.
    CHECK(progress.shown(at(40)).share == Approx(200.0 / 1200));
    CHECK(text(progress, 400) == "layer 0 of 12, 5 tokens/s, 1 s left");
    progress.advance(200, 1200, "layer 1 of 12", at(40));
    CHECK(text(progress, 40) == "layer 1 of 12, 2.5 tokens/s, 3:20 min left");
    progress.advance(1200, 1200, "loss", at(60));
    CHECK(text(progress, 60) == "loss, 10 tokens/s");
    CHECK(progress.shown(at(60)).share == 1);
}

TEST_CASE("Reading weights has a rate of its own", "[app][progress]") {
    RunProgress progress;
    progress.advance(0, 4e6, "load a", at(5));
    CHECK(text(progress, 5) == "load a");
    progress.advance(1e6, 4e6, "load b", at(6));
    CHECK(text(progress, 6) == "load b, 1.00 M weights/s, 3 s left");
    progress.begin(100, 10, 0, at(9));
    CHECK(text(progress, 9) == "the first layer");
    progress.advance(50, 100, "layer 0 of 2", at(10));
    CHECK(text(progress, 10) == "layer 0 of 2, 5 tokens/s, 1 s left");
}
