// SPDX-License-Identifier: GPL-3.0-or-later
// Words that are split, lower-cased and hashed in a second of one thread: rows and bits of MD5, bits of LSH over the
// most frequent n-grams of the text itself.
//
//     bench_hashes TEXT [BITS] [NGRAMS]
#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/tokenizer/hashed/split.h"
#include "core/tokenizer/hashed/word_hash.h"

namespace {

using namespace headscope::tokenizer;

double user_seconds() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
}

/// Prints what each word's `work` takes with splitting; the sum keeps it from being left out.
template <class Work>
void measure(const char* name, const std::string& text, const Work& work) {
    double best = 0;
    std::uint64_t sum = 0, words = 0;
    for (int run = 0; run < 5; ++run) {
        words = 0;
        const double before = user_seconds();
        split_words(text, [&](const SplitWord& word) {
            sum += work(word.piece);
            ++words;
        });
        best = std::max(best, static_cast<double>(words) / (user_seconds() - before));
    }
    std::printf("%-10s %8.2f million words a second (%llu words, sum %llu)\n", name, best * 1e-6,
                static_cast<unsigned long long>(words), static_cast<unsigned long long>(sum));
}

int run(const std::vector<std::string>& words) {
    std::ifstream file(words.at(0), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    HashSettings settings;
    settings.kind = EmbeddingKind::add;
    settings.hash = WordHashKind::md5;
    settings.bits = kMd5Bits;
    const auto bits_with = [&](const char* name, const WordHash& hash) {
        std::vector<std::uint8_t> bits(static_cast<std::size_t>(hash.settings().bits));
        measure(name, text, [&](std::string_view word) {
            hash.bits(word, bits);
            return std::uint64_t{bits[7]};
        });
    };
    measure("split", text, [](std::string_view word) { return word.size(); });
    bits_with("md5 bits", WordHash(settings));
    HashSettings rows = settings;
    rows.kind = EmbeddingKind::emb;
    rows.rows = 50260;
    const WordHash emb(rows);
    measure("md5 rows", text, [&](std::string_view word) { return static_cast<std::uint64_t>(emb.id(word)); });

    NgramCounter counter;
    counter.feed(text);
    const auto ngrams =
        std::make_shared<const Ngrams>(counter.most_frequent(words.size() > 2 ? std::stoul(words[2]) : 50'000), "text");
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> numbers(ngrams->list().size());
    for (float& number : numbers) number = normal(random);
    settings.hash = WordHashKind::lsh;
    if (words.size() > 1) settings.bits = std::stol(words[1]);
    bits_with("lsh bits", WordHash(settings, ngrams, numbers));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 2) throw std::invalid_argument("bench_hashes TEXT [BITS] [NGRAMS]");
        return run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
