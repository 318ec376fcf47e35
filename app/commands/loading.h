// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/device.h"
#include "core/checkpoint/checkpoint.h"
#include "core/tokenizer/chat_template.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::model {
class Model;
}
namespace headscope::store {
struct AskRecord;
}

namespace headscope::app {

/// The tokenizer of a checkpoint folder, of any file in it, or a tokenizer.json itself. Throws Error when there is
/// none.
std::shared_ptr<const tokenizer::Tokenizer> load_tokenizer(const std::filesystem::path& path);

/// The tokenizer of an open checkpoint; null when it has none.
std::shared_ptr<const tokenizer::Tokenizer> tokenizer_of(const checkpoint::Checkpoint& checkpoint);
/// The same, shared with all who have one of the same tokenizer.json: snapshots of a run have, and it may be larger
/// than they are. Any thread.
std::shared_ptr<const tokenizer::Tokenizer> shared_tokenizer_of(const checkpoint::Checkpoint& checkpoint);

/// Name in an analysis file: the title of the run that saved the checkpoint, with its adapter; empty for others.
std::string model_title(const std::filesystem::path& path, const checkpoint::Checkpoint& checkpoint);
/// Fills in what a file of `headscope ask` says of its model. `path` is the checkpoint's, as it was given; `sha256` is
/// its fingerprint.
void describe_model(store::AskRecord& record, const std::filesystem::path& path,
                    const checkpoint::Checkpoint& checkpoint, const model::Model& model, std::string sha256);

/// The chat template of a checkpoint folder, or of the folder that any file of one lies in. Throws Error when there is
/// none.
tokenizer::ChatTemplate load_chat_template(const std::filesystem::path& path);
/// The same of an open checkpoint; empty when it has none.
std::optional<tokenizer::ChatTemplate> chat_template_of(const checkpoint::Checkpoint& checkpoint);

/// The files of a checkpoint, of its tokenizer and of its adapter: no output may replace one.
std::vector<std::filesystem::path> files_of(const checkpoint::Checkpoint& checkpoint);

/// Sets threads, and kernels by choose_kernels() (app/commands/device.h). Call once, before the first tensor.
void configure_compute(int threads, const std::string& kernels, const std::string& device,
                       const std::string& place = "--device", const MachineShare& share = {});
int compute_threads();

}  // namespace headscope::app
