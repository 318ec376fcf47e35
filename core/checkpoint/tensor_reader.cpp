// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tensor_reader.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isinf.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <new>
#include <vector>

#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/data_type.h"
#include "core/checkpoint/file_pieces.h"
#include "core/checkpoint/not_finite.h"
#include "core/checkpoint/strided_reader.h"
#include "core/checkpoint/torch_types.h"

namespace headscope::checkpoint {
namespace {

constexpr std::int64_t kMappedBytes = 128 << 10;  ///< of a brief_tensor() outside the heap

std::string place(const InputFile& file, const TensorInfo& info) {
    return shown(file.path()) + ", tensor \"" + escaped(info.name) + '"';
}

c10::ScalarType required_type(const InputFile& file, const TensorInfo& info, DataType type) {
    const auto found = torch_type(type);
    if (!found) {
        throw Error(ErrorCode::unsupported, place(file, info), "expected an element type that LibTorch has",
                    "found " + std::string(name(type)));
    }
    return *found;
}

std::uint64_t machine_memory() {
    struct sysinfo info {};
    if (::sysinfo(&info) != 0) return UINT64_MAX;
    return (static_cast<std::uint64_t>(info.totalram) + info.totalswap) * info.mem_unit;
}

/// An uninitialised tensor. Sizes that overflow LibTorch's strides (only possible with no elements) and sizes beyond
/// the machine's memory, which Linux would grant and then kill us for, are refused here.
at::Tensor allocate(const InputFile& file, const TensorInfo& info, c10::ScalarType type) {
    std::vector<std::int64_t> sizes = info.shape;
    for (std::int64_t& size : sizes) size = std::max<std::int64_t>(size, 1);
    std::int64_t elements = 0;
    if (!checked_bits(sizes, DataType::c64, elements)) {
        throw Error(ErrorCode::unsupported, place(file, info), "expected sizes whose product fits 63 bits",
                    "found more, beside a size of 0");
    }
    const auto bytes = static_cast<std::uint64_t>(info.elements) * c10::elementSize(type);
    const auto refuse = [&] {
        throw Error(ErrorCode::memory, "memory", "expected " + size_text(bytes) + " for " + place(file, info),
                    "found less");
    };
    if (bytes > machine_memory()) refuse();
    try {
        return at::empty(info.shape, at::TensorOptions(type));
    } catch (const c10::Error&) {
        refuse();
    }
    return {};
}

/// A bool with bytes other than 0 and 1 is undefined behavior for its readers.
void normalise_booleans(unsigned char* bytes, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
}

template <class Seen>
void load_as_stored(FilePieces& pieces, const TensorInfo& info, const at::Tensor& to, const Seen& seen) {
    auto* out = static_cast<unsigned char*>(to.mutable_data_ptr());
    const at::Tensor flat = to.view({-1});
    const std::uint64_t element = to.element_size();
    for (std::uint64_t done = 0; done < info.bytes; done += piece_bytes) {
        const std::uint64_t size = std::min(piece_bytes, info.bytes - done);
        pieces.read(info.begin + done, out + done, static_cast<std::size_t>(size));
        seen(flat.narrow(0, static_cast<std::int64_t>(done / element), static_cast<std::int64_t>(size / element)));
    }
}

std::int64_t elements_of_a_piece(const TensorInfo& info) {
    return static_cast<std::int64_t>(piece_bytes) / (bits(info.type) / 8);
}

/// Calls use(first element, piece), a one-dimensional tensor of the stored type that is overwritten by the next piece.
template <class Use>
void for_each_piece(const InputFile& file, const TensorInfo& info, FilePieces& pieces, const Use& use) {
    const auto element = static_cast<std::int64_t>(bits(info.type) / 8);
    const std::int64_t most = elements_of_a_piece(info);
    const at::Tensor buffer = brief_tensor({std::min(most, info.elements)}, required_type(file, info, info.type));
    for (std::int64_t first = 0; first < info.elements; first += most) {
        const std::int64_t count = std::min(most, info.elements - first);
        pieces.read(info.begin + static_cast<std::uint64_t>(first * element), buffer.mutable_data_ptr(),
                    static_cast<std::size_t>(count * element));
        use(first, buffer.narrow(0, 0, count));
    }
}

/// The same for a tensor with strides, which is held whole: its pieces lie all over the file.
template <class Use>
void for_each_strided_piece(const InputFile& file, const TensorInfo& info, const Cancellation& cancellation,
                            const Use& use) {
    const at::Tensor whole = load_tensor(file, info, info.type, cancellation).view({-1});
    const std::int64_t most = elements_of_a_piece(info);
    for (std::int64_t first = 0; first < info.elements; first += most) {
        cancellation.check();
        use(first, whole.narrow(0, first, std::min(most, info.elements - first)));
    }
}

Error torch_error(const InputFile& file, const TensorInfo& info, const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return {ErrorCode::internal, place(file, info), "expected LibTorch to take this tensor",
            "found: " + escaped(text.substr(0, text.find('\n')))};
}

}  // namespace

void expect_in_range(const std::string& where, const at::Tensor& from, const at::Tensor& to, DataType type) {
    if (!at::isinf(to).any().item<bool>()) return;
    const auto lost =
        at::isfinite(from.to(c10::ScalarType::Double)).logical_and(at::isinf(to)).sum().item<std::int64_t>();
    if (lost == 0) return;
    throw Error(ErrorCode::limit, where, "expected values that " + std::string(name(type)) + " can hold",
                "found " + std::to_string(lost) + " too large for it; bfloat16 and float32 reach further than float16");
}

void load_tensor_into(const InputFile& file, const TensorInfo& info, const at::Tensor& into,
                      const Cancellation& cancellation, std::int64_t* not_finite) {
    const auto seen = [not_finite](const at::Tensor& piece) {
        if (not_finite) *not_finite += count_not_finite(piece);
    };
    if (not_finite) *not_finite = 0;
    try {
        const c10::ScalarType stored = required_type(file, info, info.type);
        FilePieces pieces(file, info, cancellation);
        if (!info.strides.empty()) {
            read_strided(pieces, info, into.view(info.shape));
            seen(into);
        } else if (into.scalar_type() == stored) {
            load_as_stored(pieces, info, into, seen);
        } else {
            const at::Tensor flat = into.view({-1});
            for_each_piece(file, info, pieces, [&](std::int64_t first, const at::Tensor& piece) {
                const at::Tensor part = flat.narrow(0, first, piece.size(0));
                part.copy_(piece);
                seen(part);
            });
        }
        pieces.finish();
        if (info.type == DataType::boolean)
            normalise_booleans(static_cast<unsigned char*>(into.mutable_data_ptr()), into.nbytes());
    } catch (const c10::Error& error) {
        throw torch_error(file, info, error);
    }
}

at::Tensor load_tensor(const InputFile& file, const TensorInfo& info, DataType type, const Cancellation& cancellation,
                       std::int64_t* not_finite) {
    required_type(file, info, info.type);
    const at::Tensor tensor = allocate(file, info, required_type(file, info, type));
    load_tensor_into(file, info, tensor, cancellation, not_finite);
    return tensor;
}

at::Tensor load_row(const InputFile& file, const TensorInfo& info, std::int64_t row, const Cancellation& cancellation) {
    const std::int64_t row_bits = info.shape.at(1) * bits(info.type);
    if (!info.strides.empty() || row_bits == 0 || row_bits % 8 != 0)
        return load_tensor(file, info, info.type, cancellation).narrow(0, row, 1);
    TensorInfo one = info;
    one.bytes = static_cast<std::uint64_t>(row_bits / 8);
    one.begin += static_cast<std::uint64_t>(row) * one.bytes;
    one.elements = info.shape[1];
    one.shape[0] = 1;
    one.checksum.reset();  // of the whole tensor
    return load_tensor(file, one, one.type, cancellation);
}

at::Tensor load_briefly(const InputFile& file, const TensorInfo& info, const Cancellation& cancellation) {
    const c10::ScalarType type = required_type(file, info, info.type);
    if (info.bytes < static_cast<std::uint64_t>(kMappedBytes)) return load_tensor(file, info, info.type, cancellation);
    const at::Tensor tensor = brief_tensor(info.shape, type);
    load_tensor_into(file, info, tensor, cancellation);
    return tensor;
}

at::Tensor mapped_bytes(std::int64_t size) {
    const auto length = static_cast<std::size_t>(size);
    void* const pages = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    ::madvise(pages, length, MADV_HUGEPAGE);  // faster, where the system has it
    const auto unmap = [length](void* begin) { ::munmap(begin, length); };
    return at::from_blob(pages, {size}, unmap, at::kByte);
}

at::Tensor brief_tensor(const std::vector<std::int64_t>& shape, c10::ScalarType type) {
    auto bytes = static_cast<std::int64_t>(c10::elementSize(type));
    for (const std::int64_t size : shape) bytes *= size;
    if (bytes < kMappedBytes) return at::empty(shape, at::TensorOptions(type));
    return mapped_bytes(bytes).view(type).view(shape);
}

void stream_tensor(const InputFile& file, const TensorInfo& info, DataType type, const Cancellation& cancellation,
                   const std::function<void(const void*, std::size_t)>& sink) {
    try {
        FilePieces pieces(file, info, cancellation);
        const auto converted = [&](std::int64_t, const at::Tensor& piece) {
            const at::Tensor result = piece.to(required_type(file, info, type));
            if (type != info.type) expect_in_range(place(file, info), piece, result, type);
            sink(result.const_data_ptr(), result.nbytes());
        };
        if (!info.strides.empty()) {
            for_each_strided_piece(file, info, cancellation, converted);
            return;
        }
        if (type != info.type) {
            for_each_piece(file, info, pieces, converted);
        } else {
            std::vector<char> buffer(static_cast<std::size_t>(std::min(piece_bytes, info.bytes)));
            for (std::uint64_t done = 0; done < info.bytes; done += buffer.size()) {
                const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), info.bytes - done));
                pieces.read(info.begin + done, buffer.data(), size);
                sink(buffer.data(), size);
            }
        }
        pieces.finish();
    } catch (const c10::Error& error) {
        throw torch_error(file, info, error);
    }
}

}  // namespace headscope::checkpoint
