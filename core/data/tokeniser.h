// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/process/worker.h"
#include "core/data/source/text_parts.h"
#include "core/data/token_writer.h"

namespace headscope::data {

/// Takes documents and writes their tokens, in order; tokenises on several threads, some megabytes of text at a time.
/// Threads: one at a time.
class Tokeniser final : public PartSink {
public:
    /// The numbers of a text's tokens; called on several threads. Stopped when cancelled.
    using Encode = std::function<std::vector<std::int32_t>(std::string_view text, const Cancellation& cancellation)>;
    /// Writer and cancellation must live as long. `threads` 0: as many as there are processors.
    Tokeniser(Encode encode, TokenWriter& writer, const Cancellation& cancellation, int threads = 0);
    ~Tokeniser() override;

    /// Documents from here on are of this source.
    void from(std::int32_t source) { source_ = source; }
    /// The next document's label.
    void label(float label) { label_ = label; }
    void begin_document() override;
    void part(std::string_view text) override;
    void end_document() override;
    /// Returns when all that came is written. Throws what tokenising threw; Stopped.
    void finish();

private:
    /// A stretch of a document; texts of several short ones go together.
    struct Stretch {
        std::string text;
        std::int32_t source = 0;
        float label = 0;
        bool begins = false;
        bool ends = false;
    };
    using Batch = std::vector<Stretch>;
    using Ids = std::vector<std::vector<std::int32_t>>;
    struct Waiting {
        std::shared_ptr<Batch> batch;
        std::future<Ids> ids;
    };

    void send();
    void write_first();

    Encode encode_;
    TokenWriter& writer_;
    const Cancellation& cancellation_;
    std::int32_t source_ = 0;
    float label_ = 0;
    Batch batch_;
    std::size_t batch_bytes_ = 0;
    std::deque<Waiting> waiting_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::size_t next_worker_ = 0;
};

}  // namespace headscope::data
