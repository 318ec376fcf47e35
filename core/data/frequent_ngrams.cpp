// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/cancellation_scope.h"
#include "core/data/catalog.h"
#include "core/data/data_set.h"
#include "core/data/text_data.h"
#include "core/tokenizer/hashed/ngrams.h"

namespace headscope::data {
namespace {

/// Beyond so many different n-grams (some 400 MB) the rare ones are forgotten: far more than are asked for.
constexpr std::size_t kMostNgrams = 4'000'000;

class CountingSink final : public PartSink {
public:
    void begin_document() override {}
    void part(std::string_view text) override {
        counter.feed(text);
        counter.forget_rare(kMostNgrams);
    }
    void end_document() override {}

    tokenizer::NgramCounter counter;
};

}  // namespace

std::vector<std::string> frequent_ngrams(const DataSettings& settings, const DataPlaces& places, std::size_t count,
                                         Progress& progress, const Cancellation& cancellation) {
    const CancellationScope scope(cancellation);
    CountingSink sink;
    if (settings.generator) {
        for (const std::string& piece : make_generator(*settings.generator, settings.sequence_length).pieces)
            sink.counter.feed(piece);
    } else {
        read_texts(training_sources(settings, places), settings.objective, sink, progress, "count n-grams");
    }
    return sink.counter.most_frequent(count);
}

}  // namespace headscope::data
