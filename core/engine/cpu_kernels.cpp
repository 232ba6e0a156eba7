// What torch does slowly for the few rows of a decode step, in bf16 on a processor:
//
//   int8_product   y = x W^T for an int8 matrix W with one scale a row
//   rms_norm       y = x / sqrt(mean(x^2) + eps) * weight
//   turn           rotary positions, in place
//
// The product reads each byte of the matrix once, widens it to a float in a register, multiplies it by
// every row of x, and forgets it. What makes it fast is asking for bytes long before they are used: rows
// of a small model are so short that the processor does not see in time that they follow each other in
// memory. For one row it then takes little more than the time in which memory delivers the bytes.
// The other two are small, and torch needs several calls for each.
#include <cmath>
#include <vector>

#include "cpu_lanes.h"

using namespace lanes;

namespace {

constexpr long kAhead = 2048;   // bytes between what is asked for and what is used
constexpr long kRowsAlone = 8;  // rows that are not worth a second thread

struct Matrix {
    const int8_t* bytes;     // [outputs, inputs]
    const uint16_t* scales;  // [outputs], bf16
    long outputs, inputs;
};

// M rows of x together, so that a widened weight is used M times.
template <int M>
void some_rows(const Matrix& matrix, const float* x, uint16_t* y) {
    const long inputs = matrix.inputs, outputs = matrix.outputs;
#pragma omp parallel for schedule(static)
    for (long out = 0; out < outputs; ++out) {
        const int8_t* row = matrix.bytes + out * inputs;
        Floats sums[M] = {};
        for (long k = 0; k < inputs; k += kLanes) {
            __builtin_prefetch(row + k + kAhead);
            const Floats weights = widened(load<Bytes>(row + k));
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

// x and y [rows, size] in bf16.
extern "C" void rms_norm(const uint16_t* x, const uint16_t* weight, uint16_t* y, long rows, long size, float eps) {
#pragma omp parallel for schedule(static) if (rows > kRowsAlone)
    for (long row = 0; row < rows; ++row) {
        const uint16_t* in = x + row * size;
        float squares = 0;
        for (long i = 0; i < size; ++i) squares += from_bf16(in[i]) * from_bf16(in[i]);
        const float factor = 1 / std::sqrt(squares / size + eps);
        for (long i = 0; i < size; ++i) y[row * size + i] = to_bf16(from_bf16(in[i]) * factor * from_bf16(weight[i]));
    }
}

// x [rows, heads, size] in bf16, rows `stride` numbers apart; cosine and signed sine [rows, size].
extern "C" void turn(uint16_t* x, const uint16_t* cosine, const uint16_t* sine, long rows, long heads, long size,
                     long stride) {
    const long half = size / 2;
#pragma omp parallel for schedule(static) if (rows > kRowsAlone)
    for (long row = 0; row < rows; ++row) {
        const uint16_t *c = cosine + row * size, *s = sine + row * size;
        for (long head = 0; head < heads; ++head) {
            uint16_t *first = x + row * stride + head * size, *second = first + half;
            for (long i = 0; i < half; ++i) {
                const float a = from_bf16(first[i]), b = from_bf16(second[i]);
                first[i] = to_bf16(a * from_bf16(c[i]) + b * from_bf16(s[i]));
                second[i] = to_bf16(b * from_bf16(c[half + i]) + a * from_bf16(s[half + i]));
            }
        }
    }
}
