// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Events of a run, as its journal records them (journal.h): one struct each. The trainer writes them in order; window,
// run.h5 and figures are built from them alone. Steps count from 1: step N is the state after N updates, step 0 the
// state before the first. All text is UTF-8. No torch here: the window includes this.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/site.h"

namespace headscope::training {

/// A process starts or resumes the run: the first event of a journal, and one for every resume.
struct Started {
    std::int64_t step = 0;  ///< it goes on from: 0 for a new run, that of the snapshot on resume
    std::string job;        ///< TOML, every key written out
    std::string program_version;
    std::string model_type;           ///< "headscope", "qwen2", ...
    std::string config_json;          ///< the model's configuration, every choice written out
    std::int64_t parameters = 0;      ///< trained elements
    std::vector<std::string> mixers;  ///< of each layer
    std::vector<Site> sites;          ///< what ProbeResult's values are of
    std::int64_t threads = 0, processes = 1;
    std::string machine;     ///< processor, for people
    std::string data_hash;   ///< of the token file or generator: what the run learns from
    std::int64_t steps = 0;  ///< planned; 0: until a time is over
    /// kernels::chosen_device() and chosen_kernels(); empty: not recorded
    std::string device, kernels;
};

/// After an update.
struct Step {
    std::int64_t step = 0;
    std::int64_t tokens = 0;       ///< seen since step 0
    double loss = 0;               ///< nats a token, mean over the batch, before the update
    double learning_rate = 0;      ///< of this update
    double gradient_norm = 0;      ///< before clipping
    double tokens_per_second = 0;  ///< of this step
    double seconds = 0;            ///< of training since step 0, without pauses and without what was rewound
    double memory = 0;             ///< resident bytes of the process (of several: the first one), now
    /// Share of the targets that the model says, of objectives other than next_token; NaN: not measured.
    double accuracy = std::numeric_limits<double>::quiet_NaN();
};

struct Validation {
    std::int64_t step = 0;
    double loss = 0;                                             ///< nats a token
    std::int64_t tokens = 0;                                     ///< that it was measured on
    double seconds = 0;                                          ///< that it took
    double accuracy = std::numeric_limits<double>::quiet_NaN();  ///< as Step's
};

/// The indicators of the fixed probe batch after `step` updates, means over its sequences. n sites, H heads (the most
/// that any site has); NaN where a value does not exist.
struct ProbeResult {
    /// A name of an analysis file's /indicators, or score_minimum, score_maximum, score_mean, score_variance.
    /// Values [n, H]; head_diversity [n]; local_focus [n, H, 4].
    struct Indicator {
        std::string name;
        std::vector<double> values;
    };
    std::int64_t step = 0;
    double seconds = 0;  ///< that it took
    std::vector<Indicator> indicators;
    /// Block means of the first sequence's weights, [n, H, size, size], for the timeline; empty: none. Kept as float16.
    std::int64_t thumbnail_size = 0;
    std::vector<float> thumbnails;
};

struct Snapshot {
    std::int64_t step = 0;
    std::string name;  ///< of the folder in snapshots/: "step-000200"
    std::uint64_t bytes = 0;
    double seconds = 0;  ///< that writing took
    bool best = false;   ///< by evaluation.metric so far
};

/// A request from the control folder, and its result.
struct Control {
    std::int64_t step = 0;  ///< it took effect after this step
    std::string action;     ///< pause, resume, stop, learning_rate, evaluate, snapshot, ...
    std::string value;      ///< as written: "3e-4"
    std::string outcome;    ///< what was done, or why nothing was
    std::string id = {};    ///< of the request, for its sender; empty: the trainer acted by itself
};

struct SampleText {
    std::int64_t step = 0;
    std::string prompt, text;  ///< what was given, and what the model went on with
};

enum class LogLevel : std::uint8_t { note, warning, error };
struct Log {
    LogLevel level = LogLevel::note;
    std::int64_t step = 0;
    std::string text;
};

/// State of the run. If the last state is `running` or `paused` and no process writes the journal (being_written() of
/// journal.h), the job died.
enum class RunState : std::uint8_t {
    running,  ///< also after a pause
    paused,
    stopped,   ///< on request; can be resumed
    finished,  ///< all steps done
    failed,    ///< `text` says why
};
struct StateChanged {
    RunState state = RunState::running;
    std::int64_t step = 0;
    std::string text;
};

/// The run continues from an earlier step (a resume from a snapshot, a spike taken back). Supersedes all earlier
/// records of steps, validations, probes, snapshots and samples after `step`; they stay in the journal.
struct Rewound {
    std::int64_t step = 0;
    std::string reason;
};

using What =
    std::variant<Started, Step, Validation, ProbeResult, Snapshot, Control, SampleText, Log, StateChanged, Rewound>;

struct Event {
    double time = 0;  ///< seconds since 1970, UTC; as the clock of the machine says
    What what;
};

/// "running", "paused", ...
const char* state_name(RunState state);

/// An event's payload in the journal, and its type there. Little-endian; texts and lists with their length before them.
struct EncodedEvent {
    std::uint16_t type = 0;
    std::string payload;
};
/// Throws Error limit for an event that is larger than a journal takes (kLargestPayload).
EncodedEvent encode(const Event& event);

enum class Decoding { event, unknown_type, malformed };
/// Never throws but std::bad_alloc; takes no more memory than a small multiple of the payload's bytes. Fields that a
/// newer program put behind those known here are passed over; unknown_type is an event of a newer program. Text that is
/// no UTF-8 is malformed, and so are negative steps and sizes that do not fit the payload.
Decoding decode(std::uint16_t type, std::string_view payload, Event& event);

inline constexpr std::uint32_t kLargestPayload = 64U << 20U;

}  // namespace headscope::training
