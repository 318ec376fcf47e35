// SPDX-License-Identifier: GPL-3.0-or-later
// Bytes of a journal, and its writer.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "core/base/io/crc32c.h"
#include "core/run/journal.h"
#include "core/run/journal_reader.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/training/journal_events.h"

using namespace headscope;
using namespace headscope::test;
using namespace headscope::training;

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
