// SPDX-License-Identifier: GPL-3.0-or-later
// Analyses with streamed weights: hidden states of texts that wait on the disk.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "core/analysis/request.h"
#include "core/base/error.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;

namespace {

store::SequenceTokens text(std::int64_t length, std::int64_t first) {
    store::SequenceTokens made;
    for (std::int64_t i = 0; i < length; ++i) {
        made.ids.push_back(static_cast<std::int32_t>((first + 3 * i + i * i) % 31));
        made.pieces.push_back("t" + std::to_string(made.ids.back()));
        made.offsets.push_back({0, 0});
    }
    return made;
}

analysis::AnalysisRequest request_for(const model::Model& model) {
    analysis::AnalysisRequest request;
    for (const std::int64_t length : {5, 9, 5, 12, 1, 5}) {
        const auto number = static_cast<std::int64_t>(request.sequences.size());
        request.sequences.push_back(text(length, number));
        if (model.config().encoder) request.targets.push_back(text(13 - length, number + 5));
    }
    request.record = {.maps = true, .states = true, .logits = true};
    request.batch_tokens = 10;
    return request;
}

struct Analysis {
    std::shared_ptr<store::AnalysisFile> file;
    std::vector<std::int64_t> layers;  ///< of sites, in the order in which they were done
};

Analysis analyze(model::Model& model, analysis::AnalysisRequest request, const std::filesystem::path& path) {
    Analysis made;
    request.site_done = [&](std::int64_t, std::int64_t site) {
        made.layers.push_back(model.sites().at(static_cast<std::size_t>(site)).layer);
    };
    NoProgress progress;
    const Cancellation cancellation;
    analysis::run(model, request, path, {}, progress, cancellation);
    made.file = store::AnalysisFile::open(path);
    return made;
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

}  // namespace

TEST_CASE("Texts whose hidden states wait on the disk have the numbers of the residence file", "[analysis]") {
    for (const char* name : {"llama", "t5"}) {
        CAPTURE(name);
        test::TinyCheckpoint tiny = test::golden_checkpoint(name);
        tiny.file_type = "BF16";
        const test::TemporaryFolder folder;
        const auto held = tiny.build(checkpoint::LoadAs::float32, model::Residence::file);
        const auto streamed = tiny.build(checkpoint::LoadAs::float32, model::Residence::stream);
        analysis::AnalysisRequest request = request_for(*held);
        request.waiting_bytes = 1000;  // of 20 numbers or so for each of 37 tokens
        const Analysis expected = analyze(*held, request, folder / "file.headscope.h5");
        const Analysis found = analyze(*streamed, request, folder / "stream.headscope.h5");
        CHECK(folder.names() == std::vector<std::string>{"file.headscope.h5", "stream.headscope.h5"});
        // All texts pass a layer before the next; what waits in memory alone takes several rounds.
        CHECK(std::is_sorted(found.layers.begin(), found.layers.end()));
        CHECK_FALSE(std::is_sorted(expected.layers.begin(), expected.layers.end()));
        CHECK(found.layers.size() == expected.layers.size());
        for (const std::string& indicator : expected.file->indicators())
            CHECK(same(found.file->indicator(indicator).data, expected.file->indicator(indicator).data));
        for (std::int64_t s = 0; s < std::ssize(request.sequences); ++s) {
            CAPTURE(s);
            CHECK(same(found.file->loss(s).data, expected.file->loss(s).data));
            CHECK(same(found.file->logits(s, 0, 1).value().data, expected.file->logits(s, 0, 1).value().data));
            for (std::int64_t boundary = 0; boundary <= held->config().all_layers(); ++boundary)
                CHECK(same(found.file->state("hidden_norm", s, boundary).value().data,
                           expected.file->state("hidden_norm", s, boundary).value().data));
        }
    }
}

TEST_CASE("Without room for hidden states that wait, an analysis is refused before a file appears", "[analysis]") {
    test::TinyCheckpoint tiny = test::golden_checkpoint("llama");
    tiny.file_type = "BF16";
    const auto streamed = tiny.build(checkpoint::LoadAs::float32, model::Residence::stream);
    const test::TemporaryFolder folder;
    analysis::AnalysisRequest request = request_for(*streamed);
    request.waiting_bytes = -1e18;  // as if texts took an exabyte beyond their limit
    REQUIRE_THROWS_MATCHES(analyze(*streamed, request, folder / "a.headscope.h5"), Error,
                           test::IsError(ErrorCode::io, "for this analysis file and hidden states that wait"));
    CHECK(folder.names().empty());
}
