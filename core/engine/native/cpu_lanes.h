// Sixteen numbers at a time: what the kernels beside this file share.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__AVX512F__) || defined(__F16C__)
#include <immintrin.h>
#endif
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__) && !defined(__AVX512F__)
#define LANES_IN_PAIRS 1
#include "cpu_pairs.h"
#endif

namespace lanes {

constexpr long kLanes = 16;      // numbers that are worked on together
constexpr long kLineBytes = 64;  // of a cache line

typedef int8_t Bytes __attribute__((vector_size(kLanes)));
typedef uint16_t Halves __attribute__((vector_size(2 * kLanes)));
typedef int16_t Shorts __attribute__((vector_size(2 * kLanes)));
#if !defined(LANES_IN_PAIRS)
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef float Floats __attribute__((vector_size(4 * kLanes)));

// Lane by lane, what stands where all bits of a mask are ones or zeros.
template <typename Vector>
inline Vector chosen(Ints mask, Vector yes, Vector no) {
    return mask ? yes : no;
}

inline Floats as_floats(Ints values) { return __builtin_convertvector(values, Floats); }
inline Ints truncated(Floats values) { return __builtin_convertvector(values, Ints); }
inline Floats spread(const float* from) { return Floats{} + *from; }  // in all lanes
inline Ints counted() { return Ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; }
#endif

template <typename Vector>
inline Vector load(const void* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

template <typename Vector>
inline void keep(void* to, const Vector& vector) {
    std::memcpy(to, &vector, sizeof vector);
}

#if defined(LANES_IN_PAIRS)  // a copy of more bytes than a register has would go through memory
template <>
inline Floats load<Floats>(const void* from) {
    const auto* numbers = static_cast<const float*>(from);
    return {_mm256_loadu_ps(numbers), _mm256_loadu_ps(numbers + 8)};
}

template <>
inline Ints load<Ints>(const void* from) {
    const auto* halves = static_cast<const __m256i*>(from);
    return {_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
}

template <>
inline void keep<Floats>(void* to, const Floats& values) {
    auto* numbers = static_cast<float*>(to);
    _mm256_storeu_ps(numbers, values.low), _mm256_storeu_ps(numbers + 8, values.high);
}
#endif

// The sum of all lanes, by halves.
inline float total(Floats values) {
#if defined(LANES_IN_PAIRS)
    const __m256 eight = _mm256_add_ps(values.low, values.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#else
    typedef float Eight __attribute__((vector_size(4 * 8)));
    typedef float Four __attribute__((vector_size(4 * 4)));
    Eight eights[2];
    std::memcpy(eights, &values, sizeof eights);
    const Eight eight = eights[0] + eights[1];
    Four fours[2];
    std::memcpy(fours, &eight, sizeof fours);
    const Four four = fours[0] + fours[1];
    return (four[0] + four[2]) + (four[1] + four[3]);
#endif
}

// The sums of sixteen rows side by side.
inline Floats totals(const Floats* rows) {
#if defined(__AVX512F__)
    const auto quarters = [rows](int p) {  // of rows p, 4 + p, 8 + p, 12 + p: each added up to four numbers
        const auto pair = [rows](int a, int b) {
            const __m512 x = (__m512)rows[a], y = (__m512)rows[b];
            return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x44), _mm512_shuffle_f32x4(x, y, 0xee));
        };
        const __m512 x = pair(p, 4 + p), y = pair(8 + p, 12 + p);
        return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x88), _mm512_shuffle_f32x4(x, y, 0xdd));
    };
    const auto join = [](__m512 x, __m512 y) {
        return _mm512_add_ps(_mm512_shuffle_ps(x, y, 0x88), _mm512_shuffle_ps(x, y, 0xdd));
    };
    return (Floats)join(join(quarters(0), quarters(1)), join(quarters(2), quarters(3)));
#elif defined(LANES_IN_PAIRS)
    __m256 eights[kLanes];
    for (long row = 0; row < kLanes; ++row) eights[row] = _mm256_add_ps(rows[row].low, rows[row].high);
    return {totals8(eights), totals8(eights + 8)};
#else
    Floats sums;
    for (long row = 0; row < kLanes; ++row) sums[row] = total(rows[row]);
    return sums;
#endif
}

// Sixteen rows become sixteen columns.
inline void transpose(Floats* rows) {
#if defined(LANES_IN_PAIRS)
    transpose16(rows);
#else
    float turned[kLanes][kLanes];
    for (long row = 0; row < kLanes; ++row)
        for (long lane = 0; lane < kLanes; ++lane) turned[lane][row] = rows[row][lane];
    std::memcpy(rows, turned, sizeof turned);
#endif
}

// The largest of all lanes.
inline float largest(Floats values) {
#if defined(LANES_IN_PAIRS)
    const __m256 eight = _mm256_max_ps(values.low, values.high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
#else
    float most = values[0];
    for (long lane = 1; lane < kLanes; ++lane) most = values[lane] > most ? values[lane] : most;
    return most;
#endif
}

inline float from_bf16(uint16_t half) {
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline float from_fp16(uint16_t half) {
#if defined(__F16C__)
    return _cvtsh_ss(half);
#else
    const uint32_t sign = (half & 0x8000) << 16, size = half & 0x7fff;
    const uint32_t bits = size >= 0x7c00 ? 0x7f800000 | (size & 0x3ff) << 13 : size << 13;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (size < 0x7c00) value *= 5.192296858534828e33f;  // 2^112: the exponents' zeros lie so far apart
    return sign ? -value : value;
#endif
}

// To the nearest, ties to even; a NaN stays one.
inline uint16_t to_bf16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 64);
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// The nearest whole numbers, ties to even.
inline Ints nearest(Floats values) {
#if defined(__AVX512F__)
    return (Ints)_mm512_cvtps_epi32((__m512)values);
#elif defined(LANES_IN_PAIRS)
    return {_mm256_cvtps_epi32(values.low), _mm256_cvtps_epi32(values.high)};
#else
    Ints whole;
    for (long lane = 0; lane < kLanes; ++lane) whole[lane] = static_cast<int32_t>(std::nearbyint(values[lane]));
    return whole;
#endif
}

// The largest of |x|, which is not finite where one of them is not: without their sign, the bits of floats are
// ordered as the numbers are, then come infinity and what is no number.
inline float largest_size(const float* x, long size) {
    Ints most = {};
    for (long i = 0; i < size; i += kLanes) {
        const Ints bits = load<Ints>(x + i) & 0x7fffffff;
        most = chosen(most > bits, most, bits);
    }
    int32_t bits = 0;
    for (long lane = 0; lane < kLanes; ++lane) bits = most[lane] > bits ? most[lane] : bits;
    float result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
}

// The numbers -8 to 7 in bf16, twice: what a nibble stands for before its scale and zero.
struct NibbleTable {
    uint16_t numbers[2 * kLanes];
    NibbleTable() {
        for (int i = 0; i < 2 * kLanes; ++i) numbers[i] = to_bf16(static_cast<float>(i % kLanes - 8));
    }
};

// e^x to seven digits: 2^n * 2^f with f in [-1/2, 1/2] and a polynomial for 2^f.
inline Floats exponential(Floats x) {
    x = chosen(x < -87.0f, Floats{} - 87.0f, x);
    x = chosen(x > 88.0f, Floats{} + 88.0f, x);
    const Floats scaled = x * 1.44269504f;
    const Floats half = chosen(scaled < 0.0f, Floats{} - 0.5f, Floats{} + 0.5f);
    const Ints whole = truncated(scaled + half);  // towards zero: to the nearest
    const Floats f = (scaled - as_floats(whole)) * 0.693147181f;
    Floats sum = Floats{} + 1.0f / 720;
    sum = sum * f + 1.0f / 120;
    sum = sum * f + 1.0f / 24;
    sum = sum * f + 1.0f / 6;
    sum = sum * f + 0.5f;
    sum = sum * f + 1;
    sum = sum * f + 1;
    return sum * (Floats)((whole + 127) << 23);
}

inline Bytes narrowed(Ints values) {
#if defined(__AVX512F__)
    return (Bytes)_mm512_cvtepi32_epi8((__m512i)values);
#elif defined(LANES_IN_PAIRS)
    const Ints last = values & 255;  // as it is packed half by half, each of four lanes
    const __m256i shorts = _mm256_permute4x64_epi64(_mm256_packus_epi32(last.low, last.high), 0xd8);
    return (Bytes)_mm_packus_epi16(_mm256_castsi256_si128(shorts), _mm256_extracti128_si256(shorts, 1));
#else
    return __builtin_convertvector(__builtin_convertvector(values, Shorts), Bytes);
#endif
}

// To bf16 as `to_bf16` does it.
inline Halves narrowed(Floats values) {
    const Ints bits = (Ints)values, none = (bits & 0x7fffffff) > 0x7f800000;
    const Ints rounded = bits + 0x7fff + (bits >> 16 & 1), kept = chosen(none, bits | 0x400000, rounded);
#if defined(__AVX512F__)
    return (Halves)_mm512_cvtepi32_epi16(_mm512_srli_epi32((__m512i)kept, 16));
#elif defined(LANES_IN_PAIRS)
    const __m256i low = _mm256_srli_epi32(kept.low, 16), high = _mm256_srli_epi32(kept.high, 16);
    return (Halves)_mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
#else
    return __builtin_convertvector(kept >> 16, Halves);
#endif
}

inline Floats widened(Bytes bytes) {
#if defined(__AVX512F__)
    return (Floats)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)bytes));
#elif defined(LANES_IN_PAIRS)
    const __m128i all = (__m128i)bytes;
    return as_floats({_mm256_cvtepi8_epi32(all), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(all, all))});
#else  // in steps of a factor of two, each of which compilers know
    const Ints whole = __builtin_convertvector(__builtin_convertvector(bytes, Shorts), Ints);
    return __builtin_convertvector(whole, Floats);
#endif
}

inline Floats widened(Halves halves) {
#if defined(__AVX512F__)
    const Ints whole = (Ints)_mm512_cvtepu16_epi32((__m256i)halves);
#elif defined(LANES_IN_PAIRS)
    const __m256i all = (__m256i)halves;
    const Ints whole = {_mm256_cvtepu16_epi32(_mm256_castsi256_si128(all)),
                        _mm256_cvtepu16_epi32(_mm256_extracti128_si256(all, 1))};
#else
    const Ints whole = __builtin_convertvector(halves, Ints);
#endif
    return (Floats)(whole << 16);
}

// fp16, which some caches are kept in.
struct Fp16s {
    Halves bits;
};

inline Floats widened(Fp16s halves) {
#if defined(__AVX512F__)
    return (Floats)_mm512_cvtph_ps((__m256i)halves.bits);
#elif defined(LANES_IN_PAIRS)
    const __m256i all = (__m256i)halves.bits;
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(all)), _mm256_cvtph_ps(_mm256_extracti128_si256(all, 1))};
#else
    Floats wide;
    for (long lane = 0; lane < kLanes; ++lane) wide[lane] = from_fp16(halves.bits[lane]);
    return wide;
#endif
}

inline Fp16s to_fp16(Floats values) {
#if defined(__AVX512F__)
    return {(Halves)_mm512_cvtps_ph((__m512)values, _MM_FROUND_TO_NEAREST_INT)};
#elif defined(LANES_IN_PAIRS)
    const __m128i low = _mm256_cvtps_ph(values.low, _MM_FROUND_TO_NEAREST_INT);
    const __m128i high = _mm256_cvtps_ph(values.high, _MM_FROUND_TO_NEAREST_INT);
    return {(Halves)_mm256_set_m128i(high, low)};
#else
    Fp16s halves;
    for (long lane = 0; lane < kLanes; ++lane) {
        uint32_t bits;
        const float value = values[lane];
        std::memcpy(&bits, &value, sizeof bits);
        const uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
        uint32_t half;
        if (size > 0x7f800000) half = 0x7e00;
        else if (size >= 0x477ff000) half = 0x7c00;  // would round up to 65,536
        else if (size < 0x38800000) half = static_cast<uint32_t>(std::nearbyint(std::fabs(value) * 16777216.0f));
        else half = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
        halves.bits[lane] = static_cast<uint16_t>(sign | half);
    }
    return halves;
#endif
}

// Sixteen neighbouring nibbles of eight bytes, the low one of each byte first.
inline Floats nibbles(const uint8_t* from) {
#if defined(__AVX512F__)
    const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), low = _mm_set1_epi8(15);
    const __m128i bytes = _mm_unpacklo_epi8(_mm_and_si128(pairs, low), _mm_and_si128(_mm_srli_epi16(pairs, 4), low));
    return (Floats)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
#elif defined(LANES_IN_PAIRS)
    const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), low = _mm_set1_epi8(15);
    const __m128i bytes = _mm_unpacklo_epi8(_mm_and_si128(pairs, low), _mm_and_si128(_mm_srli_epi16(pairs, 4), low));
    return widened((Bytes)bytes);
#else
    Floats wide;
    for (long lane = 0; lane < kLanes; ++lane) wide[lane] = from[lane / 2] >> 4 * (lane % 2) & 15;
    return wide;
#endif
}

}  // namespace lanes
