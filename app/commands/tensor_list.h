// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/checkpoint/checkpoint.h"

namespace headscope::app {

// Half a million tensors are possible: both print as they go and hold a few lines at a time. Throw Error (io).

/// A table: name, type, shape, size.
void print_tensor_table(const checkpoint::Checkpoint& checkpoint);

/// `document`, an object, with the key "tensors" added: an array of {name, type, shape, bytes}, a line each.
void print_json_with_tensors(const nlohmann::json& document, const checkpoint::Checkpoint& checkpoint);

}  // namespace headscope::app
