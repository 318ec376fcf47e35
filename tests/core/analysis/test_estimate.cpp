// SPDX-License-Identifier: GPL-3.0-or-later
// The estimated time of an analysis against its real time.
#include <algorithm>
#include <catch2/catch.hpp>

#include "core/analysis/estimate.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/load/memory.h"
#include "core/model/model.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;

namespace {

const std::filesystem::path sample =
    std::filesystem::path(HEADSCOPE_SOURCE_DIR) / "resources/samples/llama-kjv-shakespeare";

store::SequenceTokens tokens(std::int64_t count) {
    store::SequenceTokens made;
    for (std::int64_t i = 0; i < count; ++i) {
        made.ids.push_back(static_cast<std::int32_t>(3 + i * 7 % 900));
        made.offsets.push_back({5 * i, 5 * i + 5});
        made.pieces.emplace_back(" word");
        made.text += " word";
    }
    return made;
}

struct Heard final : Progress {
    void advance(double done, double, const std::string&) override { last = done; }
    double last = 0;
};

}  // namespace

TEST_CASE("A file is as large as it was said to be, and progress counts what was announced", "[analysis][estimate]") {
    const auto checkpoint = checkpoint::Checkpoint::open(sample);
    const auto model = model::Model::build(*checkpoint);
    const auto inspection = model::inspect(*checkpoint);
    const test::TemporaryFolder folder;
    const auto check = [&](const std::vector<std::int64_t>& lengths, store::RecordLevels record) {
        analysis::AnalysisRequest request;
        for (const std::int64_t length : lengths) request.sequences.push_back(tokens(length));
        request.record = record;
        const auto found = analysis::estimate(inspection, request, {});
        Heard progress;
        const Cancellation cancellation;
        analysis::run(*model, request, folder / "a.headscope.h5", {}, progress, cancellation);
        const auto bytes = static_cast<double>(std::filesystem::file_size(folder / "a.headscope.h5"));
        INFO(lengths.size() << " sequences from " << lengths.front() << ": " << bytes << " bytes, estimated "
                            << found.file_bytes);
        CHECK(found.file_bytes == Approx(bytes).epsilon(0.1));
        CHECK(progress.last == Approx(found.multiplications));
        CHECK(found.weight_bytes == Approx(4.0 * static_cast<double>(model->parameters())));
    };
    check({7}, {});
    check({130}, {});
    check({130}, {.maps = true});
    check({40, 90, 40}, {.maps = true, .attention = true, .states = true, .logits = true});
}

TEST_CASE("Memory and time grow with what they depend on", "[analysis][estimate]") {
    const auto inspection = model::inspect(*checkpoint::Checkpoint::open(sample));
    const auto of = [&](std::int64_t length, store::RecordLevels record = {}, analysis::EstimateOptions options = {}) {
        analysis::AnalysisRequest request;
        request.sequences.push_back(tokens(length));
        request.record = record;
        return analysis::estimate(inspection, request, options);
    };
    // The header says what was measured: within 30 % of it (peak of the process in MB).
    CHECK(of(256).memory_bytes == Approx(176.4e6).epsilon(0.3));
    CHECK(of(2048).memory_bytes == Approx(210.8e6).epsilon(0.3));
    CHECK(of(2048, {.maps = true}).memory_bytes == Approx(220.4e6).epsilon(0.3));
    CHECK(of(8192).memory_bytes == Approx(369.8e6).epsilon(0.3));
    CHECK(of(8192, {.maps = true}).memory_bytes == Approx(403.2e6).epsilon(0.3));

    CHECK(of(64, {}, {.rate = {}, .bfloat16 = true}).weight_bytes == Approx(of(64).weight_bytes / 2));
    CHECK(of(2048, {}, {.rate = {1e9}, .bfloat16 = false, .weights_there = true}).seconds ==
          Approx(of(2048).multiplications / 1e9));
    CHECK(of(8192).multiplications > 4 * of(2048).multiplications);
    CHECK(analysis::Rate::measured(4e9, 2, {}).multiplications_per_second == Approx(2e9));
    CHECK(analysis::Rate::measured(4e9, 0.01, {5}).multiplications_per_second == 5);
    CHECK(analysis::Rate::by_threads(2).multiplications_per_second >
          analysis::Rate::by_threads(0).multiplications_per_second);
    // Nothing to run costs nothing but the model.
    CHECK(analysis::estimate(inspection, {}, {}).file_bytes == 0);
}

TEST_CASE("Batches get shorter until they fit into memory", "[analysis][estimate]") {
    const auto inspection = model::inspect(*checkpoint::Checkpoint::open(sample));
    analysis::AnalysisRequest request;
    request.sequences.assign(64, tokens(256));
    const auto need = [&](std::int64_t batch, model::Residence residence) {
        analysis::AnalysisRequest other = request;
        other.batch_tokens = batch;
        const auto found =
            analysis::estimate(inspection, other, {.rate = {}, .bfloat16 = false, .residence = residence});
        return found.weight_bytes + found.work_bytes;
    };
    const auto fitting = [&](double room, std::optional<model::Residence> residence = {}) {
        return analysis::fitting_batch_tokens(inspection, request, {.residence = residence}, room);
    };
    const auto float32 = model::Residence::float32;
    const std::int64_t most = request.batch_tokens;
    REQUIRE(need(most / 2, float32) < need(most, float32));
    REQUIRE(need(most / 4, float32) < need(most / 2, float32));
    CHECK(fitting(need(most, float32), float32) == most);
    CHECK(fitting(need(most, float32) - 1, float32) == most / 2);
    CHECK(fitting(need(most / 4, float32), float32) == most / 4);
    // An open choice stays with long batches where one of the residences has room for them.
    double least = need(most, float32);
    for (const model::Residence one : model::kResidences) least = std::min(least, need(most, one));
    CHECK(fitting(least) == most);
    CHECK(fitting(1, float32) == 256);
    CHECK(fitting(0, float32) == most);  // the system does not say
    const auto fitting_on_device = [&](double room) {
        return model::fitting_batch_tokens(
            most, float32, 0, [&](std::int64_t batch, model::Residence one) { return need(batch, one); }, room);
    };
    CHECK(fitting_on_device(2 * need(most, float32) + 1e9) == most);
    CHECK(fitting_on_device(1) == 256);
    CHECK(fitting_on_device(0) == most);
}

TEST_CASE("Implicit matrices are counted, in memory and in the file", "[analysis][estimate]") {
    auto inspection = model::inspect(*checkpoint::Checkpoint::open(sample));
    Site& site = inspection.sites.at(1);
    site.has_matrix = false;
    site.has_implicit = true;
    const auto of = [&](bool implicit) {
        analysis::AnalysisRequest request;
        request.sequences = {tokens(512), tokens(512)};
        request.record.implicit = implicit;
        return analysis::estimate(inspection, request, {});
    };
    const double matrices = 2.0 * site.heads * 512 * 512 * 4;  // both sequences run together
    CHECK(of(true).memory_bytes - of(false).memory_bytes == Approx(matrices));
    CHECK(of(true).file_bytes - of(false).file_bytes == Approx(matrices).epsilon(0.01));
}

TEST_CASE("Edits of weights take the matrices of a batch", "[analysis][estimate]") {
    const auto inspection = model::inspect(*checkpoint::Checkpoint::open(sample));
    const auto of = [&](model::Point point) {
        analysis::AnalysisRequest request;
        request.sequences = {tokens(512), tokens(512)};
        request.interventions.resize(1);
        request.interventions[0].point = point;
        return analysis::estimate(inspection, request, {}).work_bytes;
    };
    const double matrix = static_cast<double>(inspection.config.heads) * 512 * 512 * 4;
    CHECK(of(model::Point::pattern) - of(model::Point::hidden) == Approx(6 * 2 * matrix));
    CHECK(of(model::Point::scores) == of(model::Point::pattern));
}

TEST_CASE("Streaming is expected to read the file once, and hidden states beyond a limit to wait on the disk",
          "[analysis][estimate]") {
    const auto inspection = model::inspect(*checkpoint::Checkpoint::open(sample));
    const double stored = inspection.sizes.stored, layer = inspection.sizes.layer_stored;
    REQUIRE(stored > 0);
    const auto of = [&](std::size_t sequences, double rate, model::Residence residence = model::Residence::stream) {
        analysis::AnalysisRequest request;
        request.sequences.assign(sequences, tokens(2048));
        return analysis::estimate(inspection, request, {.rate = {rate}, .residence = residence, .weights_there = true});
    };
    const double rate = analysis::Estimate::read_rate;
    CHECK(of(2, 1e30).read_bytes == Approx(stored));
    CHECK(of(2, 1e30).seconds == Approx((stored + layer) / rate));
    CHECK(of(2, 1e30).spilled_bytes == 0);
    CHECK(of(130, 1e30).read_bytes == Approx(stored));
    // Two states of 256 numbers for each token, of which 256 MB wait in memory; 4 layers, 4 times each.
    const double spilled = 130.0 * 2048 * 256 * 2 * 4 - 256e6;
    CHECK(of(130, 1e30).spilled_bytes == Approx(spilled));
    CHECK(of(130, 1e30).seconds == Approx((stored + layer + 4 * 4 * spilled) / rate));
    CHECK(of(130, 1e30, model::Residence::file).spilled_bytes == 0);
    // Reading goes on while a slow machine computes.
    const auto slow = of(2, 1e6);
    CHECK(slow.seconds == Approx(slow.multiplications / 1e6 + layer / rate));
    // Memory of waiting states is limited: tokens beyond that are ids and pieces alone.
    CHECK(of(130, 1e6).work_bytes - of(64, 1e6).work_bytes == Approx(66.0 * 2048 * 150));
}
