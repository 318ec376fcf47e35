// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/io/input_file.h"
#include "core/checkpoint/pytorch/pickle_objects.h"

namespace headscope::checkpoint {

/// The plain data of a file that pickle.dump wrote, or torch.save as an archive or in its form of before PyTorch 1.6
/// (legacy_file.h). Read as read_pickle (pickle_reader.h) reads: nothing of it is run. Files whose data have tensors
/// are refused. Errors: those of read_pickle, and of zip archives.
PickleObjects read_python_objects(const InputFile& file);

}  // namespace headscope::checkpoint
