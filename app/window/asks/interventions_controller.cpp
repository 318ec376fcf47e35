// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/asks/interventions_controller.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/io/output_file.h"
#include "widgets/panels/ask/intervention_dialog.h"

namespace headscope::app {
namespace {

constexpr std::uint64_t kLargestInterventions = 1U << 16U;  // bytes: what the editor takes

/// Key `attention` of a site's intervention; empty: its layer has one attention.
std::string attention_of(const std::vector<Site>& sites, const Site& site) {
    const auto in_layer =
        std::count_if(sites.begin(), sites.end(), [&](const Site& one) { return one.layer == site.layer; });
    if (in_layer < 2) return {};
    return "attention = \"" + (site.branch.empty() ? site.kind : site.branch) + '"';
}

/// A row for the heads of a site that become zero, and one for those that become their mean.
std::vector<workspace::InterventionRow> rows_of(const std::vector<widgets::RunRequest::Switch>& heads,
                                                const std::vector<Site>& sites) {
    std::map<std::tuple<std::int64_t, bool>, std::string> by_site;
    for (const auto& one : heads) {
        std::string& list = by_site[{one.site, one.mean}];
        list += (list.empty() ? "" : ",") + std::to_string(one.head);
    }
    std::vector<workspace::InterventionRow> rows;
    for (const auto& [place, list] : by_site) {
        const Site& site = sites.at(static_cast<std::size_t>(std::get<0>(place)));
        rows.push_back({"head_output", std::to_string(site.layer), list, "", std::get<1>(place) ? "mean" : "zero",
                        attention_of(sites, site)});
    }
    return rows;
}

}  // namespace

InterventionsController::InterventionsController(Context& context) : context_(context) {
    context_.actions.add("interventions", tr("&Interventions…"), {},
                         tr("Edit values inside the model in the next runs: silence heads, forbid attention"),
                         [this] { show(); });
    connect(context_.text, &widgets::TextPanel::interventions_wanted, this, &InterventionsController::show);
    connect(&context_.desk, &widgets::Desk::interventions_wanted, this, &InterventionsController::add_heads);
}

void InterventionsController::make_dialog() {
    dialog_ = new widgets::InterventionDialog(context_.window);
    connect(dialog_, &widgets::InterventionDialog::applied, context_.text, &widgets::TextPanel::set_interventions);
    connect(dialog_, &widgets::InterventionDialog::read_wanted, this, &InterventionsController::read);
    connect(dialog_, &widgets::InterventionDialog::save_wanted, this, &InterventionsController::save);
}

void InterventionsController::show() {
    if (!dialog_) make_dialog();
    if (!dialog_->isVisible()) dialog_->set_interventions(context_.text->interventions());
    dialog_->show();
    dialog_->raise();
    dialog_->activateWindow();
}

void InterventionsController::add_heads(const widgets::RunRequest& request) {
    const widgets::Study* study = context_.desk.study(request.study);
    if (!study || request.switched_off.empty()) return;
    show();
    dialog_->add_rows(rows_of(request.switched_off, study->sites()));
}

void InterventionsController::read(const QString& path) {
    context_.ask_disk(path, [this, path, send = mailbox_.sender()] {
        try {
            const std::string toml = read_small_file(path.toStdString(), kLargestInterventions, "intervention file");
            send([this, path, toml] { dialog_->set_interventions({QString::fromStdString(toml), path}); });
        } catch (const Error& error) {
            send([this, message = QString::fromUtf8(error.what())] { context_.problem(message); });
        }
    });
}

void InterventionsController::save(const QString& path, const QString& toml) {
    context_.desk.writer().post(this, [this, path, toml, send = mailbox_.sender()](const Cancellation&) {
        try {
            OutputFile file(path.toStdString(), {}, "intervention file");
            file.append(toml.toStdString());
            file.publish();
            send([this, path, toml] {
                dialog_->set_interventions({toml, path});
                context_.report(tr("Saved %1").arg(path));
            });
        } catch (const Error& error) {
            send([this, message = QString::fromUtf8(error.what())] { context_.problem(message); });
        }
    });
}

}  // namespace headscope::app
