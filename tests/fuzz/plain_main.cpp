// SPDX-License-Identifier: GPL-3.0-or-later
// fuzz_plain TARGET [--mutations N] [--seed N] [--dictionary FILE] FILE|FOLDER...
// Runs the target on every file given (folders: on all files below them), then on N mutations of those files, the same
// ones for the same seed. A finding or a crash leaves the input in fuzz-TARGET.input in the working folder.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/mutator.h"
#include "tests/fuzz/target.h"

namespace {

namespace fs = std::filesystem;
using namespace headscope::fuzz;

std::string_view current;  // what runs now, for the signal handler
std::string kept;

void keep_input(int signal) {
    const int descriptor = ::open(kept.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (descriptor >= 0 && ::write(descriptor, current.data(), current.size()) >= 0) {
        constexpr std::string_view text = "the input is in ";
        static_cast<void>(::write(2, text.data(), text.size()) + ::write(2, kept.data(), kept.size()) +
                          ::write(2, "\n", 1));
    }
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

int usage(const std::string& found) {
    std::fprintf(stderr,
                 "fuzz_plain: expected TARGET [--mutations N] [--seed N] [--dictionary FILE] FILE|FOLDER...; "
                 "found %s. Targets:",
                 found.c_str());
    for (const Target& target : targets()) std::fprintf(stderr, " %s", target.name);
    std::fprintf(stderr, "\n");
    return 2;
}

std::string read_whole(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void add_inputs(const fs::path& path, std::vector<std::string>& inputs) {
    if (!fs::is_directory(path)) {
        inputs.push_back(read_whole(path));
        return;
    }
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
        if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());  // the mutations depend on the order
    for (const fs::path& file : files) inputs.push_back(read_whole(file));
}

void run(const Target& target, std::string_view input) {
    current = input;
    target.run(input);
}

}  // namespace

int main(int argc, char** argv) {
    const Target* target = argc > 1 ? find_target(argv[1]) : nullptr;
    if (target == nullptr) return usage(argc > 1 ? argv[1] : "nothing");
    std::size_t mutations = 0;
    std::uint64_t seed = 1;
    std::vector<std::string> words, inputs;
    for (int i = 2; i < argc; ++i) {
        const std::string word = argv[i];
        const bool option = word.rfind("--", 0) == 0;
        if (option && i + 1 == argc) return usage(word);
        if (word == "--mutations") {
            mutations = std::strtoull(argv[++i], nullptr, 10);
        } else if (word == "--seed") {
            seed = std::strtoull(argv[++i], nullptr, 10);
        } else if (word == "--dictionary") {
            words = read_dictionary(argv[++i]);
        } else if (option || !fs::exists(word)) {
            return usage(word);
        } else {
            add_inputs(word, inputs);
        }
    }
    kept = "fuzz-" + std::string(target->name) + ".input";
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, keep_input);
    for (const std::string& input : inputs) run(*target, std::string_view(input).substr(0, target->longest));
    Mutator mutator(seed, std::move(words));
    for (std::size_t i = 0; i < mutations; ++i) {
        const std::string input = mutator.mutate(inputs, target->longest);
        run(*target, input);
    }
    std::printf("%s: %zu files and %zu mutations of seed %llu\n", target->name, inputs.size(), mutations,
                static_cast<unsigned long long>(seed));
    return inputs.empty() ? 1 : 0;
}
