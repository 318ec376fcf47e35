// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/tokeniser.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/machine/processors.h"

namespace headscope::data {
namespace {

constexpr std::size_t batch_bytes = std::size_t{256} << 10U;
constexpr int most_threads = 16;

}  // namespace

Tokeniser::Tokeniser(Encode encode, TokenWriter& writer, const Cancellation& cancellation, int threads)
    : encode_(std::move(encode)), writer_(writer), cancellation_(cancellation) {
    if (threads <= 0) threads = usable_processors();
    for (int i = 0; i < std::clamp(threads, 1, most_threads); ++i) {
        try {
            workers_.push_back(std::make_unique<Worker>());
        } catch (const Error&) {
            if (workers_.empty()) throw;
            break;  // the system gives no more
        }
    }
}

Tokeniser::~Tokeniser() = default;

void Tokeniser::begin_document() {
    batch_.push_back({"", source_, label_, true, false});
}

void Tokeniser::part(std::string_view text) {
    if (batch_.empty()) batch_.push_back({"", source_, label_, false, false});
    // A part is tokenised by itself, so it gets a stretch by itself.
    if (!batch_.back().text.empty()) batch_.push_back({"", source_, label_, false, false});
    batch_.back().text = text;
    batch_bytes_ += text.size();
    if (batch_bytes_ >= batch_bytes) send();
}

void Tokeniser::end_document() {
    if (batch_.empty()) batch_.push_back({"", source_, label_, false, false});
    batch_.back().ends = true;
    // Documents without text take memory too.
    if (batch_.size() >= batch_bytes / 16) send();
}

void Tokeniser::send() {
    if (batch_.empty()) return;
    while (waiting_.size() >= 2 * workers_.size()) write_first();
    auto batch = std::make_shared<Batch>(std::move(batch_));
    batch_ = {};
    batch_bytes_ = 0;
    auto work = std::make_shared<std::packaged_task<Ids()>>([this, batch] {
        Ids ids;
        for (const Stretch& stretch : *batch) {
            cancellation_.check();
            ids.push_back(encode_(stretch.text, cancellation_));
        }
        return ids;
    });
    waiting_.push_back({batch, work->get_future()});
    workers_[next_worker_++ % workers_.size()]->post(this, [work](const Cancellation&) { (*work)(); });
}

void Tokeniser::write_first() {
    Waiting first = std::move(waiting_.front());
    waiting_.pop_front();
    const Ids ids = first.ids.get();
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const Stretch& stretch = (*first.batch)[i];
        if (stretch.begins) writer_.begin_document(stretch.source, stretch.label);
        writer_.append(ids[i]);
        if (stretch.ends) writer_.end_document();
    }
}

void Tokeniser::finish() {
    send();
    while (!waiting_.empty()) write_first();
}

}  // namespace headscope::data
