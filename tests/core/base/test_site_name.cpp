// SPDX-License-Identifier: GPL-3.0-or-later
// Names of sites, by the stacks that models have.
#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "core/base/site_name.h"

using namespace headscope;

namespace {

Site site(int layer, const char* stack = "text", const char* kind = "self", const char* branch = "") {
    Site made;
    made.layer = layer;
    made.stack = stack;
    made.kind = kind;
    made.branch = branch;
    return made;
}

std::vector<std::string> labels(const std::vector<Site>& sites) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < sites.size(); ++i) all.push_back(site_label(sites, static_cast<std::int64_t>(i)));
    return all;
}

std::vector<std::string> titles(const std::vector<Site>& sites) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < sites.size(); ++i) all.push_back(site_title(sites, static_cast<std::int64_t>(i)));
    return all;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("A site of a plain stack is called by its layer", "[base][site]") {
    const std::vector<Site> decoder{site(0), site(1)}, encoder{site(0, "encoder"), site(3, "encoder")};
    CHECK(labels(decoder) == Names{"0", "1"});
    CHECK(titles(decoder) == Names{"layer 0", "layer 1"});
    CHECK(labels(encoder) == Names{"0", "3"});
    CHECK(site_heading(decoder, 1) == "Layer 1");
}

TEST_CASE("Sites of one layer are called by their branch", "[base][site]") {
    // NAtS-L layers beside one that has softmax attention alone, and one of differential attention.
    const std::vector<Site> sites{site(0, "text", "self", "softmax"), site(0, "text", "self", "linear"), site(1),
                                  site(2, "text", "self", "difference")};
    CHECK(labels(sites) == Names{"0 softmax", "0 linear", "1", "2"});
    CHECK(titles(sites) == Names{"layer 0, softmax branch", "layer 0, linear branch", "layer 1", "layer 2"});
    CHECK(site_heading(sites, 0) == "Layer 0, softmax branch");
}

TEST_CASE("Sites of two stacks are called by stack, and by kind where a layer has two", "[base][site]") {
    const std::vector<Site> sites{site(0, "encoder"), site(1, "decoder"), site(1, "decoder", "cross")};
    CHECK(labels(sites) == Names{"encoder 0", "decoder 1 self", "decoder 1 cross"});
    CHECK(titles(sites) ==
          Names{"encoder layer 0", "decoder layer 1, self-attention", "decoder layer 1, cross-attention"});
    CHECK(site_heading(sites, 2) == "Decoder layer 1, cross-attention");
}

TEST_CASE("No two sites of a model have one name", "[base][site]") {
    std::vector<Site> sites;
    for (const char* stack : {"encoder", "decoder"})
        for (int layer = 0; layer < 3; ++layer)
            for (const char* kind : {"self", "cross"})
                for (const char* branch : {"softmax", "linear"}) sites.push_back(site(layer, stack, kind, branch));
    const auto all = labels(sites), long_ones = titles(sites);
    CHECK(std::set<std::string>(all.begin(), all.end()).size() == sites.size());
    CHECK(std::set<std::string>(long_ones.begin(), long_ones.end()).size() == sites.size());
}
