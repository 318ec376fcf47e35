// SPDX-License-Identifier: GPL-3.0-or-later
// LoRA adapters: found where a checkpoint was to be opened, or chosen for one.
#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>

#include "app/window/files/adapter_found.h"
#include "app/window/files/model_place.h"
#include "app/window/main_window.h"
#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/weights_in.h"
#include "widgets/file_dialog.h"
#include "widgets/panels/text_panel.h"

namespace headscope::app {

AdapterFound find_adapter(const QString& path) {
    const std::filesystem::path folder = path.toStdString();
    AdapterFound found;
    if (!ends_at_regular_file(folder / checkpoint::adapter_config_name)) return found;
    found.text = QString::fromStdString(checkpoint::adapter_text(folder));
    found.alone = checkpoint::adapter_alone(folder);
    if (!found.alone) {
        found.base = path;
        return found;
    }
    const QString named = QString::fromStdString(checkpoint::adapter_base(folder));
    if (named.isEmpty()) return found;
    for (const QString& place : {named, path + QLatin1Char('/') + named})
        if (found.base.isEmpty() && QFileInfo(place).isDir()) found.base = QFileInfo(place).absoluteFilePath();
    return found;
}

QString MainWindow::chosen_base() const {
    for (const auto& card : engine_.models())
        if (card.id == text_->choice().model && !card.tensors_only) return ModelPlace::of(card.path).path;
    return {};
}

void MainWindow::choose_adapter() {
    const QString base = chosen_base();
    widgets::ask_for_file(
        this,
        {base.isEmpty() ? tr("Open an adapter: a folder with adapter_config.json")
                        : tr("Apply an adapter to the chosen checkpoint: a folder with adapter_config.json"),
         {},
         QFileDialog::Directory},
        [this, base](const QString& path) {
            if (base.isEmpty()) return open_path(path);
            engine_.open_model(ModelPlace{base, path}.text());
        });
}

void MainWindow::offer_adapter(const QString& path, const AdapterFound& found) {
    const QString chosen = chosen_base();
    auto* box = new QMessageBox(
        QMessageBox::Question, tr("A LoRA adapter"),
        found.alone ? tr("%1 holds %2.\n\nIt is merged into its base, which is not changed on the "
                         "disk.")
                          .arg(QFileInfo(path).fileName(), found.text)
                    : tr("Beside the weights of %1 lies %2.").arg(QFileInfo(path).fileName(), found.text),
        QMessageBox::NoButton, this);
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
        return [this, path, base] { engine_.open_model(ModelPlace{base, path}.text()); };
    };
    if (!found.base.isEmpty())
        add("adapter_base", found.alone ? tr("Open its base with it") : tr("Open with the adapter"), found.base,
            open(found.base));
    if (!found.alone) add("adapter_without", tr("Open without it"), path, [this, path] { engine_.open_model(path); });
    if (found.alone && !chosen.isEmpty() && chosen != found.base)
        add("adapter_chosen", tr("Apply to %1").arg(QFileInfo(chosen).fileName()), chosen, open(chosen));
    if (found.alone)
        add("adapter_other", tr("Choose its base…"), tr("A folder with config.json and weights"), [this, path] {
            widgets::ask_for_file(this, {tr("Choose the base of the adapter"), {}, QFileDialog::Directory},
                                  [this, path](const QString& base) {
                                      engine_.open_model(ModelPlace{base, path}.text());
                                  });
        });
    box->addButton(QMessageBox::Cancel);
    box->setDefaultButton(first);
    box->open();
}

}  // namespace headscope::app
