// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Values of a job's [data]. Nothing here reads a file.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace headscope::data {

/// A built-in generator and its options; what is not named has the default of datasets/NAME.json.
struct GeneratorSettings {
    std::string name;                       ///< "copy", "induction", "mqar", "needle", "markov", ...
    std::map<std::string, double> options;  ///< names, bounds and defaults: find_dataset(name).options
};

/// A token that every sequence has at one position; core/data/fixed_token.h.
struct FixedToken {
    std::int64_t position = 0;       ///< counted from 0
    std::optional<std::int64_t> id;  ///< without one the tokenizer's mask token, else its unk token
};

/// Training objective: [objective] of a job. It determines the sequences that the model reads.
struct ObjectiveSettings {
    std::string kind = "next_token";  ///< masked, shuffle_random, translation, classify, spans
    double mask = 0.15;               ///< masked: share of tokens that are drawn; of these 80 % masked, 10 % random
    double shuffle = 0.1;             ///< shuffle_random: share of tokens that change places
    double random = 0.1;              ///< shuffle_random: share of the others that are replaced
    std::int64_t classes = 2;         ///< classify; 1: a number
    std::int64_t stride = 128;        ///< spans: context tokens that consecutive windows share
    std::string source = "source", target = "target";  ///< translation: columns, as DataSettings::column
};

/// Exactly one of text, corpus and generator says what to train on.
struct DataSettings {
    std::vector<std::string>
        text;  ///< files, folders (all .txt and .jsonl files below them), patterns (*, ?, [..], **)
    /// Column of JSON objects that is a document: a member, or at each dot a member of the object before it.
    std::string column = "text";
    std::string corpus;  ///< name of a ready corpus: "kjv"
    std::optional<GeneratorSettings> generator;
    /// "bytes", "train:N" (a byte-level BPE of N tokens is trained on the text), or the path of a tokenizer.json or of
    /// a folder with a tokenizer. Generators have a tokenizer of their own.
    std::string tokenizer = "bytes";
    std::int64_t sequence_length = 256;
    double validation = 0.02;                   ///< share of the tokens that is held out, from the end; 0: none
    std::vector<std::string> validation_files;  ///< held out instead of a share: files, folders, patterns
    std::optional<FixedToken> fixed_token;      ///< of what is held out, too
    ObjectiveSettings objective;
};

/// Folders that a job's data have to do with.
struct DataPlaces {
    std::filesystem::path base;  ///< what relative paths of the settings start from; empty: the working folder
    std::filesystem::path run;   ///< beside it lies RUN.tokens.h5 where the user's cache cannot be used; may be empty
};

enum class Split { training, validation };

}  // namespace headscope::data
