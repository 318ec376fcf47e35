// SPDX-License-Identifier: GPL-3.0-or-later
// Float32 products against float64 sums, for every way that factors may lie and every SIMD target.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "tests/kernels/forced.h"

using namespace headscope::kernels;
using headscope::kernels::testing::Forced;

namespace {

constexpr double kEpsilon = 0x1p-24;
constexpr float kCanary = 4321.0F;

/// A matrix of sines, row by row or column by column, with unused numbers between.
struct Matrix {
    Matrix(std::int64_t row_count, std::int64_t column_count, bool by_column, double phase)
        : rows(row_count), columns(column_count), columnwise(by_column) {
        data.assign(static_cast<std::size_t>((rows + 3) * (columns + 3)), std::nanf(""));
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
                data[at(i, j)] = static_cast<float>(std::sin(static_cast<double>(i * columns + j) * 0.37 + phase));
    }
    std::size_t at(std::int64_t i, std::int64_t j) const {
        return static_cast<std::size_t>(columnwise ? j * (rows + 3) + i : i * (columns + 3) + j);
    }
    MatrixView view() const {
        return columnwise ? MatrixView{data.data(), rows, columns, 1, rows + 3}
                          : MatrixView{data.data(), rows, columns, columns + 3, 1};
    }
    std::int64_t rows, columns;
    bool columnwise;
    std::vector<float> data;
};

enum class Start { zero, accumulate, bias, addend };

std::vector<float> product(const Matrix& left, const Matrix& right, Start start) {
    const std::int64_t stride = right.columns + 2;
    std::vector<float> result(static_cast<std::size_t>(left.rows * stride), kCanary);
    const Matrix other(left.rows, right.columns, false, 0.9);
    std::vector<float> bias;
    for (std::int64_t j = 0; j < right.columns; ++j) bias.push_back(static_cast<float>(j) * 0.1F);
    ProductTarget target{result.data(), stride};
    if (start == Start::bias) target.bias = bias.data();
    if (start == Start::addend) {
        target.addend = other.data.data();
        target.addend_stride = other.columns + 3;
    }
    if (start == Start::accumulate) {
        target.accumulate = true;
        for (std::int64_t i = 0; i < left.rows; ++i)
            for (std::int64_t j = 0; j < right.columns; ++j)
                result[static_cast<std::size_t>(i * stride + j)] = other.data[other.at(i, j)];
    }
    multiply(left.view(), right.view(), target);
    return result;
}

void check(std::int64_t m, std::int64_t k, std::int64_t n) {
    for (const bool left_columns : {false, true}) {
        for (const bool right_columns : {false, true}) {
            const Matrix left(m, k, left_columns, 0.1), right(k, n, right_columns, 0.2), other(m, n, false, 0.9);
            for (const Start start : {Start::zero, Start::accumulate, Start::bias, Start::addend}) {
                const std::vector<float> found = product(left, right, start);
                INFO(m << " x " << k << " x " << n << ", by columns " << left_columns << right_columns << ", start "
                       << static_cast<int>(start));
                bool agree = true;
                for (std::int64_t i = 0; i < m; ++i) {
                    for (std::int64_t j = 0; j < n; ++j) {
                        double sum = 0.0, size = 0.0;
                        if (start == Start::accumulate || start == Start::addend)
                            sum = double{other.data[other.at(i, j)]};
                        if (start == Start::bias) sum = double{static_cast<float>(j) * 0.1F};
                        size = std::abs(sum);
                        for (std::int64_t x = 0; x < k; ++x) {
                            const double term = double{left.data[left.at(i, x)]} * double{right.data[right.at(x, j)]};
                            sum += term;
                            size += std::abs(term);
                        }
                        // k roundings in random directions; 4 standard deviations and a bit.
                        const double allowed = (2.0 + 4.0 * std::sqrt(static_cast<double>(k))) * kEpsilon * size;
                        const float value = found[static_cast<std::size_t>(i * (n + 2) + j)];
                        agree = agree && std::abs(double{value} - sum) <= allowed;
                    }
                    agree = agree && found[static_cast<std::size_t>(i * (n + 2) + n)] == kCanary;
                }
                REQUIRE(agree);
            }
        }
    }
}

}  // namespace

TEST_CASE("products agree with float64 sums for odd sizes", "[gemm]") {
    check(1, 1, 1);
    check(12, 16, 32);
    check(13, 7, 33);
    check(100, 300, 65);
    check(7, 515, 3);
    check(230, 40, 129);
}

TEST_CASE("every SIMD target multiplies alike", "[gemm][targets]") {
    for (const std::string& name : available_backends()) {
        const Forced forced(name);
        INFO("backend " << name);
        check(29, 270, 37);
    }
}

TEST_CASE("products have the same bits for every thread count and every chunk of rows", "[gemm]") {
    const Matrix left(333, 600, false, 0.1), right(600, 140, true, 0.2);
    set_threads(1);
    const std::vector<float> one = product(left, right, Start::zero);
    for (const int number : {2, 5}) {
        set_threads(number);
        const std::vector<float> more = product(left, right, Start::zero);
        CHECK(std::memcmp(one.data(), more.data(), one.size() * sizeof(float)) == 0);
    }
    set_threads(0);
    const PackedRight packed(right.view());
    std::vector<float> part(static_cast<std::size_t>(50 * 142), kCanary);
    MatrixView rows = left.view();
    rows.data += 100 * rows.row_stride;
    rows.rows = 50;
    multiply(rows, packed, {part.data(), 142});
    CHECK(std::memcmp(part.data(), one.data() + 100 * 142, part.size() * sizeof(float)) == 0);
}

TEST_CASE("products refuse factors that do not fit", "[gemm]") {
    const Matrix left(4, 5, false, 0.1), right(6, 3, false, 0.2), fitting(5, 3, false, 0.2);
    std::vector<float> result(100);
    CHECK_THROWS_AS(multiply(left.view(), right.view(), {result.data(), 3}), Error);
    CHECK_THROWS_AS(multiply(left.view(), fitting.view(), {result.data(), 2}), Error);
    CHECK_THROWS_AS(multiply(left.view(), fitting.view(), {nullptr, 3}), Error);
    MatrixView scattered = left.view();
    scattered.column_stride = 2;
    CHECK_THROWS_AS(multiply(scattered, fitting.view(), {result.data(), 3}), Error);
    CHECK_NOTHROW(multiply(left.view(), fitting.view(), {result.data(), 3}));
}
