// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/rate_book.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/json/json.h"
#include "core/base/process/machine.h"
#include "core/checkpoint/fingerprint.h"
#include "core/model/model.h"

namespace headscope::analysis {
namespace {

using nlohmann::json;

constexpr int kBookVersion = 1;
constexpr std::uint64_t kLargestBook = 1 << 18;
constexpr double kFarthest = 3;  ///< doublings

double doublings(std::int64_t a, std::int64_t b) {
    return std::abs(std::log2(static_cast<double>(std::max<std::int64_t>(1, a)) /
                              static_cast<double>(std::max<std::int64_t>(1, b))));
}

/// How little the rate of one shape says of another; infinite: nothing. The width of the products decides most, then
/// how many rows they have; the depth next to nothing.
double distance(const RateShape& a, const RateShape& b) {
    if (a.bfloat16 != b.bfloat16 || a.threads != b.threads) return HUGE_VAL;
    return doublings(a.hidden, b.hidden) + 0.5 * doublings(a.feed_forward, b.feed_forward) +
           0.5 * doublings(a.tokens, b.tokens) + 0.25 * doublings(a.heads, b.heads) +
           0.1 * doublings(a.vocabulary, b.vocabulary) + 0.1 * doublings(a.layers, b.layers) +
           (a.recorded == b.recorded ? 0 : 0.5);
}

std::optional<std::filesystem::path> own_file() {
    const auto folder = checkpoint::cache_folder();
    return folder ? std::optional(*folder / "rates.json") : std::nullopt;
}

}  // namespace

RateShape rate_shape(const model::Inspection& inspection, const AnalysisRequest& request, bool bfloat16, int threads) {
    const model::ModelConfig& config = inspection.config;
    RateShape shape{config.all_layers(),
                    config.hidden,
                    config.feed_forward,
                    config.heads,
                    config.vocabulary,
                    0,
                    false,
                    bfloat16,
                    threads};
    for (const auto& sequence : request.sequences)
        shape.tokens = std::max(shape.tokens, static_cast<std::int64_t>(sequence.ids.size()));
    const auto& record = request.record;
    shape.recorded = record.maps || record.attention || record.states || record.logits || record.norms ||
                     record.implicit || record.branches || record.experts;
    return shape;
}

void RateBook::add(const RateShape& shape, double multiplications, double seconds) {
    const double rate = Rate::measured(multiplications, seconds, {}).multiplications_per_second;
    if (!(rate > 0) || !std::isfinite(rate)) return;
    std::erase_if(entries_, [&](const Entry& entry) { return entry.shape == shape; });
    entries_.push_back({shape, rate});
    if (entries_.size() > kMost) entries_.erase(entries_.begin());
}

std::optional<Rate> RateBook::find(const RateShape& shape) const {
    const Entry* nearest = nullptr;
    double least = kFarthest;
    for (const Entry& entry : entries_) {
        const double far = distance(entry.shape, shape);
        if (far > least) continue;  // of equally near ones the latest
        least = far;
        nearest = &entry;
    }
    return nearest ? std::optional(Rate{nearest->rate}) : std::nullopt;
}

RateBook RateBook::read(const std::filesystem::path& path, const std::string& processor) {
    RateBook book;
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) return book;
    try {
        const json document = read_json_file(path, kLargestBook, "rates");
        const JsonView view(document, "rates");
        if (view.at("version").integer() != kBookVersion || view.at("processor").string() != processor) return book;
        const JsonView list = view.at("rates").array();
        for (std::size_t i = 0; i < std::min(list.size(), kMost); ++i) {
            const JsonView one = list.at(i);
            const IntegerRange counts{0, std::int64_t{1} << 40U};
            const RateShape shape{one.at("layers").integer(counts),
                                  one.at("hidden").integer(counts),
                                  one.at("feed_forward").integer(counts),
                                  one.at("heads").integer(counts),
                                  one.at("vocabulary").integer(counts),
                                  one.at("tokens").integer(counts),
                                  one.at("recorded").boolean(),
                                  one.at("bfloat16").boolean(),
                                  static_cast<int>(one.at("threads").integer({1, 4096}))};
            if (const double rate = one.at("rate").number(0); rate > 0) book.entries_.push_back({shape, rate});
        }
    } catch (const std::exception&) {
        book.entries_.clear();
    }
    return book;
}

void RateBook::write(const std::filesystem::path& path, const std::string& processor) const {
    json list = json::array();
    for (const Entry& entry : entries_) {
        const RateShape& shape = entry.shape;
        list.push_back({{"layers", shape.layers},
                        {"hidden", shape.hidden},
                        {"feed_forward", shape.feed_forward},
                        {"heads", shape.heads},
                        {"vocabulary", shape.vocabulary},
                        {"tokens", shape.tokens},
                        {"recorded", shape.recorded},
                        {"bfloat16", shape.bfloat16},
                        {"threads", shape.threads},
                        {"rate", entry.rate}});
    }
    write_whole_file(path, json_text({{"version", kBookVersion}, {"processor", processor}, {"rates", list}}), "rates");
}

RateBook RateBook::own() {
    const auto file = own_file();
    return file ? read(*file, processor_name()) : RateBook();
}

void RateBook::keep(const RateShape& shape, double multiplications, double seconds) {
    const auto file = own_file();
    if (!file) return;
    RateBook book = own();
    book.add(shape, multiplications, seconds);
    try {
        book.write(*file, processor_name());
    } catch (const Stopped&) {
        throw;
    } catch (const Error&) {
    }
}

}  // namespace headscope::analysis
