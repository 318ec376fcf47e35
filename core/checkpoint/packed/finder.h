// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Shared state of a search for packed weights, and one function per method.

#include <initializer_list>
#include <span>
#include <string_view>

#include "core/base/json/json.h"
#include "core/base/text/shape_text.h"
#include "core/checkpoint/packed/find_packed.h"
#include "core/checkpoint/packed/name_patterns.h"

namespace headscope::checkpoint {

class PackedFinder {
public:
    PackedFinder(const std::map<std::string, TensorInfo>& stored, const TensorBytes& read)
        : stored_(stored), read_(read) {}

    const std::map<std::string, TensorInfo>& stored() const { return stored_; }
    /// Modules that the configuration names as plain; from several keys.
    void exclude(const JsonView& settings, std::initializer_list<const char*> keys);

    /// Names of the stored tensors that end in `ending`, without it.
    std::vector<std::string> modules(std::string_view ending) const;
    const TensorInfo* find(const std::string& name) const;
    /// A part that the format needs; Error mismatch if there is none.
    const TensorInfo& require(const std::string& name, const std::string& of) const;
    /// The same with type and shape.
    const TensorInfo& require(const std::string& name, const std::string& of, std::span<const DataType> types,
                              const std::vector<std::int64_t>& shape) const;
    /// All bytes of a tensor of at most `most` of them.
    std::vector<std::byte> read(const TensorInfo& info, std::uint64_t most) const;

    /// Takes the parts; Error mismatch if the module is excluded, or a plain tensor has the logical name too.
    void add(const std::string& module, const std::string& logical, std::shared_ptr<const PackedTensor> tensor,
             const std::string& format);
    void consume(const std::string& name) { found_.consumed.insert(name); }
    bool consumed(const std::string& name) const { return found_.consumed.count(name) != 0; }
    /// Consumes stored tensors that end so.
    void ignore(std::initializer_list<std::string_view> endings);

    bool empty() const { return found_.tensors.empty(); }
    std::uint64_t& steps() { return steps_; }
    /// The result, its format that of the most bytes. Error mismatch if a tensor that looks like a part is left.
    PackedWeights finish(const std::string& method);
    void set_format(const std::string& format) { found_.format = format; }

private:
    const std::map<std::string, TensorInfo>& stored_;
    const TensorBytes& read_;
    std::vector<ModuleList> excluded_;
    std::uint64_t steps_ = 0;
    PackedWeights found_;
    std::map<std::string, std::uint64_t> bytes_;  ///< by format
};

// PartTypes that parts may have.
using PartTypes = std::span<const DataType>;
inline constexpr DataType f32_type[] = {DataType::f32}, e4m3_type[] = {DataType::f8_e4m3}, u8_type[] = {DataType::u8},
                          i8_type[] = {DataType::i8}, i32_type[] = {DataType::i32}, u32_type[] = {DataType::u32},
                          i64_type[] = {DataType::i64};
inline constexpr DataType scale_types[] = {DataType::f32, DataType::f16, DataType::bf16};

PackedPart packed_part(const TensorInfo& info);
/// Error mismatch unless the type is one of these, the elements lie in order, and the bytes are those of the shape.
void require_type(const TensorInfo& info, std::span<const DataType> types, const std::string& of);
void require_shape(const TensorInfo& info, const std::vector<std::int64_t>& shape, const std::string& of);
/// Error mismatch unless there are `rank` dimensions, none of them 0.
void require_rank(const TensorInfo& info, std::size_t rank, const std::string& of);
[[noreturn]] void refuse_tensor(const TensorInfo& info, ErrorCode code, const std::string& expected,
                                const std::string& found);
bool is_one_number(const TensorInfo& info);                     ///< shape [] or [1]
std::int64_t blocks_of(std::int64_t size, std::int64_t block);  ///< size / block, rounded up
/// Product of the sizes, if none is below 1 and it does not overflow.
std::optional<std::int64_t> elements_of(const std::vector<std::int64_t>& shape);
/// Key of `settings` that is absent, or one of `values`; else Error unsupported.
std::string require_word(const JsonView& settings, std::string_view key, const std::string& fallback,
                         std::initializer_list<std::string_view> values);
/// Throws Error(mismatch): two values that must be equal.
[[noreturn]] void refuse_contradiction(const std::string& where, const std::string& expected, const std::string& found);

// Methods. `settings` is the object that quantization_config holds.
void find_gptq(PackedFinder& finder, const JsonView& settings);
void find_awq(PackedFinder& finder, const JsonView& settings);
void find_bitsandbytes(PackedFinder& finder, const JsonView& settings);
void find_compressed_tensors(PackedFinder& finder, const JsonView& settings);
void find_modelopt(PackedFinder& finder, const JsonView& settings);
void find_fp8(PackedFinder& finder, const JsonView& settings);
void find_fbgemm_fp8(PackedFinder& finder, const JsonView& settings);
/// `settings` may be null: the tensors of gpt-oss suffice.
void find_mxfp4(PackedFinder& finder, const JsonView* settings);
void find_mlx(PackedFinder& finder, const JsonView& settings);
void find_hqq(PackedFinder& finder, const JsonView& settings);

}  // namespace headscope::checkpoint
