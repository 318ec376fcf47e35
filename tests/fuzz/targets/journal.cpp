// SPDX-License-Identifier: GPL-3.0-or-later
// A run's journal. "j" and a file's bytes as they are; "f", or "w" for one that is opened for writing, and pieces: a
// byte for the type, two for the length, a payload, of which a whole frame is made with its checksum; types from 240
// on: bytes between frames. All whole frames must be found whatever lies between them, in pieces of any size alike;
// what is decoded must come back from its encoding; and what the events come to must be a run without contradictions.
#include <algorithm>
#include <cstring>
#include <fstream>

#include "core/run/journal.h"
#include "core/run/journal_reader.h"
#include "core/run/run_history.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {
namespace {

using namespace training;

struct Assembled {
    std::string bytes = journal_header();
    std::size_t events = 0;  ///< frames that can be decoded
    bool told = true;        ///< nothing between the frames looks like one
};

Assembled assemble(std::string_view input) {
    Assembled file;
    while (input.size() >= 3) {
        const auto type = static_cast<unsigned char>(input[0]);
        const auto low = static_cast<unsigned char>(input[1]), high = static_cast<unsigned char>(input[2]);
        input.remove_prefix(3);
        const std::string_view part = input.substr(0, std::min<std::size_t>(input.size(), low | high << 8U));
        input.remove_prefix(part.size());
        if (type >= 240) {
            file.bytes += part;
            file.told &= part.find('\xff') == std::string_view::npos;  // the marker's last byte
            continue;
        }
        if (type == 0) continue;
        Event event;
        file.events += decode(type, part, event) == Decoding::event ? 1 : 0;
        file.bytes += frame({type, std::string(part)});
    }
    return file;
}

std::vector<std::string> payloads(const std::vector<Event>& events) {
    std::vector<std::string> all;
    for (const Event& event : events) all.push_back(encode(event).payload);
    return all;
}

void check_round_trip(const Event& event) {
    const EncodedEvent encoded = encode(event);
    Event again;
    expect(decode(encoded.type, encoded.payload, again) == Decoding::event, "an event to be read back");
    expect(encode(again).payload == encoded.payload, "the same event");
}

void check_run(const std::vector<Event>& events) {
    RunHistory history;
    for (const Event& event : events) history.add(event);
    const store::RunRecord run = history.take();
    const auto& t = run.training;
    expect(std::is_sorted(t.step.begin(), t.step.end(), std::less_equal<>()) || t.step.size() < 2, "steps that rise");
    for (const std::size_t size : {t.tokens.size(), t.loss.size(), t.learning_rate.size(), t.gradient_norm.size(),
                                   t.tokens_per_second.size(), t.seconds.size(), t.memory.size()})
        expect(size == t.step.size(), "columns of one length");
    expect(run.validation.loss.size() == run.validation.step.size(), "a loss for each validation");
    const auto sites = run.sites.size(), cells = sites * static_cast<std::size_t>(run.heads());
    const auto probes = static_cast<std::size_t>(run.probes.count());
    for (const auto& indicator : run.probes.indicators) {
        const std::size_t each = indicator.per_head ? cells * static_cast<std::size_t>(indicator.width) : sites;
        expect(indicator.values.size() == probes * each, "values for every probe, site and head");
    }
    const auto size = static_cast<std::size_t>(run.probes.thumbnail_size);
    expect(run.probes.thumbnails.size() == probes * cells * size * size, "thumbnails for every probe, site and head");
}

}  // namespace

void run_journal(std::string_view input) {
    if (input.empty()) return;
    static MemoryFile memory;
    const char kind = input[0];
    input.remove_prefix(1);
    const Assembled file = kind == 'j' ? Assembled{std::string(input), 0, false} : assemble(input);
    memory.set(file.bytes);

    std::vector<Event> events;
    const auto error = refusal([&] { events = read_journal(memory.path()); });
    expect(kind == 'j' || !error, "a journal with a header to be read");
    if (error) return;
    if (file.told) expect(events.size() == file.events, "every whole event");
    std::vector<Event> slowly;
    JournalReader reader(memory.path());
    for (bool more = true; more;) {
        auto batch = reader.read(1);
        slowly.insert(slowly.end(), batch.events.begin(), batch.events.end());
        more = batch.more;
    }
    expect(payloads(slowly) == payloads(events), "the same events in pieces");
    for (const Event& event : events) check_round_trip(event);
    check_run(events);
    if (kind != 'w') return;
    // On a file of its own: through a link, as the path of a file in memory is, no journal is written.
    static const test::TemporaryFolder folder;
    const auto written = folder / "journal";
    std::ofstream(written, std::ios::binary | std::ios::trunc) << file.bytes;
    const auto refused = refusal([&] {
        JournalWriter writer(written);
        writer.append(Rewound{1, "fuzzing"});
    });
    expect(!refused, "a journal to be written on");
    expect(read_journal(written).size() == events.size() + 1, "the events and one more");
}

}  // namespace headscope::fuzz
