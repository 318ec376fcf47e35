// SPDX-License-Identifier: GPL-3.0-or-later
// Batches of an evaluation under a limit of memory.
#include <algorithm>
#include <filesystem>

#include "core/checkpoint/checkpoint.h"
#include "core/evaluation/expected_memory.h"
#include "tests/catch_with_torch.h"

using namespace headscope;
using model::Residence;

TEST_CASE("Batches of an evaluation get shorter until they fit into memory", "[evaluation][memory]") {
    const auto inspection = model::inspect(*checkpoint::Checkpoint::open(std::filesystem::path(HEADSCOPE_SOURCE_DIR) /
                                                                         "resources/samples/llama-kjv-shakespeare"));
    evaluation::Request request;
    request.tasks = {"perplexity"};
    const std::int64_t most = request.score.batch_tokens;
    const auto need = [&](std::int64_t tokens, Residence residence) {
        const auto rows = static_cast<double>(tokens);
        return model::reading_bytes(inspection, rows, rows, checkpoint::LoadAs::float32, residence);
    };
    const auto fitting = [&](double room, std::optional<Residence> residence = {}) {
        return evaluation::fitting_batch_tokens(request, inspection, {.residence = residence}, room);
    };
    REQUIRE(need(most / 4, Residence::file) < need(most / 2, Residence::file));
    CHECK(fitting(need(most, Residence::file), Residence::file) == most);
    CHECK(fitting(need(most, Residence::file) - 1, Residence::file) == most / 2);
    CHECK(fitting(need(most / 4, Residence::file), Residence::file) == most / 4);
    // An open choice stays with long batches where one of the residences has room for them.
    double least = need(most, Residence::float32);
    for (const Residence one : model::kResidences) least = std::min(least, need(most, one));
    CHECK(fitting(least) == most);
    CHECK(fitting(1, Residence::float32) == 256);
    CHECK(fitting(0, Residence::float32) == most);  // the system does not say
    // A pass holds the longest text, however few tokens a batch has.
    request.lengths = {most};
    CHECK(fitting(need(most, Residence::float32) - 1, Residence::float32) == 256);
}

TEST_CASE("Hidden states that wait take the memory that a streamed evaluation leaves", "[evaluation][memory]") {
    const auto inspection = model::inspect(*checkpoint::Checkpoint::open(std::filesystem::path(HEADSCOPE_SOURCE_DIR) /
                                                                         "resources/samples/llama-kjv-shakespeare"));
    evaluation::Request request;
    request.tasks = {"perplexity"};
    const auto rows = static_cast<double>(request.score.batch_tokens);
    const double need = model::reading_bytes(inspection, rows, rows, checkpoint::LoadAs::float32, Residence::stream);
    const auto fitting = [&](double room, double device_room = 0) {
        return evaluation::fitting_waiting_bytes(request, inspection, checkpoint::LoadAs::float32, room, device_room);
    };
    const double most = request.score.waiting.memory_bytes;
    CHECK(fitting(0) == most);  // the system does not say
    CHECK(fitting(need + 2 * most) == most);
    CHECK(fitting(need) == 0);
    // Ids and targets of the texts that wait come first.
    CHECK(fitting(need + most / 2) < most / 2);
    CHECK(fitting(need + most / 2) > most / 4);
    // They wait in the GPU's memory, of which kernels and LibTorch's allocator keep some.
    CHECK(fitting(0, 2 * (need + most) + 1e9) == most);
    CHECK(fitting(need + 2 * most, need) == 0);
    CHECK(fitting(0, need) == 0);
}
