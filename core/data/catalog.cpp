// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/catalog.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/base/text/text.h"
#include "core/data/generators/generators.h"
#include "core/data/text_data.h"

namespace headscope::data {
namespace {

struct Definition {
    const char* name;
    const char* json;
};

// datasets/*.json, by CMakeLists.txt
const Definition definitions[] = {
#include "datasets.inc"
};

struct Kind {
    const char* name;
    Generator (*make)(const GeneratorOptions& options, std::int64_t length);
};

constexpr Kind kinds[] = {{"agreement", make_agreement},
                          {"common_words", make_common_words},
                          {"copy", make_copy},
                          {"frequent_words", make_frequent_words},
                          {"induction", make_induction},
                          {"markov", make_markov},
                          {"mqar", make_mqar},
                          {"needle", make_needle},
                          {"niah", make_niah},
                          {"tracing", make_tracing},
                          {"translation", make_translation}};

const Kind* kind_of(const std::string& name) {
    const auto* found = std::find_if(std::begin(kinds), std::end(kinds), [&](const Kind& k) { return name == k.name; });
    return found == std::end(kinds) ? nullptr : found;
}

Dataset read(const Definition& definition) {
    const std::string file = std::string("datasets/") + definition.name + ".json";
    const nlohmann::json document = parse_json(definition.json, file);
    const JsonView view(document, file);
    Dataset set;
    set.name = view.at("name").string();
    set.description = view.at("description").string();
    set.kind = view.at("kind").string();
    set.is_generator = kind_of(set.kind) != nullptr;
    set.package = view.string_or("package", "");
    set.sequence_length = view.integer_or("sequence_length", 0, {0, 1 << 24});
    if (const auto files = view.find("files")) set.files = files->strings();
    if (const auto options = view.find("options")) {
        for (const std::string& name : options->keys()) {
            const JsonView option = options->at(name);
            const double standard = option.at("standard").number();
            const bool whole = option.boolean_or("whole", true);
            set.options.emplace_back(name, whole ? OptionValue(static_cast<std::int64_t>(standard)) : standard,
                                     std::vector<std::string>(), option.at("lowest").number(),
                                     option.at("highest").number(), option.at("description").string());
        }
    }
    return set;
}

std::map<std::string, double> checked_options(const Dataset& set, const std::map<std::string, double>& given) {
    std::map<std::string, double> values;
    std::vector<std::string> known;
    for (const Option& option : set.options) {
        values[option.name] = number_of(option.standard);
        known.push_back(option.name);
    }
    for (const auto& [name, value] : given) {
        const auto option = std::find_if(set.options.begin(), set.options.end(),
                                         [&, key = name](const Option& o) { return o.name == key; });
        const std::string place = "data.generator " + set.name + ", " + escaped(name, 40);
        if (option == set.options.end()) throw choice_error(known, name, place);
        check_number(*option, value, place);
        values[name] = value;
    }
    return values;
}

}  // namespace

const std::vector<Dataset>& datasets() {
    static const std::vector<Dataset> all = [] {
        std::vector<Dataset> sets;
        for (const Definition& definition : definitions) sets.push_back(read(definition));
        return sets;
    }();
    return all;
}

const Dataset& find_dataset(const std::string& name) {
    std::vector<std::string> names;
    for (const Dataset& set : datasets()) {
        if (set.name == name) return set;
        names.push_back(set.name);
    }
    throw choice_error(names, name, "data");
}

std::string options_text(const Dataset& set) {
    std::string text;
    if (set.is_generator) {
        text = "sequence_length " + std::to_string(set.sequence_length);
        for (const Option& option : set.options)
            text += ", " + option.name + " " + plain_number(number_of(option.standard));
        return text;
    }
    const bool there = std::any_of(set.files.begin(), set.files.end(),
                                   [](const std::string& file) { return ends_at_regular_file(file); });
    return "Debian's package " + set.package + (there ? "" : " (not installed)");
}

Generator make_generator(const GeneratorSettings& settings, std::int64_t sequence_length) {
    const Dataset& set = find_dataset(settings.name);
    const Kind* kind = kind_of(set.kind);
    if (kind == nullptr) {
        throw Error(ErrorCode::usage, "data.generator", "expected the name of a generator",
                    "found the corpus " + set.name + ", which is for data.corpus");
    }
    if (sequence_length < 1) {
        throw Error(ErrorCode::usage, "data.sequence_length", "expected a number from 1 on",
                    "found " + std::to_string(sequence_length));
    }
    const auto values = checked_options(set, settings.options);
    Generator generator = kind->make({set.name, values}, sequence_length);
    generator.name = set.name;
    generator.settings = nlohmann::json{{"kind", set.kind}, {"options", values}}.dump();
    return generator;
}

std::vector<SourceFile> corpus_files(const std::string& name) {
    const Dataset& set = find_dataset(name);
    if (set.is_generator) {
        throw Error(ErrorCode::usage, "data.corpus", "expected the name of a corpus",
                    "found the generator " + set.name + ", which is for data.generator");
    }
    for (const std::string& file : set.files) {
        if (ends_at_regular_file(file)) return {{file, SourceKind::bible}};
    }
    throw Error(ErrorCode::usage, "data.corpus",
                "expected the corpus " + set.name + ", which Debian's package " + set.package + " installs",
                "found no " + list_text(set.files) + "; apt install " + set.package);
}

}  // namespace headscope::data
