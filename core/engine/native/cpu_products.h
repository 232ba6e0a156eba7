// y = x W^T for the few rows of a decode step, in five formats of W.
//
// A decode step waits for memory, so every kernel here reads each byte of its matrix once, in the order in
// which it lies, widens it in registers, and uses it for all rows of x before it is forgotten. Three formats lie
// as torch keeps them; the other two lie in tiles of 16 outputs, so that 16 sums grow side by side and
// nothing has to be added up across a register.
//
// Each thread of a team computes some tiles; nothing here starts a thread or waits for one. A row of y does
// not depend on the rows beside it: every row is summed in the same order, however many there are.
#pragma once
#include "cpu_matrix.h"
#if defined(LANES_IN_PAIRS)
#include "cpu_pair_products.h"
#endif

namespace products {

#if !defined(LANES_IN_PAIRS)
// Rows that lie as they are: lanes are inputs, and each sum is added up at its end.
template <int M, typename Numbers, typename Number>
inline void plain_rows(const Matrix& matrix, const Input& in, long row, long tile, float* y) {
    const long inputs = matrix.inputs, end = std::min<long>((tile + 1) * kLanes, matrix.outputs);
    const auto* scales = static_cast<const uint16_t*>(matrix.scales);
    for (long out = tile * kLanes; out < end; ++out) {
        const Number* weights = static_cast<const Number*>(matrix.numbers) + out * inputs;
        Floats sums[M] = {};
        for (long k = 0; k < inputs; k += kLanes) {
            prefetch(weights + k);
            const Floats wide = widened(load<Numbers>(weights + k));
            for (int m = 0; m < M; ++m) sums[m] += wide * load<Floats>(in.x + (row + m) * inputs + k);
        }
        const float scale = scales ? from_bf16(scales[out]) : 1, bias = matrix.bias ? matrix.bias[out] : 0;
        for (int m = 0; m < M; ++m) y[(row + m) * matrix.outputs + out] = total(sums[m]) * scale + bias;
    }
}

// The same with a scale for each group of a row. A byte times its scale is exact, so the scale is put on the weights.
template <int M>
inline void grouped_rows(const Matrix& matrix, const Input& in, long row, long tile, float* y) {
    const long inputs = matrix.inputs, groups = inputs / kGroup;
    const long end = std::min<long>((tile + 1) * kLanes, matrix.outputs);
    for (long out = tile * kLanes; out < end; ++out) {
        const auto* weights = static_cast<const int8_t*>(matrix.numbers) + out * inputs;
        const auto* scales = static_cast<const uint16_t*>(matrix.scales) + out * groups;
        Floats sums[M][2] = {};  // two that do not wait for each other
        for (long g = 0; g < groups; ++g) {
            const float scale = from_fp16(scales[g]);
            prefetch(weights + g * kGroup);
            for (int half = 0; half < 2; ++half) {
                const long k = g * kGroup + half * kLanes;
                const Floats wide = widened(load<Bytes>(weights + k)) * scale;
                for (int m = 0; m < M; ++m) sums[m][half] += wide * load<Floats>(in.x + (row + m) * inputs + k);
            }
        }
        const float bias = matrix.bias ? matrix.bias[out] : 0;
        for (int m = 0; m < M; ++m) y[(row + m) * matrix.outputs + out] = total(sums[m][0] + sums[m][1]) + bias;
    }
}

inline Floats bias_of(const Matrix& matrix, long tile) {
    return matrix.bias ? load<Floats>(matrix.bias + tile * kLanes) : Floats{};
}

// Products of 16 x 4 bytes with 4 bytes, added up in 16 sums.
inline Ints add_products(Ints sums, int32_t four, const void* weights) {
#if defined(__AVX512VNNI__)
    return (Ints)_mm512_dpbusd_epi32((__m512i)sums, _mm512_loadu_si512(weights), _mm512_set1_epi32(four));
#else
    const Ints all = load<Ints>(weights);
    for (int j = 0; j < 4; ++j) sums += (all >> (8 * j) & 255) * static_cast<int8_t>(four >> (8 * j));
    return sums;
#endif
}

template <int M>
inline void rounded_tile(const Matrix& matrix, const Input& in, long row, long tile, float* y) {
    constexpr int kChains = M >= 4 ? 1 : 4 / M;  // sums that do not wait for each other
    const long inputs = matrix.inputs;
    const auto* weights = static_cast<const uint8_t*>(matrix.numbers) + tile * kLanes * inputs;
    Ints sums[M][kChains] = {};
    for (long k = 0; k < inputs; k += 4 * kChains)
        for (int c = 0; c < kChains; ++c) {
            prefetch(weights + (k + 4 * c) * kLanes);
            for (int m = 0; m < M; ++m)
                sums[m][c] = add_products(sums[m][c], load<int32_t>(&in.bytes[(row + m) * inputs + k + 4 * c]),
                                          weights + (k + 4 * c) * kLanes);
        }
    const Floats scale = load<Floats>(static_cast<const float*>(matrix.scales) + tile * kLanes);
    for (int m = 0; m < M; ++m) {
        Ints whole = sums[m][0] - in.lifted[row + m];
        for (int c = 1; c < kChains; ++c) whole += sums[m][c];
        const Floats value = as_floats(whole) * scale * in.steps[row + m] + bias_of(matrix, tile);
        keep(y + (row + m) * matrix.outputs + tile * kLanes, value);
    }
}

// 16 outputs x 2 inputs, from nibbles: as pairs of bf16 where the processor multiplies those.
#if defined(__AVX512BF16__)
struct Pair {
    __m512bh numbers;
    Floats add_to(Floats sums, const uint16_t* x) const {
        const __m512bh both = (__m512bh)_mm512_set1_epi32(load<int32_t>(x));
        return (Floats)_mm512_dpbf16_ps((__m512)sums, numbers, both);
    }
};
#else
struct Pair {
    Floats first, second;
    Floats add_to(Floats sums, const uint16_t* x) const {
        return sums + first * from_bf16(x[0]) + second * from_bf16(x[1]);
    }
};
#endif

// 16 outputs x 8 inputs of nibbles. Lane o has inputs 2j and 2j + 1 in nibbles j and 4 + j.
struct Eight {
    Ints packed;
#if defined(__AVX512BF16__)
    // A look-up takes five bits, so the table has its numbers twice.
    Pair pair(int j, const NibbleTable& table) const {
        const __m512i places = _mm512_srli_epi16((__m512i)packed, 4 * j);
        return {(__m512bh)_mm512_permutexvar_epi16(places, _mm512_loadu_si512(table.numbers))};
    }
#else
    Pair pair(int j, const NibbleTable&) const { return {single(4 * j), single(4 * j + 16)}; }
    Floats single(int bits) const {
        return __builtin_convertvector((packed >> bits & 15) - kMiddle, Floats);
    }
#endif
};

template <int M>
inline void nibble_tile(const Matrix& matrix, const Input& in, long row, long tile, float* y) {
    static const NibbleTable table;
    const long inputs = matrix.inputs, groups = inputs / kGroup;
    const char* at = static_cast<const char*>(matrix.numbers) + tile * groups * kTileBytes;
    Floats values[M] = {};
    for (long g = 0; g < groups; ++g, at += kTileBytes) {
        Floats sums[M] = {};
        for (int part = 0; part < 4; ++part) {
            prefetch(at + kLineBytes * part);
            const Eight eight{load<Ints>(at + kLineBytes * part)};
            const uint16_t* x = &in.halves[row * inputs + g * kGroup + 8 * part];
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) {
                const Pair pair = eight.pair(j, table);
                for (int m = 0; m < M; ++m) sums[m] = pair.add_to(sums[m], x + m * inputs + 2 * j);
            }
        }
        prefetch(at + 4 * kLineBytes);
        const Floats scale = widened(load<Halves>(at + 4 * kLineBytes));
        const Floats zero = widened(load<Halves>(at + 4 * kLineBytes + 2 * kLanes));
        for (int m = 0; m < M; ++m) values[m] += sums[m] * scale + zero * in.sums[(row + m) * groups + g];
    }
    for (int m = 0; m < M; ++m) {
        values[m] += bias_of(matrix, tile);
        keep(y + (row + m) * matrix.outputs + tile * kLanes, values[m]);
    }
}
#endif

template <int M>
inline void some_rows(const Matrix& matrix, const Input& in, long row, long tile, float* y) {
    switch (matrix.format) {
        case kHalves: return plain_rows<M, Halves, uint16_t>(matrix, in, row, tile, y);
        case kBytes: return plain_rows<M, Bytes, int8_t>(matrix, in, row, tile, y);
        case kRoundedBytes: return rounded_tile<M>(matrix, in, row, tile, y);
        case kNibbles: return nibble_tile<M>(matrix, in, row, tile, y);
        default: return grouped_rows<M>(matrix, in, row, tile, y);
    }
}

// The outputs of tiles begin to end - 1, for all rows. y is [rows, outputs].
inline void product(const Matrix& matrix, const Input& in, float* y, long begin, long end) {
    for (long tile = begin; tile < end; ++tile) {
        long row = 0;
        for (; row + 8 <= in.rows; row += 8) some_rows<8>(matrix, in, row, tile, y);
        for (; row + 4 <= in.rows; row += 4) some_rows<4>(matrix, in, row, tile, y);
        for (; row + 2 <= in.rows; row += 2) some_rows<2>(matrix, in, row, tile, y);
        for (; row < in.rows; ++row) some_rows<1>(matrix, in, row, tile, y);
    }
}

}  // namespace products
