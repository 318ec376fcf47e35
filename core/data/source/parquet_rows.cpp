// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/source/parquet_rows.h"

#include <dlfcn.h>

#include <algorithm>
#include <exception>

#include "core/base/error.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/data/parquet/adapter.h"
#include "core/data/source/text_parts.h"

namespace headscope::data {
namespace {

/// The adapter, or why there is none.
struct Adapter {
    parquet::ReadRows read = nullptr;
    std::string problem;
};

void open_adapter(Adapter& adapter) {
    // The program's DT_RPATH has the folder. It stays open: Arrow has static state.
    void* const library = dlopen(parquet::adapter_file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* const why = dlerror();
        adapter.problem = why == nullptr ? "no library" : why;
        return;
    }
    const auto entry = reinterpret_cast<parquet::Entry>(dlsym(library, parquet::adapter_entry));
    adapter.read = entry == nullptr ? nullptr : entry(parquet::adapter_version);
    if (adapter.read == nullptr) adapter.problem = "another version of its library";
}

const Adapter& adapter() {
    static const Adapter opened = [] {
        Adapter made;
        open_adapter(made);
        return made;
    }();
    return opened;
}

/// Keeps what is thrown while Arrow is on the stack.
class RowHost final : public parquet::Host {
public:
    RowHost(const InputFile& file, const TakeRecord& take, const BytesRead& progress)
        : file_(file), take_(take), progress_(progress) {}

    std::uint64_t size() const noexcept override { return file_.size(); }

    bool read(std::uint64_t offset, void* to, std::size_t size) noexcept override {
        return guarded([&] { file_.read(offset, to, size); });
    }

    bool row(std::string_view json, std::uint64_t rows) noexcept override {
        return guarded([&] {
            check_cancellation();
            if (json.size() > longest_line)
                throw Error(ErrorCode::limit, shown(file_.path()) + ", row " + std::to_string(number_ + 1),
                            "expected rows of at most " + size_text(longest_line), "found a longer one");
            take_(json, ++number_);
            if (progress_)
                progress_(static_cast<std::uint64_t>(static_cast<double>(file_.size()) * static_cast<double>(number_) /
                                                     static_cast<double>(std::max(rows, number_))));
        });
    }

    void rethrow() const {
        if (thrown_) std::rethrow_exception(thrown_);
    }

private:
    template <class Work>
    bool guarded(const Work& work) noexcept {
        try {
            work();
            return true;
        } catch (...) {
            thrown_ = std::current_exception();
            return false;
        }
    }

    const InputFile& file_;
    const TakeRecord& take_;
    const BytesRead& progress_;
    std::uint64_t number_ = 0;
    std::exception_ptr thrown_;
};

[[noreturn]] void refuse_result(const InputFile& file, const parquet::Result& result) {
    const std::string place = shown(file.path()), found = "found " + result.found;
    switch (result.outcome) {
        case parquet::Outcome::unsupported:
            throw Error(ErrorCode::unsupported, place, "expected columns of text, numbers, lists and structs", found);
        case parquet::Outcome::memory:
            throw Error(ErrorCode::limit, place,
                        "expected rows and pages that are read within " +
                            size_text(static_cast<std::uint64_t>(parquet::largest_memory)),
                        found);
        default:
            throw Error(ErrorCode::format, place, "expected a whole Parquet file", found);
    }
}

}  // namespace

const std::string& parquet_problem() {
    return adapter().problem;
}

void read_parquet_rows(const InputFile& file, const TakeRecord& take, const BytesRead& progress,
                       const std::vector<std::string>& columns) {
    if (adapter().read == nullptr)
        throw Error(ErrorCode::unsupported, shown(file.path()), "expected text or JSON lines",
                    "found Parquet, which this program cannot read: " + adapter().problem);
    RowHost host(file, take, progress);
    const parquet::Result result = adapter().read(host, columns);
    host.rethrow();
    if (result.outcome != parquet::Outcome::done) refuse_result(file, result);
}

}  // namespace headscope::data
