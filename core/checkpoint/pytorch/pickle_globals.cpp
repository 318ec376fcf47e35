// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pytorch/pickle_globals.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace headscope::checkpoint {
namespace {

using Meaning = PickleGlobal::Meaning;

struct Known {
    std::string_view module;
    std::string_view name;
    PickleGlobal global;
};

constexpr Known storage(std::string_view name, std::string_view type, std::optional<DataType> data, unsigned bytes) {
    return {"torch", name, {Meaning::storage_type, {type, data, bytes}}};
}
constexpr Known type(std::string_view name, std::optional<DataType> data, unsigned bytes) {
    return {"torch", name, {Meaning::type, {name, data, bytes}}};
}
constexpr Known plain(std::string_view module, std::string_view name, Meaning meaning) {
    return {module, name, {meaning, {}}};
}

/// The allow-list. Index 0 and 1 are what everything else is.
constexpr Known known[] = {
    plain("", "", Meaning::unknown),
    plain("", "", Meaning::refused),
    plain("collections", "OrderedDict", Meaning::dictionary),
    plain("collections", "defaultdict", Meaning::dictionary),
    plain("collections", "Counter", Meaning::dictionary),
    plain("collections", "deque", Meaning::harmless),
    plain("torch", "Size", Meaning::size),
    plain("torch._utils", "_rebuild_tensor", Meaning::tensor),
    plain("torch._utils", "_rebuild_tensor_v2", Meaning::tensor),
    plain("torch._utils", "_rebuild_tensor_v3", Meaning::tensor_v3),
    plain("torch._utils", "_rebuild_parameter", Meaning::parameter),
    plain("torch._utils", "_rebuild_parameter_with_state", Meaning::parameter),
    plain("torch._tensor", "_rebuild_from_type_v2", Meaning::subclass),
    plain("torch", "Tensor", Meaning::tensor_class),
    plain("torch.nn.parameter", "Parameter", Meaning::tensor_class),
    plain("torch.nn.parameter", "Buffer", Meaning::tensor_class),
    plain("torch._utils", "_rebuild_qtensor", Meaning::other_tensor),
    plain("torch._utils", "_rebuild_sparse_tensor", Meaning::other_tensor),
    plain("torch._utils", "_rebuild_sparse_csr_tensor", Meaning::other_tensor),
    plain("torch._utils", "_rebuild_nested_tensor", Meaning::other_tensor),
    plain("torch._utils", "_rebuild_meta_tensor_no_storage", Meaning::other_tensor),
    plain("torch._utils", "_rebuild_wrapper_subclass", Meaning::other_tensor),
    plain("torch._utils", "_rebuild_device_tensor_from_numpy", Meaning::other_tensor),
    plain("torch._utils", "_rebuild_device_tensor_from_cpu_tensor", Meaning::other_tensor),
    plain("torch._utils", "_rebuild_xla_tensor", Meaning::other_tensor),
    plain("torch._utils", "_rebuild_mlc_tensor", Meaning::other_tensor),
    storage("DoubleStorage", "float64", DataType::f64, 8),
    storage("FloatStorage", "float32", DataType::f32, 4),
    storage("HalfStorage", "float16", DataType::f16, 2),
    storage("BFloat16Storage", "bfloat16", DataType::bf16, 2),
    storage("LongStorage", "int64", DataType::i64, 8),
    storage("IntStorage", "int32", DataType::i32, 4),
    storage("ShortStorage", "int16", DataType::i16, 2),
    storage("CharStorage", "int8", DataType::i8, 1),
    storage("ByteStorage", "uint8", DataType::u8, 1),
    storage("BoolStorage", "bool", DataType::boolean, 1),
    storage("ComplexFloatStorage", "complex64", DataType::c64, 8),
    storage("ComplexDoubleStorage", "complex128", {}, 16),
    storage("QInt8Storage", "qint8", {}, 1),
    storage("QUInt8Storage", "quint8", {}, 1),
    storage("QInt32Storage", "qint32", {}, 4),
    storage("QUInt4x2Storage", "quint4x2", {}, 1),
    storage("QUInt2x4Storage", "quint2x4", {}, 1),
    {"torch.storage", "UntypedStorage", {Meaning::storage_type, {"", {}, 1}}},
    {"torch", "UntypedStorage", {Meaning::storage_type, {"", {}, 1}}},
    type("float64", DataType::f64, 8),
    type("float32", DataType::f32, 4),
    type("float16", DataType::f16, 2),
    type("bfloat16", DataType::bf16, 2),
    type("int64", DataType::i64, 8),
    type("int32", DataType::i32, 4),
    type("int16", DataType::i16, 2),
    type("int8", DataType::i8, 1),
    type("uint8", DataType::u8, 1),
    type("uint16", DataType::u16, 2),
    type("uint32", DataType::u32, 4),
    type("uint64", DataType::u64, 8),
    type("bool", DataType::boolean, 1),
    type("complex64", DataType::c64, 8),
    type("complex128", {}, 16),
    type("complex32", {}, 4),
    type("float8_e5m2", DataType::f8_e5m2, 1),
    type("float8_e4m3fn", DataType::f8_e4m3, 1),
    type("float8_e8m0fnu", DataType::f8_e8m0, 1),
    type("float8_e4m3fnuz", DataType::f8_e4m3fnuz, 1),
    type("float8_e5m2fnuz", DataType::f8_e5m2fnuz, 1),
    type("float4_e2m1fn_x2", {}, 1),
    type("qint8", {}, 1),
    type("quint8", {}, 1),
    type("qint32", {}, 4),
    type("quint4x2", {}, 1),
    type("quint2x4", {}, 1),
    plain("torch", "device", Meaning::harmless),
    plain("torch.serialization", "_get_layout", Meaning::harmless),
    plain("torch.torch_version", "TorchVersion", Meaning::harmless),
    plain("_codecs", "encode", Meaning::harmless),
    plain("re", "_compile", Meaning::harmless),
    plain("copyreg", "_reconstructor", Meaning::harmless),
    plain("types", "SimpleNamespace", Meaning::harmless),
    plain("argparse", "Namespace", Meaning::harmless),
    plain("datetime", "date", Meaning::harmless),
    plain("datetime", "datetime", Meaning::harmless),
    plain("datetime", "time", Meaning::harmless),
    plain("datetime", "timedelta", Meaning::harmless),
    plain("datetime", "timezone", Meaning::harmless),
    plain("decimal", "Decimal", Meaning::harmless),
    plain("fractions", "Fraction", Meaning::harmless),
    plain("uuid", "UUID", Meaning::harmless),
    plain("pathlib", "PosixPath", Meaning::harmless),
    plain("pathlib", "WindowsPath", Meaning::harmless),
    plain("pathlib", "PurePosixPath", Meaning::harmless),
    plain("pathlib", "PureWindowsPath", Meaning::harmless),
    plain("pathlib._local", "PosixPath", Meaning::harmless),
    plain("pathlib._local", "WindowsPath", Meaning::harmless),
    plain("pathlib._local", "PurePosixPath", Meaning::harmless),
    plain("pathlib._local", "PureWindowsPath", Meaning::harmless),
    plain("numpy", "dtype", Meaning::harmless),
    plain("numpy", "ndarray", Meaning::harmless),
    plain("numpy.core.multiarray", "scalar", Meaning::harmless),
    plain("numpy.core.multiarray", "_reconstruct", Meaning::harmless),
    plain("numpy.core.numeric", "_frombuffer", Meaning::harmless),
    plain("numpy._core.multiarray", "scalar", Meaning::harmless),
    plain("numpy._core.multiarray", "_reconstruct", Meaning::harmless),
    plain("numpy._core.numeric", "_frombuffer", Meaning::harmless),
    plain("numpy.random._pickle", "__randomstate_ctor", Meaning::harmless),
    plain("numpy.random._pickle", "__generator_ctor", Meaning::harmless),
    plain("numpy.random._pickle", "__bit_generator_ctor", Meaning::harmless),
    plain("torch.storage", "_load_from_bytes", Meaning::refused),
    plain("torch", "load", Meaning::refused),
};
constexpr std::uint32_t unknown_index = 0;
constexpr std::uint32_t refused_index = 1;

/// Python's builtins: types may be called, nothing else (eval, getattr, __import__, ...).
constexpr std::string_view builtin_types[] = {"set",   "frozenset", "bytearray", "bytes", "complex", "slice",
                                              "range", "list",      "tuple",     "dict",  "int",     "float",
                                              "str",   "bool",      "object",    "type"};

/// Modules of which no name belongs into a checkpoint. That others are not called does not hang on this list; it is
/// there to call such a file by its name even when the pickle never comes to the call.
constexpr std::string_view refused_modules[] = {
    "os",        "posix",      "nt",     "sys",       "subprocess", "socket",      "shutil", "pty", "runpy",
    "importlib", "ctypes",     "pickle", "_pickle",   "marshal",    "operator",    "timeit", "bdb", "pdb",
    "pip",       "webbrowser", "codeop", "torch.hub", "torch.jit",  "cloudpickle", "dill"};

bool lies_in(std::string_view module, std::string_view parent) {
    return module == parent || (module.starts_with(parent) && module[parent.size()] == '.');
}

}  // namespace

std::uint32_t find_pickle_global(std::string_view module, std::string_view name) {
    if (module == "__builtin__") module = "builtins";
    if (module == "copy_reg") module = "copyreg";
    if (module == "torch.cuda" && name.ends_with("Storage")) module = "torch";
    const auto* found = std::find_if(std::begin(known), std::end(known), [&](const Known& one) {
        return one.name == name && one.module == module && !name.empty();
    });
    if (found != std::end(known)) return static_cast<std::uint32_t>(found - std::begin(known));
    if (module == "builtins") {
        static const std::uint32_t harmless = find_pickle_global("collections", "deque");
        const bool is_type =
            std::find(std::begin(builtin_types), std::end(builtin_types), name) != std::end(builtin_types);
        return is_type ? harmless : refused_index;
    }
    const bool refused = std::any_of(std::begin(refused_modules), std::end(refused_modules),
                                     [&](std::string_view parent) { return lies_in(module, parent); });
    return refused ? refused_index : unknown_index;
}

const PickleGlobal& pickle_global(std::uint32_t index) {
    return known[index].global;
}

}  // namespace headscope::checkpoint
