// SPDX-License-Identifier: GPL-3.0-or-later
// Pieces that reach a device on a stream of their own. The emulated device refuses work out of order.
#include "tests/catch_with_torch.h"

#include <memory>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>

#include "core/base/error.h"
#include "core/model/load/copy_slots.h"
#include "tests/core/device/emulated_device.h"

using namespace headscope;
using test::emulated_device;

namespace {

constexpr std::int64_t kBytes = 5000;

/// Piece n is kBytes - n bytes of n. Records the pieces that were filled.
struct Pieces {
    std::vector<std::int64_t> filled;
    std::int64_t refused = -1;

    std::unique_ptr<model::CopySlots> slots() {
        return model::CopySlots::open(emulated_device(), kBytes,
                                      [this](std::int64_t number, const at::Tensor& host, const Cancellation& stop) {
                                          stop.check();
                                          if (number == refused)
                                              throw Error(ErrorCode::io, "piece", "expected a file", "found none");
                                          filled.push_back(number);
                                          host.narrow(0, 0, kBytes - number).fill_(number);
                                          return kBytes - number;
                                      });
    }
};

void check_piece(const at::Tensor& there, std::int64_t number) {
    REQUIRE(there.device() == emulated_device());
    REQUIRE(there.numel() == kBytes);
    CHECK(there.narrow(0, 0, kBytes - number).cpu().equal(at::full({kBytes - number}, number, at::kByte)));
}

}  // namespace

TEST_CASE("Pieces that are started are on the device when they are taken", "[device]") {
    Pieces pieces;
    const auto slots = pieces.slots();
    REQUIRE(slots != nullptr);
    const std::int64_t before = test::emulated_state().copies_aside;
    for (std::int64_t number = 0; number < 7; ++number) {
        const at::Tensor there = slots->take(number, nullptr);
        if (number < 6) slots->start(number + 1);
        check_piece(there, number);
        check_piece(there, number);  // while the next one is copied
    }
    CHECK(pieces.filled == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
    CHECK(test::emulated_state().copies_aside == before + 7);
}

TEST_CASE("A piece that was not started is filled when it is taken, in place of the one that was", "[device]") {
    Pieces pieces;
    const auto slots = pieces.slots();
    check_piece(slots->take(4, nullptr), 4);
    slots->start(5);
    check_piece(slots->take(9, nullptr), 9);
    check_piece(slots->take(4, nullptr), 4);
    slots->start(1);
    slots->drop();
    check_piece(slots->take(1, nullptr), 1);
    CHECK(pieces.filled == std::vector<std::int64_t>{4, 5, 9, 4, 1, 1});
}

TEST_CASE("Slots give their memory back and take it again", "[device]") {
    Pieces pieces;
    const std::int64_t before = test::emulated_state().bytes;
    const auto slots = pieces.slots();
    CHECK(test::emulated_state().bytes == before);
    for (int turn = 0; turn < 2; ++turn) {
        slots->take(1, nullptr);
        CHECK(test::emulated_state().bytes >= before + 2 * kBytes);
        slots->start(2);
        slots->release();
        CHECK(test::emulated_state().bytes == before);
    }
    check_piece(slots->take(3, nullptr), 3);
}

TEST_CASE("An error while a piece is filled ahead is thrown when it is taken", "[device]") {
    Pieces pieces;
    const auto slots = pieces.slots();
    pieces.refused = 2;
    check_piece(slots->take(1, nullptr), 1);
    slots->start(2);
    CHECK_THROWS_AS(slots->take(2, nullptr), Error);
    CHECK_THROWS_AS(slots->take(2, nullptr), Error);
    pieces.refused = -1;
    check_piece(slots->take(2, nullptr), 2);
    Cancellation stopped;
    stopped.request();
    CHECK_THROWS_AS(slots->take(3, &stopped), Stopped);
}

TEST_CASE("A device with one stream has no slots", "[device]") {
    Pieces pieces;
    const test::OneStream one;
    CHECK(pieces.slots() == nullptr);
}

TEST_CASE("Pieces are copied from plain memory where the device has no pinned one", "[device]") {
    Pieces pieces;
    const test::NoPinnedMemory without;
    const auto slots = pieces.slots();
    check_piece(slots->take(1, nullptr), 1);
    slots->start(2);
    check_piece(slots->take(2, nullptr), 2);
}
