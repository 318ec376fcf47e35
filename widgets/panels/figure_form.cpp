// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/figure_form.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFontComboBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <QVBoxLayout>
#include <array>

#include "core/base/error.h"

namespace headscope::widgets {
namespace {

struct Preset {
    const char* name;
    const char* width;
    const char* height;  ///< empty: follows from the panels
};
constexpr std::array kPresets{Preset{"One column, 85 mm", "85", ""}, Preset{"Two columns, 180 mm", "180", ""},
                              Preset{"Slide 16:9, 254 x 143 mm", "254", "142.9"},
                              Preset{"Slide 4:3, 254 x 190 mm", "254", "190.5"}};

/// Words for people; the command's name where there is none.
QString title_of(const std::string& name) {
    static const std::map<std::string, const char*> titles{{"layer", "Layer"},
                                                           {"head", "Head"},
                                                           {"heads", "Heads"},
                                                           {"sequence", "Sequence"},
                                                           {"names", "Names"},
                                                           {"log-loss", "Logarithmic"},
                                                           {"perplexity", "Perplexity"},
                                                           {"from", "From"},
                                                           {"to", "To"},
                                                           {"mixers", "Mixers"},
                                                           {"batch", "Batch"},
                                                           {"tensor-parallel", "Tensor parallel"},
                                                           {"bytes", "Bytes a number"},
                                                           {"of", "Of"},
                                                           {"distance", "Distance axis"},
                                                           {"baseline", "Baseline"},
                                                           {"smallest", "Smallest"},
                                                           {"significance", "Significance"},
                                                           {"indicator", "Indicator"},
                                                           {"normalise", "Scale"},
                                                           {"statistic", "Statistic"},
                                                           {"scale-per-head", "Scale per head"},
                                                           {"least", "Least weight"},
                                                           {"scale", "Scale"},
                                                           {"values", "Values"},
                                                           {"pooling", "Pooling"},
                                                           {"pixels", "Pixels"},
                                                           {"other-sequence", "Other sequence"},
                                                           {"other-layer", "Other layer"},
                                                           {"other-head", "Other head"},
                                                           {"sides", "Both maps"},
                                                           {"tower", "Tower"},
                                                           {"from-query", "From query"},
                                                           {"to-query", "To query"},
                                                           {"from-key", "From key"},
                                                           {"to-key", "To key"},
                                                           {"query", "Query"},
                                                           {"key", "Key"},
                                                           {"colour", "Color"},
                                                           {"range", "Range"},
                                                           {"stage", "Stage"},
                                                           {"step", "Step"},
                                                           {"smooth", "Smooth over"},
                                                           {"against", "Against"},
                                                           {"task", "Task"},
                                                           {"metric", "Metric"},
                                                           {"length", "Length"},
                                                           {"tensor", "Tensor"},
                                                           {"site", "Point"},
                                                           {"show", "Show"},
                                                           {"normalize", "Shares"},
                                                           {"matrix", "Matrix"},
                                                           {"words", "Words"},
                                                           {"measure", "Measure here"},
                                                           {"width", "Width (mm)"},
                                                           {"height", "Height (mm)"},
                                                           {"font-family", "Font"},
                                                           {"font-size", "Font size"},
                                                           {"dpi", "Dots per inch"},
                                                           {"theme", "Page"},
                                                           {"colour-map", "Color map"},
                                                           {"labels", "Token labels"},
                                                           {"title", "Title"},
                                                           {"no-title", "Without title"}};
    const auto place = titles.find(name);
    return place == titles.end() ? QString::fromStdString(name) : FigureForm::tr(place->second);
}

/// Value that an empty field stands for.
QString default_of(const figures::FigureOption& option) {
    if (option.name == "height") return FigureForm::tr("as the panels need");
    if (const auto* number = std::get_if<double>(&option.standard)) return QString::number(*number);
    if (option.name == "title") return FigureForm::tr("the figure's own");
    if (option.name == "sequence") return FigureForm::tr("the first; all: their mean");
    if (option.name == "names") return FigureForm::tr("A,B; default: the models");
    if (option.name == "mixers") return FigureForm::tr("the papers' and the models'; or all");
    if (option.name == "batch") return QStringLiteral("1");
    if (option.name == "tensor-parallel") return QStringLiteral("1");
    if (option.name == "bytes") return QStringLiteral("2");
    if (option.name == "tensor") return FigureForm::tr("a name, or *.q_proj.weight");
    if (option.name == "layer" || option.name == "heads" || option.name == "indicator") return FigureForm::tr("all");
    return {};
}

}  // namespace

FigureForm::FigureForm(QWidget* parent) : QWidget(parent) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
}

void FigureForm::set_request(const figures::FigureRequest& request) {
    request_ = request;
    problem_.clear();
    build();
}

void FigureForm::set(const figures::FigureOption& option, const std::vector<std::string>& values) {
    // An option's `set` adds to what is there: begin with its default.
    figures::FigureRequest changed;
    changed.recipe = request_.recipe;
    problem_.clear();
    try {
        for (const auto& other : figures::figure_options()) {
            if (!figures::has_option(request_.recipe, other)) continue;
            const auto now = other.name == option.name ? values : other.get(request_);
            if (now.empty()) continue;
            other.set(changed, other.value.empty() ? std::vector<std::string>{} : now);
        }
        request_ = changed;
    } catch (const Error& error) {
        problem_ = QString::fromUtf8(error.what());
    }
    show_page_note();
    Q_EMIT this->changed();
}

void FigureForm::set_dark_window(bool dark) {
    dark_window_ = dark;
    show_page_note();
}

/// Shows a note if the page and the window differ in darkness: papers are light in any window.
void FigureForm::show_page_note() {
    if (!page_) return;
    page_->setVisible(request_.style.dark != dark_window_);
    page_note_->setText(request_.style.dark ? tr("Dark; the window is light.")
                                            : tr("Light, as papers are; the window is dark."));
}

void FigureForm::add_page_note(QFormLayout* form) {
    page_ = new QWidget(fields_);
    auto* row = new QHBoxLayout(page_);
    row->setContentsMargins(0, 0, 0, 0);
    page_note_ = new QLabel(page_);
    page_note_->setObjectName(QStringLiteral("export_page_note"));
    page_note_->setWordWrap(true);
    auto* same = new QToolButton(page_);
    same->setObjectName(QStringLiteral("export_as_window"));
    same->setText(tr("As the window"));
    same->setAccessibleName(tr("Page as the window"));
    same->setToolTip(tr("The figure in the colors that the window has"));
    row->addWidget(page_note_, 1);
    row->addWidget(same);
    form->addRow(page_);
    connect(same, &QToolButton::clicked, this, [this] {
        const char* page = dark_window_ ? "dark" : "light";
        fields_->findChild<QComboBox*>(QStringLiteral("export_theme"))->setCurrentText(QLatin1String(page));
        set(*figures::find_figure_option("theme"), {page});
    });
    show_page_note();
}

void FigureForm::build() {
    delete fields_;
    page_ = nullptr;
    fields_ = new QWidget(this);
    layout()->addWidget(fields_);
    auto* form = new QFormLayout(fields_);
    form->setContentsMargins(0, 0, 0, 0);
    form->setVerticalSpacing(3);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    for (const auto& option : figures::figure_options()) {
        if (!figures::has_option(request_.recipe, option)) continue;
        if (option.name == "width") add_width(form);
        if (option.name == "font-family")
            add_font(form);
        else
            add(form, option);
        if (option.name == "theme") add_page_note(form);
    }
    fields_->show();
}

void FigureForm::add_width(QFormLayout* form) {
    auto* presets = new QComboBox(fields_);
    presets->setObjectName(QStringLiteral("export_preset"));
    presets->setAccessibleName(tr("Size"));
    presets->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    presets->addItem(tr("as below"));
    for (const Preset& preset : kPresets) presets->addItem(tr(preset.name));
    connect(presets, &QComboBox::activated, this, [this](int index) {
        if (index == 0) return;
        const Preset& preset = kPresets[static_cast<std::size_t>(index - 1)];
        request_.style.width_mm = std::stod(preset.width);
        request_.style.height_mm = *preset.height == '\0' ? 0 : std::stod(preset.height);
        // Posted: this would delete the control that was clicked.
        QMetaObject::invokeMethod(
            this,
            [this] {
                build();
                Q_EMIT changed();
            },
            Qt::QueuedConnection);
    });
    form->addRow(tr("Size"), presets);
}

void FigureForm::add_font(QFormLayout* form) {
    auto* fonts = new QFontComboBox(fields_);
    fonts->setObjectName(QStringLiteral("export_font-family"));
    fonts->setAccessibleName(tr("Font"));
    fonts->setMinimumContentsLength(8);
    fonts->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    fonts->setMinimumWidth(60);
    fonts->setCurrentFont(QFont(QString::fromStdString(request_.style.font_family)));
    connect(fonts, &QFontComboBox::currentFontChanged, this, [this](const QFont& font) {
        set(*figures::find_figure_option("font-family"), {font.family().toStdString()});
    });
    form->addRow(tr("Font"), fonts);
}

void FigureForm::add(QFormLayout* form, const figures::FigureOption& option) {
    const std::vector<std::string> now = option.get(request_);
    const QString tip = QString::fromStdString(option.help);
    QWidget* control = nullptr;
    if (option.value.empty()) {
        auto* check = new QCheckBox(fields_);
        check->setChecked(!now.empty());
        connect(check, &QCheckBox::toggled, this, [this, &option](bool on) {
            set(option, on ? std::vector<std::string>{""} : std::vector<std::string>{});
        });
        control = check;
    } else if (!option.choices.empty()) {
        auto* box = new QComboBox(fields_);
        box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        box->addItem(tr("default"));
        for (const auto& choice : option.choices) box->addItem(QString::fromStdString(choice));
        if (!now.empty()) box->setCurrentText(QString::fromStdString(now.front()));
        connect(box, &QComboBox::activated, this, [this, &option, box](int index) {
            set(option,
                index == 0 ? std::vector<std::string>{} : std::vector<std::string>{box->itemText(index).toStdString()});
        });
        control = box;
    } else {
        auto* line = new QLineEdit(fields_);
        if (!now.empty()) line->setText(QString::fromStdString(now.front()));
        line->setPlaceholderText(default_of(option));
        connect(line, &QLineEdit::textEdited, this, [this, &option](const QString& text) {
            set(option, text.isEmpty() ? std::vector<std::string>{} : std::vector<std::string>{text.toStdString()});
        });
        control = line;
    }
    control->setObjectName(QStringLiteral("export_") + QString::fromStdString(option.name));
    control->setAccessibleName(title_of(option.name));
    control->setToolTip(tip);
    form->addRow(title_of(option.name), control);
}

}  // namespace headscope::widgets
