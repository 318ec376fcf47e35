// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/process/cancellation_scope.h"
#include "core/data/catalog.h"
#include "core/data/data_set.h"
#include "core/data/text_data.h"
#include "core/tokenizer/hashed/ngrams.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::data {
namespace {

/// Above this many different n-grams (some 400 MB) the rare ones are dropped: far more than are requested.
constexpr std::size_t kMostNgrams = 4'000'000;

class CountingSink final : public PartSink {
public:
    explicit CountingSink(const tokenizer::Tokenizer* pieces) : pieces_(pieces) {}
    void begin_document() override {}
    void part(std::string_view text) override {
        if (pieces_ == nullptr) {
            counter.feed(text);
        } else {
            for (const std::string& piece : pieces_->pieces(pieces_->encode(text, /*add_special_tokens=*/false)))
                counter.feed_word(piece);
        }
        counter.forget_rare(kMostNgrams);
    }
    void end_document() override {}

    tokenizer::NgramCounter counter;

private:
    const tokenizer::Tokenizer* pieces_;
};

}  // namespace

std::vector<std::string> frequent_ngrams(const DataSettings& settings, const DataPlaces& places, std::size_t count,
                                         Progress& progress, const Cancellation& cancellation,
                                         const tokenizer::Tokenizer* pieces) {
    const CancellationScope scope(cancellation);
    CountingSink sink(pieces);
    if (settings.generator) {
        for (const std::string& piece : make_generator(*settings.generator, settings.sequence_length).pieces)
            sink.part(piece);
    } else {
        read_texts(training_sources(settings, places), settings.objective, sink, progress, "count n-grams");
    }
    return sink.counter.most_frequent(count);
}

}  // namespace headscope::data
