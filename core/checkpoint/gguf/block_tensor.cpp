// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf/block_tensor.h"

#include <utility>

#include "core/base/error.h"
#include "core/checkpoint/gguf/blocks/unpack.h"

namespace headscope::checkpoint::gguf {
namespace {

class BlockTensor final : public PackedTensor {
public:
    BlockTensor(std::vector<std::int64_t> shape, PackedPart part, BlockType type, std::string place)
        : PackedTensor(std::move(shape), {std::move(part)}),
          place_(std::move(place)),
          type_(type),
          unpack_(unpack_blocks(type)),
          row_blocks_(columns() / block_values(type)) {}

    void unpack(const std::vector<std::span<const std::byte>>& parts, std::int64_t first, std::int64_t count,
                float* into) const override {
        unpack_(bytes_of(parts) + first * row_blocks_ * block_bytes(type_), count * row_blocks_, into);
    }

    void check(const std::vector<std::span<const std::byte>>& parts) const override {
        const std::int64_t bad = first_bad_scale(type_, bytes_of(parts), rows() * row_blocks_);
        if (bad < 0) return;
        throw Error(ErrorCode::format, place_ + ", tensor \"" + escaped(this->parts()[0].tensor) + '"',
                    "expected finite scales",
                    "found NaN or infinity in block " + std::to_string(bad) + " of " + std::string(name(type_)));
    }

    std::optional<BlockRows> block_rows() const override {
        return BlockRows{static_cast<std::uint32_t>(type_), row_blocks_ * block_bytes(type_)};
    }

    std::shared_ptr<const PackedTensor> entry(std::int64_t index) const override {
        if (shape().size() > 1)
            return std::make_shared<BlockTensor>(entry_shape(), entry_part(0, index), type_, place_);
        if (shape().empty() || block_values(type_) != 1) return nullptr;
        PackedPart number = entry_part(0, index);
        number.shape = {1};
        return std::make_shared<BlockTensor>(std::vector<std::int64_t>{1}, std::move(number), type_, place_);
    }

    const std::byte* blocks_of_row(const std::vector<std::span<const std::byte>>& parts,
                                   std::int64_t row) const override {
        return parts[0].data() + row * row_blocks_ * block_bytes(type_);
    }

private:
    static const std::uint8_t* bytes_of(const std::vector<std::span<const std::byte>>& parts) {
        return reinterpret_cast<const std::uint8_t*>(parts[0].data());
    }

    std::string place_;
    BlockType type_;
    UnpackBlocks unpack_;
    std::int64_t row_blocks_;
};

}  // namespace

std::unique_ptr<PackedTensor> block_tensor(const Tensor& tensor, const std::string& place) {
    if (!is_dequantized(tensor.type)) {
        throw Error(ErrorCode::unsupported, place + ", tensor \"" + escaped(tensor.name) + '"',
                    "expected a type that GGUF's library expands", "found " + std::string(name(tensor.type)));
    }
    return std::make_unique<BlockTensor>(tensor.shape, PackedPart{tensor.name, tensor.shape, tensor.bytes}, tensor.type,
                                         place);
}

}  // namespace headscope::checkpoint::gguf
