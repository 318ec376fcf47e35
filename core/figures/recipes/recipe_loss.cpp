// SPDX-License-Identifier: GPL-3.0-or-later
// Next-token loss by position: every token thin, a running mean over them, the tokens that surprised most.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/base/series.h"
#include "core/figures/recipe.h"
#include "core/figures/token_text.h"

namespace headscope::figures {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostPoints = 2000, kListed = 8, kMarked = 5;

/// Losses of one model by the position of the token that was predicted.
struct Losses {
    std::string model;
    std::vector<std::string> tokens;  ///< empty for means over sequences
    std::vector<double> loss, deviation, running;
    std::int64_t window = 0;
    double mean = kNone;
};

Losses read(const store::AnalysisFile& file, const std::string& name, const FigureOptions& options) {
    const auto sequences = chosen_sequences(file, options);
    const auto& output = file.header().output_sequences();
    // The loss that is stored at a token is that of predicting the next one; an encoder's is of the token itself.
    const std::size_t shift = output_kind(file.header()).next ? 1 : 0;
    std::vector<std::vector<double>> each;
    std::size_t longest = 0;
    for (const auto s : sequences) {
        const auto stored = file.loss(s).data;
        const std::size_t count = output[static_cast<std::size_t>(s)].ids.size();
        std::vector<double> by_token(count, kNone);
        for (std::size_t i = 0; i + shift < count && i < stored.size(); ++i) by_token[i + shift] = stored[i];
        longest = std::max(longest, count);
        each.push_back(std::move(by_token));
    }
    Losses losses;
    losses.model = name;
    std::vector<double> here, whole;
    for (std::size_t i = 0; i < longest; ++i) {
        here.clear();
        for (const auto& one : each) {
            if (i < one.size()) here.push_back(one[i]);
        }
        whole.insert(whole.end(), here.begin(), here.end());
        const Moments over = moments(here);
        losses.loss.push_back(over.mean);
        losses.deviation.push_back(over.deviation);
    }
    losses.mean = moments(whole).mean;
    if (std::isnan(losses.mean)) {
        throw Error(ErrorCode::usage, "figure loss of " + file_name(file),
                    "expected a model that predicts tokens, and its last layer done", "found no losses");
    }
    if (sequences.size() == 1) losses.tokens = output[static_cast<std::size_t>(sequences.front())].pieces;
    const auto count = static_cast<std::int64_t>(longest);
    losses.window = std::clamp<std::int64_t>(count / 20, 5, 256);
    losses.running = running_mean(losses.loss, static_cast<std::size_t>(losses.window));
    return losses;
}

/// Positions of the greatest losses, greatest first.
std::vector<std::size_t> most_surprising(const Losses& losses, std::size_t count) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < losses.loss.size(); ++i) {
        if (!std::isnan(losses.loss[i])) places.push_back(i);
    }
    std::stable_sort(places.begin(), places.end(),
                     [&](std::size_t a, std::size_t b) { return losses.loss[a] > losses.loss[b]; });
    places.resize(std::min(count, places.size()));
    return places;
}

std::string token(const Losses& losses, std::size_t at) {
    return at < losses.tokens.size() ? visible_token(losses.tokens[at]) : "";
}

Table loss_table(const std::vector<Losses>& all, bool over_sequences) {
    std::vector<std::string> model, token_text;
    std::vector<std::int64_t> position;
    std::vector<double> loss, running, deviation;
    for (const auto& losses : all) {
        for (std::size_t i = 0; i < losses.loss.size(); ++i) {
            if (std::isnan(losses.loss[i])) continue;
            model.push_back(losses.model);
            position.push_back(static_cast<std::int64_t>(i));
            token_text.push_back(token(losses, i));
            loss.push_back(losses.loss[i]);
            running.push_back(losses.running[i]);
            deviation.push_back(losses.deviation[i]);
        }
    }
    Table table{{{"model", std::move(model)},
                 {"position", std::move(position)},
                 {"token", std::move(token_text)},
                 {"loss", std::move(loss)},
                 {"running_mean", std::move(running)}}};
    if (over_sequences) table.columns.push_back({"deviation", std::move(deviation)});
    return table;
}

void add_curves(Panel& panel, const Losses& losses, int colour, bool several, bool over_sequences) {
    auto& curves = std::get<Curves>(panel.content);
    Curve tokens{losses.model, {}, losses.loss, {}, colour, false, kNoShade, true};
    for (std::size_t i = 0; i < losses.loss.size(); ++i) tokens.x.push_back(static_cast<double>(i));
    Curve running{losses.model, tokens.x, losses.running, {}, colour, false, kNoShade, false};
    if (over_sequences) running.error = losses.deviation;
    curves.curves.insert(curves.curves.begin(), thinned(std::move(tokens), kMostPoints));
    curves.curves.push_back(thinned(std::move(running), kMostPoints));
    if (several || over_sequences) return;
    for (const auto at : most_surprising(losses, kMarked))
        curves.labels.push_back({static_cast<double>(at), losses.loss[at], token(losses, at)});
}

FigureData loss(Files files, const FigureOptions& options) {
    const auto names = file_labels(files, options);
    std::vector<Losses> all;
    FigureData figure;
    const bool next =
        std::all_of(files.begin(), files.end(), [](const auto& file) { return output_kind(file->header()).next; });
    figure.title = next ? "Next-token loss" : "Loss of each token";
    Panel panel;
    panel.x.label = next ? "position of the predicted token" : "position";
    panel.y.label = "loss (nats)";
    panel.content = Curves();
    double highest = 0;
    std::int64_t limit = 0;
    std::size_t longest = 0;
    figure.notes = source_notes(files, options);
    for (std::size_t f = 0; f < files.size(); ++f) {
        const Losses losses = read(*files[f], names[f], options);
        add_curves(panel, losses, static_cast<int>(f), files.size() > 1, options.all_sequences);
        for (std::size_t i = 0; i < losses.loss.size(); ++i) {
            if (std::isfinite(losses.loss[i])) highest = std::max(highest, losses.loss[i]);
        }
        longest = std::max(longest, losses.loss.size());
        const auto trained = files[f]->header().max_positions;
        if (trained > 0 && std::ssize(losses.loss) > trained) limit = limit > 0 ? std::min(limit, trained) : trained;
        if (files.size() > 1) figure.legend.push_back({names[f], static_cast<int>(f)});
        std::string note = (files.size() > 1 ? names[f] + ": m" : std::string("M")) + "ean " +
                           short_number(losses.mean) + " nats, perplexity " + short_number(std::exp(losses.mean)) + ".";
        if (!options.all_sequences) {
            note += " Most surprising:";
            for (const auto at : most_surprising(losses, kListed)) {
                note += (note.back() == ':' ? " " : ", ") + token(losses, at) + " at " + std::to_string(at) + " (" +
                        short_number(losses.loss[at]) + ")";
            }
            note += ".";
        }
        figure.notes.push_back(note);
        all.push_back(losses);
    }
    figure.notes.push_back(
        "Thin line: each token" + std::string(options.all_sequences ? ", mean over sequences" : "") +
        "; thick line: mean of the last " + std::to_string(all.front().window) + " positions" +
        (options.all_sequences ? ", with the standard deviation over sequences at some." : ".") +
        (longest > kMostPoints
             ? " Long curves show the smallest and largest value of each stretch; the CSV has all values."
             : ""));
    panel.x.range = std::pair(0.0, static_cast<double>(std::max<std::size_t>(1, longest)));
    panel.y.range = std::pair(0.0, std::max(1.0, highest * 1.06));
    if (limit > 0) panel.markers.push_back({true, static_cast<double>(limit), "trained to " + std::to_string(limit)});
    figure.panels.push_back(std::move(panel));
    figure.panel_aspect = 0.45;
    figure.table = [all = std::move(all), over = options.all_sequences] { return loss_table(all, over); };
    return figure;
}

}  // namespace

extern const Recipe kLoss{
    .name = "loss",
    .description =
        "of analyses: next-token loss by position, its running "
        "mean, the most surprising tokens; of runs: training and "
        "validation loss, raw and smoothed, several runs overlaid",
    .needs = "loss; or runs",
    .of_analyses = loss,
    .of_others = run_loss,
    .others = RecipeInputs::runs,
    .options = {"layer", "sequence", "names", "smooth", "log-loss", "perplexity", "from", "to", "against"},
};

}  // namespace headscope::figures
