// SPDX-License-Identifier: GPL-3.0-or-later
// Circuits of models with an encoder and a decoder: heads of both stacks, and those of cross-attention between them.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_eigvals.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/real.h>

#include "core/ask/circuits/circuits.h"
#include "core/ask/circuits/head_factors.h"
#include "core/ask/circuits/vocabulary.h"
#include "core/model/config.h"
#include "tests/core/ask/circuit_numbers.h"
#include "tests/core/ask/recorded_values.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/recording_probe.h"

using namespace headscope;
using namespace headscope::ask::circuits;
using model::Point;
using test::at_cell;
using test::circuits_of;
using test::near;
using test::norm_of;
using test::same;
using test::score_of;

namespace {

/// The difference of two positions of a value [1, L, d] or [1, heads, L, size], in which biases cancel.
at::Tensor between_positions(const at::Tensor& value) {
    const at::Tensor all = value[0].to(at::kDouble);
    return all.dim() == 2 ? all[1] - all[0] : all.select(1, 1) - all.select(1, 0);
}

/// Products of head 1 of a site, float64.
struct Products {
    at::Tensor qk, ov;
};

Products products_of(const HeadReader& reader, std::int64_t site) {
    const HeadFactors own = reader.factors(site);
    const auto head = [](const at::Tensor& maps) { return maps[1].to(at::kDouble); };
    return {head(own.query).matmul(head(own.key).t()), head(own.value).matmul(head(own.output))};
}

}  // namespace

TEST_CASE("Maps of an encoder-decoder's heads are those that a run applies", "[ask][circuits][encoder-decoder]") {
    for (const std::string name : {"t5", "bart", "mbart", "umt5", "marian-two-vocabularies", "native-both-standard",
                                   "native-both-skv", "native-both-el_att", "native-both-mhe_mul"}) {
        INFO(name);
        const test::AskedModel asked(name);
        test::RecordingProbe probe(false);
        const auto values = test::values_of_batch(
            asked, asked.batch(0),
            {Point::query, Point::key, Point::value, Point::mixer_output, Point::attention_output}, &probe);
        const HeadReader reader(*asked.model, false);
        REQUIRE(reader.sites().size() == asked.model->sites().size());
        for (const std::int64_t site : reader.sites()) {
            INFO("site " << site);
            const Site& own = asked.model->sites()[static_cast<std::size_t>(site)];
            const HeadFactors factors = reader.factors(site);
            const auto step = [&](Point point) { return between_positions(values.at({point, own.layer, site})); };
            const auto through = [](const at::Tensor& read, const at::Tensor& maps) {
                return read.matmul(maps.to(at::kDouble));
            };
            const at::Tensor input =
                between_positions(probe.at(own.is_cross() ? "cross_input_norm" : "input_norm", own.layer));
            const at::Tensor memory = own.is_cross() ? between_positions(probe.at("encoder_final_norm")) : input;
            const std::int64_t heads = factors.query.size(0);
            const auto repeat = [heads](const at::Tensor& groups) {
                return groups.repeat_interleave(heads / groups.size(0), 0);
            };
            CHECK(same(through(input, factors.query), step(Point::query)));
            CHECK(same(through(memory, factors.key), repeat(step(Point::key))));
            CHECK(same(through(memory, factors.value), repeat(step(Point::value))));
            CHECK(
                same(through(step(Point::mixer_output), factors.output.flatten(0, 1)), step(Point::attention_output)));
        }
    }
}

TEST_CASE("Folded maps of cross-attention are behind its own norm and the encoder's final one",
          "[ask][circuits][encoder-decoder]") {
    const test::AskedModel asked("mbart");
    const test::TemporaryFolder folder;
    test::golden_checkpoint("mbart").write(folder.path());
    const auto file = checkpoint::Checkpoint::open(folder.path());
    const auto tensor = [&](const std::string& name) {
        return file->load(name, checkpoint::LoadAs::float32).to(at::kDouble);
    };
    const std::string stem = "model.decoder.layers.0.encoder_attn";
    const auto folded = [&](const std::string& map, const std::string& norm) {
        const at::Tensor heads = tensor(stem + map).unflatten(0, {3, -1}).transpose(1, 2);
        const at::Tensor scaled = heads * tensor(norm).view({1, -1, 1});
        return scaled - scaled.mean(1, true);
    };
    // One layer of the encoder, then self- and cross-attention of the decoder's first.
    REQUIRE(asked.model->sites().at(2).is_cross());
    const HeadFactors own = HeadReader(*asked.model, true).factors(2);
    CHECK(same(own.query, folded(".q_proj.weight", stem + "_layer_norm.weight")));
    CHECK(same(own.key, folded(".k_proj.weight", "model.encoder.layer_norm.weight")));
    CHECK(same(own.value, folded(".v_proj.weight", "model.encoder.layer_norm.weight")));
}

TEST_CASE("Circuits of an encoder-decoder have numbers where products meet", "[ask][circuits][encoder-decoder]") {
    for (const std::string name : {"t5", "mbart", "marian-two-vocabularies"}) {
        for (const bool fold : {false, true}) {
            if (fold && name == "marian-two-vocabularies") continue;  // norms behind attention
            INFO(name << ", fold " << fold);
            const test::AskedModel asked(name);
            CircuitsOptions options;
            options.fold = fold;
            const store::AskRecord record = circuits_of(asked, options);
            CHECK(record.complete);
            const HeadReader reader(*asked.model, fold);
            const TokenMaps tokens = token_maps(*asked.model, fold);
            const auto site_of = [&](std::int64_t site) { return record.sites[static_cast<std::size_t>(site)]; };
            const auto encodes = [&](std::int64_t site) { return site_of(site).stack == "encoder"; };
            for (std::int64_t b = 0; b < std::ssize(record.sites); ++b) {
                INFO("site " << b);
                const Products later = products_of(reader, b);
                const at::Tensor reads = at::linalg_svdvals(later.qk), writes = at::linalg_svdvals(later.ov);
                for (std::int64_t i = 0; i < 3; ++i) {
                    CHECK(near(at_cell(record, "/circuits/qk_singular_values", {b, 1, i}), reads[i].item<double>()));
                    CHECK(near(at_cell(record, "/circuits/ov_singular_values", {b, 1, i}), writes[i].item<double>()));
                }
                const bool cross = site_of(b).is_cross();
                const double qk = at_cell(record, "/circuits/qk_eigenvalue_score", {b, 1});
                const double ov = at_cell(record, "/circuits/ov_eigenvalue_score", {b, 1});
                const double copying = at_cell(record, "/circuits/copying_score", {b, 1});
                CHECK((cross ? std::isnan(qk) : near(qk, score_of(later.qk))));
                CHECK((cross ? std::isnan(ov) : near(ov, score_of(later.ov))));
                if (encodes(b) || (cross && name == "marian-two-vocabularies"))
                    CHECK(std::isnan(copying));
                else
                    CHECK(near(copying, score_of(tokens.embedding.to(at::kDouble)
                                                     .matmul(later.ov)
                                                     .matmul(tokens.unembedding.to(at::kDouble).t()))));
                for (std::int64_t a = 0; a < std::ssize(record.sites); ++a) {
                    INFO("earlier site " << a);
                    const Products earlier = products_of(reader, a);
                    const bool by_query = encodes(a) == encodes(b);
                    const bool by_key = encodes(a) ? encodes(b) || cross : !encodes(b) && !cross;
                    const auto check = [&](const std::string& path, bool meets, const at::Tensor& matrix) {
                        const double found = at_cell(record, "/circuits/composition_" + path, {a, 1, b, 1});
                        if (a >= b)
                            CHECK(found == 0);
                        else if (!meets)
                            CHECK(std::isnan(found));
                        else
                            CHECK(near(found,
                                       norm_of(earlier.ov.matmul(matrix)) / norm_of(earlier.ov) / norm_of(matrix)));
                    };
                    check("q", by_query, later.qk);
                    check("k", by_key, later.qk.t());
                    check("v", by_key, later.ov);
                }
            }
        }
    }
}

TEST_CASE("Token pairs of cross-attention are of the source and the target", "[ask][circuits][encoder-decoder]") {
    const test::AskedModel asked("marian-two-vocabularies");
    CircuitsOptions options;
    options.pairs = 2;
    options.heads = {{0, 1}, {2, 1}};
    const store::AskRecord record = circuits_of(asked, options);
    const TokenMaps tokens = token_maps(*asked.model, false);
    const at::Tensor source = tokens.source.to(at::kDouble), target = tokens.embedding.to(at::kDouble);
    REQUIRE(source.size(0) == 43);
    REQUIRE(target.size(0) == 37);
    REQUIRE(record.sites.at(2).is_cross());
    const HeadReader reader(*asked.model, false);
    const Products encoder = products_of(reader, 0), cross = products_of(reader, 2);
    const auto check = [&](const std::string& which, std::int64_t site, const at::Tensor& matrix) {
        INFO(which << ", site " << site);
        const std::string stem = "/circuits/" + which + "_top_pair";
        CHECK(near(at_cell(record, stem + "_values", {site, 1, 0}), matrix.max().item<double>()));
        for (std::int64_t k = 0; k < 2; ++k) {
            const auto row = static_cast<std::int64_t>(at_cell(record, stem + "s", {site, 1, k, 0}));
            const auto column = static_cast<std::int64_t>(at_cell(record, stem + "s", {site, 1, k, 1}));
            CHECK(near(at_cell(record, stem + "_values", {site, 1, k}), matrix[row][column].item<double>()));
        }
    };
    check("qk", 0, source.matmul(encoder.qk).matmul(source.t()));
    check("qk", 2, target.matmul(cross.qk).matmul(source.t()));
    check("ov", 2, source.matmul(cross.ov).matmul(tokens.unembedding.to(at::kDouble).t()));
    CHECK(std::isnan(at_cell(record, "/circuits/ov_top_pair_values", {0, 1, 0})));
}

TEST_CASE("Resumed circuits of an encoder-decoder equal whole ones", "[ask][circuits][encoder-decoder]") {
    const test::AskedModel asked("t5");
    const store::AskRecord whole = circuits_of(asked, {});
    struct Once final : std::exception {};
    for (const int stop : {1, 5, 7}) {
        INFO("stopped after " << stop);
        store::AskRecord begun;
        begun.tool = "circuits";
        begun.mixers = asked.model->mixers();
        begun.sites = asked.model->sites();
        store::add_usual_dimensions(begun);
        int steps = 0;
        CircuitsOptions options;
        options.saved = [&] {
            if (++steps == stop) throw Once();
        };
        NoProgress progress;
        CHECK_THROWS_AS(run_circuits(*asked.model, options, begun, progress, Cancellation()), Once);
        run_circuits(*asked.model, options, begun, progress, Cancellation());
        CHECK(steps == 4 + 4);  // sites, and pairs of an earlier and a later one with a common stream
        for (std::size_t t = 0; t < whole.tables.size(); ++t) {
            INFO(whole.tables[t].path);
            const auto &a = whole.tables[t].values, &b = begun.tables.at(t).values;
            REQUIRE(a.size() == b.size());
            for (std::size_t i = 0; i < a.size(); ++i)
                REQUIRE((a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))));
        }
    }
}
