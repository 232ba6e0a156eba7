// A packed matrix, and rows of x in the form in which its format wants them.
#pragma once
#include <cmath>
#include <vector>

#include "cpu_lanes.h"

namespace products {

using namespace lanes;

constexpr long kAhead = 2048;  // bytes between what is asked for and what is used
constexpr long kGroup = 32;    // weights that share a scale in kGroupedBytes, and a scale and a zero in kNibbles
constexpr long kTileBytes = kLanes * kGroup / 2 + 4 * kLanes;  // nibbles of a group, then scales and zeros
constexpr int kMiddle = 8;     // the nibble that stands for its group's zero

enum Format : int64_t {
    kHalves,        // bf16 [outputs, inputs]
    kBytes,         // int8 [outputs, inputs], scales bf16 [outputs]; x as it is
    kRoundedBytes,  // int8 and 128, [outputs / 16, inputs / 4, 16, 4], scales fp32 [outputs]; x is rounded to int8
    kNibbles,       // [outputs / 16, inputs / 32, kTileBytes]; x is rounded to bf16
    kGroupedBytes,  // int8 [outputs, inputs], scales fp16 [outputs, inputs / 32]; x as it is
};

struct Matrix {
    const void* numbers;
    const void* scales;
    const float* bias;  // or null
    int64_t outputs, inputs, format;
    long tiles() const { return (outputs + kLanes - 1) / kLanes; }
};

// Rows of x in the form in which a format wants them; private to a thread.
struct Input {
    const float* x = nullptr;  // [rows, inputs]
    long rows = 0, inputs = 0;
    std::vector<float> sums;  // [rows, inputs / kGroup] of x in bf16
#if defined(LANES_IN_PAIRS)
    std::vector<float> moved;    // [rows, inputs] bf16 in fp32, in the order of nibbles and divided by their places
    std::vector<int16_t> pairs;  // [rows, inputs], rounded; of four inputs the even ones, then the odd ones
#else
    std::vector<uint16_t> halves;  // [rows, inputs] bf16
    std::vector<int8_t> bytes;     // [rows, inputs], rounded
#endif
    std::vector<float> steps;      // [rows], what a one of them stands for
    std::vector<int32_t> lifted;   // [rows], what the 128 in each weight adds to a product

    void prepare(const Matrix& matrix, const float* from, long count) {
        x = from, rows = count, inputs = matrix.inputs;
        if (matrix.format == kNibbles) to_halves();
        if (matrix.format == kRoundedBytes) to_bytes();
    }

  private:
#if defined(LANES_IN_PAIRS)
    void room_for_halves() { moved.resize(rows * inputs), sums.resize(rows * inputs / kGroup); }
    void room_for_bytes() { pairs.resize(rows * inputs); }

    void keep_halves(long at, Halves halves) {
        const Floats wide = widened(halves);
        const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);  // nibble n is input order[n] of eight
        const __m256 places = _mm256_setr_ps(1, 0x1p-4f, 0x1p-8f, 0x1p-12f, 0x1p-16f, 0x1p-20f, 0x1p-24f, 1);
        _mm256_storeu_ps(&moved[at], _mm256_mul_ps(_mm256_permutevar8x32_ps(wide.low, order), places));
        _mm256_storeu_ps(&moved[at + 8], _mm256_mul_ps(_mm256_permutevar8x32_ps(wide.high, order), places));
    }

    void keep_bytes(long at, Bytes bytes) {
        const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
        const __m256i wide = _mm256_cvtepi8_epi16(_mm_shuffle_epi8((__m128i)bytes, order));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(&pairs[at]), wide);
    }
#else
    void room_for_halves() { halves.resize(rows * inputs), sums.resize(rows * inputs / kGroup); }
    void room_for_bytes() { bytes.resize(rows * inputs); }
    void keep_halves(long at, Halves rounded) { std::memcpy(&halves[at], &rounded, sizeof rounded); }
    void keep_bytes(long at, Bytes rounded) { std::memcpy(&bytes[at], &rounded, sizeof rounded); }
#endif

    void to_halves() {
        room_for_halves();
        for (long g = 0; g < rows * inputs / kGroup; ++g) {
            Floats sum = {};
            for (long i = g * kGroup; i < (g + 1) * kGroup; i += kLanes) {
                const Halves rounded = narrowed(load<Floats>(x + i));
                keep_halves(i, rounded);
                sum += widened(rounded);
            }
            sums[g] = total(sum);
        }
    }

    void to_bytes() {
        room_for_bytes(), steps.resize(rows), lifted.resize(rows);
        for (long row = 0; row < rows; ++row) {
            const float* in = x + row * inputs;
            const float size = largest_size(in, inputs), largest = size < 1e-30f ? 1e-30f : size, factor = 1 / largest * 127;
            Ints sum = {};
            for (long i = 0; i < inputs; i += kLanes) {
                const Ints whole = nearest(load<Floats>(in + i) * factor);
                keep_bytes(row * inputs + i, narrowed(whole));
                sum += whole;
            }
            lifted[row] = 0;
            for (long lane = 0; lane < kLanes; ++lane) lifted[row] += 128 * sum[lane];
            steps[row] = largest * (1.0f / 127);
        }
    }
};

inline void prefetch(const void* from) { __builtin_prefetch(static_cast<const char*>(from) + kAhead); }

}  // namespace products
