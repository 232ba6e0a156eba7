// What torch does slowly for the few rows of a decode step, in bf16 on a processor, for steps that torch runs:
//
//   rms_norm       y = x / sqrt(mean(x^2) + eps) * weight
//   turn           rotary positions, in place
//
// Both are small, and torch needs several calls for each.
#include <cmath>

#include "cpu_lanes.h"

using namespace lanes;

namespace {

constexpr long kRowsAlone = 8;  // rows that are not worth a second thread

}  // namespace

// x and y [rows, size] in bf16.
extern "C" void rms_norm(const uint16_t* x, const uint16_t* weight, uint16_t* y, long rows, long size, float eps) {
#pragma omp parallel for schedule(static) if (rows > kRowsAlone)
    for (long row = 0; row < rows; ++row) {
        const uint16_t* in = x + row * size;
        Floats squares = {};
        for (long i = 0; i + kLanes <= size; i += kLanes) {
            const Floats values = widened(load<Halves>(in + i));
            squares += values * values;
        }
        float sum = total(squares);
        for (long i = size - size % kLanes; i < size; ++i) sum += from_bf16(in[i]) * from_bf16(in[i]);
        const float factor = 1 / std::sqrt(sum / size + eps);
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
