// One step of a whole decoder for a few rows: the operators of transformer.py, in the same order and under the
// same names, without a call of the library for each.
//
// One team of threads goes through all layers. What every thread needs whole and is small (the stream, its norm)
// each keeps for itself; what is large (products, attention) they share out, and meet before it is read:
//
//   norm | qkv / rope, kv_write / attention parts / join / output / residual, norm | gate_up, activation / down / residual
//
// where "/" is a meeting. Numbers between operators are fp32.
#include <omp.h>

#include <chrono>

#include "cpu_attention.h"
#include "cpu_many.h"
#include "cpu_products.h"

using namespace lanes;
using attention::Part;
using attention::Shape;
using products::Input;
using products::Matrix;

namespace {

constexpr long kPartTokens = 64;  // tokens of a part of attention, whoever computes it

enum CacheFormat : int64_t { kWideCache, kHalfCache, kFp16Cache, kByteCache, kNibbleCache };

struct Layer {
    const float *attention_norm, *mlp_norm, *query_norm, *key_norm;  // the last two may be null
    Matrix qkv, output, gate_up, down;
    void *cells, *cell_scales, *cell_zeros;
    int64_t heads, kv_heads, size, window;  // window: 0 for none

    long query_width() const { return heads * size; }
    long slot_width() const { return 2 * kv_heads * size; }
    Shape shape() const { return {kv_heads, heads / kv_heads, size}; }
};

struct Model {
    const Layer* layers;
    int64_t num_layers;
    const float* final_norm;
    Matrix head;
    int64_t hidden, cache_format;
    float eps;
};

// A token that goes through the model, and the tokens that it sees, itself included.
struct Row {
    const int64_t* slots;  // of each token, or null where they follow `first`
    int64_t first, count;
};

struct Step {
    const float *stream, *cosine, *sine;  // [rows, hidden], [rows, size], [rows, size] with its first half negated
    const int64_t* targets;               // [rows]: slots that are written
    const Row* rows;
    const int64_t* wanted;  // rows whose logits are wanted
    int64_t num_rows, num_wanted;
    float *qkv, *attended, *mixed, *wide, *logits;  // shared; room for all rows at the widest layer
    float* parts;                                   // room for all parts of attention
    double* times;                                  // seconds of each operator, or null
};

long parts_of(const Layer& layer, const Row& row) {
    const long count = layer.window && layer.window < row.count ? layer.window : row.count;
    return (count + kPartTokens - 1) / kPartTokens;
}

void norm(const float* x, const float* weight, float eps, long size, float* y) {
    Floats squares = {};
    for (long i = 0; i < size; i += kLanes) squares += load<Floats>(x + i) * load<Floats>(x + i);
    const float factor = 1 / std::sqrt(total(squares) / size + eps);
    for (long i = 0; i < size; ++i) y[i] = x[i] * factor * weight[i];
}

// One thread of the team; `each` are its own copies.
class Worker {
  public:
    Worker(const Model& model, const Step& step, long index, long team)
        : model_(model), step_(step), index_(index), team_(team), rows_(step.num_rows) {
        const long size = rows_ * model.hidden;
        stream_.assign(step.stream, step.stream + size);
        normed_.resize(std::max(rows_, static_cast<long>(step.num_wanted)) * model.hidden);
        last_ = now();
    }

    void run() {
        for (long i = 0; i < model_.num_layers; ++i) layer(model_.layers[i]);
        ending();
    }

  private:
    void layer(const Layer& layer) {
        norms(layer.attention_norm);
        tick();
        multiply(layer.qkv, normed_.data(), step_.qkv);
        meet();
        turn_and_keep(layer);
        attend(layer);
        multiply(layer.output, step_.attended, step_.mixed);
        meet();
        add_mixed();
        norms(layer.mlp_norm);
        tick();
        feed_forward(layer);
    }

    void ending() {
        const long hidden = model_.hidden;
        for (long i = 0; i < step_.num_wanted; ++i)
            norm(&stream_[step_.wanted[i] * hidden], model_.final_norm, model_.eps, hidden, &normed_[i * hidden]);
        tick();
        input_.prepare(model_.head, normed_.data(), step_.num_wanted);
        share(model_.head.tiles(), [&](long a, long b) { products::product(model_.head, input_, step_.logits, a, b); });
        meet();
    }

    void norms(const float* weight) {
        const long hidden = model_.hidden;
        for (long r = 0; r < rows_; ++r)
            norm(&stream_[r * hidden], weight, model_.eps, hidden, &normed_[r * hidden]);
    }

    void multiply(const Matrix& matrix, const float* x, float* y) {
        input_.prepare(matrix, x, rows_);
        share(matrix.tiles(), [&](long a, long b) { products::product(matrix, input_, y, a, b); });
    }

    // Query and key norms, rotary positions and the new slots, each key head by one thread.
    void turn_and_keep(const Layer& layer) {
        const long items = rows_ * layer.kv_heads, groups = layer.heads / layer.kv_heads;
        auto heads_of = [&](long item, auto work) {
            const long row = item / layer.kv_heads, head = item % layer.kv_heads;
            float* qkv = step_.qkv + row * layer.qkv.outputs;
            for (long g = 0; g < groups; ++g) work(row, qkv + (head * groups + g) * layer.size, layer.query_norm);
            work(row, qkv + (layer.heads + head) * layer.size, layer.key_norm);
        };
        if (layer.query_norm) {
            for (long item = index_; item < items; item += team_)
                heads_of(item, [&](long, float* head, const float* weight) {
                    norm(head, weight, model_.eps, layer.size, head);
                });
            tick();
        }
        for (long item = index_; item < items; item += team_)
            heads_of(item, [&](long row, float* head, const float*) { turn(head, row, layer.size); });
        tick();
        for (long item = index_; item < items; item += team_) keep(layer, item / layer.kv_heads, item % layer.kv_heads);
        meet();
    }

    void turn(float* head, long row, long size) const {
        const float *c = step_.cosine + row * size, *s = step_.sine + row * size;
        for (long i = 0, half = size / 2; i < half; ++i) {
            const float a = head[i], b = head[half + i];
            head[i] = a * c[i] + b * s[i];
            head[half + i] = b * c[half + i] + a * s[half + i];
        }
    }

    // Key and value of one head into the row's slot.
    void keep(const Layer& layer, long row, long head) const {
        const float* fresh = step_.qkv + row * layer.qkv.outputs + layer.query_width();
        const long slot = step_.targets[row];
        for (long side = 0; side < 2; ++side) {
            const long column = (side * layer.kv_heads + head) * layer.size;
            const long at = slot * layer.slot_width() + column, pair = slot * 2 * layer.kv_heads + side * layer.kv_heads + head;
            keep_one(layer, fresh + column, at, pair);
        }
    }

    void keep_one(const Layer& layer, const float* from, long at, long pair) const {
        switch (model_.cache_format) {
            case kWideCache:
                return static_cast<void>(std::memcpy(static_cast<float*>(layer.cells) + at, from, sizeof(float) * layer.size));
            case kHalfCache:
                return keep_halves(layer, from, at, [](Floats values) { return narrowed(values); });
            case kFp16Cache:
                return keep_halves(layer, from, at, [](Floats values) { return to_fp16(values).bits; });
            case kByteCache:
                return keep_bytes(layer, from, at, pair);
            default:
                return keep_nibbles(layer, from, at);
        }
    }

    template <typename Round>
    void keep_halves(const Layer& layer, const float* from, long at, Round round) const {
        auto* to = static_cast<uint16_t*>(layer.cells) + at;
        for (long i = 0; i < layer.size; i += kLanes) {
            const Halves halves = round(load<Floats>(from + i));
            lanes::keep(to + i, halves);
        }
    }

    void keep_bytes(const Layer& layer, const float* from, long at, long pair) const {
        uint16_t scale = to_bf16(largest_size(from, layer.size) / 127);
        if (from_bf16(scale) <= 0) scale = to_bf16(1);
        auto* to = static_cast<int8_t*>(layer.cells) + at;
        for (long i = 0; i < layer.size; i += kLanes) {
            const Ints most = Ints{} + 127, whole = nearest(load<Floats>(from + i) / from_bf16(scale));
            const Ints lower = chosen(whole > most, most, whole);
            const Bytes bytes = narrowed(chosen(lower < -most, -most, lower));
            lanes::keep(to + i, bytes);
        }
        static_cast<uint16_t*>(layer.cell_scales)[pair] = scale;
    }

    void keep_nibbles(const Layer& layer, const float* from, long at) const {
        using attention::kNibbleGroup;
        for (long first = 0; first < layer.size; first += kNibbleGroup) {
            float low = from[first], high = low, wild = 0;
            for (long i = first; i < first + kNibbleGroup; ++i) {
                low = std::min(low, from[i]), high = std::max(high, from[i]);
                if (!std::isfinite(from[i])) wild = from[i] - from[i];
            }
            uint16_t scale = to_bf16((high - low) / 15 + wild);
            if (from_bf16(scale) <= 0) scale = to_bf16(1);
            const uint16_t zero = to_bf16(low + 8 * from_bf16(scale));
            auto* to = static_cast<uint8_t*>(layer.cells) + (at + first) / 2;
            const auto nibble = [&](float value) {
                const float rounded = std::nearbyint((value - from_bf16(zero)) / from_bf16(scale)) + 8;
                return static_cast<int>(rounded > 15 ? 15 : rounded > 0 ? rounded : 0);
            };
            for (long i = 0; i < kNibbleGroup; i += 2)
                to[i / 2] = static_cast<uint8_t>(nibble(from[first + i]) | nibble(from[first + i + 1]) << 4);
            static_cast<uint16_t*>(layer.cell_scales)[(at + first) / kNibbleGroup] = scale;
            static_cast<uint16_t*>(layer.cell_zeros)[(at + first) / kNibbleGroup] = zero;
        }
    }

    // All parts of all rows, each by the thread that has least to do so far; then their joining.
    void attend(const Layer& layer) {
        const long room = layer.heads * (2 + layer.size);
        long item = 0;
        busy_.assign(team_, 0);
        for (long r = 0; r < rows_; ++r)
            for (long p = 0, count = parts_of(layer, step_.rows[r]); p < count; ++p, ++item) {
                const auto least = std::min_element(busy_.begin(), busy_.end());
                if (least - busy_.begin() == index_) attend_part(layer, r, p, part_at(step_.parts + item * room, layer));
                *least += std::min<long>(kPartTokens, step_.rows[r].count - p * kPartTokens);
            }
        wait();
        item = 0;
        for (long r = 0; r < rows_; ++r) {
            const long count = parts_of(layer, step_.rows[r]);
            for (long h = 0; h < layer.heads; ++h)
                if ((r * layer.heads + h) % team_ == index_) join(layer, step_.parts + item * room, count, r, h);
            item += count;
        }
        meet();
    }

    static Part part_at(float* at, const Layer& layer) { return {at, at + layer.heads, at + 2 * layer.heads}; }

    void attend_part(const Layer& layer, long r, long p, Part part) {
        const Row& row = step_.rows[r];
        const long begin = (layer.window && layer.window < row.count ? row.count - layer.window : 0) + p * kPartTokens;
        const long end = std::min<long>(begin + kPartTokens, row.count), width = layer.query_width();
        const float *query = step_.qkv + r * layer.qkv.outputs, factor = 1 / std::sqrt(static_cast<float>(layer.size));
        query_.resize(width);
        for (long i = 0; i < width; ++i) query_[i] = query[i] * factor;
        auto over = [&](const auto& cells) {
            attention::attend_part(cells, layer.shape(), query_.data(), row.slots, row.first, begin, end, part);
        };
        auto* scales = static_cast<uint16_t*>(layer.cell_scales);
        const long wide = layer.slot_width();
        switch (model_.cache_format) {
            case kWideCache: return over(attention::WideCells{static_cast<float*>(layer.cells), wide});
            case kHalfCache: return over(attention::HalfCells{static_cast<uint16_t*>(layer.cells), wide});
            case kFp16Cache: return over(attention::Fp16Cells{static_cast<uint16_t*>(layer.cells), wide});
            case kByteCache:
                return over(attention::ByteCells{static_cast<int8_t*>(layer.cells), scales, wide, 2 * layer.kv_heads});
            default:
                return over(attention::NibbleCells{static_cast<uint8_t*>(layer.cells), scales,
                                                   static_cast<uint16_t*>(layer.cell_zeros), wide});
        }
    }

    void join(const Layer& layer, float* parts, long count, long r, long h) const {
        const long room = layer.heads * (2 + layer.size), size = layer.size;
        float largest = -1e30f, sum = 0;
        for (long p = 0; p < count; ++p) largest = std::max(largest, part_at(parts + p * room, layer).largest[h]);
        float* y = step_.attended + r * layer.query_width() + h * size;
        std::fill(y, y + size, 0.0f);
        for (long p = 0; p < count; ++p) {
            const Part part = part_at(parts + p * room, layer);
            const float weight = std::exp(part.largest[h] - largest);
            sum += part.total[h] * weight;
            for (long d = 0; d < size; ++d) y[d] += part.sums[h * size + d] * weight;
        }
        for (long d = 0; d < size; ++d) y[d] /= sum;
    }

    void add_mixed() {
        for (long i = 0, size = rows_ * model_.hidden; i < size; ++i) stream_[i] += step_.mixed[i];
        tick();
    }

    // A thread computes the same outputs of gate and up, so their product needs no meeting.
    void feed_forward(const Layer& layer) {
        const long width = layer.down.inputs, tiles = width / kLanes;
        input_.prepare(layer.gate_up, normed_.data(), rows_);
        long begin = 0, end = 0;
        share(tiles, [&](long a, long b) {
            products::product(layer.gate_up, input_, step_.wide, a, b);
            products::product(layer.gate_up, input_, step_.wide, tiles + a, tiles + b);
            begin = a * kLanes, end = b * kLanes;
        });
        tick();
        for (long r = 0; r < rows_; ++r) {
            float *gate = step_.wide + r * 2 * width, *up = gate + width;
            for (long i = begin; i < end; i += kLanes) {
                const Floats x = load<Floats>(gate + i), y = x * load<Floats>(up + i) / (1.0f + exponential(-x));
                lanes::keep(gate + i, y);
            }
        }
        meet();
        gather(width);
        multiply(layer.down, active_.data(), step_.mixed);
        meet();
        add_mixed();
    }

    // The activated rows side by side, as a product wants them.
    void gather(long width) {
        active_.resize(rows_ * width);
        for (long r = 0; r < rows_; ++r)
            std::memcpy(&active_[r * width], step_.wide + r * 2 * width, sizeof(float) * width);
    }

    template <typename Work>
    void share(long count, Work work) const {
        work(index_ * count / team_, (index_ + 1) * count / team_);
    }

    void wait() const {
#pragma omp barrier
    }

    // The end of an operator that the team shares.
    void meet() {
        wait();
        tick();
    }

    // The end of an operator.
    void tick() {
        if (index_ || !step_.times) return;
        const double time = now();
        step_.times[ticks_++] = time - last_;
        last_ = time;
    }

    static double now() {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }

    const Model& model_;
    const Step& step_;
    const long index_, team_, rows_;
    std::vector<float> stream_, normed_, query_, active_;
    std::vector<long> busy_;  // tokens that each thread attends to in this layer
    Input input_;
    double last_;
    long ticks_ = 0;
};

}  // namespace

extern "C" void run_step(const Model* model, const Step* step) {
#pragma omp parallel
    Worker(*model, *step, omp_get_thread_num(), omp_get_num_threads()).run();
}

// How well the products suit this processor: 2 where it multiplies what they want in one instruction, 1 where they
// are written for its registers. With either they need no timing.
extern "C" int suits() {
#if defined(__AVX512BF16__) && defined(__AVX512VNNI__)
    return 2;
#elif defined(LANES_IN_PAIRS)
    return 1;
#else
    return 0;
#endif
}

// Room for the parts of attention of a row that sees `tokens`, in parts.
extern "C" long step_parts(long tokens) { return (tokens + kPartTokens - 1) / kPartTokens; }

// y [rows, outputs] = x [rows, inputs] times one matrix, as a step computes it.
extern "C" void multiply(const Matrix* matrix, const float* x, float* y, long rows) {
#pragma omp parallel
    {
        static thread_local Input input;
        input.prepare(*matrix, x, rows);
        const long tiles = matrix->tiles(), team = omp_get_num_threads(), index = omp_get_thread_num();
        products::product(*matrix, input, y, index * tiles / team, (index + 1) * tiles / team);
    }
}

// The same for many rows, in fp32: each part of the matrix is widened once for all of them. The bias is left out.
extern "C" void multiply_many(const Matrix* matrix, const float* x, float* y, long rows) {
#pragma omp parallel
    {
        const long tiles = matrix->tiles(), team = omp_get_num_threads(), index = omp_get_thread_num();
        products::many_product(*matrix, x, rows, y, index * tiles / team, (index + 1) * tiles / team);
    }
}
