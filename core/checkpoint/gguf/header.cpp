// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf/header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/most_tensors.h"

namespace headscope::checkpoint::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in the file");

constexpr std::uint64_t kMostKeys = 100'000;
constexpr std::uint64_t kMostStrings = 4'000'000;
constexpr std::uint64_t kLongestName = 65'535;
constexpr std::uint32_t kMostDimensions = 4;
constexpr int kDeepestArray = 4;

/// Reads a header from front to back, in pieces.
class HeaderBytes {
public:
    HeaderBytes(const InputFile& file, const std::string& where)
        : file_(file), where_(where), end_(std::min(file.size(), kLargestHeader)) {}

    std::uint64_t position() const { return position_; }
    /// Bytes that the header may still have.
    std::uint64_t left() const { return end_ - position_; }

    void read(void* to, std::uint64_t size, const std::string& place) {
        need(size, place);
        auto* at = static_cast<char*>(to);
        while (size != 0) {
            if (position_ < piece_begin_ || position_ >= piece_begin_ + piece_.size()) load();
            const std::uint64_t from = position_ - piece_begin_;
            const std::uint64_t count = std::min<std::uint64_t>(size, piece_.size() - from);
            std::memcpy(at, piece_.data() + from, count);
            at += count;
            position_ += count;
            size -= count;
        }
    }

    template <class T>
    T number(const std::string& place) {
        T value{};
        read(&value, sizeof value, place);
        return value;
    }

    std::string string(std::uint64_t longest, const std::string& place) {
        const auto length = number<std::uint64_t>(place);
        if (length > longest) {
            refuse(ErrorCode::limit, place, "expected a string of at most " + size_text(longest),
                   "found " + std::to_string(length) + " bytes");
        }
        need(length, place);
        std::string text(static_cast<std::size_t>(length), '\0');
        read(text.data(), length, place);
        return text;
    }

    /// Refuses `count` things of at least `bytes` bytes that the header cannot hold.
    void expect_room(std::uint64_t count, std::uint64_t bytes, const std::string& place, const std::string& what) {
        if (count <= left() / bytes) return;
        refuse(ErrorCode::format, place,
               "expected at most " + count_text(left() / bytes) + " " + what + " in the bytes that follow",
               "found " + std::to_string(count));
    }

    [[noreturn]] void refuse(ErrorCode code, const std::string& place, const std::string& expected,
                             const std::string& found) const {
        throw Error(code, where_ + place + ", byte " + std::to_string(position_), expected, found);
    }

private:
    static constexpr std::size_t kPiece = 1U << 20U;

    void need(std::uint64_t size, const std::string& place) const {
        if (size <= left()) return;
        if (file_.size() > kLargestHeader) {
            refuse(ErrorCode::limit, place, "expected a header of at most " + size_text(kLargestHeader),
                   "found one that is longer");
        }
        refuse(ErrorCode::format, place, "expected " + std::to_string(size) + " bytes more",
               "found " + std::to_string(left()) + ": the file is cut short or its header lies");
    }

    void load() {
        piece_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, end_ - position_)));
        piece_begin_ = position_;
        file_.read(position_, piece_.data(), piece_.size());
    }

    const InputFile& file_;
    const std::string& where_;
    std::uint64_t end_;
    std::uint64_t position_ = 0;
    std::string piece_;
    std::uint64_t piece_begin_ = 0;
};

class HeaderParser {
public:
    HeaderParser(const InputFile& file, const std::string& where) : file_(file), where_(where), bytes_(file, where) {}

    Header parse() {
        header_.metadata.file = where_;
        read_magic();
        const auto tensors = bytes_.number<std::uint64_t>("");
        const auto keys = bytes_.number<std::uint64_t>("");
        if (tensors > most_tensors) refuse_many(count_text(most_tensors) + " tensors", tensors);
        if (keys > kMostKeys) refuse_many(count_text(kMostKeys) + " keys", keys);
        constexpr std::uint64_t kLeastKey = 8 + 1 + 4 + 1;
        constexpr std::uint64_t kLeastTensor = 8 + 1 + 4 + 4 + 8;
        bytes_.expect_room(keys, kLeastKey, "", "keys");
        bytes_.expect_room(tensors, kLeastTensor, "", "tensors");
        for (std::uint64_t i = 0; i < keys; ++i) read_key();
        for (std::uint64_t i = 0; i < tensors; ++i) read_tensor();
        place_tensors();
        return std::move(header_);
    }

private:
    void read_magic() {
        char magic[4] = {};
        bytes_.read(magic, sizeof magic, "");
        if (std::memcmp(magic, "GGUF", sizeof magic) != 0) {
            throw Error(ErrorCode::format, where_, "expected a GGUF file, which begins with GGUF",
                        "found \"" + escaped(std::string_view(magic, sizeof magic)) + '"');
        }
        header_.version = bytes_.number<std::uint32_t>("");
        if (header_.version == 2 || header_.version == 3) return;
        const bool swapped = (header_.version & 0xFFFFU) == 0;
        throw Error(ErrorCode::unsupported, where_, "expected GGUF version 2 or 3, little-endian",
                    swapped ? "found a big-endian file" : "found version " + std::to_string(header_.version));
    }

    [[noreturn]] void refuse_many(const std::string& most, std::uint64_t found) const {
        throw Error(ErrorCode::limit, where_, "expected at most " + most, "found " + std::to_string(found));
    }

    void read_key() {
        std::string key = bytes_.string(kLongestName, ", a key");
        const std::string place = ", key \"" + escaped(key) + '"';
        if (key.empty()) bytes_.refuse(ErrorCode::format, place, "expected a name", "found none");
        const ValueType type = read_type(place);
        Value value{type, {}};
        switch (type) {
            case ValueType::string:
                value.value = bytes_.string(kLargestHeader, place);
                break;
            case ValueType::array:
                value.value = read_array(place, 1);
                break;
            default:
                value.value = read_scalar(type, place);
        }
        const auto [entry, fresh] = header_.metadata.values.try_emplace(std::move(key), std::move(value));
        if (!fresh) bytes_.refuse(ErrorCode::format, place, "expected each key once", "found it again");
    }

    ValueType read_type(const std::string& place) {
        const auto type = bytes_.number<std::uint32_t>(place);
        if (type > static_cast<std::uint32_t>(ValueType::f64)) {
            bytes_.refuse(ErrorCode::unsupported, place, "expected a value of type 0 to 12",
                          "found type " + std::to_string(type));
        }
        return static_cast<ValueType>(type);
    }

    decltype(Value::value) read_scalar(ValueType type, const std::string& place) {
        Array one{type, 1, std::string(value_bytes(type), '\0'), {}, {}};
        bytes_.read(one.bytes.data(), one.bytes.size(), place);
        switch (type) {
            case ValueType::f32:
            case ValueType::f64:
                return one.number(0);
            case ValueType::boolean:
                expect_booleans(one, place);
                return one.integer(0) != 0;
            case ValueType::u64: {
                std::uint64_t value = 0;
                std::memcpy(&value, one.bytes.data(), sizeof value);
                return value;
            }
            default:
                return one.integer(0);
        }
    }

    void expect_booleans(const Array& array, const std::string& place) const {
        for (const char byte : array.bytes) {
            if (byte != 0 && byte != 1) {
                bytes_.refuse(ErrorCode::format, place, "expected 0 or 1 as boolean",
                              "found " + std::to_string(static_cast<unsigned char>(byte)));
            }
        }
    }

    Array read_array(const std::string& place, int depth) {
        Array array;
        array.type = read_type(place);
        array.count = bytes_.number<std::uint64_t>(place);
        const std::size_t size = value_bytes(array.type);
        if (size != 0) {
            bytes_.expect_room(array.count, size, place, "elements");
            array.bytes.resize(static_cast<std::size_t>(array.count * size));
            bytes_.read(array.bytes.data(), array.bytes.size(), place);
            if (array.type == ValueType::boolean) expect_booleans(array, place);
            return array;
        }
        const bool nested = array.type == ValueType::array;
        if (nested && depth == kDeepestArray) {
            bytes_.refuse(ErrorCode::limit, place, "expected arrays at most " + std::to_string(kDeepestArray) + " deep",
                          "found a deeper one");
        }
        bytes_.expect_room(array.count, nested ? 12 : 8, place, "elements");
        strings_ += array.count;  // cannot overflow: the room has bounds
        if (strings_ > kMostStrings) {
            bytes_.refuse(ErrorCode::limit, place, "expected at most " + count_text(kMostStrings) + " strings",
                          "found more");
        }
        for (std::uint64_t i = 0; i < array.count; ++i) {
            if (nested) {
                array.arrays.push_back(read_array(place, depth + 1));
            } else {
                array.texts.push_back(bytes_.string(kLargestHeader, place));
            }
        }
        return array;
    }

    void read_tensor() {
        Tensor tensor;
        tensor.name = bytes_.string(kLongestName, ", a tensor");
        const std::string place = ", tensor \"" + escaped(tensor.name) + '"';
        if (tensor.name.empty()) bytes_.refuse(ErrorCode::format, place, "expected a name", "found none");
        const auto dimensions = bytes_.number<std::uint32_t>(place);
        if (dimensions > kMostDimensions) {
            bytes_.refuse(ErrorCode::format, place,
                          "expected at most " + std::to_string(kMostDimensions) + " dimensions",
                          "found " + std::to_string(dimensions));
        }
        for (std::uint32_t i = 0; i < dimensions; ++i) {
            const auto size = bytes_.number<std::uint64_t>(place);
            if (size == 0 || size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
                bytes_.refuse(ErrorCode::format, place, "expected sizes from 1 to below 2^63",
                              "found " + std::to_string(size));
            }
            tensor.shape.push_back(static_cast<std::int64_t>(size));
        }
        const auto number = bytes_.number<std::uint32_t>(place);
        const auto type = block_type(number);
        if (!type) {
            bytes_.refuse(ErrorCode::unsupported, place, "expected an element type of gguf 0.19 that can be expanded",
                          "found " + unread_type_text(number));
        }
        tensor.type = *type;
        tensor.begin = bytes_.number<std::uint64_t>(place);
        count_bytes(tensor, place);
        std::reverse(tensor.shape.begin(), tensor.shape.end());
        std::string key = tensor.name;
        if (!header_.tensors.try_emplace(std::move(key), std::move(tensor)).second)
            bytes_.refuse(ErrorCode::format, place, "expected each tensor once", "found it again");
    }

    /// Sets Tensor::bytes from the shape, fastest first here.
    void count_bytes(Tensor& tensor, const std::string& place) const {
        const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.front();
        const std::int64_t values = block_values(tensor.type);
        if (columns % values != 0) {
            bytes_.refuse(ErrorCode::format, place,
                          "expected rows of whole blocks, " + std::to_string(values) + " numbers of " +
                              std::string(name(tensor.type)),
                          "found rows of " + std::to_string(columns));
        }
        std::int64_t elements = 1;
        std::int64_t blocks = columns / values;
        bool fits = true;
        for (const std::int64_t size : tensor.shape) fits = fits && !__builtin_mul_overflow(elements, size, &elements);
        for (std::size_t i = 1; i < tensor.shape.size(); ++i)
            fits = fits && !__builtin_mul_overflow(blocks, tensor.shape[i], &blocks);
        std::int64_t bytes = 0;
        fits = fits && !__builtin_mul_overflow(blocks, block_bytes(tensor.type), &bytes);
        if (!fits) bytes_.refuse(ErrorCode::format, place, "expected a size below 2^63", "found more");
        tensor.bytes = static_cast<std::uint64_t>(bytes);
    }

    /// Turns offsets in the data into offsets in the file, each found to be possible.
    void place_tensors() {
        constexpr const char* kAlignmentKey = "general.alignment";
        constexpr std::int64_t kDefaultAlignment = 32;
        const std::int64_t alignment =
            KeyReader(header_.metadata).integer_or(kAlignmentKey, kDefaultAlignment, 1, 1LL << 31U);
        if (!std::has_single_bit(static_cast<std::uint64_t>(alignment)))
            header_.metadata.refuse(ErrorCode::format, kAlignmentKey, "expected a power of two");
        const std::uint64_t step = static_cast<std::uint64_t>(alignment);
        const std::uint64_t start = (bytes_.position() + step - 1) / step * step;
        const std::uint64_t room = file_.size() > start ? file_.size() - start : 0;
        std::vector<const Tensor*> order;
        for (auto& [name, tensor] : header_.tensors) {
            if (tensor.begin % step != 0) {
                refuse_tensor(tensor, "expected an offset that is a multiple of " + std::to_string(step),
                              "found " + std::to_string(tensor.begin));
            }
            if (tensor.begin > room || tensor.bytes > room - tensor.begin) {
                refuse_tensor(
                    tensor,
                    "expected its " + std::to_string(tensor.bytes) + " bytes within the " + std::to_string(room) +
                        " behind the header",
                    "found them at " + std::to_string(tensor.begin) + ": the file is cut short or its header lies");
            }
            tensor.begin += start;
            order.push_back(&tensor);
        }
        std::sort(order.begin(), order.end(), [](const Tensor* a, const Tensor* b) {
            return std::pair(a->begin, a->bytes) < std::pair(b->begin, b->bytes);
        });
        for (std::size_t i = 1; i < order.size(); ++i) {
            if (order[i]->begin >= order[i - 1]->begin + order[i - 1]->bytes) continue;
            refuse_tensor(*order[i], "expected bytes of its own",
                          "found some of tensor \"" + escaped(order[i - 1]->name) + '"');
        }
    }

    [[noreturn]] void refuse_tensor(const Tensor& tensor, const std::string& expected, const std::string& found) const {
        throw Error(ErrorCode::format, where_ + ", tensor \"" + escaped(tensor.name) + '"', expected, found);
    }

    const InputFile& file_;
    const std::string& where_;
    HeaderBytes bytes_;
    Header header_;
    std::uint64_t strings_ = 0;
};

}  // namespace

Header read_header(const InputFile& file) {
    const std::string where = shown(file.path());
    try {
        return HeaderParser(file, where).parse();
    } catch (...) {
        throw current_error(where);
    }
}

}  // namespace headscope::checkpoint::gguf
