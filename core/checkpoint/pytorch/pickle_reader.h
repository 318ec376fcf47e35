// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/checkpoint/pytorch/pickle_objects.h"

namespace headscope::checkpoint {

/// The largest pickle that is read; weights lie beside it.
constexpr std::uint64_t largest_pickle = 256U << 20U;

/// The bytes of the storage that a key names; empty if there is none. A null function: of a file before version 1.6,
/// where storages lie behind the pickle and each is named with what it is a view of.
using StorageSize = std::function<std::optional<std::uint64_t>(std::string_view key)>;

/// Reads a pickle of protocol 2 to 5 as torch.save writes it. Nothing is called, imported or executed: calls of the
/// functions that rebuild tensors are understood, those of a list of harmless types (dates, paths, numpy's scalars) are
/// noted, any other is refused by name wherever it stands, and so is a name from modules that run programs. Instances
/// of unknown classes are noted by name and otherwise ignored. Each tensor lies within its storage, each storage has
/// the size of its member. Bounds: 4 million objects, 8 million elements of containers, 2 million values on the stack,
/// 1000 open marks; every length is compared with the bytes left. Memory: at most about 40 bytes a byte, and 300 MB.
/// `where` names the source; errors say the byte and the opcode. `behind`: where the pickle ends; null: nothing may
/// follow it. Errors: format, unsupported, limit.
PickleObjects read_pickle(std::string bytes, const std::string& where, const StorageSize& storage_size,
                          std::size_t* behind = nullptr);

}  // namespace headscope::checkpoint
