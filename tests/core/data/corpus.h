// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/data/data_set.h"
#include "core/data/source/text_parts.h"
#include "tests/core/base/environment.h"
#include "tests/core/base/temporary_folder.h"

namespace headscope::test {

/// A folder for texts, and a cache of the test's own.
class Corpus {
public:
    Corpus() {
        std::filesystem::create_directory(folder / "text");
        std::filesystem::create_directory(folder / "run");
    }

    std::filesystem::path write(const std::string& name, const std::string& content) {
        const auto path = folder.path() / "text" / name;
        std::filesystem::create_directories(path.parent_path());
        return write_file(path, content);
    }
    std::shared_ptr<const data::DataSet> prepare(const data::DataSettings& settings) {
        NoProgress progress;
        return data::DataSet::prepare(settings, {folder / "text", folder / "run"}, progress, Cancellation());
    }

    TemporaryFolder folder;

private:
    Environment cache_{"XDG_CACHE_HOME", (folder / "cache").string()};
};

/// Keeps documents and how many parts each came in.
class Collector final : public data::PartSink {
public:
    void begin_document() override {
        documents.emplace_back();
        parts.push_back(0);
    }
    void part(std::string_view text) override {
        documents.back() += text;
        ++parts.back();
    }
    void end_document() override {}

    std::vector<std::string> documents;
    std::vector<int> parts;
};

inline Collector collected(const std::filesystem::path& path, data::SourceKind kind) {
    Collector collector;
    data::read_parts(InputFile(path), kind, collector, [](std::uint64_t) {});
    return collector;
}

}  // namespace headscope::test
