// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QObject>
#include <map>

#include "app/window/context.h"
#include "app/window/training/evaluation_service.h"
#include "widgets/panels/evaluate_choice.h"

namespace headscope::widgets {
class EvaluateDialog;
}

namespace headscope::app {

class FilesController;
class PagesController;

/// Opens and lists evaluations, and makes them of open runs and chosen models.
class EvaluationsController : public QObject {
    Q_OBJECT
public:
    EvaluationsController(Context& context, PagesController& pages, FilesController& files);

    EvaluationService& service() { return service_; }
    bool running() const;
    QString status() const;  ///< progress; empty: nothing is evaluated
    /// Brings the view that shows an evaluation best to the front.
    void show(const store::Evaluation& record);
    /// The choices of the dialog, for the session.
    const QJsonObject& choices() const { return choices_; }
    void set_choices(const QJsonObject& choices) { choices_ = choices; }

private:
    void build_actions();
    void connect_shelf();
    void update();
    void choose_file();
    void opened(const QString& path, const std::shared_ptr<const store::Evaluation>& record);
    void show_dialog();
    void make_dialog();
    void write_typed(const QString& content);
    void offer_models();
    void show_offer();

    Context& context_;
    PagesController& pages_;
    FilesController& files_;
    EvaluationService service_;
    widgets::EvaluateDialog* dialog_ = nullptr;
    QJsonObject choices_;
    std::map<QString, widgets::EvaluateOffer::Model> runs_;  ///< by folder
    widgets::Mailbox mailbox_{this};
};

}  // namespace headscope::app
