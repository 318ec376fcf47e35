// SPDX-License-Identifier: GPL-3.0-or-later
// Heads that are switched off: how they are written, and what an analysis makes of them.
#include <catch2/catch.hpp>

#include <fstream>

#include <nlohmann/json.hpp>

#include "core/analysis/request.h"
#include "core/analysis/switched_heads.h"
#include "core/base/error.h"
#include "core/model/model.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/analysis/analysis_requests.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/head_edit.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using analysis::head_name;
using analysis::parse_switched_off;
using test::IsError;
using tests::analyse;
using How = model::Action;

namespace {

std::vector<Site> plain_sites() {
    std::vector<Site> sites(3);
    for (std::int32_t i = 0; i < 3; ++i) {
        sites[static_cast<std::size_t>(i)].layer = i;
        sites[static_cast<std::size_t>(i)].heads = 4;
    }
    return sites;
}

/// One encoder layer, then a decoder layer with two attentions and one with two branches.
std::vector<Site> mixed_sites() {
    std::vector<Site> sites(5);
    for (Site& site : sites) site.heads = 2;
    sites[1].layer = sites[2].layer = 1;
    sites[2].kind = "cross";
    sites[3].layer = sites[4].layer = 2;
    sites[3].branch = "softmax";
    sites[4].branch = "linear";
    sites[4].has_matrix = false;
    return sites;
}

store::SequenceTokens tokens(std::int64_t length, std::int32_t first) {
    store::SequenceTokens made;
    for (std::int64_t i = 0; i < length; ++i)
        made.ids.push_back(static_cast<std::int32_t>((first + 3 * i + i * i) % 37));
    return made;
}

std::shared_ptr<model::Model> tiny(const std::string& name) {
    std::ifstream file(test::golden_model_file(name));
    const auto json = nlohmann::json::parse(file);
    test::TinyCheckpoint checkpoint;
    checkpoint.config = json.at("config");
    checkpoint.tensors = json.at("tensors").get<std::map<std::string, std::vector<std::int64_t>>>();
    return checkpoint.build();
}

struct Expected {
    std::int64_t layer = 0, head = 0;
    std::string attention{};
    How how = How::zero;
};

}  // namespace

TEST_CASE("Heads are written as layer and head, with the attention where a layer has several", "[analysis][switched]") {
    const auto plain = plain_sites(), mixed = mixed_sites();
    CHECK(parse_switched_off("", How::zero, plain).empty());
    // LibTorch's printing of vectors keeps Catch from showing these.
    const auto same = [](const std::vector<model::Intervention>& found, const std::vector<Expected>& expected) {
        return std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                          [](const model::Intervention& edit, const Expected& one) {
                              return edit.point == model::Point::head_output && edit.action == one.how &&
                                     edit.layers == std::vector{one.layer} && edit.heads == std::vector{one.head} &&
                                     edit.attention == one.attention;
                          });
    };
    CHECK(same(parse_switched_off("2.1,0.3", How::mean, plain), {{2, 1, "", How::mean}, {0, 3, "", How::mean}}));
    CHECK(same(parse_switched_off("1.self.0", How::zero, plain), {{1, 0, "", How::zero}}));
    CHECK(same(parse_switched_off("0.1,1.cross.1,1.self.0,2.softmax.1", How::zero, mixed),
               {{0, 1}, {1, 1, "cross"}, {1, 0, "self"}, {2, 1, "softmax"}}));
    CHECK(head_name(2, 1, plain) == "2.1");
    CHECK(head_name(2, 1, mixed) == "1.cross.1");
    CHECK(head_name(3, 0, mixed) == "2.softmax.0");
}

TEST_CASE("Heads that are not written so, or do not exist, are refused", "[analysis][switched]") {
    const auto refused = [](const std::string& list, const std::vector<Site>& sites, const std::string& part) {
        INFO(list);
        CHECK_THROWS_MATCHES(parse_switched_off(list, How::zero, sites), Error, IsError(ErrorCode::usage, part));
    };
    const auto plain = plain_sites(), mixed = mixed_sites();
    for (const std::string list : {"3", "1.", ".1", "a.b", "1.1,", ",1.1", "1.-1", "-1.1", "1.1x", "1. 1", " 1.1",
                                   "1..1", "1.99999999999999999999", "."})
        refused(list, plain, "[--switch-off] expected ");
    refused("3.0", plain, "a layer from 0 to 2; found");
    refused("1.4", plain, "a head of layer 1 from 0 to 3; found 4");
    refused("1.cross.1", plain, "expected 1.self.HEAD");
    refused("1.1,0.0,1.1", plain, "twice");
    refused("1.1", mixed, "expected 1.self.HEAD or 1.cross.HEAD; found");
    refused("2.linear.0", mixed, "which has none");
    refused("0.1", {}, "--switch-off");
}

TEST_CASE("An analysis with a head off has it measured as it would be, and changes what follows",
          "[analysis][switched]") {
    const std::string name = GENERATE("llama", "t5");
    const How how = GENERATE(How::zero, How::mean);
    const auto model = tiny(name);
    const test::TemporaryFolder folder;
    analysis::AnalysisRequest request;
    request.sequences = {tokens(9, 1), tokens(12, 2), tokens(9, 3)};
    if (name == "t5") request.targets = {tokens(5, 1), tokens(7, 2), tokens(5, 3)};
    const auto before = analyse(*model, request, folder / "before.headscope.h5");
    const std::int64_t sites = std::ssize(model->sites()), off = sites - 2;  // of T5: the decoder's own attention
    request.interventions = {test::head_edit(model->sites(), off, 1, how)};
    const auto after = analyse(*model, request, folder / "after.headscope.h5");
    const auto heads = static_cast<std::size_t>(model->sites()[0].heads);
    const auto x = before->indicator("entropy").data, y = after->indicator("entropy").data;
    for (std::int64_t s = 0; s < 3; ++s) {
        for (std::int64_t site = 0; site < sites; ++site) {
            for (std::size_t head = 0; head < heads; ++head) {
                const std::size_t at = static_cast<std::size_t>(s * sites + site) * heads + head;
                CHECK((x[at] == y[at]) == (site <= off));
            }
        }
        CHECK(before->loss(s).data[0] != after->loss(s).data[0]);
    }
}

TEST_CASE("A request with heads that the model has not is refused before a file appears", "[analysis][switched]") {
    const auto model = tiny("llama");
    const test::TemporaryFolder folder;
    analysis::AnalysisRequest request;
    request.sequences = {tokens(9, 1)};
    request.interventions = {test::head_edit(model->sites(), 1, 4)};
    CHECK_THROWS_MATCHES(analyse(*model, request, folder / "a.headscope.h5"), Error,
                         IsError(ErrorCode::usage, "a head of layer 1 from 0 to 3; found 4"));
    CHECK(folder.names().empty());
    model::Inspection inspection;
    inspection.config = model->config();
    inspection.sites = model->sites();
    CHECK_THROWS_MATCHES(analysis::check_request(inspection, request), Error, IsError(ErrorCode::usage, "found 4"));
}
