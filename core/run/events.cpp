// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/events.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <type_traits>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/store/hdf5/half.h"
#include "core/store/hdf5/utf8.h"

namespace headscope::training {
namespace {

constexpr std::size_t kMostSites = 1U << 16U, kMostIndicators = 1024;

static_assert(std::endian::native == std::endian::little, "payloads are written as they lie in memory");

class Writer {
public:
    static constexpr bool kReads = false;
    static constexpr bool ends() { return false; }
    explicit Writer(std::string& bytes) : bytes_(bytes) {}

    template <class Number>
    requires std::is_arithmetic_v<Number>
    bool operator()(const Number& value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
        return true;
    }
    /// Sample texts may end inside a character; readers want UTF-8.
    bool operator()(const std::string& text) {
        if (find_invalid_utf8(text) != std::string_view::npos) return (*this)(store::readable_utf8(text));
        (*this)(static_cast<std::uint32_t>(text.size()));
        bytes_ += text;
        return true;
    }
    bool halves(const std::vector<float>& values) {
        (*this)(static_cast<std::uint32_t>(values.size()));
        for (const float value : values) (*this)(store::half_from_float(value));
        return true;
    }
    template <class Item, class Part>
    bool list(const std::vector<Item>& items, std::size_t /*least_bytes*/, std::size_t /*most*/, Part part) {
        (*this)(static_cast<std::uint32_t>(items.size()));
        for (const Item& item : items) part(item);
        return true;
    }

private:
    std::string& bytes_;
};

/// Every read checks the bytes that are left; after the first that fails nothing more is read.
class Reader {
public:
    static constexpr bool kReads = true;
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}
    bool ends() const { return bytes_.empty(); }

    template <class Number>
    requires std::is_arithmetic_v<Number>
    bool operator()(Number& value) {
        if (bytes_.size() < sizeof value) return fail();
        if constexpr (std::is_same_v<Number, bool>) {
            value = bytes_[0] != 0;
        } else {
            bytes_.copy(reinterpret_cast<char*>(&value), sizeof value);
        }
        bytes_.remove_prefix(sizeof value);
        return true;
    }
    bool operator()(std::string& text) {
        std::uint32_t size = 0;
        if (!(*this)(size) || size > bytes_.size()) return fail();
        text.assign(bytes_.substr(0, size));
        bytes_.remove_prefix(size);
        return find_invalid_utf8(text) == std::string_view::npos || fail();
    }
    bool halves(std::vector<float>& values) {
        std::uint32_t count = 0;
        if (!(*this)(count) || count > bytes_.size() / sizeof(std::uint16_t)) return fail();
        values.resize(count);
        for (float& value : values) {
            std::uint16_t half = 0;
            (*this)(half);
            value = store::float_from_half(half);
        }
        return true;
    }
    /// `least_bytes`: of one item in the payload; `most`: items, where they take much more in memory.
    template <class Item, class Part>
    bool list(std::vector<Item>& items, std::size_t least_bytes, std::size_t most, Part part) {
        std::uint32_t count = 0;
        if (!(*this)(count) || count > bytes_.size() / least_bytes || count > most) return fail();
        items.clear();
        items.reserve(count);
        for (std::uint32_t i = 0; i < count; ++i) {
            if (!part(items.emplace_back())) return fail();
        }
        return true;
    }

private:
    bool fail() {
        bytes_ = {};
        return false;
    }
    std::string_view bytes_;
};

// One list of fields an event, for writing (const events) and reading. New fields go to the end, each behind
// `optional`, so that payloads of older programs are still read.

/// Fields at which payloads of older programs end.
template <class F, class Part>
bool optional(F& f, Part part) {
    return f.ends() || part();
}

template <class F, class S>
bool site_fields(F& f, S& site) {
    return f(site.layer) && f(site.stack) && f(site.kind) && f(site.branch) && f(site.heads) &&
           f(site.key_value_heads) && f(site.key_size) && f(site.value_size) && f(site.causal) && f(site.has_matrix) &&
           f(site.query_stream) && f(site.key_stream);
}

template <class F, class E>
bool event_fields(F& f, E& e) {
    using Kind = std::remove_const_t<E>;
    constexpr std::size_t kText = sizeof(std::uint32_t), kSite = 5 * kText + 4 * sizeof(std::int32_t) + 2;
    if constexpr (std::is_same_v<Kind, Started>) {
        return f(e.step) && f(e.job) && f(e.program_version) && f(e.model_type) && f(e.config_json) &&
               f(e.parameters) && f.list(e.mixers, kText, kMostSites, [&](auto& mixer) { return f(mixer); }) &&
               f.list(e.sites, kSite, kMostSites, [&](auto& site) { return site_fields(f, site); }) && f(e.threads) &&
               f(e.processes) && f(e.machine) && f(e.data_hash) && f(e.steps) &&
               optional(f,
                        [&] {
                            return std::all_of(e.sites.begin(), e.sites.end(),
                                               [&](auto& site) { return f(site.has_implicit); });
                        }) &&
               optional(f, [&] { return f(e.device) && f(e.kernels); });
    } else if constexpr (std::is_same_v<Kind, Step>) {
        return f(e.step) && f(e.tokens) && f(e.loss) && f(e.learning_rate) && f(e.gradient_norm) &&
               f(e.tokens_per_second) && f(e.seconds) && f(e.memory) && optional(f, [&] { return f(e.accuracy); });
    } else if constexpr (std::is_same_v<Kind, Validation>) {
        return f(e.step) && f(e.loss) && f(e.tokens) && f(e.seconds) && optional(f, [&] { return f(e.accuracy); });
    } else if constexpr (std::is_same_v<Kind, ProbeResult>) {
        return f(e.step) && f(e.seconds) &&
               f.list(e.indicators, 2 * kText, kMostIndicators,
                      [&](auto& indicator) {
                          return f(indicator.name) && f.list(indicator.values, sizeof(double), kLargestPayload,
                                                             [&](auto& value) { return f(value); });
                      }) &&
               f(e.thumbnail_size) && f.halves(e.thumbnails);
    } else if constexpr (std::is_same_v<Kind, Snapshot>) {
        return f(e.step) && f(e.name) && f(e.bytes) && f(e.seconds) && f(e.best);
    } else if constexpr (std::is_same_v<Kind, Control>) {
        return f(e.step) && f(e.action) && f(e.value) && f(e.outcome) && f(e.id);
    } else if constexpr (std::is_same_v<Kind, SampleText>) {
        return f(e.step) && f(e.prompt) && f(e.text);
    } else if constexpr (std::is_same_v<Kind, Log>) {
        std::uint8_t level = static_cast<std::uint8_t>(e.level);
        const bool whole = f(level) && f(e.step) && f(e.text) && level <= static_cast<std::uint8_t>(LogLevel::error);
        if constexpr (F::kReads) e.level = whole ? static_cast<LogLevel>(level) : LogLevel::note;
        return whole;
    } else if constexpr (std::is_same_v<Kind, StateChanged>) {
        std::uint8_t state = static_cast<std::uint8_t>(e.state);
        const bool whole = f(state) && f(e.step) && f(e.text) && state <= static_cast<std::uint8_t>(RunState::failed);
        if constexpr (F::kReads) e.state = whole ? static_cast<RunState>(state) : RunState::running;
        return whole;
    } else {
        static_assert(std::is_same_v<Kind, Rewound>);
        return f(e.step) && f(e.reason);
    }
}

/// Number of an event's kind in the journal: its place in the variant, from 1. Kinds are only ever added at the end.
template <std::size_t Index = 0>
bool decode_kind(std::size_t index, Reader& reader, What& what) {
    if constexpr (Index < std::variant_size_v<What>) {
        if (index != Index) return decode_kind<Index + 1>(index, reader, what);
        auto& event = what.emplace<Index>();
        return event_fields(reader, event) && event.step >= 0;
    } else {
        return false;
    }
}

}  // namespace

const char* state_name(RunState state) {
    switch (state) {
        case RunState::running:
            return "running";
        case RunState::paused:
            return "paused";
        case RunState::stopped:
            return "stopped";
        case RunState::finished:
            return "finished";
        case RunState::failed:
            return "failed";
    }
    return "running";
}

EncodedEvent encode(const Event& event) {
    EncodedEvent encoded;
    encoded.type = static_cast<std::uint16_t>(event.what.index() + 1);
    Writer writer(encoded.payload);
    writer(event.time);
    std::visit([&](const auto& what) { event_fields(writer, what); }, event.what);
    if (encoded.payload.size() > kLargestPayload) {
        throw Error(ErrorCode::limit, "journal", "expected an event of at most " + size_text(kLargestPayload),
                    "found one of " + size_text(encoded.payload.size()));
    }
    return encoded;
}

Decoding decode(std::uint16_t type, std::string_view payload, Event& event) {
    if (type == 0 || type > std::variant_size_v<What>) return Decoding::unknown_type;
    Reader reader(payload);
    const bool whole = reader(event.time) && decode_kind(type - std::size_t{1}, reader, event.what);
    return whole ? Decoding::event : Decoding::malformed;
}

}  // namespace headscope::training
