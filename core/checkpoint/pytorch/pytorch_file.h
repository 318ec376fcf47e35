// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/io/input_file.h"
#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// Weights listed in a PyTorch file (torch.save: a zip archive since version 1.6; before, pickles and bare numbers).
struct PytorchFile {
    std::map<std::string, TensorInfo> tensors;      ///< names as they stand there; `file` is 0
    std::map<std::string, std::string> unreadable;  ///< tensors of kinds that are not read -> "found ..."
    std::vector<std::string> notes;                 ///< what else the file holds
};

/// Reads the archive's directory and its pickle (zip_archive.h, pickle_reader.h; of older files legacy_file.h), finds
/// the weights (state_dict.h) and checks that each lies within the file. No tensor's bytes are read. Tensors may share
/// storages, overlap, be transposed. Together they may have at most 64 times the bytes of the file (tied weights), and
/// those that repeat their own elements (expand) at most as many bytes as the file: one that passes that is named
/// unreadable. Errors: format, unsupported (TorchScript, other zip archives, big-endian, deflated), limit, mismatch.
PytorchFile read_pytorch_file(const InputFile& file);

}  // namespace headscope::checkpoint
