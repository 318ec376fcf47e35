// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/checkpoint/pytorch/pickle_objects.h"

namespace headscope::checkpoint {

/// The weights of a pickle: which of its values are tensors with names.
struct StateDict {
    struct Entry {
        std::string name;
        PickleRef value = no_ref;  ///< a tensor, or an object that stands where a tensor should
    };
    std::vector<Entry> entries;
    std::vector<std::string> notes;  ///< what else the file holds, one line each
};

/// Finds them: the root must be a dictionary. Under the usual names ("state_dict", "model_state_dict", "model",
/// "module", ...) it descends while a dictionary with tensors lies there; further dictionaries in the last one add
/// their key and a dot to the names within; keys that count tensors (0, 1, ..) become names. Entries without tensors become a note. Errors: format without a tensor;
/// unsupported for a whole pickled module; mismatch for a repeated name; limit for names and nesting beyond any model.
StateDict find_state_dict(const PickleObjects& objects, const std::string& where);

/// Prefix of data parallelism ("module.") and torch.compile ("_orig_mod."): the longest run of these that all names
/// start with and that leaves none empty.
std::string common_prefix(const std::vector<std::string>& names);

}  // namespace headscope::checkpoint
