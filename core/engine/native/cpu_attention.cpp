// Attention of one new token over the cache, for torch's own step: the tokens are split among the threads.
#include <omp.h>

#include "cpu_attention.h"

using namespace attention;

namespace {

constexpr long kTokensAlone = 96;  // tokens that are not worth a second thread

// Every thread takes some of the tokens, with all heads, so that it reads the cache as it lies.
template <typename Cells, typename Number>
void attend(const Cells& cells, const Number* query, const int64_t* slots, long first, long count, const Shape& shape,
            Number* y) {
    const long heads = shape.heads(), size = shape.size, room = heads * (2 + size);
    const long most = count / kTokensAlone + 1, threads = omp_get_max_threads() < most ? omp_get_max_threads() : most;
    static thread_local std::vector<float> memory;
    memory.resize(heads * size + threads * room);
    float *q = memory.data(), *parts = q + heads * size;
    const float factor = 1 / std::sqrt(static_cast<float>(size));
    for (long i = 0; i < heads * size; ++i) q[i] = to_float(query[i]) * factor;
    auto part = [&](long index) {
        float* at = parts + index * room;
        return Part{at, at + heads, at + 2 * heads};
    };
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (long index = 0; index < threads; ++index)
        attend_part(cells, shape, q, slots, first, index * count / threads, (index + 1) * count / threads, part(index));
    for (long h = 0; h < heads; ++h) {
        float largest = part(0).largest[h], sum = 0;
        for (long i = 1; i < threads; ++i) largest = std::fmax(largest, part(i).largest[h]);
        for (long i = 0; i < threads; ++i) sum += part(i).total[h] * std::exp(part(i).largest[h] - largest);
        for (long d = 0; d < size; ++d) {
            float value = 0;
            for (long i = 0; i < threads; ++i)
                value += part(i).sums[h * size + d] * std::exp(part(i).largest[h] - largest);
            store(y + h * size + d, value / sum);
        }
    }
}

}  // namespace

// attend_<format of the query and of y>_<format of the cache>.
// query and y [heads, size]; cells [slots, 2 * kv_heads * size]; slots: of each token, or null where
// they follow `first`. size must be a multiple of kLanes.
extern "C" void attend_bf16_bf16(const uint16_t* query, const uint16_t* cells, const uint16_t*, const int64_t* slots,
                                 uint16_t* y, long first, long count, long kv_heads, long groups, long size) {
    attend(HalfCells{cells, 2 * kv_heads * size}, query, slots, first, count, Shape{kv_heads, groups, size}, y);
}

extern "C" void attend_fp32_bf16(const float* query, const uint16_t* cells, const uint16_t*, const int64_t* slots,
                                 float* y, long first, long count, long kv_heads, long groups, long size) {
    attend(HalfCells{cells, 2 * kv_heads * size}, query, slots, first, count, Shape{kv_heads, groups, size}, y);
}

extern "C" void attend_fp32_fp32(const float* query, const float* cells, const uint16_t*, const int64_t* slots,
                                 float* y, long first, long count, long kv_heads, long groups, long size) {
    attend(WideCells{cells, 2 * kv_heads * size}, query, slots, first, count, Shape{kv_heads, groups, size}, y);
}

extern "C" void attend_bf16_int8(const uint16_t* query, const int8_t* cells, const uint16_t* scales,
                                 const int64_t* slots, uint16_t* y, long first, long count, long kv_heads, long groups,
                                 long size) {
    const ByteCells bytes{cells, scales, 2 * kv_heads * size, 2 * kv_heads};
    attend(bytes, query, slots, first, count, Shape{kv_heads, groups, size}, y);
}

extern "C" void attend_fp32_int8(const float* query, const int8_t* cells, const uint16_t* scales, const int64_t* slots,
                                 float* y, long first, long count, long kv_heads, long groups, long size) {
    const ByteCells bytes{cells, scales, 2 * kv_heads * size, 2 * kv_heads};
    attend(bytes, query, slots, first, count, Shape{kv_heads, groups, size}, y);
}
