// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/training/calibration.h"

#include <unistd.h>

#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <array>
#include <chrono>

#include "app/window/text_job.h"
#include "core/base/io/output_file.h"
#include "core/base/process/machine.h"

namespace headscope::app {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kFile = "machine.json";
constexpr int kCalibrationVersion = 1;
constexpr qint64 kMostBytes = 1 << 16;
/// The first run warms caches up. The last one that there is time for counts.
constexpr std::array kTokens{64, 512, 1024};
constexpr double kEnough = 0.25;  ///< seconds of a run that suffice

/// An output of which nothing stays.
class Discarded {
public:
    explicit Discarded(fs::path path) : path_(std::move(path)) {}
    ~Discarded() {
        std::error_code ignored;
        fs::remove(path_, ignored);
    }
    Discarded(const Discarded&) = delete;
    Discarded& operator=(const Discarded&) = delete;
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

analysis::AnalysisRequest request_of(int tokens, std::int64_t vocabulary) {
    analysis::AnalysisRequest request;
    store::SequenceTokens sequence;
    for (int i = 0; i < tokens; ++i) sequence.ids.push_back(static_cast<std::int32_t>(i * 7919LL % vocabulary));
    request.sequences.push_back(std::move(sequence));
    request.record.maps = true;  // as the text panel begins with
    request.beyond_positions = true;
    request.settings_json = "{}";
    return request;
}

}  // namespace

std::optional<double> measure_rate(const fs::path& sample, const fs::path& folder, const Cancellation& cancellation) {
    const auto open = open_checkpoint(QString::fromStdString(sample.string()));
    NoProgress silent;
    const auto weights = model::Model::build(*open->file, checkpoint::LoadAs::float32, &silent, &cancellation);
    const Discarded output(folder / ("calibration-" + std::to_string(::getpid()) + ".headscope.h5"));
    std::optional<double> rate;
    for (const int tokens : kTokens) {
        const auto request = request_of(tokens, open->inspection.config.vocabulary);
        const auto begin = Clock::now();
        analysis::run(*weights, request, output.path(), {}, silent, cancellation);
        const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        const double work = analysis::estimate(open->inspection, request, {}).multiplications;
        const double found = analysis::Rate::measured(work, seconds, {}).multiplications_per_second;
        if (found > 0) rate = found;
        if (seconds > kEnough) break;
    }
    return rate;
}

std::optional<double> load_rate(const fs::path& folder, int threads) {
    QFile file(QString::fromStdString((folder / kFile).string()));
    if (!file.open(QIODevice::ReadOnly) || file.size() > kMostBytes) return std::nullopt;
    const QJsonObject kept = QJsonDocument::fromJson(file.readAll()).object();
    const double rate = kept["multiplications_per_second"].toDouble();
    const bool same = kept["version"].toInt() == kCalibrationVersion && kept["threads"].toInt() == threads &&
                      kept["processor"].toString() == QString::fromStdString(processor_name());
    return same && rate > 0 ? std::optional(rate) : std::nullopt;
}

void save_rate(const fs::path& folder, int threads, double rate) {
    const QJsonObject kept{{"version", kCalibrationVersion},
                           {"processor", QString::fromStdString(processor_name())},
                           {"threads", threads},
                           {"multiplications_per_second", rate}};
    const QByteArray text = QJsonDocument(kept).toJson();
    write_whole_file(folder / kFile, {text.constData(), static_cast<std::size_t>(text.size())}, "settings");
}

}  // namespace headscope::app
