// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/torch_types.h"

#include "core/checkpoint/data_type.h"

namespace headscope::checkpoint {

std::optional<c10::ScalarType> torch_type(DataType type) {
    switch (type) {
        case DataType::boolean:
            return c10::ScalarType::Bool;
        case DataType::u8:
            return c10::ScalarType::Byte;
        case DataType::i8:
            return c10::ScalarType::Char;
        case DataType::f8_e5m2:
            return c10::ScalarType::Float8_e5m2;
        case DataType::f8_e4m3:
            return c10::ScalarType::Float8_e4m3fn;
        case DataType::f8_e8m0:
            return c10::ScalarType::Float8_e8m0fnu;
        case DataType::f8_e4m3fnuz:
            return c10::ScalarType::Float8_e4m3fnuz;
        case DataType::f8_e5m2fnuz:
            return c10::ScalarType::Float8_e5m2fnuz;
        case DataType::i16:
            return c10::ScalarType::Short;
        case DataType::u16:
            return c10::ScalarType::UInt16;
        case DataType::f16:
            return c10::ScalarType::Half;
        case DataType::bf16:
            return c10::ScalarType::BFloat16;
        case DataType::i32:
            return c10::ScalarType::Int;
        case DataType::u32:
            return c10::ScalarType::UInt32;
        case DataType::f32:
            return c10::ScalarType::Float;
        case DataType::c64:
            return c10::ScalarType::ComplexFloat;
        case DataType::i64:
            return c10::ScalarType::Long;
        case DataType::u64:
            return c10::ScalarType::UInt64;
        case DataType::f64:
            return c10::ScalarType::Double;
        case DataType::f4:
        case DataType::f6_e2m3:
        case DataType::f6_e3m2:
            break;
    }
    return std::nullopt;
}

std::optional<DataType> data_type(c10::ScalarType type) {
    for (int i = 0; i <= static_cast<int>(DataType::f64); ++i) {
        if (torch_type(static_cast<DataType>(i)) == type) return static_cast<DataType>(i);
    }
    return std::nullopt;
}

DataType loaded_type(DataType stored, LoadAs as) {
    if (!is_floating(stored)) return stored;
    switch (as) {
        case LoadAs::stored:
            return stored;
        case LoadAs::float32:
            return DataType::f32;
        case LoadAs::bfloat16:
            return DataType::bf16;
        case LoadAs::float64:
            return DataType::f64;
        case LoadAs::float16:
            return DataType::f16;
    }
    return stored;
}

}  // namespace headscope::checkpoint
