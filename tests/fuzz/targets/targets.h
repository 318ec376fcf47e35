// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

namespace headscope::fuzz {

// One file each, beside this one. A new target is its file, its line here, its line in ../target.cpp, and seeds.
void run_text(std::string_view input);
void run_json(std::string_view input);
void run_safetensors(std::string_view input);
void run_shard_index(std::string_view input);
void run_config(std::string_view input);
void run_checkpoint(std::string_view input);
void run_pytorch(std::string_view input);
void run_pattern(std::string_view input);
void run_tokenizer_json(std::string_view input);
void run_tokenizer_folder(std::string_view input);
void run_sentencepiece(std::string_view input);
void run_tokenizer_text(std::string_view input);
void run_chat_template(std::string_view input);
void run_training_text(std::string_view input);
void run_journal(std::string_view input);
void run_analysis(std::string_view input);
void run_gguf(std::string_view input);
void run_run_file(std::string_view input);
void run_evaluation_file(std::string_view input);

}  // namespace headscope::fuzz
