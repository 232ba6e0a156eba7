// y = x W^T for many rows, in fp32: each tile of W is widened once, into the nearest cache, and then used for all rows.
//
// For processors that multiply 16-bit numbers slowly. A sum goes through the inputs in order, whatever stands
// beside it, so a row of y does not depend on the other rows.
#pragma once
#include "cpu_matrix.h"

namespace products {

constexpr long kDepth = 256;  // inputs of a tile that are widened at a time: 16 KiB
constexpr int kTogether = 6;  // rows whose sums grow at once: twelve registers of eight sums

// Inputs `first` to `first + kGroup` - 1 of a tile of nibbles, [kGroup, kLanes].
inline void widen_nibbles(const Matrix& matrix, long tile, long first, float* to) {
    const long groups = matrix.inputs / kGroup;
    const char* at = static_cast<const char*>(matrix.numbers) + (tile * groups + first / kGroup) * kTileBytes;
    const Floats scale = widened(load<Halves>(at + 4 * kLineBytes));
    const Floats zero = widened(load<Halves>(at + 4 * kLineBytes + 2 * kLanes)) - scale * float(kMiddle);
    for (int part = 0; part < 4; ++part) {
        const Ints packed = load<Ints>(at + kLineBytes * part);
        for (int n = 0; n < 8; ++n) {
            const Floats wide = as_floats(packed >> 4 * n & 15) * scale + zero;
            keep(to + (8 * part + (n < 4 ? 2 * n : 2 * n - 7)) * kLanes, wide);
        }
    }
}

// Inputs `first` to `first + kLanes` - 1 of up to kLanes rows that lie as they are, turned: [kLanes, kLanes].
template <typename Wide>
inline void widen_rows(const Matrix& matrix, long tile, Wide wide, float* to) {
    Floats rows[kLanes];
    const long count = std::min<long>(kLanes, matrix.outputs - tile * kLanes);
    for (long o = 0; o < kLanes; ++o) rows[o] = o < count ? wide(tile * kLanes + o) : Floats{};
    transpose(rows);
    for (long k = 0; k < kLanes; ++k) keep(to + k * kLanes, rows[k]);
}

inline void widen(const Matrix& matrix, long tile, long begin, long end, float* to) {
    const long inputs = matrix.inputs;
    const auto* scales = static_cast<const uint16_t*>(matrix.scales);
    const auto* bytes = static_cast<const int8_t*>(matrix.numbers);
    if (matrix.format == kNibbles) {
        for (long k = begin; k < end; k += kGroup, to += kGroup * kLanes) widen_nibbles(matrix, tile, k, to);
        return;
    }
    for (long k = begin; k < end; k += kLanes, to += kLanes * kLanes) {
        if (matrix.format == kHalves)
            widen_rows(matrix, tile, [&](long out) {
                return widened(load<Halves>(static_cast<const uint16_t*>(matrix.numbers) + out * inputs + k));
            }, to);
        else if (matrix.format == kBytes)
            widen_rows(matrix, tile, [&](long out) {
                return widened(load<Bytes>(bytes + out * inputs + k)) * from_bf16(scales[out]);
            }, to);
        else
            widen_rows(matrix, tile, [&](long out) {
                const float scale = from_fp16(scales[out * (inputs / kGroup) + k / kGroup]);
                return widened(load<Bytes>(bytes + out * inputs + k)) * scale;
            }, to);
    }
}

// Adds the products of `depth` inputs to the sums in y, or begins them.
template <int M>
inline void add_wide(const float* tile, long depth, const float* x, long inputs, float* y, long outputs, bool begins) {
    Floats sums[M];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) sums[m] = begins ? Floats{} : load<Floats>(y + m * outputs);
    for (long k = 0; k < depth; ++k) {
        const Floats weights = load<Floats>(tile + k * kLanes);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) sums[m] += weights * spread(x + m * inputs + k);
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) keep(y + m * outputs, sums[m]);
}

// One tile of y for all rows; y points to its first number and has `outputs` numbers a row.
inline void many_tile(const Matrix& matrix, const float* x, long rows, long tile, float* y, long outputs) {
    alignas(64) static thread_local float wide[kDepth * kLanes];
    const long inputs = matrix.inputs;
    for (long begin = 0; begin < inputs; begin += kDepth) {
        const long end = std::min(begin + kDepth, inputs), depth = end - begin;
        widen(matrix, tile, begin, end, wide);
        long row = 0;
        const auto go = [&](auto count) {
            add_wide<decltype(count)::value>(wide, depth, x + row * inputs + begin, inputs, y + row * outputs, outputs, !begin);
            row += decltype(count)::value;
        };
        while (row + kTogether <= rows) go(std::integral_constant<int, kTogether>{});
        if (row + 4 <= rows) go(std::integral_constant<int, 4>{});
        if (row + 2 <= rows) go(std::integral_constant<int, 2>{});
        if (row < rows) go(std::integral_constant<int, 1>{});
    }
}

// The outputs of tiles begin to end - 1, for all rows. y is [rows, outputs]; there is no bias.
inline void many_product(const Matrix& matrix, const float* x, long rows, float* y, long begin, long end) {
    for (long tile = begin; tile < end; ++tile) {
        const long first = tile * kLanes, count = std::min<long>(kLanes, matrix.outputs - first);
        if (count == kLanes) {
            many_tile(matrix, x, rows, tile, y + first, matrix.outputs);
            continue;
        }
        std::vector<float> part(rows * kLanes);
        many_tile(matrix, x, rows, tile, part.data(), kLanes);
        for (long row = 0; row < rows; ++row)
            std::memcpy(y + row * matrix.outputs + first, &part[row * kLanes], sizeof(float) * count);
    }
}

}  // namespace products
