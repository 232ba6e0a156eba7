// y = x W^T for a few rows x and a matrix W of 8 or 4 bits.
//
// Each byte of the matrix is read once, widened to floats in registers, multiplied by every row of x, and
// forgotten. What makes it fast is asking for bytes long before they are used: rows of a small model
// are so short that the processor does not see in time that they follow each other in memory. For
// one row a product then takes little more than the time in which memory delivers the bytes.
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

constexpr long kLanes = 16;     // numbers that are worked on together
constexpr long kGroup = 32;     // 4-bit weights that share a scale and a zero
constexpr long kOutputs = 16;   // outputs that a thread takes at a time
constexpr int kTogether = 2;    // outputs that share a load of x
constexpr long kAhead = 2048;   // bytes between what is asked for and what is used

typedef int8_t Bytes __attribute__((vector_size(kLanes)));
typedef uint8_t Pairs __attribute__((vector_size(kLanes)));
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

#if defined(__AVX512F__)
const Floats kNibbles = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};

inline Ints widened(Bytes bytes) { return (Ints)_mm512_cvtepi8_epi32((__m128i)bytes); }
inline Ints widened(Pairs pairs) { return (Ints)_mm512_cvtepu8_epi32((__m128i)pairs); }
// Only the lowest four bits of an index count.
inline Floats nibbles(Ints values) {
    return (Floats)_mm512_permutexvar_ps((__m512i)values, (__m512)kNibbles);
}
#else
// In steps of a factor of two, each of which compilers know.
template <typename Vector>
inline Ints widened(Vector small) {
    return __builtin_convertvector(__builtin_convertvector(small, Shorts), Ints);
}
inline Floats nibbles(Ints values) { return __builtin_convertvector((values & 15) - 8, Floats); }
#endif

// weight = byte * scale, one scale a row.
struct Int8 {
    const int8_t* bytes;     // [outputs, inputs]
    const uint16_t* scales;  // [outputs], bf16
    long outputs, inputs;

    template <int M, int R>
    void tile(const float* x, const float*, uint16_t* y, long out) const {
        const int8_t* first = bytes + out * inputs;
        Floats sums[R][M] = {};
        for (long k = 0; k < inputs; k += kLanes) {
            for (int r = 0; r < R; ++r) {
                const int8_t* at = first + r * inputs + k;
                __builtin_prefetch(at + kAhead);
                const Floats weights = __builtin_convertvector(widened(load<Bytes>(at)), Floats);
                for (int m = 0; m < M; ++m) sums[r][m] += weights * load<Floats>(x + m * inputs + k);
            }
        }
        for (int r = 0; r < R; ++r)
            for (int m = 0; m < M; ++m)
                y[m * outputs + out + r] = to_bf16(total(sums[r][m]) * from_bf16(scales[out + r]));
    }
};

// weight = (nibble - 8) * scale + zero, both for each group. Byte j of a group holds weight j in its low
// half and weight 16 + j in its high half. The zeros are multiplied by the sum of the group's inputs.
struct Int4 {
    const uint8_t* bytes;    // [outputs, inputs / 2]
    const uint16_t* scales;  // [outputs, inputs / kGroup], bf16
    const uint16_t* zeros;   // the same
    long outputs, inputs;

    template <int M, int R>
    void tile(const float* x, const float* group_sums, uint16_t* y, long out) const {
        const long groups = inputs / kGroup;
        Floats sums[R][M] = {};
        float offsets[R][M] = {};
        for (long g = 0; g < groups; ++g) {
            for (int r = 0; r < R; ++r) {
                const uint8_t* at = bytes + ((out + r) * groups + g) * kLanes;
                __builtin_prefetch(at + kAhead);
                const Ints pairs = widened(load<Pairs>(at));
                const Floats scale = Floats{} + from_bf16(scales[(out + r) * groups + g]);
                const float zero = from_bf16(zeros[(out + r) * groups + g]);
                for (int m = 0; m < M; ++m) {
                    const float* in = x + m * inputs + g * kGroup;
                    const Floats low = nibbles(pairs) * load<Floats>(in);
                    sums[r][m] += scale * (low + nibbles(pairs >> 4) * load<Floats>(in + kLanes));
                    offsets[r][m] += zero * group_sums[m * groups + g];
                }
            }
        }
        for (int r = 0; r < R; ++r)
            for (int m = 0; m < M; ++m)
                y[m * outputs + out + r] = to_bf16(total(sums[r][m]) + offsets[r][m]);
    }
};

// M rows of x together, so that a widened weight is used M times.
template <int M, typename Matrix>
void some_rows(const Matrix& matrix, const float* x, const float* group_sums, uint16_t* y) {
    const long blocks = (matrix.outputs + kOutputs - 1) / kOutputs;
#pragma omp parallel for schedule(static)
    for (long block = 0; block < blocks; ++block) {
        const long whole = (block + 1) * kOutputs, end = whole < matrix.outputs ? whole : matrix.outputs;
        long out = block * kOutputs;
        for (; out + kTogether <= end; out += kTogether)
            matrix.template tile<M, kTogether>(x, group_sums, y, out);
        for (; out < end; ++out) matrix.template tile<M, 1>(x, group_sums, y, out);
    }
}

template <typename Matrix>
void product(const Matrix& matrix, const uint16_t* x, uint16_t* y, long rows) {
    static thread_local std::vector<float> scratch;
    const long inputs = matrix.inputs, groups = inputs / kGroup;
    scratch.resize(rows * (inputs + groups));
    float *wide = scratch.data(), *sums = wide + rows * inputs;
    for (long i = 0; i < rows * inputs; ++i) wide[i] = from_bf16(x[i]);
    for (long g = 0; g < rows * groups; ++g)
        sums[g] = total(load<Floats>(wide + g * kGroup) + load<Floats>(wide + g * kGroup + kLanes));
    long m = 0;
    auto next = [&](auto count) {
        constexpr int M = decltype(count)::value;
        for (; m + M <= rows; m += M)
            some_rows<M>(matrix, wide + m * inputs, sums + m * groups, y + m * matrix.outputs);
    };
    next(std::integral_constant<int, 4>{});
    next(std::integral_constant<int, 2>{});
    next(std::integral_constant<int, 1>{});
}

}  // namespace

// x [rows, inputs] and y [rows, outputs] in bf16; inputs a multiple of kLanes.
extern "C" void int8_product(const uint16_t* x, const int8_t* bytes, const uint16_t* scales, uint16_t* y,
                             long rows, long outputs, long inputs) {
    product(Int8{bytes, scales, outputs, inputs}, x, y, rows);
}

// The same; inputs a multiple of kGroup.
extern "C" void int4_product(const uint16_t* x, const uint8_t* bytes, const uint16_t* scales,
                             const uint16_t* zeros, uint16_t* y, long rows, long outputs, long inputs) {
    product(Int4{bytes, scales, zeros, outputs, inputs}, x, y, rows);
}
