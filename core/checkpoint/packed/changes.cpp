// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/changes.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

namespace headscope::checkpoint {
namespace changes {
namespace {

using Bytes = std::vector<std::span<const std::byte>>;

std::int64_t numbers_of(const PackedTensor& tensor) {
    return tensor.rows() * tensor.columns();
}

void expect(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

std::vector<PackedPart> parts_of(const std::vector<PackedPointer>& sources) {
    std::vector<PackedPart> parts;
    for (const PackedPointer& source : sources)
        parts.insert(parts.end(), source->parts().begin(), source->parts().end());
    return parts;
}

/// Holds its sources, and gives each the bytes of its parts.
class Made : public PackedTensor {
public:
    void check(const Bytes& parts) const override {
        for (std::size_t i = 0; i < sources_.size(); ++i) sources_[i]->check(bytes_of(i, parts));
    }

protected:
    Made(std::vector<std::int64_t> shape, std::vector<PackedPointer> sources)
        : PackedTensor(std::move(shape), parts_of(sources)), sources_(std::move(sources)) {}

    Bytes bytes_of(std::size_t source, const Bytes& parts) const {
        if (sources_.size() == 1) return parts;
        std::size_t first = 0;
        for (std::size_t i = 0; i < source; ++i) first += sources_[i]->parts().size();
        const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(first);
        return {begin, begin + static_cast<std::ptrdiff_t>(sources_[source]->parts().size())};
    }

    const PackedTensor& source(std::size_t number = 0) const { return *sources_[number]; }
    const PackedPointer& pointer(std::size_t number) const { return sources_[number]; }
    std::size_t source_count() const { return sources_.size(); }

private:
    std::vector<PackedPointer> sources_;
};

class Reshaped final : public Made {
public:
    Reshaped(PackedPointer source, std::vector<std::int64_t> shape) : Made(std::move(shape), {std::move(source)}) {}

    void unpack(const Bytes& parts, std::int64_t first, std::int64_t count, float* into) const override {
        const std::int64_t width = source().columns();
        if (width == 0 || columns() == 0 || count == 0) return;
        const std::int64_t begin = first * columns(), end = begin + count * columns();
        const std::int64_t row = begin / width, last = (end + width - 1) / width;
        if (begin % width == 0 && end % width == 0) return source().unpack(parts, row, last - row, into);
        std::vector<float> rows(static_cast<std::size_t>((last - row) * width));
        source().unpack(parts, row, last - row, rows.data());
        std::copy_n(rows.begin() + (begin - row * width), end - begin, into);
    }

    std::optional<BlockRows> block_rows() const override {
        return columns() == source().columns() ? source().block_rows() : std::nullopt;
    }

    const std::byte* blocks_of_row(const Bytes& parts, std::int64_t row) const override {
        return source().blocks_of_row(parts, row);
    }
};

class RowsOf final : public Made {
public:
    RowsOf(std::vector<PackedPointer> sources, std::vector<std::int64_t> shape,
           std::function<SourceRow(std::int64_t)> place)
        : Made(std::move(shape), std::move(sources)), place_(std::move(place)) {}

    void unpack(const Bytes& parts, std::int64_t first, std::int64_t count, float* into) const override {
        std::vector<Bytes> bytes;
        for (std::size_t i = 0; i < source_count(); ++i) bytes.push_back(bytes_of(i, parts));
        // Rows that follow each other in a source are one piece.
        for (std::int64_t row = first; row < first + count;) {
            const SourceRow begin = place_(row);
            std::int64_t length = 1;
            for (; row + length < first + count; ++length) {
                const SourceRow next = place_(row + length);
                if (next.source != begin.source || next.row != begin.row + length) break;
            }
            source(begin.source).unpack(bytes[begin.source], begin.row, length, into);
            into += length * columns();
            row += length;
        }
    }

    std::optional<BlockRows> block_rows() const override {
        const auto first = source().block_rows();
        for (std::size_t i = 1; first && i < source_count(); ++i) {
            const auto other = source(i).block_rows();
            if (!other || other->type != first->type) return std::nullopt;
        }
        return first;
    }

    std::shared_ptr<const PackedTensor> entry(std::int64_t index) const override {
        if (shape().size() < 2) return nullptr;
        std::vector<std::int64_t> inner;  // rows of an entry of each source; matrices stay whole
        for (std::size_t i = 0; i < source_count(); ++i) {
            const std::int64_t entries = source(i).shape().size() > 2 ? source(i).shape()[0] : 1;
            inner.push_back(source(i).rows() / entries);
        }
        const std::int64_t count = rows() / shape()[0], begin = index * count;
        std::map<std::pair<std::size_t, std::int64_t>, std::size_t> used;  // entries, and their place in `sources`
        std::vector<PackedPointer> sources;
        for (std::int64_t row = begin; row < begin + count; ++row) {
            const SourceRow place = place_(row);
            const std::int64_t number = place.row / inner[place.source];
            if (!used.try_emplace({place.source, number}, sources.size()).second) continue;
            const PackedPointer& from = pointer(place.source);
            sources.push_back(from->shape().size() > 2 ? from->entry(number) : from);
            if (!sources.back()) return nullptr;
        }
        return std::make_shared<RowsOf>(
            std::move(sources), entry_shape(),
            [place = place_, begin, inner = std::move(inner), used = std::move(used)](std::int64_t row) {
                const SourceRow old = place(begin + row);
                const std::int64_t size = inner[old.source];
                return SourceRow{used.at({old.source, old.row / size}), old.row % size};
            });
    }

    const std::byte* blocks_of_row(const Bytes& parts, std::int64_t row) const override {
        const SourceRow place = place_(row);
        return source(place.source).blocks_of_row(bytes_of(place.source, parts), place.row);
    }

private:
    std::function<SourceRow(std::int64_t)> place_;
};

std::vector<std::int64_t> as_wide(std::vector<std::int64_t> shape, std::size_t columns) {
    shape.back() = static_cast<std::int64_t>(columns);
    return shape;
}

class ColumnsOf final : public Made {
public:
    ColumnsOf(PackedPointer source, std::vector<std::int64_t> columns)
        : Made(as_wide(source->shape(), columns.size()), {source}), columns_(std::move(columns)) {}

    void unpack(const Bytes& parts, std::int64_t first, std::int64_t count, float* into) const override {
        std::vector<float> row(static_cast<std::size_t>(source().columns()));
        for (std::int64_t i = 0; i < count; ++i, into += columns_.size()) {
            source().unpack(parts, first + i, 1, row.data());
            for (std::size_t column = 0; column < columns_.size(); ++column)
                into[column] = row[static_cast<std::size_t>(columns_[column])];
        }
    }

private:
    std::vector<std::int64_t> columns_;
};

class Interleaved final : public Made {
public:
    Interleaved(const PackedPointer& even, const PackedPointer& odd)
        : Made(as_wide(even->shape(), 2 * static_cast<std::size_t>(even->columns())), {even, odd}) {}

    void unpack(const Bytes& parts, std::int64_t first, std::int64_t count, float* into) const override {
        std::vector<float> numbers(static_cast<std::size_t>(count * columns() / 2));
        for (std::size_t number = 0; number < 2; ++number) {
            source(number).unpack(bytes_of(number, parts), first, count, numbers.data());
            for (std::size_t i = 0; i < numbers.size(); ++i) into[2 * i + number] = numbers[i];
        }
    }
};

class Mapped final : public Made {
public:
    Mapped(const PackedPointer& source, void (*change)(float*, std::int64_t))
        : Made(source->shape(), {source}), change_(change) {}

    void unpack(const Bytes& parts, std::int64_t first, std::int64_t count, float* into) const override {
        source().unpack(parts, first, count, into);
        change_(into, count * columns());
    }

private:
    void (*change_)(float*, std::int64_t);
};

class Multiplied final : public Made {
public:
    Multiplied(const PackedPointer& source, const PackedPointer& factors) : Made(source->shape(), {source, factors}) {}

    void unpack(const Bytes& parts, std::int64_t first, std::int64_t count, float* into) const override {
        source().unpack(bytes_of(0, parts), first, count, into);
        std::vector<float> factors(static_cast<std::size_t>(numbers_of(source(1))));
        source(1).unpack(bytes_of(1, parts), 0, source(1).rows(), factors.data());
        const std::int64_t of_each = rows() / static_cast<std::int64_t>(factors.size());
        for (std::int64_t row = first; row < first + count; ++row) {
            const float factor = factors[static_cast<std::size_t>(row / of_each)];
            for (std::int64_t i = 0; i < columns(); ++i) *into++ *= factor;
        }
    }

    std::shared_ptr<const PackedTensor> entry(std::int64_t index) const override {
        if (shape().empty() || numbers_of(source(1)) != shape()[0]) return nullptr;
        const PackedPointer numbers = source().entry(index), factor = source(1).entry(index);
        return numbers && factor ? std::make_shared<Multiplied>(numbers, factor) : nullptr;
    }
};

}  // namespace
}  // namespace changes

PackedPointer with_shape(PackedPointer source, std::vector<std::int64_t> shape) {
    if (source->shape() == shape) return source;
    std::int64_t numbers = 1;
    for (const std::int64_t size : shape) numbers *= size;
    changes::expect(numbers == changes::numbers_of(*source), "another count of numbers");
    return std::make_shared<changes::Reshaped>(std::move(source), std::move(shape));
}

PackedPointer with_rows(std::vector<PackedPointer> sources, std::vector<std::int64_t> shape,
                        std::function<SourceRow(std::int64_t row)> place) {
    for (const PackedPointer& source : sources)
        changes::expect(source->columns() == shape.back(), "rows of another size");
    return std::make_shared<changes::RowsOf>(std::move(sources), std::move(shape), std::move(place));
}

PackedPointer with_columns(PackedPointer source, std::vector<std::int64_t> columns) {
    changes::expect(!source->shape().empty() &&
                        std::all_of(columns.begin(), columns.end(),
                                    [&](std::int64_t column) { return column >= 0 && column < source->columns(); }),
                    "fewer columns");
    return std::make_shared<changes::ColumnsOf>(std::move(source), std::move(columns));
}

PackedPointer interleaved(PackedPointer even, PackedPointer odd) {
    changes::expect(even->shape() == odd->shape() && !even->shape().empty(), "two shapes");
    return std::make_shared<changes::Interleaved>(even, odd);
}

PackedPointer reordered(const PackedPointer& source, const std::function<std::int64_t(std::int64_t)>& place) {
    if (source->shape().size() != 1)
        return with_rows({source}, source->shape(), [place](std::int64_t row) { return SourceRow{0, place(row)}; });
    std::vector<std::int64_t> columns(static_cast<std::size_t>(source->columns()));
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = place(static_cast<std::int64_t>(i));
    return with_columns(source, std::move(columns));
}

PackedPointer with_numbers(PackedPointer source, void (*change)(float* numbers, std::int64_t count)) {
    return std::make_shared<changes::Mapped>(std::move(source), change);
}

PackedPointer with_factors(PackedPointer source, PackedPointer factors) {
    const std::int64_t numbers = changes::numbers_of(*factors);
    changes::expect(numbers > 0 && source->rows() % numbers == 0, "factors that do not divide the rows");
    return std::make_shared<changes::Multiplied>(std::move(source), std::move(factors));
}

}  // namespace headscope::checkpoint
