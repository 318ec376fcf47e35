// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/target.h"

#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {

const std::vector<Target>& targets() {
    static const std::vector<Target> all{
        {"text", "core/base/text/text.cpp core/base/error.cpp core/store/hdf5/utf8.cpp core/tokenizer/unicode/utf8.cpp",
         run_text, 4096},
        {"json", "core/base/json/json.cpp core/base/json/json_events.cpp core/base/json/json_view.cpp", run_json, 4096},
        {"safetensors", "core/checkpoint/safetensors_header.cpp core/checkpoint/data_type.cpp", run_safetensors, 8192},
        {"gguf", "core/checkpoint/gguf core/checkpoint/packed", run_gguf, 16384},
        {"shard_index", "core/checkpoint/shards.cpp", run_shard_index, 4096},
        {"pytorch", "core/checkpoint/pytorch core/checkpoint/strided_reader.cpp", run_pytorch, 8192},
        {"config",
         "core/model/load/config_reader.cpp core/model/load/recipe.cpp core/model/load/rope_reader.cpp "
         "core/model/families",
         run_config, 4096},
        {"checkpoint", "core/checkpoint core/model", run_checkpoint, 16384},
        {"pattern",
         "core/tokenizer/regex/regex.cpp core/tokenizer/regex/regex_classes.cpp core/tokenizer/regex/scanner.cpp "
         "core/tokenizer/regex/matcher.cpp",
         run_pattern, 1024},
        {"tokenizer_json", "core/tokenizer", run_tokenizer_json, 8192},
        {"tokenizer_folder", "core/tokenizer/files core/tokenizer/tokenizer.cpp", run_tokenizer_folder, 4096},
        {"sentencepiece", "core/tokenizer/files core/tokenizer/normalizers core/tokenizer/models", run_sentencepiece,
         4096},
        {"tokenizer_text", "core/tokenizer", run_tokenizer_text, 2048},
        {"chat_template", "core/tokenizer/template core/tokenizer/chat_template.cpp", run_chat_template, 4096},
        {"training_text",
         "core/data/source/text_parts.cpp core/data/source/json_lines.cpp core/data/batch/item_reader.cpp "
         "core/data/source/bible.cpp "
         "core/data/source/lzw.cpp",
         run_training_text, 4096},
        {"journal",
         "core/run/events.cpp core/run/journal_reader.cpp core/run/run_history.cpp "
         "core/run/run_story.cpp",
         run_journal, 4096},
        {"analysis", "core/store", run_analysis, 256},
        {"run_file", "core/store/run/run_file_read.cpp core/store/run/run_layout.cpp core/store/hdf5/hdf5_dataset.cpp",
         run_run_file, 256},
        {"evaluation_file", "core/store/evaluation/evaluation_file.cpp core/store/hdf5/hdf5_dataset.cpp",
         run_evaluation_file, 256},
    };
    return all;
}

const Target* find_target(std::string_view name) {
    for (const Target& target : targets()) {
        if (name == target.name) return &target;
    }
    return nullptr;
}

}  // namespace headscope::fuzz
