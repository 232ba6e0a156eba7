// Sixteen numbers as two registers of eight, for processors with AVX2: compilers take longer vectors apart
// lane by lane there. The names are those of cpu_lanes.h, which has them for all other processors.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace lanes {

struct Floats;

struct Ints {
    __m256i low, high;
    Ints() = default;
    Ints(__m256i a, __m256i b) : low(a), high(b) {}
    Ints(int32_t value) : low(_mm256_set1_epi32(value)), high(low) {}
    explicit inline operator Floats() const;
    int32_t operator[](long lane) const { return reinterpret_cast<const int32_t*>(this)[lane]; }
};

struct Floats {
    __m256 low, high;
    Floats() = default;
    Floats(__m256 a, __m256 b) : low(a), high(b) {}
    Floats(float value) : low(_mm256_set1_ps(value)), high(low) {}
    explicit operator Ints() const { return {_mm256_castps_si256(low), _mm256_castps_si256(high)}; }
    float operator[](long lane) const { return reinterpret_cast<const float*>(this)[lane]; }
};

inline Ints::operator Floats() const { return {_mm256_castsi256_ps(low), _mm256_castsi256_ps(high)}; }

inline Floats operator+(Floats a, Floats b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
inline Floats operator-(Floats a, Floats b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
inline Floats operator*(Floats a, Floats b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
inline Floats operator/(Floats a, Floats b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
inline Floats operator-(Floats a) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_xor_ps(a.low, sign), _mm256_xor_ps(a.high, sign)};
}
inline Floats& operator+=(Floats& a, Floats b) { return a = a + b; }
inline Floats& operator*=(Floats& a, Floats b) { return a = a * b; }

inline Ints operator+(Ints a, Ints b) { return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)}; }
inline Ints operator-(Ints a, Ints b) { return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)}; }
inline Ints operator-(Ints a) { return Ints(0) - a; }
inline Ints operator&(Ints a, Ints b) { return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)}; }
inline Ints operator|(Ints a, Ints b) { return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)}; }
inline Ints operator<<(Ints a, int bits) { return {_mm256_slli_epi32(a.low, bits), _mm256_slli_epi32(a.high, bits)}; }
inline Ints operator>>(Ints a, int bits) { return {_mm256_srai_epi32(a.low, bits), _mm256_srai_epi32(a.high, bits)}; }
inline Ints& operator+=(Ints& a, Ints b) { return a = a + b; }

// All ones where it holds, all zeros elsewhere.
inline Ints operator>(Ints a, Ints b) { return {_mm256_cmpgt_epi32(a.low, b.low), _mm256_cmpgt_epi32(a.high, b.high)}; }
inline Ints operator<(Ints a, Ints b) { return b > a; }
inline Ints operator<(Floats a, Floats b) {
    return (Ints)Floats{_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ)};
}
inline Ints operator>(Floats a, Floats b) { return b < a; }

inline Floats chosen(Ints mask, Floats yes, Floats no) {
    const Floats where = (Floats)mask;
    return {_mm256_blendv_ps(no.low, yes.low, where.low), _mm256_blendv_ps(no.high, yes.high, where.high)};
}
inline Ints chosen(Ints mask, Ints yes, Ints no) {
    return {_mm256_blendv_epi8(no.low, yes.low, mask.low), _mm256_blendv_epi8(no.high, yes.high, mask.high)};
}

inline Floats as_floats(Ints values) { return {_mm256_cvtepi32_ps(values.low), _mm256_cvtepi32_ps(values.high)}; }
inline Ints truncated(Floats values) { return {_mm256_cvttps_epi32(values.low), _mm256_cvttps_epi32(values.high)}; }
inline Floats spread(const float* from) {
    const __m256 value = _mm256_broadcast_ss(from);
    return {value, value};
}
inline Ints counted() { return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)}; }

// Eight sums, of a register each: in the same order, wherever a register stands among them.
inline __m256 totals8(const __m256* rows) {
    const __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(rows[0], rows[1]), _mm256_hadd_ps(rows[2], rows[3]));
    const __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(rows[4], rows[5]), _mm256_hadd_ps(rows[6], rows[7]));
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

// Eight rows of eight become eight columns.
inline void transpose8(__m256* rows) {
    __m256 pairs[8], fours[8];
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; ++j) {
            fours[i + 2 * j] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0x44);
            fours[i + 2 * j + 1] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0xee);
        }
    for (int i = 0; i < 4; ++i) {
        rows[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
        rows[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
    }
}

// Sixteen rows of sixteen become sixteen columns, in four squares of eight.
inline void transpose16(Floats* rows) {
    __m256 squares[2][2][8];
    for (int row = 0; row < 16; ++row) {
        squares[row / 8][0][row % 8] = rows[row].low;
        squares[row / 8][1][row % 8] = rows[row].high;
    }
    for (auto& side : squares)
        for (auto& square : side) transpose8(square);
    for (int row = 0; row < 16; ++row) rows[row] = {squares[0][row / 8][row % 8], squares[1][row / 8][row % 8]};
}

// Eight numbers as they lie, in fp32.
inline __m256 widened8(const float* from) { return _mm256_loadu_ps(from); }
inline __m256 widened8(const uint16_t* halves) {  // bf16
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(halves));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
inline __m256 widened8(const int8_t* bytes) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))));
}

}  // namespace lanes
