// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/json/json.h"

namespace headscope::tokenizer {

/// tokenizer_config.json and config.json of a folder, either of which may be absent: an empty object. A config.json
/// that is no configuration counts as absent: the model's reader reports it. Errors: Error for another
/// tokenizer_config.json.
class FolderSettings {
public:
    explicit FolderSettings(const std::filesystem::path& folder);
    JsonView tokenizer_config() const { return JsonView(tokenizer_config_, where_); }
    JsonView config() const { return JsonView(config_, "config.json"); }

private:
    std::string where_;
    nlohmann::json tokenizer_config_, config_;
};

/// The tokenizer class that transformers' AutoTokenizer (5.23) takes by tokenizer_class of tokenizer_config.json or
/// config.json, without "Fast"; where neither names one, that of model_type, of the types that have one with token
/// types. Empty: the plain backend, which reads tokenizer.json alone, or a class that is not listed.
std::string chosen_tokenizer_class(const JsonView& tokenizer_config, const JsonView& config);

/// True if a tokenizer gives token types to its model, as transformers' AutoTokenizer (5.23) decides: by
/// model_input_names of tokenizer_config.json, else by the tokenizer's class, which follows from tokenizer_class there
/// or in config.json and from model_type. PreTrainedTokenizerFast and unknown classes give none: the model then reads
/// type 0 everywhere. Threads: any. Errors: Error(format) for a model_input_names that is no list of names.
bool gives_token_types(const JsonView& tokenizer_config, const JsonView& config);

bool gives_token_types(const std::filesystem::path& folder);

}  // namespace headscope::tokenizer
