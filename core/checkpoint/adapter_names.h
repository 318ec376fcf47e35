// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>

#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// A tensor's name in the adapter's file, taken apart.
struct AdapterPart {
    /// copy: of the base's, or of a whole one that is there too, where PEFT saved a module with its wrapper.
    enum class Kind { a, b, embedding_a, embedding_b, whole, copy };
    std::string name;  ///< of the module; of `whole` ones of the tensor
    Kind kind = Kind::whole;
};

/// Throws Error(unsupported) for a kind that is not built; `where` names the file.
AdapterPart part_of(const std::string& written, const std::string& where);

/// The base's name of a tensor: its own, or with other wrappers around the model. Empty: there is none.
std::string find_tensor(const std::map<std::string, TensorInfo>& tensors, const std::string& wanted);

}  // namespace headscope::checkpoint
