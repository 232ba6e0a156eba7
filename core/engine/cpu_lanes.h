// Sixteen numbers at a time: what the kernels beside this file share.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace lanes {

constexpr long kLanes = 16;      // numbers that are worked on together
constexpr long kLineBytes = 64;  // of a cache line

typedef int8_t Bytes __attribute__((vector_size(kLanes)));
typedef uint16_t Halves __attribute__((vector_size(2 * kLanes)));
typedef int16_t Shorts __attribute__((vector_size(2 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef float Floats __attribute__((vector_size(4 * kLanes)));

template <typename Vector>
inline Vector load(const void* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

inline float total(Floats values) {
    float sum = 0;
    for (long lane = 0; lane < kLanes; ++lane) sum += values[lane];
    return sum;
}

inline float from_bf16(uint16_t half) {
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// To the nearest, ties to even; a NaN stays one.
inline uint16_t to_bf16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 64);
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline Floats widened(Bytes bytes) {
#if defined(__AVX512F__)
    return (Floats)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)bytes));
#else  // in steps of a factor of two, each of which compilers know
    const Ints whole = __builtin_convertvector(__builtin_convertvector(bytes, Shorts), Ints);
    return __builtin_convertvector(whole, Floats);
#endif
}

inline Floats widened(Halves halves) {
#if defined(__AVX512F__)
    const Ints whole = (Ints)_mm512_cvtepu16_epi32((__m256i)halves);
#else
    const Ints whole = __builtin_convertvector(halves, Ints);
#endif
    return (Floats)(whole << 16);
}

}  // namespace lanes
