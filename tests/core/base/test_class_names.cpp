// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/base/class_names.h"

using namespace headscope;

TEST_CASE("Classes have the names of id2label, or their numbers", "[base][classes]") {
    const std::string labels =
        R"({"2": "neutral", "0": "entailment", "10": "beyond", "1": "LABEL_1", "x": "none", "3": 7})";
    for (const std::string& config : {R"({"id2label": )" + labels + "}",
                                      R"({"head": "sequence_classes", "original": {"id2label": )" + labels + "}}"}) {
        const auto names = class_names(config);
        CHECK(names == std::vector<std::string>{"entailment", "", "neutral", "", "", ""});
        CHECK(class_name(names, 0) == "entailment");
        CHECK(class_name(names, 1) == "1");
        CHECK(class_name(names, 2) == "neutral");
        CHECK(class_name(names, 10) == "10");
        CHECK(class_name(names, -1) == "-1");
    }
    for (const char* config :
         {R"({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}})", R"({"id2label": ["a"]})", R"({"num_labels": 3})", "[]",
          "{", "", R"({"id2label": {"-1": "a", "": "b", "0x": "c", "99999999999999999999": "d"}})"})
        CHECK(class_names(config).empty());
    CHECK(class_name({}, 4) == "4");
    CHECK(all_class_names(R"({"id2label": {"0": "no", "1": "LABEL_1"}})", 3) ==
          std::vector<std::string>{"no", "1", "2"});
}
