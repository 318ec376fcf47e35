// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "widgets/panels/task_dialog.h"

class QComboBox;
class QSpinBox;
class QTableWidget;

namespace headscope::widgets {

/// `headscope convert`: an open checkpoint in another type, or with other mixers in some layers.
class ConvertDialog : public TaskDialog {
    Q_OBJECT
public:
    enum class What { type, mixers };
    struct Source {
        QString path, adapter, name;
        std::int64_t layers = 0;
        bool operator==(const Source&) const = default;
    };
    explicit ConvertDialog(What what, QWidget* parent = nullptr);

    /// The open checkpoints; the chosen one stays, else it is the one of that path.
    void set_sources(const std::vector<Source>& sources, const QString& chosen);

    QStringList words() const override;
    QString problem() const override;
    QString output() const override;

private:
    void build_layers();
    void fill_layers();
    const Source* source() const;
    QStringList swaps() const;  ///< "0,2-4=mlp"

    const What what_;
    std::vector<Source> sources_;
    QComboBox *source_, *type_, *all_ = nullptr;
    QLineEdit *options_ = nullptr, *destination_;
    QSpinBox* seed_ = nullptr;
    QTableWidget* layers_ = nullptr;
};

}  // namespace headscope::widgets
