// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/reference/recurrent_backward.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/reference/elements.h"

namespace headscope::kernels {
namespace {

using reference::read;
using reference::write;
using Numbers = std::vector<double>;

std::size_t index(std::int64_t n) {
    return static_cast<std::size_t>(n);
}

/// One head of one sequence, forwards and then backwards.
class Head {
public:
    Head(const RecurrentInput& input, const TensorView& output_gradient, std::int64_t sequence, std::int64_t head)
        : in_(input),
          rule_(*input.rule),
          outer_(output_gradient),
          b_(sequence),
          h_(head),
          key_head_(head / (input.value.heads / input.key.heads)),
          length_(input.query.length),
          real_(rule_.length.empty() ? length_ : rule_.length[index(sequence)]),
          keys_(input.key.size),
          values_(input.value.size),
          decays_(rule_.decay == Decay::channel ? keys_ : 1) {
        query.assign(index(length_ * keys_), 0.0);
        key = query;
        value.assign(index(length_ * values_), 0.0);
        write_strength.assign(index(length_), 0.0);
        log_decay.assign(index(length_ * decays_), 0.0);
        kept.assign(index(rule_.chunk_size > 0 ? rule_.chunks : 0), 0.0);
    }

    void run(bool dropped_too) {
        forward();
        Numbers state(index(keys_ * values_), 0.0), start = state, decay(index(decays_), 0.0);
        for (std::int64_t t = real_; t-- > 0;) {
            check_cancelled(in_.cancel);
            if (ends_chunk(t)) end_of_chunk(t, dropped_too, state, start, decay);
            token(t, state, start, decay);
            for (std::int64_t c = 0; c < decays_; ++c) log_decay[index(t * decays_ + c)] += decay[index(c)];
            if (rule_.chunk_size == 0 || t % rule_.chunk_size != 0) continue;
            for (std::size_t n = 0; n < state.size(); ++n) state[n] += std::exchange(start[n], 0.0);
            std::fill(decay.begin(), decay.end(), 0.0);
        }
    }

    Numbers query, key, value, write_strength, log_decay, kept;

private:
    double k(std::int64_t t, std::int64_t c) const { return read(in_.key, b_, key_head_, t, c); }
    double q(std::int64_t t, std::int64_t c) const { return read(in_.query, b_, key_head_, t, c); }
    double v(std::int64_t t, std::int64_t x) const { return read(in_.value, b_, h_, t, x); }
    double w(std::int64_t t) const { return in_.write.data != nullptr ? read(in_.write, b_, h_, t, 0) : 1.0; }
    double g(std::int64_t t, std::int64_t c) const {
        return rule_.decay == Decay::none ? 0.0 : read(in_.log_decay, b_, h_, t, decays_ == 1 ? 0 : c);
    }
    std::int64_t at(std::int64_t c, std::int64_t x) const { return c * values_ + x; }
    bool ends_chunk(std::int64_t t) const { return rule_.chunk_size > 0 && (t + 1) % rule_.chunk_size == 0; }
    std::int64_t chunk_start(std::int64_t t) const { return t / rule_.chunk_size * rule_.chunk_size; }
    double factor(std::int64_t t) const {
        return rule_.kept[index((b_ * in_.value.heads + h_) * rule_.chunks + t / rule_.chunk_size)];
    }
    /// e^ the sum of g over the tokens of t's chunk up to it.
    double since_start(std::int64_t t, std::int64_t c) const {
        return since_start_[index(t)][index(decays_ == 1 ? 0 : c)];
    }
    double base_decay(std::int64_t t, std::int64_t c) const { return rule_.decays_dropped ? since_start(t, c) : 1.0; }

    /// before_[t]: the state that token t finds. decayed_[t]: before its write. error_[t]: what u is w times of.
    void forward() {
        Numbers state(index(keys_ * values_), 0.0), shrunk(index(decays_), 1.0);
        for (std::int64_t t = 0; t < real_; ++t) {
            if (rule_.chunk_size > 0 && t % rule_.chunk_size == 0) std::fill(shrunk.begin(), shrunk.end(), 1.0);
            for (std::int64_t c = 0; c < decays_; ++c) shrunk[index(c)] *= std::exp(g(t, c));
            since_start_.push_back(shrunk);
            before_.push_back(state);
            for (std::int64_t n = 0; n < keys_ * values_; ++n) state[index(n)] *= std::exp(g(t, n / values_));
            decayed_.push_back(state);
            Numbers error(index(values_));
            for (std::int64_t x = 0; x < values_; ++x) {
                double found = 0.0;
                for (std::int64_t c = 0; rule_.delta && c < keys_; ++c) found += state[index(at(c, x))] * k(t, c);
                error[index(x)] = v(t, x) - found;
            }
            for (std::int64_t n = 0; n < keys_ * values_; ++n)
                state[index(n)] += k(t, n / values_) * w(t) * error[index(n % values_)];
            error_.push_back(error);
            after_.push_back(state);
            if (!ends_chunk(t)) continue;
            const Numbers& start = before_[index(chunk_start(t))];
            for (std::int64_t n = 0; n < keys_ * values_; ++n) {
                const double base = base_decay(t, n / values_) * start[index(n)];
                state[index(n)] = base + factor(t) * (state[index(n)] - base);
            }
        }
    }

    /// From the gradient of the next chunk's first state to those of this one's last and first.
    void end_of_chunk(std::int64_t t, bool dropped_too, Numbers& state, Numbers& start, Numbers& decay) {
        const double m = factor(t);
        const Numbers &first = before_[index(chunk_start(t))], &last = after_[index(t)];
        double product = 0.0;
        for (std::int64_t n = 0; n < keys_ * values_; ++n) {
            const double shrunk = base_decay(t, n / values_), base = shrunk * first[index(n)];
            product += (last[index(n)] - base) * state[index(n)];
            start[index(n)] += (1.0 - m) * shrunk * state[index(n)];
            if (rule_.decays_dropped)
                decay[index(decays_ == 1 ? 0 : n / values_)] += (1.0 - m) * base * state[index(n)];
            state[index(n)] *= m;
        }
        if (m != 0.0 || dropped_too) kept[index(t / rule_.chunk_size)] = product;
    }

    void token(std::int64_t t, Numbers& state, Numbers& start, Numbers& decay) {
        const bool own = rule_.chunk_size == 0 || rule_.reads_own_chunk;
        const Numbers &after = after_[index(t)], &decayed = decayed_[index(t)], &error = error_[index(t)];
        for (std::int64_t c = 0; c < keys_; ++c) {
            const double shrunk = own ? 1.0 : since_start(t, c);
            const Numbers& seen = own ? after : before_[index(chunk_start(t))];
            double sum = 0.0;
            for (std::int64_t x = 0; x < values_; ++x) {
                const double outer = rule_.scale * shrunk * read(outer_, b_, h_, t, x);
                sum += outer * seen[index(at(c, x))];
                (own ? state : start)[index(at(c, x))] += outer * q(t, c);
            }
            query[index(t * keys_ + c)] = sum;
            if (!own) decay[index(decays_ == 1 ? 0 : c)] += sum * q(t, c);
        }
        Numbers of_write(index(values_), 0.0);
        for (std::int64_t n = 0; n < keys_ * values_; ++n)
            of_write[index(n % values_)] += state[index(n)] * k(t, n / values_);
        for (std::int64_t x = 0; x < values_; ++x) {
            value[index(t * values_ + x)] = w(t) * of_write[index(x)];
            write_strength[index(t)] += of_write[index(x)] * error[index(x)];
        }
        for (std::int64_t c = 0; c < keys_; ++c) {
            double sum = 0.0;
            for (std::int64_t x = 0; x < values_; ++x) {
                double& of_state = state[index(at(c, x))];
                const double shared = w(t) * of_write[index(x)];
                sum += of_state * w(t) * error[index(x)];
                if (!rule_.delta) continue;
                sum -= decayed[index(at(c, x))] * shared;
                of_state -= k(t, c) * shared;
            }
            key[index(t * keys_ + c)] = sum;
        }
        for (std::int64_t n = 0; n < keys_ * values_; ++n) {
            const std::int64_t c = n / values_;
            log_decay[index(t * decays_ + (decays_ == 1 ? 0 : c))] += state[index(n)] * decayed[index(n)];
            state[index(n)] *= std::exp(g(t, c));
        }
    }

    const RecurrentInput& in_;
    const RecurrentRule& rule_;
    const TensorView& outer_;
    std::int64_t b_, h_, key_head_, length_, real_, keys_, values_, decays_;
    std::vector<Numbers> before_, decayed_, after_, error_, since_start_;
};

void copy(const Numbers& from, std::int64_t site, float* to) {
    if (to == nullptr) return;
    for (std::size_t n = 0; n < from.size(); ++n) to[index(site) * from.size() + n] = static_cast<float>(from[n]);
}

void write_head(const Numbers& from, std::int64_t size, const MutableView& to, std::int64_t b, std::int64_t h) {
    for (std::size_t n = 0; n < from.size(); ++n) {
        const auto at = static_cast<std::int64_t>(n);
        write(to, b, h, at / size, at % size, from[n]);
    }
}

}  // namespace

void recurrent_backward_reference(const RecurrentInput& input, const TensorView& output_gradient, const float*,
                                  const RecurrentGradients& gradients) {
    const std::int64_t heads = input.value.heads, key_heads = input.key.heads, group = heads / key_heads;
    for (std::int64_t b = 0; b < input.query.batch; ++b) {
        for (std::int64_t key_head = 0; key_head < key_heads; ++key_head) {
            Numbers query, key;
            for (std::int64_t h = key_head * group; h < (key_head + 1) * group; ++h) {
                Head head(input, output_gradient, b, h);
                head.run(gradients.dropped_too);
                query.resize(head.query.size());
                key.resize(head.key.size());
                for (std::size_t n = 0; n < query.size(); ++n) query[n] += head.query[n];
                for (std::size_t n = 0; n < key.size(); ++n) key[n] += head.key[n];
                const std::int64_t site = b * heads + h;
                write_head(head.value, input.value.size, gradients.value, b, h);
                copy(head.write_strength, site, gradients.write);
                copy(head.log_decay, site, gradients.log_decay);
                copy(head.kept, site, gradients.kept);
            }
            write_head(query, input.key.size, gradients.query, b, key_head);
            write_head(key, input.key.size, gradients.key, b, key_head);
        }
    }
}

}  // namespace headscope::kernels
