// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// An element type of PyTorch. Those without a DataType are known so that they can be named: quantised and wide complex
/// numbers, packed bits.
struct TorchType {
    std::string_view name;         ///< "float32"; empty for untyped bytes
    std::optional<DataType> type;  ///< empty: not read
    std::uint32_t bytes = 1;       ///< of an element in its storage
};

/// Meaning of a class or function name in a pickle.
struct PickleGlobal {
    enum class Meaning : std::uint8_t {
        unknown,       ///< a class of which objects may be there, which nothing is known of; it is never called
        harmless,      ///< may be called in a pickle: what comes of it is not looked at
        refused,       ///< no checkpoint needs it, and calling it would run programs
        dictionary,    ///< OrderedDict and the like
        size,          ///< torch.Size: a tuple
        storage_type,  ///< torch.FloatStorage, ...
        type,          ///< torch.float32, ...
        tensor_class,  ///< torch.Tensor, torch.nn.parameter.Parameter
        tensor,        ///< torch._utils._rebuild_tensor and _v2
        tensor_v3,     ///< with a type of its own
        parameter,     ///< torch._utils._rebuild_parameter and _with_state: their first argument
        subclass,      ///< torch._tensor._rebuild_from_type_v2
        other_tensor,  ///< sparse, quantised, nested, ...: a tensor that is not read
    };
    Meaning meaning = Meaning::unknown;
    TorchType type;  ///< of storage_type and type
};

/// Index for pickle_global(). Python 2's names of modules are known too.
std::uint32_t find_pickle_global(std::string_view module, std::string_view name);

const PickleGlobal& pickle_global(std::uint32_t index);

}  // namespace headscope::checkpoint
