// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/report.h"

#include <algorithm>
#include <cmath>

#include "core/base/text/text.h"

namespace headscope::reproduce {
namespace {

class Report {
public:
    explicit Report(const ReportInput& input)
        : input_(input), plan_(input.plan), paper_(*input.plan.paper), in_(input.measured) {
        if (const auto derive = paper_code(paper_).derive) derive(plan_, in_);
    }

    std::string text() {
        const JsonView view = paper_.view().at("report");
        paragraph("# " + view.at("title").string());
        paragraph(filled_text(view.at("intro").string()) +
                  " What follows is what was measured, also where it is not what the " + view.at("who").string() +
                  " says.");
        Rows facts;
        for (const JsonView& row : view.at("facts").items()) facts.push_back(filled_cells(row));
        table({"", "here", view.at("who").string()}, facts);
        text_ += claims_markdown(judge(plan_, input_.measured),
                                 learned(plan_, in_) ? "" : "**" + view.at("too_few").string() + "**");
        for (const JsonView& one : view.at("section").items()) section(one);
        for (const ReportTable& one : input_.tables) {
            paragraph("## " + one.title);
            if (!one.text.empty()) paragraph(filled_text(one.text));
            table(one.head, one.rows);
        }
        text_ += figures_markdown(input_.figures);
        foot(view);
        return text_;
    }

private:
    void line(const std::string& words = "") { text_ += words + "\n"; }
    void paragraph(const std::string& words) { text_ += words + "\n\n"; }

    /// Words of the report besides the plan's: seconds, data, seeds_text.
    std::string filled_text(const std::string& pattern, bool* complete = nullptr) const {
        const double held_out = 100 * paper_.document.at("text").at("validation").get<double>();
        const std::string data = (plan_.data.empty() ? own_text() + ", its" : "the given files, their") +
                                 std::string(" last ") + printf_text("%.4g", held_out) + " % held out";
        return Scope{
            plan_, in_, "", {{"seconds", seconds_text(input_.seconds)}, {"data", data}, {"seeds_text", seeds_text()}}}
            .text(pattern, complete);
    }

    std::string own_text() const {
        const JsonView view = paper_.view();
        return view.has("language") ? view.at("language").at("text").string() : "the King James Bible";
    }

    std::vector<std::string> filled_cells(const JsonView& view) const {
        std::vector<std::string> cells = view.strings();
        for (std::string& cell : cells) cell = filled_text(cell);
        return cells;
    }

    /// Seeds that were trained, not those that were planned.
    std::string seeds_text() const {
        if (plan_.seeds == 1) return "1: the minutes were few, so there are no error bars";
        std::int64_t fewest = plan_.seeds, most = 0;
        for (const Trial& trial : plan_.trials) {
            if (trial.extra) continue;
            const std::int64_t count = in_.spread(trial.subject(), "perplexity@1").count;
            fewest = std::min(fewest, count);
            most = std::max(most, count);
        }
        return (fewest == most ? std::to_string(most)
                               : std::to_string(fewest) + " to " + std::to_string(most) + " of " +
                                     std::to_string(plan_.seeds) + " planned (what was left out is named at the end)") +
               "; ± is the standard deviation over seeds";
    }

    /// Cells of each subject for which the row's `needs` was measured.
    Rows rows_of(const JsonView& view) const {
        if (view.has("function")) return paper_code(paper_).rows(view.at("function").string(), plan_, in_);
        Rows rows;
        const std::vector<std::string> cells = view.at("cells").strings();
        for (const std::string& subject : paper_.names(view, "rows")) {
            const Scope scope{plan_, in_, subject};
            const std::vector<std::string> needs = view.strings_or_none("needs");
            if (!needs.empty() && std::none_of(needs.begin(), needs.end(),
                                               [&](const std::string& one) { return std::isfinite(scope.value(one)); }))
                continue;
            std::vector<std::string> row;
            for (const std::string& cell : cells) row.push_back(scope.text(cell));
            rows.push_back(std::move(row));
        }
        return rows;
    }

    void section(const JsonView& view) {
        const Rows rows = rows_of(view);
        const std::vector<std::string> any = view.strings_or_none("if_any");
        const bool shown = any.empty()
                               ? !rows.empty() || !view.boolean_or("optional", false)
                               : std::any_of(any.begin(), any.end(), [&](const auto& one) { return in_.has(one); });
        if (!shown && !view.has("otherwise")) return;
        paragraph("## " + view.at("title").string());
        if (!shown) return paragraph(view.at("otherwise").string());
        if (view.has("text")) paragraph(filled_text(view.at("text").string()));
        table(filled_cells(view.at("head")), rows);
    }

    void table(const std::vector<std::string>& head, const Rows& rows) {
        text_ += table_head_markdown(head);
        for (const auto& row : rows) text_ += row_markdown(row);
        line();
    }

    std::string side_by_side_text() const {
        std::string text = std::to_string(plan_.workers) + (plan_.workers == 1 ? " run" : " runs") + " at a time, on " +
                           std::to_string(plan_.threads) + (plan_.threads == 1 ? " thread" : " threads") + " each";
        if (!input_.launch.empty()) text += ", every training started by " + escaped(input_.launch, 200);
        if (plan_.workers < plan_.workers_wanted)
            text += ", not " + std::to_string(plan_.workers_wanted) + " as there are processors for: one held up to " +
                    size_text(static_cast<std::uint64_t>(plan_.run_bytes)) + " of memory, and " +
                    size_text(static_cast<std::uint64_t>(plan_.room_bytes)) + " were free";
        return text + ".";
    }

    void foot(const JsonView& view) {
        paragraph("## How it was done");
        std::string speed;
        if (input_.tokens_per_second > 0 && !plan_.trials.empty())
            speed = "; " + plan_.trials.front().model->label + " trained at " + number_text(input_.tokens_per_second) +
                    " tokens a second";
        line("- " + input_.program_version + " on " + input_.machine + ". " + printf_text("%.4g", plan_.minutes) +
             (plan_.minutes == 1 ? " minute was given, " : " minutes were given, ") + seconds_text(input_.seconds) +
             " taken" + speed + ". " + side_by_side_text());
        if (plan_.steps_minutes < plan_.minutes)
            line("- Steps and seeds are those of a plan for " + printf_text("%.4g", plan_.steps_minutes) +
                 " of these minutes; the others came later.");
        for (const std::string& one : view.at("notes").strings()) {
            bool complete = true;
            const std::string note = filled_text(one, &complete);
            if (complete) line("- " + note);
        }
        std::vector<std::string> absent;
        for (const Model& model : paper_.models)
            if (plan_.minutes < model.from_minutes) absent.push_back(model.label);
        if (!absent.empty()) line("- Not tried in so few minutes: " + joined_text(absent, ", ") + ".");
        for (const std::string& one : input_.missing) line("- " + one);
        paragraph("\nAny of it again, by hand:");
        for (const std::string& command : view.at("commands").strings()) line("    headscope " + filled_text(command));
    }

    const ReportInput& input_;
    const Plan& plan_;
    const Paper& paper_;
    Measured in_;
    std::string text_;
};

}  // namespace

std::string report_markdown(const ReportInput& input) {
    return Report(input).text();
}

}  // namespace headscope::reproduce
