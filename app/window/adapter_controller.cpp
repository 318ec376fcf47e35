// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/adapter_controller.h"

#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>

#include "app/window/files/model_place.h"
#include "widgets/file_dialog.h"

namespace headscope::app {

AdapterController::AdapterController(Context& context) : context_(context) {
    context_.actions.add("apply_adapter", tr("Apply a&dapter…"), {},
                         tr("A folder with a LoRA adapter, merged into the chosen checkpoint"), [this] { choose(); });
}

QString AdapterController::chosen_base() const {
    for (const auto& card : context_.engine.models())
        if (card.id == context_.text->choice().model && !card.tensors_only) return ModelPlace::of(card.path).path;
    return {};
}

void AdapterController::choose() {
    const QString base = chosen_base();
    widgets::ask_for_file(
        context_.window,
        {base.isEmpty() ? tr("Open an adapter: a folder with adapter_config.json")
                        : tr("Apply an adapter to the chosen checkpoint: a folder with adapter_config.json"),
         {},
         QFileDialog::Directory},
        [this, base](const QString& path) {
            if (base.isEmpty())
                Q_EMIT open_wanted(path);
            else
                context_.engine.open_model(ModelPlace{base, path}.text());
        });
}

void AdapterController::offer(const QString& path, const AdapterFound& found) {
    const QString chosen = chosen_base();
    auto* box = new QMessageBox(
        QMessageBox::Question, tr("A LoRA adapter"),
        found.alone ? tr("%1 holds %2.\n\nIt is merged into its base, which is not changed on the "
                         "disk.")
                          .arg(QFileInfo(path).fileName(), found.text)
                    : tr("Beside the weights of %1 lies %2.").arg(QFileInfo(path).fileName(), found.text),
        QMessageBox::NoButton, context_.window);
    box->setObjectName(QStringLiteral("adapter_question"));
    box->setTextFormat(Qt::PlainText);
    box->setAttribute(Qt::WA_DeleteOnClose);
    QPushButton* first = nullptr;
    const auto add = [&](const char* name, const QString& text, const QString& tip, const std::function<void()>& act) {
        QPushButton* button = box->addButton(text, QMessageBox::AcceptRole);
        button->setObjectName(QLatin1String(name));
        button->setToolTip(tip);
        connect(button, &QAbstractButton::clicked, this, act);
        if (!first) first = button;
    };
    const auto open = [this, path](const QString& base) {
        return [this, path, base] { context_.engine.open_model(ModelPlace{base, path}.text()); };
    };
    if (!found.base.isEmpty())
        add("adapter_base", found.alone ? tr("Open its base with it") : tr("Open with the adapter"), found.base,
            open(found.base));
    if (!found.alone)
        add("adapter_without", tr("Open without it"), path, [this, path] { context_.engine.open_model(path); });
    if (found.alone && !chosen.isEmpty() && chosen != found.base)
        add("adapter_chosen", tr("Apply to %1").arg(QFileInfo(chosen).fileName()), chosen, open(chosen));
    if (found.alone)
        add("adapter_other", tr("Choose its base…"), tr("A folder with config.json and weights"), [this, path] {
            widgets::ask_for_file(context_.window, {tr("Choose the base of the adapter"), {}, QFileDialog::Directory},
                                  [this, path](const QString& base) {
                                      context_.engine.open_model(ModelPlace{base, path}.text());
                                  });
        });
    box->addButton(QMessageBox::Cancel);
    box->setDefaultButton(first);
    box->open();
}

}  // namespace headscope::app
