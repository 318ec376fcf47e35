// SPDX-License-Identifier: GPL-3.0-or-later
// Which heads of an analysis were switched off, from its settings.
#include <catch2/catch.hpp>

#include "core/workspace/switched_off.h"

using namespace headscope;
using workspace::switched_off_heads;
using workspace::SwitchedOffHead;

namespace {

store::AnalysisHeader header(const std::string& settings) {
    store::AnalysisHeader header;
    for (std::int32_t layer = 0; layer < 4; ++layer) {
        Site site;
        site.layer = layer;
        site.heads = 8;
        header.sites.push_back(site);
        if (layer < 3) continue;
        site.kind = "cross";
        header.sites.push_back(site);
    }
    header.settings_json = settings;
    return header;
}

}  // namespace

TEST_CASE("Heads that were switched off are found in the settings, in the order of layers", "[workspace]") {
    CHECK(switched_off_heads(header(R"({"switch_off": "3.cross.2,1.7,1.0", "switch_off_how": "mean"})")) ==
          std::vector<SwitchedOffHead>{{1, 0, true}, {1, 7, true}, {4, 2, true}});
    CHECK(switched_off_heads(header(R"({"switch_off": "1.0,3.self.1", "switch_off_how": "zero,mean"})")) ==
          std::vector<SwitchedOffHead>{{1, 0, false}, {3, 1, true}});
    CHECK(switched_off_heads(header(R"({"switch_off": "2.5"})")) == std::vector<SwitchedOffHead>{{2, 5, false}});
}

TEST_CASE("Settings that say nothing of it, or nothing sensible, are none", "[workspace]") {
    for (const char* settings :
         {"{}", "", "[", "[1]", R"({"switch_off": 3})", R"({"switch_off": ""})",
          R"({"switch_off": "7.1,1.8,x,1,1.,.1"})", R"({"switch_off": "3.other.1,-1.0,1.99999999999999999999"})"}) {
        INFO(settings);
        CHECK(switched_off_heads(header(settings)).empty());
    }
}

TEST_CASE("Interventions that silence whole heads count as switched off, others are counted", "[workspace]") {
    const auto of = [](const std::string& rows, const std::string& more = "") {
        return header(R"({"interventions": ")" + rows + "\"" + more + "}");
    };
    const std::string table = R"([[intervention]]\npoint = \"head_output\"\n)";
    CHECK(switched_off_heads(of(table + R"(layer = 1\nheads = [0, 7]\nwhat = \"mean\"\n)")) ==
          std::vector<SwitchedOffHead>{{1, 0, true}, {1, 7, true}});
    CHECK(switched_off_heads(of(table + R"(layer = 3\nheads = 2\nattention = \"cross\"\nwhat = \"zero\"\n)",
                                R"(, "switch_off": "1.0")")) ==
          std::vector<SwitchedOffHead>{{1, 0, false}, {4, 2, false}});
    CHECK(switched_off_heads(of(table + R"(layer = 0\nwhat = \"zero\"\n)")).size() == 8);
    for (const char* rest : {R"(what = \"zero\"\npositions = 3\n)", R"(what = \"add\"\nfactor = 2\n)",
                             R"(what = \"run\"\ntext = \"a\"\n)"}) {
        INFO(rest);
        CHECK(switched_off_heads(of(table + rest)).empty());
        CHECK(workspace::other_interventions(of(table + rest)) == 1);
    }
    CHECK(workspace::other_interventions(of(table + R"(what = \"zero\"\n)")) == 0);
    CHECK(workspace::other_interventions(header("{}")) == 0);
    CHECK(switched_off_heads(of("[[wrong")).empty());
}
