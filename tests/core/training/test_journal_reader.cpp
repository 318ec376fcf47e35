// SPDX-License-Identifier: GPL-3.0-or-later
// Reading a journal: damaged, torn, growing, replaced, cut short or stopped.
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/process/cancellation_scope.h"
#include "core/run/journal.h"
#include "core/run/journal_reader.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/training/journal_events.h"

using namespace headscope;
using namespace headscope::test;
using namespace headscope::training;

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
