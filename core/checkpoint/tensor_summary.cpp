// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tensor_summary.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e4m3fnuz.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Float8_e5m2fnuz.h>
#include <c10/util/Float8_e8m0fnu.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/io/input_file.h"
#include "core/base/precise_sum.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/file_pieces.h"
#include "core/checkpoint/strided_reader.h"
#include "core/checkpoint/torch_types.h"

namespace headscope::checkpoint {
namespace {

/// Values of one piece, as float64. Handed on in blocks that stay in the processor's cache.
constexpr std::size_t kBlock = 4096;
using Use = std::function<void(const double* values, std::size_t count)>;

template <class T>
void convert(const void* from, std::size_t count, const Use& use) {
    double block[kBlock];
    const auto* bytes = static_cast<const unsigned char*>(from);
    for (std::size_t i = 0; i < count; i += kBlock) {
        const std::size_t taken = std::min(kBlock, count - i);
        for (std::size_t k = 0; k < taken; ++k) {
            T value;  // pieces of a file need not be aligned for T
            std::memcpy(&value, bytes + (i + k) * sizeof(T), sizeof(T));
            if constexpr (std::is_arithmetic_v<T>)
                block[k] = static_cast<double>(value);
            else
                block[k] = static_cast<double>(static_cast<float>(value));
        }
        use(block, taken);
    }
}

void convert_booleans(const void* from, std::size_t count, const Use& use) {
    convert<std::uint8_t>(from, count, [&](const double* values, std::size_t taken) {
        double block[kBlock];
        for (std::size_t k = 0; k < taken; ++k) block[k] = values[k] != 0 ? 1 : 0;
        use(block, taken);
    });
}

using Convert = void (*)(const void*, std::size_t, const Use&);

/// Null for complex numbers and what is smaller than a byte.
Convert converter(DataType type) {
    switch (type) {
        case DataType::boolean:
            return convert_booleans;
        case DataType::u8:
            return convert<std::uint8_t>;
        case DataType::i8:
            return convert<std::int8_t>;
        case DataType::i16:
            return convert<std::int16_t>;
        case DataType::u16:
            return convert<std::uint16_t>;
        case DataType::i32:
            return convert<std::int32_t>;
        case DataType::u32:
            return convert<std::uint32_t>;
        case DataType::i64:
            return convert<std::int64_t>;
        case DataType::u64:
            return convert<std::uint64_t>;
        case DataType::f16:
            return convert<c10::Half>;
        case DataType::bf16:
            return convert<c10::BFloat16>;
        case DataType::f32:
            return convert<float>;
        case DataType::f64:
            return convert<double>;
        case DataType::f8_e5m2:
            return convert<c10::Float8_e5m2>;
        case DataType::f8_e4m3:
            return convert<c10::Float8_e4m3fn>;
        case DataType::f8_e4m3fnuz:
            return convert<c10::Float8_e4m3fnuz>;
        case DataType::f8_e5m2fnuz:
            return convert<c10::Float8_e5m2fnuz>;
        case DataType::f8_e8m0:
            return convert<c10::Float8_e8m0fnu>;
        case DataType::f4:
        case DataType::f6_e2m3:
        case DataType::f6_e3m2:
        case DataType::c64:
            break;
    }
    return nullptr;
}

/// Hands every element of a tensor to `use`, each once, in an order that suits the file.
class Reader {
public:
    /// `changed`: the tensor merged or unpacked, contiguous; undefined where it is as the file has it.
    Reader(const InputFile& file, const TensorInfo& info, Convert convert, at::Tensor changed,
           const Cancellation& cancellation)
        : file_(file), info_(info), convert_(convert), changed_(std::move(changed)), cancellation_(cancellation) {}

    void run(const Use& use) {
        if (info_.elements == 0) return;
        if (changed_.defined()) {
            convert_(changed_.const_data_ptr(), static_cast<std::size_t>(info_.elements), use);
            return;
        }
        if (!info_.strides.empty()) {
            read_view(info_, use);
            return;
        }
        FilePieces pieces(file_, info_, cancellation_);
        const auto element = static_cast<std::uint64_t>(bits(info_.type) / 8);
        std::vector<unsigned char> buffer(static_cast<std::size_t>(std::min(piece_bytes, info_.bytes)));
        for (std::uint64_t done = 0; done < info_.bytes; done += piece_bytes) {
            const auto size = static_cast<std::size_t>(std::min(piece_bytes, info_.bytes - done));
            pieces.read(info_.begin + done, buffer.data(), size);
            convert_(buffer.data(), size / element, use);
        }
        pieces.finish();
    }

private:
    /// A view is cut along its largest stride until a part is no more than a piece.
    void read_view(const TensorInfo& part, const Use& use) {
        if (part.bytes <= piece_bytes) {
            const at::Tensor values = at::empty(part.shape, at::TensorOptions(*torch_type(part.type)));
            FilePieces pieces(file_, part, cancellation_);
            read_strided(pieces, part, values);
            pieces.finish();
            convert_(values.const_data_ptr(), static_cast<std::size_t>(part.elements), use);
            return;
        }
        std::size_t outer = 0;
        for (std::size_t d = 1; d < part.shape.size(); ++d) {
            const bool larger = part.strides[d] > part.strides[outer];
            if (part.shape[d] > 1 && (part.shape[outer] <= 1 || larger)) outer = d;
        }
        const std::int64_t size = part.shape[outer], inner = part.elements / size;
        const auto element = static_cast<std::int64_t>(bits(part.type) / 8);
        const auto most = std::max<std::int64_t>(1, static_cast<std::int64_t>(piece_bytes) / (inner * element));
        for (std::int64_t first = 0; first < size; first += most) {
            TensorInfo slice = part;
            slice.checksum.reset();
            slice.shape[outer] = std::min(most, size - first);
            slice.elements = inner * slice.shape[outer];
            slice.bytes = static_cast<std::uint64_t>(slice.elements * element);
            slice.begin += static_cast<std::uint64_t>(first * part.strides[outer] * element);
            read_view(slice, use);
        }
    }

    const InputFile& file_;
    const TensorInfo& info_;
    Convert convert_;
    at::Tensor changed_;
    const Cancellation& cancellation_;
};

}  // namespace

TensorSummary summarise_tensor(const Checkpoint& checkpoint, const std::string& tensor, std::size_t bins,
                               const std::function<void(double)>& progress, const Cancellation& cancellation) {
    const TensorInfo& info = checkpoint.tensor(tensor);
    const InputFile& file = checkpoint.open_files().at(info.file);
    const std::string place = shown(file.path()) + ", tensor \"" + escaped(info.name) + '"';
    const Convert convert = converter(info.type);
    if (convert == nullptr) {
        throw Error(ErrorCode::unsupported, place, "expected real numbers of a byte or more each",
                    "found " + std::string(name(info.type)));
    }
    try {
        TensorSummary summary;
        summary.elements = info.elements;
        std::int64_t seen = 0;
        double told = -1;
        const auto tell = [&](std::size_t count) {
            seen += static_cast<std::int64_t>(count);
            const double share = static_cast<double>(seen) / (2.0 * static_cast<double>(info.elements));
            if (share < told + 0.002) return;
            told = share;
            if (progress) progress(share);
        };
        at::Tensor changed;
        if (checkpoint.is_made(tensor)) changed = checkpoint.load(tensor, LoadAs::stored, cancellation).contiguous();
        Reader reader(file, info, convert, changed, cancellation);
        PreciseSum sum, squares;
        double low = std::numeric_limits<double>::infinity(), high = -low;
        reader.run([&](const double* values, std::size_t count) {
            double block_sum = 0, block_squares = 0;
            for (std::size_t i = 0; i < count; ++i) {
                const double value = values[i];
                if (!std::isfinite(value)) {
                    ++(std::isnan(value) ? summary.nans
                       : value > 0       ? summary.positive_infinities
                                         : summary.negative_infinities);
                    continue;
                }
                ++summary.finite;
                summary.zeros += value == 0;
                low = std::min(low, value);
                high = std::max(high, value);
                block_sum += value;
                block_squares += value * value;
            }
            sum.add(block_sum);
            squares.add(block_squares);
            tell(count);
        });
        if (summary.finite == 0) return summary;
        summary.minimum = low;
        summary.maximum = high;
        summary.mean = sum.value() / static_cast<double>(summary.finite);
        summary.norm = std::sqrt(squares.value());

        const std::size_t used = high > low ? std::max<std::size_t>(1, bins) : 1;
        const double width = (high / 2 - low / 2) / static_cast<double>(used) * 2;  // halves: no overflow
        for (std::size_t b = 0; b < used; ++b) summary.edges.push_back(low + width * static_cast<double>(b));
        summary.edges.push_back(high);
        summary.counts.assign(used, 0);
        const double last = static_cast<double>(used - 1);
        PreciseSum spread;
        reader.run([&](const double* values, std::size_t count) {
            double block_spread = 0;
            for (std::size_t i = 0; i < count; ++i) {
                const double value = values[i];
                if (!std::isfinite(value)) continue;
                const double at = width > 0 ? std::clamp((value - low) / width, 0.0, last) : 0.0;
                ++summary.counts[static_cast<std::size_t>(at)];
                block_spread += (value - summary.mean) * (value - summary.mean);
            }
            spread.add(block_spread);
            tell(count);
        });
        summary.deviation = std::sqrt(spread.value() / static_cast<double>(summary.finite));
        return summary;
    } catch (const c10::Error& error) {
        const std::string text = error.what_without_backtrace();
        throw Error(ErrorCode::internal, place, "expected LibTorch to take this tensor",
                    "found: " + escaped(text.substr(0, text.find('\n'))));
    }
}

}  // namespace headscope::checkpoint
