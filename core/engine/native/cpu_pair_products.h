// The products of cpu_products.h for processors with AVX2, which have sixteen registers of eight numbers.
//
// Eight sums grow at once, because a processor starts two additions at a time and each takes four: with fewer rows,
// of more outputs. A sum is added up in the same order, whatever stands beside it.
#pragma once
#include "cpu_matrix.h"

namespace products {

constexpr int kSums = 8;  // that grow at once

// Kinds of rows that lie as they are: how eight weights are read, and what their sum is multiplied by.
template <typename Number>
struct PlainRow {
    const Number* weights;
    void open(const Matrix& matrix, long out) { weights = static_cast<const Number*>(matrix.numbers) + out * matrix.inputs; }
    void group(long) {}
    __m256 at(long k) const { return widened8(weights + k); }
};

// A byte times its scale is exact, so the scale is put on the weights.
struct GroupedRow {
    const int8_t* weights;
    const uint16_t* scales;
    __m256 scale;
    void open(const Matrix& matrix, long out) {
        weights = static_cast<const int8_t*>(matrix.numbers) + out * matrix.inputs;
        scales = static_cast<const uint16_t*>(matrix.scales) + out * (matrix.inputs / kGroup);
    }
    void group(long k) { scale = _mm256_set1_ps(from_fp16(scales[k / kGroup])); }
    __m256 at(long k) const { return _mm256_mul_ps(widened8(weights + k), scale); }
};

// M rows of x with O outputs from `out` on.
template <int M, int O, typename Row>
inline void lying_block(const Matrix& matrix, const Input& in, long row, long out, float* y) {
    static_assert(M * O <= kSums, "more sums than registers");
    const long inputs = matrix.inputs, ahead = O * inputs;
    const float* x = in.x + row * inputs;
    __m256 sums[kSums];
    for (int i = 0; i < kSums; ++i) sums[i] = _mm256_setzero_ps();
    Row weights[O];
    for (int o = 0; o < O; ++o) weights[o].open(matrix, out + o);
    for (long first = 0; first < inputs; first += kGroup) {
        const long last = std::min(first + kGroup, inputs);
#pragma GCC unroll 8
        for (int o = 0; o < O; ++o) {
            weights[o].group(first);
            for (long byte = 0; byte < kGroup * long(sizeof *weights[o].weights); byte += kLineBytes)
                __builtin_prefetch(reinterpret_cast<const char*>(weights[o].weights + first + ahead) + byte);
        }
        for (long k = first; k < last; k += 8) {
#pragma GCC unroll 8
            for (int o = 0; o < O; ++o) {
                const __m256 wide = weights[o].at(k);
#pragma GCC unroll 8
                for (int m = 0; m < M; ++m)
                    sums[m * O + o] = _mm256_fmadd_ps(wide, _mm256_loadu_ps(x + m * inputs + k), sums[m * O + o]);
            }
        }
    }
    alignas(32) float all[kSums];
    _mm256_store_ps(all, totals8(sums));
    const bool scaled = matrix.format == kBytes;
    for (int m = 0; m < M; ++m)
        for (int o = 0; o < O; ++o) {
            const float scale = scaled ? from_bf16(static_cast<const uint16_t*>(matrix.scales)[out + o]) : 1;
            const float bias = matrix.bias ? matrix.bias[out + o] : 0;
            y[(row + m) * matrix.outputs + out + o] = __builtin_fmaf(all[m * O + o], scale, bias);
        }
}

template <int M, typename Row>
inline void lying_rows(const Matrix& matrix, const Input& in, long row, long tile, float* y) {
    constexpr int O = kSums / M;
    const long end = std::min<long>((tile + 1) * kLanes, matrix.outputs);
    long out = tile * kLanes;
    for (; out + O <= end; out += O) lying_block<M, O, Row>(matrix, in, row, out, y);
    for (; out < end; ++out) lying_block<M, 1, Row>(matrix, in, row, out, y);
}

template <int M, typename Numbers, typename Number>
inline void plain_rows(const Matrix& matrix, const Input& in, long row, long tile, float* y) {
    lying_rows<M, PlainRow<Number>>(matrix, in, row, tile, y);
}

template <int M>
inline void grouped_rows(const Matrix& matrix, const Input& in, long row, long tile, float* y) {
    lying_rows<M, GroupedRow>(matrix, in, row, tile, y);
}

inline __m256i load8(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

// Bytes times bytes, exactly: even and odd inputs each as pairs of 16 bits, whose products are added in 32 bits.
// H registers of eight outputs from `out` on.
template <int M, int H>
inline void rounded_part(const Matrix& matrix, const Input& in, long row, long tile, long out, float* y) {
    const long inputs = matrix.inputs;
    const auto* weights = static_cast<const uint8_t*>(matrix.numbers) + tile * kLanes * inputs + 4 * out;
    const __m256i low = _mm256_set1_epi32(0x00ff00ff);
    const int16_t* x = &in.pairs[row * inputs];
    __m256i sums[M][H];
    for (int m = 0; m < M; ++m)
        for (int h = 0; h < H; ++h) sums[m][h] = _mm256_setzero_si256();
    for (long k = 0; k < inputs; k += 4) {
        const uint8_t* at = weights + k * kLanes;
        prefetch(at);
        __m256i even[H], odd[H];
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) {
            const __m256i both = load8(at + 32 * h);
            even[h] = _mm256_and_si256(both, low), odd[h] = _mm256_srli_epi16(both, 8);
        }
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
            const __m256i first = _mm256_set1_epi32(load<int32_t>(x + m * inputs + k));
            const __m256i second = _mm256_set1_epi32(load<int32_t>(x + m * inputs + k + 2));
#pragma GCC unroll 2
            for (int h = 0; h < H; ++h) {
                const __m256i more = _mm256_add_epi32(_mm256_madd_epi16(even[h], first), _mm256_madd_epi16(odd[h], second));
                sums[m][h] = _mm256_add_epi32(sums[m][h], more);
            }
        }
    }
    for (int m = 0; m < M; ++m)
        for (int h = 0; h < H; ++h) {
            const long first = tile * kLanes + out + 8 * h;
            const __m256 scale = _mm256_loadu_ps(static_cast<const float*>(matrix.scales) + first);
            const __m256 whole = _mm256_cvtepi32_ps(_mm256_sub_epi32(sums[m][h], _mm256_set1_epi32(in.lifted[row + m])));
            __m256 value = _mm256_mul_ps(_mm256_mul_ps(whole, scale), _mm256_set1_ps(in.steps[row + m]));
            if (matrix.bias) value = _mm256_add_ps(value, _mm256_loadu_ps(matrix.bias + first));
            _mm256_storeu_ps(y + (row + m) * matrix.outputs + first, value);
        }
}

template <int M>
inline void rounded_tile(const Matrix& matrix, const Input& in, long row, long tile, float* y) {
    if constexpr (M <= 4) {
        rounded_part<M, 2>(matrix, in, row, tile, 0, y);
    } else {
        rounded_part<M / 2, 2>(matrix, in, row, tile, 0, y);
        rounded_part<M / 2, 2>(matrix, in, row + M / 2, tile, 0, y);
    }
}

// The sums of G groups of nibbles with M rows, of H registers of eight outputs; each grows in two chains.
//
// A nibble stays where it is among the 32 bits of its lane, which multiplies it by a power of two; x was divided by
// the same power. What stands for the group's zero, the 8, is taken from the scale's share of the sum of x.
template <int M, int H, int G>
inline void nibble_groups(const char* at, long out, const float* x, const float* sums_of_x, long inputs,
                          long groups, __m256 (&values)[M][H]) {
    __m256 sums[G][M][H][2];
    for (int g = 0; g < G; ++g)
        for (int m = 0; m < M; ++m)
            for (int h = 0; h < H; ++h) sums[g][m][h][0] = sums[g][m][h][1] = _mm256_setzero_ps();
    for (int part = 0; part < 4; ++part) {
        __m256i packed[G][H];
#pragma GCC unroll 2
        for (int g = 0; g < G; ++g) {
            prefetch(at + g * kTileBytes + kLineBytes * part);
#pragma GCC unroll 2
            for (int h = 0; h < H; ++h) packed[g][h] = load8(at + g * kTileBytes + kLineBytes * part + 4 * out + 32 * h);
        }
#pragma GCC unroll 8
        for (int n = 0; n < 8; ++n) {
            // Inputs lie as nibbles do: 0 to 3 are the even ones, 4 to 7 the odd ones.
            const float* from = x + 8 * part + n;
#pragma GCC unroll 2
            for (int g = 0; g < G; ++g) {
                __m256 wide[H];
#pragma GCC unroll 2
                for (int h = 0; h < H; ++h)
                    wide[h] = _mm256_cvtepi32_ps(
                        n == 7 ? _mm256_srli_epi32(packed[g][h], 28)
                               : _mm256_and_si256(packed[g][h], _mm256_set1_epi32(15u << 4 * n)));
#pragma GCC unroll 8
                for (int m = 0; m < M; ++m) {
                    const __m256 one = _mm256_broadcast_ss(from + m * inputs + g * kGroup);
#pragma GCC unroll 2
                    for (int h = 0; h < H; ++h)
                        sums[g][m][h][n & 1] = _mm256_fmadd_ps(wide[h], one, sums[g][m][h][n & 1]);
                }
            }
        }
    }
#pragma GCC unroll 2
    for (int g = 0; g < G; ++g)
#pragma GCC unroll 2
        for (int h = 0; h < H; ++h) {
            const auto* sides = reinterpret_cast<const uint16_t*>(at + g * kTileBytes + 4 * kLineBytes) + out + 8 * h;
            const __m256 scale = widened8(sides);
            const __m256 zero = _mm256_fnmadd_ps(scale, _mm256_set1_ps(kMiddle), widened8(sides + kLanes));
#pragma GCC unroll 8
            for (int m = 0; m < M; ++m) {
                const __m256 sum = _mm256_add_ps(sums[g][m][h][0], sums[g][m][h][1]);
                const __m256 of_x = _mm256_broadcast_ss(sums_of_x + m * groups + g);
                values[m][h] = _mm256_fmadd_ps(zero, of_x, _mm256_fmadd_ps(sum, scale, values[m][h]));
            }
        }
}

// M rows with H registers of eight outputs from `out` on.
template <int M, int H>
inline void nibble_part(const Matrix& matrix, const Input& in, long row, long tile, long out, float* y) {
    constexpr int G = M * H == 2 ? 2 : 1;
    const long inputs = matrix.inputs, groups = inputs / kGroup;
    const char* at = static_cast<const char*>(matrix.numbers) + tile * groups * kTileBytes;
    const float *x = &in.moved[row * inputs], *sums_of_x = &in.sums[row * groups];
    __m256 values[M][H];
    for (int m = 0; m < M; ++m)
        for (int h = 0; h < H; ++h) values[m][h] = _mm256_setzero_ps();
    long g = 0;
    for (; g + G <= groups; g += G)
        nibble_groups<M, H, G>(at + g * kTileBytes, out, x + g * kGroup, sums_of_x + g, inputs, groups, values);
    for (; g < groups; ++g)
        nibble_groups<M, H, 1>(at + g * kTileBytes, out, x + g * kGroup, sums_of_x + g, inputs, groups, values);
    for (int m = 0; m < M; ++m)
        for (int h = 0; h < H; ++h) {
            const long first = tile * kLanes + out + 8 * h;
            if (matrix.bias) values[m][h] = _mm256_add_ps(values[m][h], _mm256_loadu_ps(matrix.bias + first));
            _mm256_storeu_ps(y + (row + m) * matrix.outputs + first, values[m][h]);
        }
}

template <int M>
inline void nibble_tile(const Matrix& matrix, const Input& in, long row, long tile, float* y) {
    if constexpr (M <= 2) {
        nibble_part<M, 2>(matrix, in, row, tile, 0, y);
    } else if constexpr (M <= 4) {
        nibble_part<M, 1>(matrix, in, row, tile, 0, y);
        nibble_part<M, 1>(matrix, in, row, tile, 8, y);
    } else {
        nibble_tile<M / 2>(matrix, in, row, tile, y);
        nibble_tile<M / 2>(matrix, in, row + M / 2, tile, y);
    }
}

}  // namespace products
