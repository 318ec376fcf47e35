// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/attention/tile_kernel.h"
#include "kernels/parallel.h"
#include "kernels/score_pairs.h"

namespace headscope::kernels {
namespace {

// Cells of a tile of attention_map: 128 x 512 float32 are 256 KB, and its keys packed at size 64 another 128 KB.
constexpr std::int64_t kTileRows = 128, kTileColumns = 512;

void check_range(const char* where, std::int64_t begin, std::int64_t end, std::int64_t size) {
    if (begin >= 0 && begin < end && end <= size) return;
    throw Error(where, "a range inside 0 to " + std::to_string(size) + " that is not empty",
                std::to_string(begin) + " to " + std::to_string(end));
}

void check_rectangle(const AttentionInput& input, const MapRectangle& at) {
    check_attention(input, /*with_value=*/false);
    check_range("sequence", at.b, at.b + 1, input.query.batch);
    check_range("head", at.h, at.h + 1, input.query.heads);
    check_range("queries of the tile", at.q_begin, at.q_end, input.query.length);
    check_range("keys of the tile", at.k_begin, at.k_end, input.key.length);
}

void check_constants(const AttentionInput& input, std::span<const float> row_constant) {
    const std::int64_t expected = input.query.batch * input.query.heads * input.query.length;
    if (static_cast<std::int64_t>(row_constant.size()) != expected) {
        throw Error("row constants", std::to_string(expected) + " values [batch, heads, queries]",
                    std::to_string(row_constant.size()));
    }
}

TileJob job_of(const AttentionInput& input, const float* row_constant, const MapRectangle& at, float* out) {
    if (out == nullptr) throw Error("tile", "a place for the result", "a null pointer");
    const float* of_head =
        row_constant == nullptr ? nullptr : row_constant + (at.b * input.query.heads + at.h) * input.query.length;
    return {&input, at.b, at.h, at.q_begin, at.q_end, at.k_begin, at.k_end, of_head, out};
}

/// First cell of pixel p when `cells` are shared out over `pixels`: the least c with c * pixels / cells = p.
std::int64_t first_cell(std::int64_t p, std::int64_t pixels, std::int64_t cells) {
    return (p * cells + pixels - 1) / pixels;
}

/// One band of pixel rows: its worker's memory and where the result goes.
class MapBand {
public:
    MapBand(const AttentionInput& input, std::span<const float> row_constant, const MapRectangle& at, std::int64_t rows,
            std::int64_t columns, float* mean, float* maximum)
        : input_(input),
          row_constant_(row_constant),
          at_(at),
          bounds_(sequence_bounds(*input.rule, at.b, input.query.length, input.key.length)),
          rows_(rows),
          columns_(columns),
          mean_(mean),
          maximum_(maximum) {}

    void draw(std::int64_t first_row, std::int64_t last_row) {
        const std::int64_t band = last_row - first_row;
        pixel_sum_.assign(static_cast<std::size_t>(band * columns_), 0.0);
        pixel_maximum_.assign(pixel_sum_.size(), 0.0F);
        const std::int64_t queries = at_.q_end - at_.q_begin;
        const std::int64_t begin = at_.q_begin + first_cell(first_row, rows_, queries);
        const std::int64_t end = at_.q_begin + first_cell(last_row, rows_, queries);
        for (std::int64_t q = begin; q < end; q += kTileRows) draw_rows(first_row, q, std::min(end, q + kTileRows));
        store(first_row, band);
    }

private:
    /// Tiles of queries [q_begin, q_end), only where one of them sees a key.
    void draw_rows(std::int64_t first_row, std::int64_t q_begin, std::int64_t q_end) {
        KeyRange seen{at_.k_end, at_.k_begin};
        for (std::int64_t i = q_begin; i < q_end; ++i) {
            const KeyRange row = key_range(*input_.rule, bounds_, i);
            if (row.begin >= row.end) continue;
            seen = {std::max(at_.k_begin, std::min(seen.begin, row.begin)),
                    std::min(at_.k_end, std::max(seen.end, row.end))};
        }
        for (std::int64_t k = seen.begin; k < seen.end; k += kTileColumns) {
            check_cancelled(input_.cancel);
            draw_tile(first_row, {at_.b, at_.h, q_begin, q_end, k, std::min(seen.end, k + kTileColumns)});
        }
    }

    void draw_tile(std::int64_t first_row, const MapRectangle& tile) {
        const std::int64_t keys = tile.k_end - tile.k_begin, queries = at_.q_end - at_.q_begin;
        cells_.resize(static_cast<std::size_t>((tile.q_end - tile.q_begin) * keys));
        compute_tile(job_of(input_, row_constant_.data(), tile, cells_.data()));
        for (std::int64_t i = tile.q_begin; i < tile.q_end;) {
            const std::int64_t row = (i - at_.q_begin) * rows_ / queries;
            const std::int64_t next = std::min(tile.q_end, at_.q_begin + first_cell(row + 1, rows_, queries));
            sum_.assign(static_cast<std::size_t>(keys), 0.0F);
            high_.assign(static_cast<std::size_t>(keys), 0.0F);
            for (; i < next; ++i) {
                add_and_raise(cells_.data() + (i - tile.q_begin) * keys, keys, sum_.data(), high_.data());
            }
            gather(row - first_row, tile);
        }
    }

    /// Adds the columns of sum_ and high_ to the pixels of one row.
    void gather(std::int64_t band_row, const MapRectangle& tile) {
        const std::int64_t width = at_.k_end - at_.k_begin;
        for (std::int64_t j = tile.k_begin; j < tile.k_end;) {
            const std::int64_t column = (j - at_.k_begin) * columns_ / width;
            const std::int64_t next = std::min(tile.k_end, at_.k_begin + first_cell(column + 1, columns_, width));
            double& sum = pixel_sum_[static_cast<std::size_t>(band_row * columns_ + column)];
            float& high = pixel_maximum_[static_cast<std::size_t>(band_row * columns_ + column)];
            for (; j < next; ++j) {
                const auto n = static_cast<std::size_t>(j - tile.k_begin);
                sum += sum_[n];
                high = std::max(high, high_[n]);
            }
        }
    }

    void store(std::int64_t first_row, std::int64_t band) const {
        const std::int64_t queries = at_.q_end - at_.q_begin, keys = at_.k_end - at_.k_begin;
        for (std::int64_t r = 0; r < band; ++r) {
            const std::int64_t row = first_row + r;
            const std::int64_t tall = first_cell(row + 1, rows_, queries) - first_cell(row, rows_, queries);
            for (std::int64_t c = 0; c < columns_; ++c) {
                const std::int64_t wide = first_cell(c + 1, columns_, keys) - first_cell(c, columns_, keys);
                const auto from = static_cast<std::size_t>(r * columns_ + c);
                const std::int64_t to = row * columns_ + c;
                if (mean_ != nullptr)
                    mean_[to] = static_cast<float>(pixel_sum_[from] / static_cast<double>(tall * wide));
                // A sum keeps what is no number, a maximum does not.
                const bool broken = std::isnan(pixel_sum_[from]);
                if (maximum_ != nullptr)
                    maximum_[to] = broken ? std::numeric_limits<float>::quiet_NaN() : pixel_maximum_[from];
            }
        }
    }

    const AttentionInput& input_;
    std::span<const float> row_constant_;
    MapRectangle at_;
    SequenceBounds bounds_;
    std::int64_t rows_, columns_;
    float *mean_, *maximum_;
    std::vector<double> pixel_sum_;
    std::vector<float> pixel_maximum_, cells_, sum_, high_;
};

}  // namespace

void attention_weights(const AttentionInput& input, std::span<const float> row_constant, std::int64_t b, std::int64_t h,
                       std::int64_t q_begin, std::int64_t q_end, std::int64_t k_begin, std::int64_t k_end, float* out) {
    const MapRectangle at{b, h, q_begin, q_end, k_begin, k_end};
    check_rectangle(input, at);
    check_constants(input, row_constant);
    compute_tile(job_of(input, row_constant.data(), at, out));
}

void attention_scores(const AttentionInput& input, std::int64_t b, std::int64_t h, std::int64_t q_begin,
                      std::int64_t q_end, std::int64_t k_begin, std::int64_t k_end, float* out) {
    const MapRectangle at{b, h, q_begin, q_end, k_begin, k_end};
    check_rectangle(input, at);
    compute_tile(job_of(input, nullptr, at, out));
}

void attention_map(const AttentionInput& input, std::span<const float> row_constant, const MapRectangle& rectangle,
                   std::int64_t rows, std::int64_t columns, float* mean, float* maximum) {
    check_rectangle(input, rectangle);
    check_constants(input, row_constant);
    const std::int64_t queries = rectangle.q_end - rectangle.q_begin, keys = rectangle.k_end - rectangle.k_begin;
    if (rows < 1 || rows > queries || columns < 1 || columns > keys) {
        throw Error("attention map",
                    "1 to " + std::to_string(queries) + " rows and 1 to " + std::to_string(keys) + " columns of pixels",
                    std::to_string(rows) + " x " + std::to_string(columns));
    }
    // Bands of whole pixel rows with about one tile's height of cells.
    const std::int64_t band = std::max<std::int64_t>(1, kTileRows * rows / queries);
    const std::int64_t bands = (rows + band - 1) / band;
    std::vector<MapBand> workers(static_cast<std::size_t>(threads()),
                                 MapBand(input, row_constant, rectangle, rows, columns, mean, maximum));
    parallel_for(bands, [&](std::int64_t index, int worker) {
        // The last bands of a causal map are the most expensive; schedule them first.
        const std::int64_t first = (bands - 1 - index) * band;
        workers[static_cast<std::size_t>(worker)].draw(first, std::min(rows, first + band));
    });
}

}  // namespace headscope::kernels
