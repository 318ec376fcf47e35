// SPDX-License-Identifier: GPL-3.0-or-later
// User CPU time of one tokenizer on one thread, as one JSON document. tokenizer_ratio.py drives it.
//
//     bench_tokenizer TOKENIZER.json TEXT [--lines] [--repeat N]
//
// --lines: every line of TEXT is a text of its own, 100 000 of them through one loaded tokenizer.
#include <malloc.h>
#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tokenizer/tokenizer.h"

namespace {

using headscope::tokenizer::Tokenizer;

double user_seconds() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
}

double seconds_of(const std::function<void()>& work) {
    const double before = user_seconds();
    work();
    return user_seconds() - before;
}

double peak_memory() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024;
    return 0;
}

std::vector<std::string> split_lines(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

/// A digest of lists of ids; numpy computes the same.
struct Digest {
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
    void add(const std::vector<std::int32_t>& ids) {
        for (const std::int32_t id : ids) sum += (static_cast<std::uint64_t>(id) + 1) * (++count % 1'000'003);
    }
};

int run(const std::vector<std::string>& words) {
    bool by_line = false;
    int repeat = 1;
    for (std::size_t i = 2; i < words.size(); ++i) {
        if (words[i] == "--lines") by_line = true;
        if (words[i] == "--repeat" && i + 1 < words.size()) repeat = std::stoi(words[++i]);
    }
    std::ifstream file(words.at(1), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const std::vector<std::string> texts = by_line ? split_lines(text) : std::vector<std::string>{text};
    std::shared_ptr<const Tokenizer> tokenizer;
    std::vector<double> load, encode, decode;
    Digest digest;
    for (int i = 0; i < repeat; ++i) {
        load.push_back(seconds_of([&] { tokenizer = Tokenizer::from_file(words.at(0)); }));
    }
    const double before = peak_memory();
    std::vector<std::vector<std::int32_t>> ids(texts.size());
    for (int i = 0; i < repeat; ++i) {
        encode.push_back(seconds_of([&] {
            for (std::size_t k = 0; k < texts.size(); ++k) ids[k] = tokenizer->encode(texts[k]).ids;
        }));
    }
    const double peak = peak_memory();
    for (const auto& list : ids) digest.add(list);
    for (int i = 0; i < repeat; ++i) {
        decode.push_back(seconds_of([&] {
            for (const auto& list : ids) tokenizer->decode(list);
        }));
    }
    const nlohmann::json document = {
        {"bytes", text.size()}, {"tokens", digest.count}, {"digest", digest.sum}, {"load", load},
        {"encode", encode},     {"decode", decode},       {"loaded", before},     {"peak", peak}};
    std::cout << document.dump() << "\n";
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);  // as the program does
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    try {
        if (argc < 3) throw std::invalid_argument("bench_tokenizer TOKENIZER.json TEXT [--lines] [--repeat N]");
        return run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
