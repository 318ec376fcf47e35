// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/series.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <system_error>
#include <utility>

#include "core/analysis/request.h"
#include "core/ask/answers.h"
#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/model/model.h"
#include "core/store/analysis/analysis_file.h"

namespace headscope::ask {
namespace {

constexpr const char* kDistanceAxis = "/distance";

/// A file that is removed when this ends.
class Scratch {
public:
    explicit Scratch(std::filesystem::path path) : path_(std::move(path)) {}
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

/// Progress of one model as its share of all.
class PartOfSeries final : public Progress {
public:
    PartOfSeries(Progress& whole, std::size_t number, std::size_t count)
        : whole_(whole), number_(number), count_(count) {}
    void advance(double done, double all, const std::string&) override {
        const double share = all > 0 ? done / all : 0;
        whole_.advance(static_cast<double>(number_) + share, static_cast<double>(count_),
                       "model " + std::to_string(number_ + 1) + " of " + std::to_string(count_));
    }

private:
    Progress& whole_;
    std::size_t number_, count_;
};

void check_shape(const model::Model& model, const store::AskRecord& record, std::int64_t vocabulary,
                 const std::string& path) {
    const auto refuse = [&](const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::mismatch, escaped(path), "expected a model of the first one's shape: " + expected,
                    "found " + found);
    };
    const auto& sites = model.sites();
    if (sites.size() != record.sites.size())
        refuse(std::to_string(record.sites.size()) + " attentions", std::to_string(sites.size()));
    for (std::size_t i = 0; i < sites.size(); ++i)
        if (sites[i].heads != record.sites[i].heads || sites[i].layer != record.sites[i].layer)
            refuse(std::to_string(record.sites[i].heads) + " heads in layer " + std::to_string(record.sites[i].layer),
                   std::to_string(sites[i].heads) + " in layer " + std::to_string(sites[i].layer));
    if (model.config().vocabulary != vocabulary)
        refuse(std::to_string(vocabulary) + " tokens", std::to_string(model.config().vocabulary));
}

void add_distances(store::AskRecord& record, std::int64_t size) {
    record.add_dimension(kDistanceAxis, size, "distance in tokens");
}

/// Dimensions of tables that a file had.
void restore_distances(store::AskRecord& record) {
    for (const store::AskTable& table : record.tables) {
        if (table.dimensions.empty() || table.dimensions.back() != kDistanceAxis) continue;
        std::int64_t others = 1;
        for (std::size_t i = 0; i + 1 < table.dimensions.size(); ++i) others *= record.size_of(table.dimensions[i]);
        add_distances(record, others > 0 ? std::ssize(table.values) / others : 0);
        return;
    }
}

/// Adds the table of an indicator, by the axes that analysis files give it.
void add_indicator(store::AskRecord& record, const std::string& name, const store::Values& values) {
    std::vector<std::string> axes{"/checkpoint", "/sequence", "/site"};
    if (values.shape.size() > 2) axes.emplace_back("/head");
    if (values.shape.size() > 3) axes.emplace_back(kDistanceAxis);
    record.add_table("/series/" + name, axes, name);
}

double mean_loss(const store::Values& loss) {
    double sum = 0, count = 0;
    for (const double one : loss.data) {
        if (std::isnan(one)) continue;
        sum += one;
        ++count;
    }
    return count > 0 ? sum / count : std::nan("");
}

/// Checkpoints in a folder that is none, with the steps in their names, rising.
std::vector<std::pair<std::int64_t, std::string>> steps_in(const std::filesystem::path& folder) {
    namespace fs = std::filesystem;
    constexpr const char* configuration = "config.json";
    std::vector<std::pair<std::int64_t, std::string>> found;
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored) || fs::exists(folder / configuration, ignored)) return found;
    for (fs::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
        const std::int64_t step = step_in_name(at->path().string());
        if (step >= 0 && fs::is_regular_file(at->path() / configuration, ignored))
            found.emplace_back(step, at->path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
}

void keep_numbers(store::AskRecord& record, std::int64_t number, const store::AnalysisFile& file) {
    const auto count = static_cast<std::size_t>(record.size_of("/checkpoint"));
    for (const std::string& name : file.indicators()) {
        const store::Values values = file.indicator(name);
        if (values.shape.size() > 3) add_distances(record, values.shape[3]);
        if (!record.find("/series/" + name)) add_indicator(record, name, values);
        store::AskTable& table = answer_table(record, "/series/" + name);
        const std::size_t size = table.values.size() / count;
        if (values.data.size() != size)
            throw Error(ErrorCode::internal, "ask series", "expected " + std::to_string(size) + " numbers of " + name,
                        "found " + std::to_string(values.data.size()));
        std::copy(values.data.begin(), values.data.end(),
                  table.values.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(number) * size));
    }
    for (std::int64_t s = 0; s < std::ssize(record.sequences); ++s)
        put(record, "/series/loss", {number, s}, mean_loss(file.loss(s)));
}

}  // namespace

std::int64_t step_in_name(const std::string& path) {
    std::filesystem::path place(path);
    if (place.filename().empty()) place = place.parent_path();
    const std::string name = place.filename().string();
    std::size_t end = name.size();
    const auto digit = [&](std::size_t i) { return std::isdigit(static_cast<unsigned char>(name[i])) != 0; };
    while (end > 0 && !digit(end - 1)) --end;
    std::size_t begin = end;
    while (begin > 0 && digit(begin - 1) && end - begin < 15) --begin;
    return begin == end ? -1 : std::stoll(name.substr(begin, end - begin));
}

std::vector<std::string> series_checkpoints(const std::vector<std::string>& paths) {
    std::vector<std::string> all;
    for (const std::string& path : paths) {
        const auto below = steps_in(path);
        if (below.empty()) all.push_back(path);
        for (const auto& [step, checkpoint] : below) all.push_back(checkpoint);
    }
    return all;
}

void run_series(model::Model& first, const SeriesOptions& options, store::AskRecord& record, Progress& progress,
                const Cancellation& cancellation) {
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::symlink_status(options.scratch, ignored)))
        throw Error(ErrorCode::usage, escaped(options.scratch.string()),
                    "expected no file of this name, which ask series writes for each model and removes",
                    "found one, to be moved or removed");
    const std::int64_t vocabulary = first.config().vocabulary;
    record.add_dimension("/checkpoint", std::ssize(options.models), "checkpoint, in the order of the command");
    if (record.names.empty())
        record.names.push_back({"/series/name", "/checkpoint", "path of each model", options.models});
    restore_distances(record);
    if (record.tables.empty()) {
        record.add_table("/series/step", {"/checkpoint"}, "last number in the model's name", "", true);
        record.add_table("/series/done", {"/checkpoint"}, "1: the model was analyzed", "", true);
        record.add_table("/series/loss", {"/checkpoint", "/sequence"}, "mean loss of the next token", "nat");
    }
    for (std::size_t m = 0; m < options.models.size(); ++m) {
        const auto number = static_cast<std::int64_t>(m);
        if (get(record, "/series/done", {number}) == 1) continue;
        cancellation.check();
        model::Model& model = m == 0 ? first : options.load(options.models[m]);
        check_shape(model, record, vocabulary, options.models[m]);
        analysis::AnalysisRequest request;
        request.sequences = record.sequences;
        for (const store::SequenceTokens& text : record.sequences)
            if (text.target) request.targets.push_back(*text.target);
        if (options.interventions) request.interventions = *options.interventions;
        request.model_name = options.models[m];
        const Scratch file(options.scratch);
        PartOfSeries part(progress, m, options.models.size());
        analysis::run(model, request, file.path(), {}, part, cancellation);
        keep_numbers(record, number, *store::AnalysisFile::open(file.path()));
        put(record, "/series/step", {number}, static_cast<double>(step_in_name(options.models[m])));
        put(record, "/series/done", {number}, 1);
        if (options.saved) options.saved();
    }
    record.complete = true;
}

}  // namespace headscope::ask
