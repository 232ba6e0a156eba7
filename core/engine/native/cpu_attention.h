// Attention of one new token over some of the tokens in the cache, where the slots lie: no copy, in any order.
//
// A part takes all heads of its tokens, because a slot holds all heads side by side: so the cache is read once,
// as it lies. It keeps a running softmax (the largest score so far, the sum of weights, the weighted sum
// of values), and parts are joined at the end.
#pragma once
#include <cmath>
#include <type_traits>
#include <vector>

#include "cpu_lanes.h"

namespace attention {

using namespace lanes;

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

struct Fp16Cells {
    const uint16_t* cells;
    long width;
    Floats at(long slot, long column) const {
        return widened(Fp16s{load<Halves>(cells + slot * width + column)});
    }
    float scale(long, long) const { return 1; }
    const void* slot(long index) const { return cells + index * width; }
    long slot_bytes() const { return 2 * width; }
};

// int4, two numbers a byte, with a scale and a zero for each kNibbleGroup numbers.
constexpr long kNibbleGroup = 32;

struct NibbleCells {
    const uint8_t* cells;
    const uint16_t *scales, *zeros;  // [slots, 2 * heads * size / kNibbleGroup]
    long width;
    Floats at(long slot, long column) const {
        const long group = (slot * width + column) / kNibbleGroup;
        return (nibbles(cells + (slot * width + column) / 2) - 8.0f) * from_bf16(scales[group]) + from_bf16(zeros[group]);
    }
    float scale(long, long) const { return 1; }
    const void* slot(long index) const { return cells + index * width / 2; }
    long slot_bytes() const { return width / 2; }
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
    const long head = h / shape.groups, bytes = cells.slot_bytes() / shape.kv_heads;
    const long step = h % shape.groups ? 0 : bytes * kLanes / shape.size;
    Floats products[G][kLanes];
    float scales[kLanes] = {};
    for (long t = 0; t < kLanes; ++t) {
        const long slot = block.slots[t];
        const char* later = static_cast<const char*>(cells.slot(block.later[t])) + head * bytes;
        Floats sums[G] = {};
        for (long d = 0; d < shape.size; d += kLanes, later += step) {
            // A little at a time: memory takes only so many wishes at once.
            for (long byte = 0; byte < step; byte += kLineBytes) __builtin_prefetch(later + byte);
            const Floats key = cells.at(slot, head * shape.size + d);
            for (int g = 0; g < G; ++g) sums[g] += load<Floats>(q + (h + g) * shape.size + d) * key;
        }
        for (int g = 0; g < G; ++g) products[g][t] = sums[g];
        scales[t] = cells.scale(slot, head);
    }
    for (int g = 0; g < G; ++g) scores[h + g] = totals(products[g]) * load<Floats>(scales);
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
        for (int g = 0; g < G; ++g) keep(sums + (h + g) * shape.size + d, more[g]);
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
    const Ints seen = counted() < static_cast<int32_t>(block.count);
    by_groups(shape, [&](auto group, long h) { score<decltype(group)::value>(cells, shape, q, block, h, scores); });
    for (long h = 0; h < shape.heads(); ++h) {
        const float before = part.largest[h], most = std::max(before, largest(chosen(seen, scores[h], Floats{} + before)));
        if (most != before) {
            const float shrink = std::exp(before - most);
            for (long d = 0; d < shape.size; ++d) part.sums[h * shape.size + d] *= shrink;
            part.total[h] *= shrink;
            part.largest[h] = most;
        }
        scores[h] = chosen(seen, exponential(scores[h] - most), Floats{});
        part.total[h] += total(scores[h]);
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
        for (long t = 0; t < kLanes; ++t) {
            block.slots[t] = slot_of(slots, first, std::min(token + t, end - 1));
            block.later[t] = slot_of(slots, first, std::min(token + t + kLanes, end - 1));
        }
        add_block(cells, shape, q, block, part, scores.data());
    }
}

}  // namespace attention
