// y = x W^T for a few rows x and an int8 matrix W with one scale a row.
//
// One row of outputs after the other: each byte of the matrix is read once, widened to a float in a
// register, multiplied by every row of x, and forgotten. For one row this takes about as long as memory
// needs to deliver the bytes, which is why 8 bits decode about twice as fast as 16.
#include <cstdint>
#include <cstring>
#include <vector>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

constexpr long kLanes = 16;   // numbers that are worked on together
constexpr long kOutputs = 16; // outputs that a thread takes at a time

typedef int8_t Bytes __attribute__((vector_size(kLanes)));
typedef int16_t Shorts __attribute__((vector_size(2 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef float Floats __attribute__((vector_size(4 * kLanes)));

template <typename Vector>
inline Vector load(const void* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

inline Ints widened(Bytes bytes) {
#if defined(__AVX512F__)
    return (Ints)_mm512_cvtepi8_epi32((__m128i)bytes);
#else  // in steps of a factor of two, each of which compilers know
    return __builtin_convertvector(__builtin_convertvector(bytes, Shorts), Ints);
#endif
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

struct Matrix {
    const int8_t* bytes;     // [outputs, inputs]
    const uint16_t* scales;  // [outputs], bf16
    long outputs, inputs;
};

// M rows together, so that a widened weight is used M times.
template <int M>
void some_rows(const Matrix& matrix, const float* x, uint16_t* y) {
    const long inputs = matrix.inputs, outputs = matrix.outputs;
#pragma omp parallel for schedule(static, kOutputs)
    for (long out = 0; out < outputs; ++out) {
        const int8_t* row = matrix.bytes + out * inputs;
        Floats sums[M] = {};
        for (long k = 0; k < inputs; k += kLanes) {
            const Floats weights = __builtin_convertvector(widened(load<Bytes>(row + k)), Floats);
            for (int m = 0; m < M; ++m) sums[m] += weights * load<Floats>(x + m * inputs + k);
        }
        const float scale = from_bf16(matrix.scales[out]);
        for (int m = 0; m < M; ++m) y[m * outputs + out] = to_bf16(total(sums[m]) * scale);
    }
}

}  // namespace

// x [rows, inputs] and y [rows, outputs] in bf16; inputs a multiple of kLanes.
extern "C" void int8_product(const uint16_t* x, const int8_t* bytes, const uint16_t* scales, uint16_t* y,
                             long rows, long outputs, long inputs) {
    static thread_local std::vector<float> wide;
    wide.resize(rows * inputs);
    for (long i = 0; i < rows * inputs; ++i) wide[i] = from_bf16(x[i]);
    const Matrix matrix{bytes, scales, outputs, inputs};
    long m = 0;
    for (; m + 4 <= rows; m += 4) some_rows<4>(matrix, &wide[m * inputs], y + m * outputs);
    for (; m + 2 <= rows; m += 2) some_rows<2>(matrix, &wide[m * inputs], y + m * outputs);
    for (; m < rows; ++m) some_rows<1>(matrix, &wide[m * inputs], y + m * outputs);
}
