// SPDX-License-Identifier: GPL-3.0-or-later
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <random>
#include <thread>

#include "core/base/io/crc32c.h"
#include "core/base/process/cancellation_scope.h"
#include "core/run/journal.h"
#include "core/run/journal_reader.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using namespace headscope::test;
using namespace headscope::training;

namespace {

Step step(std::int64_t n) {
    return {n, n * 1024, 5.0 / static_cast<double>(n), 1e-3, 0.5, 1e4, 0.25 * static_cast<double>(n), 3e8};
}

std::vector<What> one_of_each() {
    Started started;
    started.job = "name = \"ä\"\n[model]\npreset = \"tiny-1m\"\n";
    started.program_version = "0.1.0";
    started.model_type = "headscope";
    started.config_json = "{}";
    started.parameters = 1234567;
    started.mixers = {"standard", "mlp"};
    started.sites.resize(2);
    started.sites[0].heads = 4;
    started.sites[1].layer = 1;
    started.sites[1].has_matrix = false;
    started.sites[1].has_implicit = true;
    started.threads = 2;
    started.data_hash = std::string(64, 'a');
    started.steps = 1000;
    started.device = "cuda:0 A card sm_90";
    started.kernels = "cuda";
    ProbeResult probe;
    probe.step = 50;
    probe.indicators = {{"entropy", {1.5, 0.25, std::numeric_limits<double>::quiet_NaN(), 2}},
                        {"head_diversity", {1, 2}}};
    probe.thumbnail_size = 2;
    probe.thumbnails = {0.5F, 0.0F, 0.25F, 1.0F};
    return {started,
            step(1),
            Validation{1, 5.5, 4096, 0.5, 0.75},
            probe,
            Snapshot{200, "step-000200", 4000000, 0.25, true},
            Control{200, "learning_rate", "3e-4", "set", "00017-4-1"},
            SampleText{200, "In the", " beginning"},
            Log{LogLevel::warning, 200, "a spike"},
            StateChanged{RunState::failed, 201, "found a loss that is not finite"},
            Rewound{200, "resumed from step-000200"}};
}

/// Equal payloads mean equal events, NaN included.
std::vector<std::string> texts(const std::vector<Event>& events) {
    std::vector<std::string> all;
    for (const Event& event : events) {
        const EncodedEvent encoded = encode(event);
        all.push_back(std::to_string(encoded.type) + encoded.payload);
    }
    return all;
}

std::vector<Event> timed(const std::vector<What>& whats) {
    std::vector<Event> events;
    for (const What& what : whats) events.push_back({1000.0 + static_cast<double>(events.size()), what});
    return events;
}

std::string journal_of(const std::vector<Event>& events) {
    std::string bytes = journal_header();
    for (const Event& event : events) bytes += frame(encode(event));
    return bytes;
}

}  // namespace

TEST_CASE("CRC-32C is that of the standard, in one piece or several", "[base][crc32c]") {
    REQUIRE(crc32c("123456789") == 0xE3069283U);
    REQUIRE(crc32c(std::string(32, '\0')) == 0x8A9136AAU);
    REQUIRE(crc32c(std::string(32, '\xff')) == 0x62A8AB43U);
    const std::string text = "a journal of many events, of an odd number of bytes.";
    for (std::size_t at = 0; at <= text.size(); ++at)
        REQUIRE(crc32c(text.substr(at), crc32c(text.substr(0, at))) == crc32c(text));
}

TEST_CASE("What is written to a journal is read from it, every kind of event", "[training][journal]") {
    const TemporaryFolder folder;
    const auto events = timed(one_of_each());
    REQUIRE(events.size() == std::variant_size_v<What>);
    {
        JournalWriter writer(folder / "events.log");
        for (const Event& event : events) writer.append(event.what, event.time);
    }
    REQUIRE(texts(read_journal(folder / "events.log")) == texts(events));
    REQUIRE(read_file(folder / "events.log") == journal_of(events));
}

TEST_CASE("Steps and validations of older programs have no accuracy", "[training][journal]") {
    Step now = step(3);
    now.accuracy = 0.5;
    for (const What& what : std::vector<What>{now, Validation{3, 5.5, 4096, 0.5, 0.25}}) {
        EncodedEvent encoded = encode({1.0, what});
        const auto accuracy = [&] {
            Event event;
            REQUIRE(decode(encoded.type, encoded.payload, event) == Decoding::event);
            const auto* of_step = std::get_if<Step>(&event.what);
            return of_step != nullptr ? of_step->accuracy : std::get<Validation>(event.what).accuracy;
        };
        CHECK(accuracy() == (std::holds_alternative<Step>(what) ? 0.5 : 0.25));
        encoded.payload.resize(encoded.payload.size() - sizeof(double));
        CHECK(std::isnan(accuracy()));
        encoded.payload.resize(encoded.payload.size() - 1);
        Event event;
        CHECK(decode(encoded.type, encoded.payload, event) == Decoding::malformed);
    }
}

TEST_CASE("Runs of older programs have no device", "[training][journal]") {
    Started started;
    started.sites.resize(1);
    started.sites[0].has_implicit = true;
    started.device = "cpu";
    started.kernels = "AVX3";
    EncodedEvent encoded = encode({1.0, started});
    Event event;
    REQUIRE(decode(encoded.type, encoded.payload, event) == Decoding::event);
    CHECK(std::get<Started>(event.what).device == "cpu");
    CHECK(std::get<Started>(event.what).kernels == "AVX3");
    encoded.payload.resize(encoded.payload.size() - (2 * sizeof(std::uint32_t) + std::string("cpuAVX3").size()));
    REQUIRE(decode(encoded.type, encoded.payload, event) == Decoding::event);
    CHECK(std::get<Started>(event.what).device.empty());
    CHECK(std::get<Started>(event.what).sites.at(0).has_implicit);
    encoded.payload.resize(encoded.payload.size() - 1);
    REQUIRE(decode(encoded.type, encoded.payload, event) == Decoding::event);
    CHECK_FALSE(std::get<Started>(event.what).sites.at(0).has_implicit);
}

TEST_CASE("Text that is no UTF-8 is made readable before it is written", "[training][journal]") {
    const auto encoded = encode({1, SampleText{3, "a", "half of \xc3"}});
    Event event;
    REQUIRE(decode(encoded.type, encoded.payload, event) == Decoding::event);
    REQUIRE(std::get<SampleText>(event.what).text == "half of <0xC3>");
}

TEST_CASE("The reader cuts a very long text, with a mark", "[training][journal]") {
    const TemporaryFolder folder;
    std::string text(5'000'000, 'a');
    text.replace(kLongestSample - 1, 2, "é");  // across the place of the cut
    write_file(folder / "events.log", journal_of(timed({SampleText{1, text, text}, Log{LogLevel::note, 1, text},
                                                        StateChanged{RunState::failed, 1, text},
                                                        Control{1, "stop", "", text}, Rewound{0, text}})));
    const auto events = read_journal(folder / "events.log");
    REQUIRE(events.size() == 5);
    const auto& sample = std::get<SampleText>(events[0].what);
    CHECK(sample.text == text.substr(0, kLongestSample - 1) + " … 3 951 425 bytes more");
    CHECK(sample.prompt == sample.text);
    const std::string line = text.substr(0, kLongestLine) + " … 4 983 616 bytes more";
    CHECK(std::get<Log>(events[1].what).text == line);
    CHECK(std::get<StateChanged>(events[2].what).text == line);
    CHECK(std::get<Control>(events[3].what).outcome == line);
    CHECK(std::get<Rewound>(events[4].what).reason == line);
}

TEST_CASE("A journal torn at any byte gives the events before, and goes on after them", "[training][journal]") {
    const TemporaryFolder folder;
    const auto events = timed({one_of_each()[1], one_of_each()[3], one_of_each()[7], one_of_each()[9]});
    const std::string whole = journal_of(events);
    std::vector<std::size_t> ends{kJournalHeaderBytes};
    for (const Event& event : events) ends.push_back(ends.back() + frame(encode(event)).size());
    REQUIRE(ends.back() == whole.size());
    const auto path = folder / "events.log";
    for (std::size_t size = 0; size <= whole.size(); ++size) {
        write_file(path, whole.substr(0, size));
        std::size_t left = 0;
        while (left < events.size() && ends[left + 1] <= size) ++left;
        CAPTURE(size, left);
        const std::vector<Event> before(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(left));
        REQUIRE(texts(read_journal(path)) == texts(before));
        JournalReader reader(path);
        REQUIRE(reader.read().events.size() == left);
        {
            JournalWriter writer(path);
            REQUIRE(writer.cut() == size - (size < kJournalHeaderBytes ? 0 : ends[left]));
            writer.append(events.back().what, events.back().time);
        }
        const auto rest = reader.read();
        REQUIRE(!rest.restarted);
        REQUIRE(texts(rest.events) == texts({events.back()}));
        REQUIRE(read_journal(path).size() == left + 1);
    }
}

TEST_CASE("A byte of a journal that changed costs the event that it is in and no other", "[training][journal]") {
    const TemporaryFolder folder;
    const auto path = folder / "events.log";
    const auto events = timed({step(1), step(2), Log{LogLevel::note, 2, "told"}, step(3)});
    const std::string whole = journal_of(events);
    for (std::size_t at = kJournalHeaderBytes; at < whole.size(); ++at) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ 0x10);
        write_file(path, changed);
        CAPTURE(at);
        REQUIRE(read_journal(path).size() == events.size() - 1);
    }
}

TEST_CASE("A journal is read while it grows", "[training][journal]") {
    const TemporaryFolder folder;
    JournalReader reader(folder / "events.log");
    REQUIRE(reader.read().events.empty());
    JournalWriter writer(folder / "events.log");
    REQUIRE(reader.read().events.empty());
    for (int n = 1; n <= 100; ++n) {
        writer.append(step(n));
        if (n % 7 != 0) continue;
        const auto batch = reader.read();
        REQUIRE(batch.events.size() == 7);
        REQUIRE(std::get<Step>(batch.events.back().what).step == n);
        REQUIRE(!batch.more);
    }
    REQUIRE(reader.read().events.size() == 100 % 7);
    JournalReader slow(folder / "events.log");
    std::size_t seen = 0;
    int calls = 0;
    for (bool more = true; more; ++calls) {
        const auto batch = slow.read(500);
        more = batch.more;
        seen += batch.events.size();
    }
    REQUIRE(seen == 100);
    REQUIRE(calls > 10);
}

TEST_CASE("A replaced or shortened journal is read from the start", "[training][journal]") {
    const TemporaryFolder folder;
    const auto path = folder / "events.log";
    write_file(path, journal_of(timed({step(1), step(2)})));
    JournalReader reader(path);
    REQUIRE(reader.read().events.size() == 2);
    SECTION("replaced") {
        write_file(folder / "other", journal_of(timed({step(1), step(2), step(3)})));
        std::filesystem::rename(folder / "other", path);
    }
    SECTION("shorter") {
        write_file(path, journal_of(timed({step(9)})));
    }
    const auto batch = reader.read();
    REQUIRE(batch.restarted);
    REQUIRE(!batch.events.empty());
}

TEST_CASE("A read that ends in its middle loses no event, whenever that is", "[training][journal]") {
    const TemporaryFolder folder;
    const auto path = folder / "events.log";
    std::vector<What> whats;
    for (std::int64_t n = 1; n <= 1200; ++n) {
        whats.emplace_back(step(n));
        whats.emplace_back(Log{LogLevel::note, n, std::string(10'000, 'a')});
    }
    const auto events = timed(whats);
    std::string bytes = journal_of(events);
    bytes.insert(bytes.size() / 2, 5000, 'x');  // damage is counted once, too
    write_file(path, bytes);
    JournalReader whole(path);
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const auto expected = texts(whole.read().events);
    const auto taken = Clock::now() - begin;
    REQUIRE(expected.size() >= events.size() - 1);
    int stopped = 0;
    constexpr int kRounds = 16;
    for (int round = 0; round < kRounds; ++round) {
        JournalReader reader(path);
        {
            Cancellation cancellation;
            if (round == 0) cancellation.request();
            std::thread other([&] {
                std::this_thread::sleep_for(taken * round / kRounds);
                cancellation.request();
            });
            const CancellationScope scope(cancellation);
            try {
                reader.read();
                other.join();
                continue;  // it was quicker
            } catch (const Stopped&) {
                ++stopped;
            }
            other.join();
        }
        CHECK(reader.position() == 0);
        CHECK(reader.damaged_bytes() == 0);
        CAPTURE(round);
        CHECK(texts(reader.read().events) == expected);
        CHECK(reader.damaged_bytes() == whole.damaged_bytes());
        CHECK(reader.position() == whole.position());
    }
    CHECK(stopped > 0);
}

TEST_CASE("The next read after a failed one reports a replaced journal", "[training][journal]") {
    const TemporaryFolder folder;
    const auto path = folder / "events.log";
    write_file(path, journal_of(timed({step(1), step(2)})));
    JournalReader reader(path);
    REQUIRE(reader.read().events.size() == 2);
    write_file(folder / "other", journal_of(timed({step(1), step(2), step(3)})));
    std::filesystem::rename(folder / "other", path);
    {
        Cancellation cancellation;
        cancellation.request();
        const CancellationScope scope(cancellation);
        REQUIRE_THROWS_AS(reader.read(), Stopped);
    }
    const auto batch = reader.read();
    CHECK(batch.restarted);
    CHECK(batch.events.size() == 3);
    CHECK_FALSE(reader.read().restarted);
}

TEST_CASE("Of a long journal the last events alone can be read", "[training][journal]") {
    const TemporaryFolder folder;
    const auto path = folder / "events.log";
    std::vector<What> whats;
    for (std::int64_t n = 1; n <= 500; ++n) whats.emplace_back(step(n));
    const auto events = timed(whats);
    write_file(path, journal_of(events));
    const std::size_t one = frame(encode(events.back())).size();
    JournalReader reader(path, 3 * one + one / 2);
    auto batch = reader.read();
    REQUIRE(batch.events.size() == 3);
    CHECK(std::get<Step>(batch.events.front().what).step == 498);
    JournalWriter(path).append(step(501));
    batch = reader.read();
    REQUIRE(batch.events.size() == 1);
    CHECK_FALSE(batch.restarted);
    CHECK(JournalReader(path, 1 << 20).read().events.size() == 501);
    CHECK(JournalReader(path, 2 * one).read().events.size() == 2);
    CHECK(JournalReader(path, 5).read().events.empty());
}

TEST_CASE("One process at a time writes a journal", "[training][journal]") {
    const TemporaryFolder folder;
    const auto path = folder / "events.log";
    REQUIRE(!being_written(path));
    {
        JournalWriter writer(path);
        REQUIRE(being_written(path));
        REQUIRE_THROWS_MATCHES(JournalWriter(path), Error, IsError(ErrorCode::usage, "no other process"));
        writer.append(step(1));
        writer.sync();
    }
    REQUIRE(!being_written(path));
    REQUIRE(read_journal(path).size() == 1);
}

TEST_CASE("A writer that is killed loses nothing that it appended", "[training][journal]") {
    const TemporaryFolder folder;
    const auto path = folder / "events.log";
    std::mt19937 random(20260101);
    std::int64_t before = 0;
    for (int round = 0; round < 20; ++round) {
        int pipe[2];
        REQUIRE(::pipe(pipe) == 0);
        const pid_t child = ::fork();
        if (child == 0) {
            JournalWriter writer(path, std::chrono::milliseconds(1));
            for (std::int64_t n = before + 1;; ++n) {
                writer.append(step(n));
                if (::write(pipe[1], &n, sizeof n) != sizeof n) ::_exit(1);
            }
        }
        ::close(pipe[1]);
        std::int64_t told = before;
        // Every other time it has begun to write, however slow the machine is.
        if (round % 2 == 0) REQUIRE(::read(pipe[0], &told, sizeof told) == sizeof told);
        ::usleep(1000 + random() % 5000);
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        while (::read(pipe[0], &told, sizeof told) == sizeof told) {
        }
        ::close(pipe[0]);
        REQUIRE(!being_written(path));
        const auto events = read_journal(path);
        // Reported events are there; one more may be.
        REQUIRE((std::ssize(events) == told || std::ssize(events) == told + 1));
        for (std::size_t i = 0; i < events.size(); ++i)
            REQUIRE(std::get<Step>(events[i].what).step == static_cast<std::int64_t>(i) + 1);
        before = std::ssize(events);
    }
    REQUIRE(before >= 10);
}

TEST_CASE("A disk that is full leaves whole events, and the journal goes on when there is room",
          "[training][journal]") {
    const TemporaryFolder folder;
    const auto path = folder / "events.log";
    JournalWriter writer(path);
    writer.append(step(1));
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{std::filesystem::file_size(path) + 50, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    REQUIRE_THROWS_MATCHES(writer.append(step(2)), Error, IsError(ErrorCode::io, "write the journal"));
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    REQUIRE(read_file(path) == journal_of({read_journal(path)[0]}));
    writer.append(step(2));
    REQUIRE(read_journal(path).size() == 2);
}

TEST_CASE("What is no journal is refused and left alone", "[training][journal]") {
    const TemporaryFolder folder;
    const auto path = folder / "events.log";
    write_file(path, "a text that somebody wrote, longer than a header");
    REQUIRE_THROWS_MATCHES(read_journal(path), Error, IsError(ErrorCode::mismatch, "journal of a run"));
    REQUIRE_THROWS_MATCHES(JournalWriter(path), Error, IsError(ErrorCode::mismatch, "journal of a run"));
    REQUIRE(read_file(path).starts_with("a text"));
    std::string newer = "HSEVENTS";
    newer += std::string("\2\0\0\0", 4);
    const std::uint32_t sum = crc32c(newer);
    newer.append(reinterpret_cast<const char*>(&sum), 4);
    write_file(path, newer);
    REQUIRE_THROWS_MATCHES(read_journal(path), Error, IsError(ErrorCode::unsupported, "version 2"));
    REQUIRE_THROWS_MATCHES(read_journal(folder.path()), Error, IsError(ErrorCode::mismatch, "folder"));
    REQUIRE(read_journal(folder / "absent").empty());
}

TEST_CASE("Sites from an older program have no implicit matrices", "[training][journal]") {
    const What what = one_of_each().front();
    const Started& started = std::get<Started>(what);
    const std::size_t sites = started.sites.size();
    const std::size_t device = 2 * sizeof(std::uint32_t) + started.device.size() + started.kernels.size();
    EncodedEvent encoded = encode({5, what});
    Event event;
    REQUIRE(decode(encoded.type, encoded.payload, event) == Decoding::event);
    REQUIRE(std::get<Started>(event.what).sites[1].has_implicit);
    encoded.payload.resize(encoded.payload.size() - device - sites);
    REQUIRE(decode(encoded.type, encoded.payload, event) == Decoding::event);
    REQUIRE_FALSE(std::get<Started>(event.what).sites[1].has_implicit);
    REQUIRE(std::get<Started>(event.what).steps == 1000);
    encoded.payload.resize(encoded.payload.size() - 1);  // torn in a field that every program wrote
    REQUIRE(decode(encoded.type, encoded.payload, event) == Decoding::malformed);
}

TEST_CASE("Events and fields of a newer program are passed over", "[training][journal]") {
    const TemporaryFolder folder;
    const auto path = folder / "events.log";
    EncodedEvent longer = encode({5, step(1)});
    longer.payload += "more than is known today";
    write_file(path, journal_header() + frame(longer) + frame({999, "something"}) + frame(encode({6, step(2)})));
    JournalReader reader(path);
    const auto batch = reader.read();
    REQUIRE(batch.events.size() == 2);
    REQUIRE(reader.unknown_events() == 1);
    REQUIRE(reader.damaged_bytes() == 0);
}
