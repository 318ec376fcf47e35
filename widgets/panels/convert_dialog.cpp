// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/convert_dialog.h"

#include <QComboBox>
#include <QFormLayout>
#include <QHeaderView>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QTableWidget>
#include <limits>
#include <map>

#include "core/mixers/types/type.h"

namespace headscope::widgets {
namespace {

constexpr int kLayersHeight = 150, kLayerRow = 26;

void add_mixers(QComboBox* box, const QString& first) {
    box->addItem(first, QString());
    for (const mixers::MixerType* type : mixers::known_types()) {
        box->addItem(QLatin1String(type->name), QString::fromLatin1(type->name));
        box->setItemData(box->count() - 1, QString::fromUtf8(type->summary), Qt::ToolTipRole);
    }
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(18);
}

/// "0,2-4" of sorted numbers.
QString layer_ranges(const std::vector<int>& numbers) {
    QStringList parts;
    for (std::size_t first = 0; first < numbers.size();) {
        std::size_t last = first;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
        parts << (last == first ? QString::number(numbers[first])
                                : QStringLiteral("%1-%2").arg(numbers[first]).arg(numbers[last]));
        first = last + 1;
    }
    return parts.join(QLatin1Char(','));
}

}  // namespace

ConvertDialog::ConvertDialog(What what, QWidget* parent)
    : TaskDialog(what == What::type ? "convert_dialog" : "swap_dialog",
                 what == What::type ? tr("Convert a checkpoint") : tr("Swap mixers"),
                 what == What::type ? tr("Writes a checkpoint as safetensors, in another number type or as it is. An "
                                         "adapter that is applied is merged.")
                                    : tr("Writes a checkpoint whose chosen layers have another mixer. Weights stay "
                                         "where shapes match; the others are fresh and can be trained."),
                 parent),
      what_(what) {
    source_ = named(new QComboBox(this), "source", tr("Checkpoint"), tr("One of the open checkpoints"));
    source_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    form()->addRow(tr("Checkpoint"), source_);
    destination_ = add_path("destination", tr("New folder"), tr("The folder that is made"), Wants::new_folder);
    type_ = named(new QComboBox(this), "type", tr("Number type"), tr("Of the weights that are written"));
    type_->addItem(tr("As stored"), QStringLiteral("stored"));
    for (const char* type : {"float32", "bfloat16", "float16"})
        type_->addItem(QLatin1String(type), QString::fromLatin1(type));
    form()->addRow(tr("Number type"), type_);
    if (what_ == What::mixers) build_layers();
    connect(source_, &QComboBox::currentIndexChanged, this, [this] {
        fill_layers();
        update_state();
    });
    connect(type_, &QComboBox::currentIndexChanged, this, &ConvertDialog::update_state);
    update_state();
}

void ConvertDialog::build_layers() {
    all_ = named(new QComboBox(this), "all", tr("All layers"), tr("Gives every layer this mixer"));
    add_mixers(all_, tr("Choose…"));
    layers_ = named(new QTableWidget(this), "layers", tr("Layers"), tr("The mixer of each layer"));
    layers_->setColumnCount(2);
    layers_->setHorizontalHeaderLabels({tr("Layer"), tr("Mixer")});
    layers_->verticalHeader()->hide();
    layers_->horizontalHeader()->setSectionResizeMode(1, QHeaderView::Stretch);
    layers_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    layers_->setSelectionMode(QAbstractItemView::NoSelection);
    layers_->setMinimumHeight(kLayersHeight);
    options_ = named(new QLineEdit(this), "options", tr("Options of mixers"),
                     tr(R"(JSON, as {"approximate": {"second_order": "diagonal"}}; empty: the usual ones)"));
    seed_ = named(new QSpinBox(this), "seed", tr("Seed"), tr("Of the fresh weights"));
    seed_->setRange(0, std::numeric_limits<int>::max());
    form()->addRow(tr("All layers"), all_);
    form()->addRow(layers_);
    form()->addRow(tr("Options of mixers"), options_);
    form()->addRow(tr("Seed"), seed_);
    connect(all_, &QComboBox::activated, this, [this] {
        for (int row = 0; row < layers_->rowCount(); ++row)
            static_cast<QComboBox*>(layers_->cellWidget(row, 1))->setCurrentIndex(all_->currentIndex());
    });
    connect(options_, &QLineEdit::textChanged, this, &ConvertDialog::update_state);
    connect(seed_, &QSpinBox::valueChanged, this, &ConvertDialog::update_state);
}

void ConvertDialog::fill_layers() {
    if (!layers_) return;
    const int rows = source() ? static_cast<int>(source()->layers) : 0;
    layers_->setRowCount(0);
    layers_->setRowCount(rows);
    for (int row = 0; row < rows; ++row) {
        layers_->setItem(row, 0, new QTableWidgetItem(QString::number(row)));
        auto* box = named(new QComboBox(layers_), ("layer_" + std::to_string(row)).c_str(),
                          tr("Mixer of layer %1").arg(row), tr("The mixer of layer %1").arg(row));
        add_mixers(box, tr("as it is"));
        layers_->setCellWidget(row, 1, box);
        layers_->setRowHeight(row, kLayerRow);
        connect(box, &QComboBox::currentIndexChanged, this, &ConvertDialog::update_state);
    }
}

void ConvertDialog::set_sources(const std::vector<Source>& sources, const QString& chosen) {
    if (sources == sources_) return;
    const QString before = source() ? source()->path : chosen;
    {
        const QSignalBlocker quiet(source_);
        sources_ = sources;
        source_->clear();
        int at = 0;
        for (std::size_t i = 0; i < sources_.size(); ++i) {
            source_->addItem(sources_[i].name);
            source_->setItemData(static_cast<int>(i), sources_[i].path, Qt::ToolTipRole);
            if (sources_[i].path == before) at = static_cast<int>(i);
        }
        source_->setCurrentIndex(sources_.empty() ? -1 : at);
    }
    fill_layers();
    update_state();
}

const ConvertDialog::Source* ConvertDialog::source() const {
    const int at = source_->currentIndex();
    return at < 0 || at >= std::ssize(sources_) ? nullptr : &sources_[static_cast<std::size_t>(at)];
}

QStringList ConvertDialog::swaps() const {
    std::map<QString, std::vector<int>> layers;
    for (int row = 0; layers_ && row < layers_->rowCount(); ++row) {
        const QString mixer = static_cast<const QComboBox*>(layers_->cellWidget(row, 1))->currentData().toString();
        if (!mixer.isEmpty()) layers[mixer].push_back(row);
    }
    QStringList swaps;
    for (const auto& [mixer, rows] : layers) swaps << layer_ranges(rows) + QLatin1Char('=') + mixer;
    return swaps;
}

QStringList ConvertDialog::words() const {
    QStringList words{QStringLiteral("convert")};
    words << (source() ? source()->path : QStringLiteral("CHECKPOINT"))
          << (output().isEmpty() ? QStringLiteral("FOLDER") : output());
    if (source() && !source()->adapter.isEmpty()) words << QStringLiteral("--adapter") << source()->adapter;
    for (const QString& swap : swaps()) words << QStringLiteral("--swap") << swap;
    if (options_ && !options_->text().trimmed().isEmpty())
        words << QStringLiteral("--mixer-options") << options_->text().trimmed();
    if (seed_ && seed_->value() != 0) words << QStringLiteral("--seed") << QString::number(seed_->value());
    const QString type = type_->currentData().toString();
    if (type != QLatin1String("stored")) words << QStringLiteral("--dtype") << type;
    return words;
}

QString ConvertDialog::problem() const {
    if (!source()) return tr("Open a checkpoint first");
    if (what_ == What::mixers && swaps().isEmpty()) return tr("Choose a mixer for a layer");
    if (output().isEmpty()) return tr("Choose a new folder");
    return {};
}

QString ConvertDialog::output() const {
    return destination_->text().trimmed();
}

}  // namespace headscope::widgets
