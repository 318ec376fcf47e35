// SPDX-License-Identifier: GPL-3.0-or-later
#include <hdf5.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "core/store/run/run_file.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using namespace headscope::store;
using namespace headscope::test;

namespace {

RunRecord sample() {
    RunRecord run;
    run.job = "name = \"ä\"\n";
    run.state = "finished";
    run.program_version = "0.1.0";
    run.created = "2025-06-15T15:06:40Z";
    run.model_type = "headscope";
    run.config_json = "{}";
    run.parameters = 1234;
    run.planned_steps = 3;
    run.mixers = {"standard", "mlp", "standard"};
    run.sites.resize(3);
    for (int i = 0; i < 3; ++i) {
        run.sites[static_cast<std::size_t>(i)].layer = i;
        run.sites[static_cast<std::size_t>(i)].heads = 2;
    }
    run.sites[1].has_matrix = false;
    run.sites[1].has_implicit = true;
    run.training = {{1, 2, 3}, {10, 20, 30}, {5, 4, 3}, {1, 2, 1},  {1, 1, 1},
                    {7, 7, 7}, {1, 2, 3},    {9, 9, 9}, {0, 0.5, 1}};
    run.validation = {{2}, {100}, {4.5}, {0.25}, {0.75}};
    run.probes.step = {2};
    run.probes.seconds = {0.5};
    run.probes.indicators = {{"entropy", true, 1, {1, 2, NAN, NAN, 5, 6}},
                             {"head_diversity", false, 1, {1, NAN, 3}},
                             {"local_focus", true, 4, std::vector<double>(24, 0.25)}};
    run.probes.thumbnail_size = 2;
    run.probes.thumbnails.assign(24, 0x3C00);
    run.snapshots = {{2, "step-000002", 12345, 0.5, true}};
    run.controls = {{1.5e9, 2, "pause", "", "paused"}};
    run.samples = {{3, "", "text\nof lines"}};
    run.log = {{1.5e9, 1, "note", "begin"}, {1.5e9, 3, "error", std::string(10000, 'x')}};
    return run;
}

/// Changes the file through HDF5 itself.
template <class Change>
void edit(const std::filesystem::path& path, Change change) {
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    REQUIRE(file >= 0);
    change(file);
    H5Fclose(file);
}

}  // namespace

TEST_CASE("A run file reads as it was written", "[store][run]") {
    const TemporaryFolder folder;
    const RunRecord run = sample();
    write_run_file(folder / "run.h5", run);
    REQUIRE(folder.names() == std::vector<std::string>{"run.h5"});
    const RunRecord read = read_run_file(folder / "run.h5");
    REQUIRE(read.job == run.job);
    REQUIRE(read.state == run.state);
    REQUIRE(read.created == run.created);
    REQUIRE(read.parameters == 1234);
    REQUIRE(read.mixers == run.mixers);
    REQUIRE(read.sites[2].layer == 2);
    REQUIRE(!read.sites[1].has_matrix);
    REQUIRE(read.sites[1].has_implicit);
    REQUIRE(!read.sites[0].has_implicit);
    REQUIRE(read.training.tokens == run.training.tokens);
    REQUIRE(read.training.loss == run.training.loss);
    REQUIRE(read.training.memory == run.training.memory);
    REQUIRE(read.training.accuracy == run.training.accuracy);
    REQUIRE(read.validation.accuracy == run.validation.accuracy);
    REQUIRE(read.validation.step == run.validation.step);
    REQUIRE(read.validation.loss == run.validation.loss);
    REQUIRE(read.probes.step == run.probes.step);
    REQUIRE(read.probes.find("entropy")->values[5] == 6);
    REQUIRE(std::isnan(read.probes.find("entropy")->values[2]));
    REQUIRE(!read.probes.find("head_diversity")->per_head);
    REQUIRE(read.probes.find("local_focus")->values == run.probes.find("local_focus")->values);
    REQUIRE(read.probes.thumbnails == run.probes.thumbnails);
    REQUIRE(read.probes.thumbnail_size == 2);
    REQUIRE(read.snapshots[0].best);
    REQUIRE(read.snapshots[0].bytes == 12345);
    REQUIRE(read.controls[0].outcome == "paused");
    REQUIRE(read.samples[0].text == "text\nof lines");
    REQUIRE(read.log[0].text == "begin");
    REQUIRE(read.log[1].text.size() == 4096);
}

TEST_CASE("Sites of an older run file have no implicit matrices", "[store][run]") {
    const TemporaryFolder folder;
    write_run_file(folder / "run.h5", sample());
    edit(folder / "run.h5", [](hid_t file) { REQUIRE(H5Ldelete(file, "/sites/has_implicit", H5P_DEFAULT) >= 0); });
    const RunRecord read = read_run_file(folder / "run.h5");
    REQUIRE(!read.sites[1].has_implicit);
    REQUIRE(!read.sites[1].has_matrix);
    edit(folder / "run.h5", [](hid_t file) { REQUIRE(H5Ldelete(file, "/sites/has_matrix", H5P_DEFAULT) >= 0); });
    CHECK_THROWS_AS(read_run_file(folder / "run.h5"), Error);
}

TEST_CASE("A run file has perplexities beside losses", "[store][run]") {
    const TemporaryFolder folder;
    const RunRecord run = sample();
    write_run_file(folder / "run.h5", run);
    for (const auto& [path, losses] : {std::pair{"/training/perplexity", run.training.loss},
                                       std::pair{"/validation/perplexity", run.validation.loss}}) {
        std::vector<double> values(losses.size());
        edit(folder / "run.h5", [&, name = path](hid_t file) {
            const hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
            REQUIRE(set >= 0);
            H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
            H5Dclose(set);
        });
        for (std::size_t i = 0; i < losses.size(); ++i)
            REQUIRE((values[i] == std::exp(losses[i]) || std::isnan(losses[i])));
    }
}

TEST_CASE("A run without a step has a file, too", "[store][run]") {
    const TemporaryFolder folder;
    write_run_file(folder / "run.h5", {});
    const RunRecord read = read_run_file(folder / "run.h5");
    REQUIRE(read.training.step.empty());
    REQUIRE(read.probes.count() == 0);
    REQUIRE(read.sites.empty());
}

TEST_CASE("A record that contradicts itself is not written, and the old file stays", "[store][run]") {
    const TemporaryFolder folder;
    write_run_file(folder / "run.h5", sample());
    RunRecord run = sample();
    run.training.loss.pop_back();
    REQUIRE_THROWS_MATCHES(write_run_file(folder / "run.h5", run), Error,
                           IsError(ErrorCode::internal, "/training/loss"));
    REQUIRE(folder.names() == std::vector<std::string>{"run.h5"});
    REQUIRE(read_run_file(folder / "run.h5").training.loss.size() == 3);
}

TEST_CASE("Run files that are not what they say are refused by the place", "[store][run]") {
    const TemporaryFolder folder;
    const auto path = folder / "run.h5";
    write_run_file(path, sample());
    std::string place;
    ErrorCode code = ErrorCode::format;
    SECTION("a column of another length") {
        edit(path, [](hid_t file) {
            H5Ldelete(file, "/training/loss", H5P_DEFAULT);
            H5Lcreate_hard(file, "/validation/loss", file, "/training/loss", H5P_DEFAULT, H5P_DEFAULT);
        });
        place = "/training/loss";
    }
    SECTION("a column that is missing") {
        edit(path, [](hid_t file) { H5Ldelete(file, "/probe/seconds", H5P_DEFAULT); });
        place = "/probe/seconds";
    }
    SECTION("a link into another file") {
        edit(path, [](hid_t file) {
            H5Ldelete(file, "/validation/loss", H5P_DEFAULT);
            H5Lcreate_external("other.h5", "/x", file, "/validation/loss", H5P_DEFAULT, H5P_DEFAULT);
        });
        place = "/validation/loss";
        code = ErrorCode::unsupported;
    }
    SECTION("steps that fall") {
        edit(path, [](hid_t file) {
            const std::int64_t steps[] = {3, 2, 1};
            const hid_t set = H5Dopen2(file, "/training/step", H5P_DEFAULT);
            H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, steps);
            H5Dclose(set);
        });
        place = "/training/step";
    }
    SECTION("an indicator of another shape") {
        edit(path, [](hid_t file) {
            H5Ldelete(file, "/probe/entropy", H5P_DEFAULT);
            H5Lcreate_hard(file, "/probe/head_diversity", file, "/probe/entropy", H5P_DEFAULT, H5P_DEFAULT);
        });
        place = "/probe/entropy";
    }
    SECTION("another format") {
        edit(path, [](hid_t file) { H5Adelete(file, "format"); });
        place = "headscope-run";
    }
    REQUIRE_THROWS_MATCHES(read_run_file(path), Error, IsError(code, place));
}
