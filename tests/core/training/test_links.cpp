// SPDX-License-Identifier: GPL-3.0-or-later
// File systems without links (FAT and the like): snapshots work without them.
#include "tests/core/training/training_run.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

#include "core/base/error.h"
#include "core/run/run_folder.h"
#include "core/training/trainer/snapshots.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using namespace headscope::training;

namespace {

/// From now on this process gets `number` for every link that it makes.
bool refuse_links(unsigned number) {
    const auto refusal = static_cast<unsigned>(SECCOMP_RET_ERRNO) | number;
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offsetof(seccomp_data, nr))),
#ifdef SYS_symlink
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_symlink, 1, 0),
#endif
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_symlinkat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, refusal),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum Outcome { linked, refused, no_filter };

/// Results of linking in a process that is refused links.
int outcome(const std::filesystem::path& run, unsigned number) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (!refuse_links(number)) ::_exit(no_filter);
        try {
            SnapshotStore(RunFolder{run}).link("last", 3);
        } catch (const Error&) {
            ::_exit(refused);
        }
        ::_exit(linked);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("A file system without links costs the links and nothing else", "[training][snapshots]") {
    const test::TemporaryFolder folder;
    std::filesystem::create_directories(folder / "snapshots");
    if (outcome(folder.path(), EPERM) == no_filter) return;  // a kernel without filters, or a sandbox around us
    CHECK(outcome(folder.path(), EPERM) == linked);
    CHECK(outcome(folder.path(), EOPNOTSUPP) == linked);
    CHECK(outcome(folder.path(), ENOSPC) == refused);
    CHECK(std::filesystem::is_empty(folder / "snapshots"));
    SnapshotStore(RunFolder{folder.path()}).link("last", 3);
    CHECK(std::filesystem::read_symlink(folder / "snapshots" / "last") == "step-000003");
}

TEST_CASE("A job whose update is beyond counting is refused, however it was set", "[training][job]") {
    const test::TemporaryFolder folder;
    const auto job = test::small_job(
        folder, {"training.batch=1048576", "training.accumulate=1048576", "data.sequence_length=16777216"});
    CHECK_THROWS_MATCHES(test::run(test::fresh(job, folder / "run")), Error,
                         test::IsError(ErrorCode::limit, "training.batch"));
    CHECK_FALSE(std::filesystem::exists(folder / "run"));
}
