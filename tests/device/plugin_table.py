# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of a GPU library (kernels/gpu/plugin.h), read without a GPU. For check_sass.py and check_hip.py."""

import ctypes
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Files that a driver makes for its first GPU.
NODES = {"cuda": ["/dev/nvidia0", "/dev/dxg"], "hip": ["/dev/kfd", "/dev/dxg"]}
ABSENT = {"configure"}  # functions of the emulator alone


def table_type():
    """The interface's number, and HsPlugin with its functions as addresses."""
    text = (ROOT / "kernels/gpu/plugin.h").read_text(encoding="utf-8")
    abi = int(re.search(r"#define HS_GPU_ABI (\d+)U", text)[1])
    functions = re.findall(r"\(\*(\w+)\)\(", text[text.rindex("typedef struct {"):text.index("} HsPlugin;")])

    class Table(ctypes.Structure):
        _fields_ = [("abi", ctypes.c_uint32), ("name", ctypes.c_char_p), ("architectures", ctypes.c_char_p),
                    ("reuses_memory", ctypes.c_int32), *((function, ctypes.c_void_p) for function in functions)]

    return abi, functions, Table


def problem_of_library(path, name, architecture):
    """None, or why the library cannot be used as the one of `name` for `architecture`."""
    abi, functions, Table = table_type()
    try:
        entry = ctypes.CDLL(str(path)).headscope_gpu_plugin
    except (OSError, AttributeError) as error:
        return str(error)
    entry.restype = ctypes.c_void_p
    entry.argtypes = [ctypes.c_uint32]
    if entry(abi + 1) is not None:
        return f"a table for interface {abi + 1}, which is not {abi}"
    if entry(abi) is None:
        return f"no table for interface {abi}"
    table = Table.from_address(entry(abi))
    if (table.abi, table.name, table.architectures) != (abi, name.encode(), architecture.encode()):
        return f"the table of {table.name} for {table.architectures}, interface {table.abi}"
    missing = [function for function in functions if (getattr(table, function) is None) != (function in ABSENT)]
    if missing:
        return f"other functions than a GPU has: {', '.join(missing)}"
    count = ctypes.CFUNCTYPE(ctypes.c_int)(table.devices)()
    if count != 0 and not any(pathlib.Path(node).exists() for node in NODES[name]):
        return f"{count} devices on a machine without a GPU"
    return None
