// Attention of one new token over the cache, where the slots lie: no copy, in any order of slots.
//
// The tokens are split among the threads, and each thread takes all heads of its tokens, because a slot
// holds all heads side by side: so the cache is read once, as it lies. Every part keeps a running
// softmax (the largest score so far, the sum of weights, the weighted sum of values), and the
// parts are joined at the end.
#include <omp.h>

#include <cmath>
#include <type_traits>
#include <vector>

#include "cpu_lanes.h"

using namespace lanes;

namespace {

constexpr long kTokensAlone = 96;  // tokens that are not worth a second thread

// Numbers of a slot as floats. A slot holds the keys of all heads, then their values.
struct HalfCells {
    const uint16_t* cells;
    long width;
    Floats at(long slot, long column) const {
        return widened(load<Halves>(cells + slot * width + column));
    }
    float scale(long, long) const { return 1; }
    const void* slot(long index) const { return cells + index * width; }
    long slot_bytes() const { return 2 * width; }
};

struct WideCells {
    const float* cells;
    long width;
    Floats at(long slot, long column) const { return load<Floats>(cells + slot * width + column); }
    float scale(long, long) const { return 1; }
    const void* slot(long index) const { return cells + index * width; }
    long slot_bytes() const { return 4 * width; }
};

// int8 with a scale for each token and head, keys and values apart.
struct ByteCells {
    const int8_t* cells;
    const uint16_t* scales;  // [slots, 2 * heads]
    long width, scales_width;
    Floats at(long slot, long column) const { return widened(load<Bytes>(cells + slot * width + column)); }
    float scale(long slot, long head) const { return from_bf16(scales[slot * scales_width + head]); }
    const void* slot(long index) const { return cells + index * width; }
    long slot_bytes() const { return width; }
};

inline float to_float(uint16_t value) { return from_bf16(value); }
inline float to_float(float value) { return value; }
inline void store(uint16_t* where, float value) { *where = to_bf16(value); }
inline void store(float* where, float value) { *where = value; }

// e^x to seven digits for x <= 0: 2^n * 2^f with f in [-1/2, 1/2] and a polynomial for 2^f.
inline Floats exponential(Floats x) {
    x = x < -87.0f ? Floats{} - 87.0f : x;
    const Floats scaled = x * 1.44269504f;
    const Ints whole = __builtin_convertvector(scaled - 0.5f, Ints);  // towards zero: to the nearest
    const Floats f = (scaled - __builtin_convertvector(whole, Floats)) * 0.693147181f;
    Floats sum = Floats{} + 1.0f / 720;
    sum = sum * f + 1.0f / 120;
    sum = sum * f + 1.0f / 24;
    sum = sum * f + 1.0f / 6;
    sum = sum * f + 0.5f;
    sum = sum * f + 1;
    sum = sum * f + 1;
    return sum * (Floats)((whole + 127) << 23);
}

struct Shape {
    long kv_heads, groups, size;
    long heads() const { return kv_heads * groups; }
};

// The softmax of some tokens that is still to be joined with that of others.
struct Part {
    float *largest, *total, *sums;  // [heads], [heads], [heads, size]
};

inline long slot_of(const int64_t* slots, long first, long token) { return slots ? slots[token] : first + token; }

// Up to kLanes tokens by their slots, and the slots of those kLanes later, which are asked for meanwhile.
struct Block {
    long slots[kLanes], later[kLanes];
    long count;
};

// Scores of G query heads that share a key head, from query head h on.
template <int G, typename Cells>
void score(const Cells& cells, const Shape& shape, const float* q, const Block& block, long h, Floats* scores) {
    const long head = h / shape.groups;
    for (long t = 0; t < block.count; ++t) {
        if (h == 0)  // one token at a time: memory takes only so many wishes at once
            for (long byte = 0; byte < cells.slot_bytes(); byte += kLineBytes)
                __builtin_prefetch(static_cast<const char*>(cells.slot(block.later[t])) + byte);
        Floats products[G] = {};
        for (long d = 0; d < shape.size; d += kLanes) {
            const Floats key = cells.at(block.slots[t], head * shape.size + d);
            for (int g = 0; g < G; ++g) products[g] += load<Floats>(q + (h + g) * shape.size + d) * key;
        }
        const float scale = cells.scale(block.slots[t], head);
        for (int g = 0; g < G; ++g) scores[h + g][t] = total(products[g]) * scale;
    }
}

// Adds the weighted values of the same heads to their sums.
template <int G, typename Cells>
void add_values(const Cells& cells, const Shape& shape, const Block& block, long h, const Floats* weights, float* sums) {
    const long head = shape.kv_heads + h / shape.groups;
    float factors[G][kLanes];
    for (long t = 0; t < block.count; ++t)
        for (int g = 0; g < G; ++g) factors[g][t] = weights[h + g][t] * cells.scale(block.slots[t], head);
    for (long d = 0; d < shape.size; d += kLanes) {
        Floats more[G];
        for (int g = 0; g < G; ++g) more[g] = load<Floats>(sums + (h + g) * shape.size + d);
        for (long t = 0; t < block.count; ++t) {
            const Floats value = cells.at(block.slots[t], head * shape.size + d);
            for (int g = 0; g < G; ++g) more[g] += factors[g][t] * value;
        }
        for (int g = 0; g < G; ++g) std::memcpy(sums + (h + g) * shape.size + d, &more[g], sizeof more[g]);
    }
}

// Calls `work` for all query heads, as many at a time as share a key head, at most four.
template <typename Work>
void by_groups(const Shape& shape, Work work) {
    for (long head = 0; head < shape.kv_heads; ++head)
        for (long g = 0; g < shape.groups;) {
            const long h = head * shape.groups + g, left = shape.groups - g;
            if (left >= 4) work(std::integral_constant<int, 4>{}, h), g += 4;
            else if (left == 3) work(std::integral_constant<int, 3>{}, h), g += 3;
            else if (left == 2) work(std::integral_constant<int, 2>{}, h), g += 2;
            else work(std::integral_constant<int, 1>{}, h), g += 1;
        }
}

// Adds a block to a part: what is there already shrinks where a larger score comes.
template <typename Cells>
void add_block(const Cells& cells, const Shape& shape, const float* q, const Block& block, Part part, Floats* scores) {
    const Ints numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    by_groups(shape, [&](auto group, long h) { score<decltype(group)::value>(cells, shape, q, block, h, scores); });
    for (long h = 0; h < shape.heads(); ++h) {
        float largest = part.largest[h];
        for (long t = 0; t < block.count; ++t) largest = scores[h][t] > largest ? scores[h][t] : largest;
        const float shrink = exponential(Floats{} + (part.largest[h] - largest))[0];
        const Floats weights = exponential(scores[h] - largest);
        scores[h] = numbers < static_cast<int32_t>(block.count) ? weights : Floats{};
        part.total[h] = part.total[h] * shrink + total(scores[h]);
        part.largest[h] = largest;
        if (shrink != 1)
            for (long d = 0; d < shape.size; ++d) part.sums[h * shape.size + d] *= shrink;
    }
    by_groups(shape, [&](auto group, long h) {
        add_values<decltype(group)::value>(cells, shape, block, h, scores, part.sums);
    });
}

template <typename Cells>
void attend_part(const Cells& cells, const Shape& shape, const float* q, const int64_t* slots, long first, long begin,
                 long end, Part part) {
    static thread_local std::vector<Floats> scores;
    scores.assign(shape.heads(), Floats{});
    for (long h = 0; h < shape.heads(); ++h) part.largest[h] = -1e30f, part.total[h] = 0;
    std::memset(part.sums, 0, sizeof(float) * shape.heads() * shape.size);
    for (long token = begin; token < end; token += kLanes) {
        Block block;
        block.count = token + kLanes < end ? kLanes : end - token;
        for (long t = 0; t < block.count; ++t) {
            const long later = token + t + kLanes < end ? token + t + kLanes : end - 1;
            block.slots[t] = slot_of(slots, first, token + t);
            block.later[t] = slot_of(slots, first, later);
        }
        add_block(cells, shape, q, block, part, scores.data());
    }
}

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
