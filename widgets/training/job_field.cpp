// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/job_field.h"
#include "widgets/device_box.h"
#include "widgets/file_dialog.h"

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <QVBoxLayout>
#include <map>

namespace headscope::widgets {
namespace {

using training::JobKey;

constexpr int kLabelWidth = 150;

bool is_list(OptionKind kind) {
    return kind == OptionKind::texts || kind == OptionKind::paths || kind == OptionKind::choices;
}

bool is_file(OptionKind kind) {
    return kind == OptionKind::path || kind == OptionKind::paths;
}

QString text_of(const nlohmann::json& value) {
    if (value.is_null()) return {};
    if (value.is_string()) return QString::fromStdString(value.get<std::string>());
    if (value.is_array()) {
        QStringList parts;
        bool plain = true;
        for (const auto& item : value) {
            parts << text_of(item);
            plain &= !parts.back().contains(QLatin1Char(',')) && parts.back() == parts.back().trimmed();
        }
        // Items with commas would be split into more than they are.
        return plain ? parts.join(QStringLiteral(", ")) : QString::fromStdString(training::toml_value(value));
    }
    return QString::fromStdString(training::toml_value(value));
}

std::string quoted(const QString& text) {
    return training::toml_value(nlohmann::json(text.toStdString()));
}

/// The typed text as TOML.
std::string assignment(const JobKey& key, const QString& typed) {
    const QString text = typed.trimmed();
    const bool literal = text.startsWith(QLatin1Char('[')) || text.startsWith(QLatin1Char('{'));
    if (literal) return text.toStdString();
    bool number = false;
    text.toDouble(&number);
    if (key.kind == OptionKind::share_or_paths && number) return text.toStdString();
    if (is_list(key.kind) || key.kind == OptionKind::pair || key.kind == OptionKind::share_or_paths) {
        std::string items;
        for (const QString& part : text.split(QLatin1Char(','), Qt::SkipEmptyParts))
            items += (items.empty() ? "" : ", ") +
                     (key.kind == OptionKind::pair ? part.trimmed().toStdString() : quoted(part.trimmed()));
        return "[" + items + "]";
    }
    if (key.kind == OptionKind::text || key.kind == OptionKind::path || key.kind == OptionKind::choice)
        return quoted(text);
    return text.toStdString();
}

}  // namespace

QString words_of_key(const std::string& name) {
    static const std::map<std::string, const char*> known{
        {"kjv", "King James Bible"},
        {"qk_norm", "Norms of queries and keys"},
        {"num_hidden_layers", "Layers"},
        {"num_attention_heads", "Heads"},
        {"num_key_value_heads", "Key and value heads"},
        {"head_dim", "Head size"},
        {"vocab_size", "Vocabulary"},
        {"num_encoder_layers", "Layers of the encoder"},
        {"decoder_start_token_id", "First token of a target"},
        {"type_vocab_size", "Token types"},
        {"rms_norm_eps", "Norm epsilon"},
        {"layer_norm_eps", "Epsilon of layer norms"},
        {"rope_theta", "Rotary base"},
        {"rope_parameters", "Rotary parameters"},
        {"rotary", "Rotary positions"},
        {"mlp_bias", "Feed-forward bias"},
        {"hidden_act", "Activation"},
        {"from", "From a checkpoint"},
        {"corpus", "Ready corpus"},
        {"text", "Text files"},
        {"layers", "Mixer of each layer"},
        {"mixers", "Options of mixers"},
        {"eps", "Epsilon"},
        {"z_loss", "z-loss"},
        {"tie_word_embeddings", "Tied embeddings"},
        {"max_position_embeddings", "Longest text"},
    };
    if (const auto place = known.find(name); place != known.end()) return JobField::tr(place->second);
    QString words = QString::fromStdString(name).replace(QLatin1Char('_'), QLatin1Char(' '));
    if (!words.isEmpty()) words[0] = words[0].toUpper();
    return words;
}

JobField::JobField(const JobKey& key, JobDraft* draft, QWidget* parent)
    : QWidget(parent), key_(key), draft_(draft), label_(new QLabel(this)), problem_(new QLabel(this)) {
    const QString full = QString::fromStdString(key.full_name());
    const QString name = QStringLiteral("job_") + QString(full).replace(QLatin1Char('.'), QLatin1Char('_'));
    const QString help = QString::fromStdString(key.help);
    auto* row = new QHBoxLayout;
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(6);
    label_->setText(words_of_key(key.name));
    label_->setFixedWidth(kLabelWidth);
    label_->setWordWrap(true);
    label_->setToolTip(tr("%1\n%2").arg(full, help));
    row->addWidget(label_);

    const bool named = full == QLatin1String("model.preset") || full == QLatin1String("model.mixer") ||
                       full == QLatin1String("model.layout") || full == QLatin1String("data.corpus") ||
                       full == QLatin1String("data.generator") || full == QLatin1String("data.tokenizer") ||
                       full == QLatin1String("training.device");
    if (key.kind == OptionKind::choice || key.kind == OptionKind::flag || named) {
        combo_ = new QComboBox(this);
        combo_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        combo_->setMinimumContentsLength(8);
        combo_->setEditable(named);
        combo_->setInsertPolicy(QComboBox::NoInsert);
        if (!named && key.get(training::JobFile{}).is_null()) combo_->addItem(tr("as the preset"), QString());
        if (key.kind == OptionKind::flag) {
            combo_->addItem(tr("yes"), QStringLiteral("true"));
            combo_->addItem(tr("no"), QStringLiteral("false"));
        }
        for (const std::string& choice : key.choices)
            combo_->addItem(QString::fromStdString(choice), QString::fromStdString(choice));
        connect(combo_, &QComboBox::activated, this, [this](int index) {
            if (combo_->isEditable() && combo_->itemData(index).isValid())
                combo_->setEditText(combo_->itemData(index).toString());
            apply();
        });
        if (combo_->isEditable()) {
            combo_->lineEdit()->setObjectName(name + QStringLiteral("_line"));
            connect(combo_->lineEdit(), &QLineEdit::editingFinished, this, &JobField::apply);
            // "cuda" is complete, although the titles of GPUs begin with it.
            if (full == QLatin1String("training.device")) combo_->setCompleter(nullptr);
        }
    } else {
        line_ = new QLineEdit(this);
        line_->setClearButtonEnabled(key.get(training::JobFile{}).is_null());
        connect(line_, &QLineEdit::editingFinished, this, &JobField::apply);
    }
    QWidget* control = this->control();
    control->setObjectName(name);
    control->setAccessibleName(label_->text());
    control->setAccessibleDescription(help);
    control->setToolTip(help);
    control->installEventFilter(this);
    if (combo_ && combo_->isEditable()) combo_->lineEdit()->installEventFilter(this);
    label_->setBuddy(control);
    row->addWidget(control, 1);
    if (is_file(key.kind)) {
        auto* browse = new QToolButton(this);
        browse->setText(QStringLiteral("…"));
        browse->setObjectName(name + QStringLiteral("_browse"));
        browse->setAccessibleName(tr("Choose: %1").arg(label_->text()));
        browse->setToolTip(browse->accessibleName());
        connect(browse, &QToolButton::clicked, this,
                [this, full] { choose_files(full == QLatin1String("model.from")); });
        row->addWidget(browse);
    }
    problem_->setObjectName(name + QStringLiteral("_problem"));
    problem_->setWordWrap(true);
    problem_->setTextFormat(Qt::PlainText);
    problem_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    problem_->hide();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(1);
    column->addLayout(row);
    auto* below = new QHBoxLayout;
    below->setContentsMargins(kLabelWidth + 6, 0, 0, 2);
    below->addWidget(problem_);
    column->addLayout(below);
    if (full == QLatin1String("data.tokenizer"))
        for (const char* choice : {"bytes", "train:1024", "train:2048", "train:8192"})
            combo_->addItem(QLatin1String(choice), QLatin1String(choice));
    set_choices(draft->choices());
    follow();
}

QWidget* JobField::control() const {
    return combo_ ? static_cast<QWidget*>(combo_) : line_;
}

void JobField::set_choices(const JobChoices& choices) {
    const std::string full = key_.full_name();
    if (!combo_ || !combo_->isEditable() || full == "data.tokenizer") return;
    const QSignalBlocker quiet(combo_);
    const QString now = combo_->currentText();
    combo_->clear();
    const auto add = [&](const QString& title, const QString& value, const QString& hint) {
        combo_->addItem(title.isEmpty() ? value : title, value);
        combo_->setItemData(combo_->count() - 1, hint, Qt::ToolTipRole);
    };
    if (full == "data.corpus" || full == "data.generator") add(tr("none"), QString(), {});
    if (full == "model.preset")
        for (const JobChoice& choice : choices.presets) add(choice.title, choice.value, choice.hint);
    if (full == "model.mixer")
        for (const JobChoice& choice : choices.mixers) add(choice.title, choice.value, choice.hint);
    if (full == "model.layout")
        for (const LayoutChoice& choice : choices.layouts) add(choice.name, choice.name, choice.hint);
    if (full == "data.corpus")
        for (const JobChoice& choice : choices.corpora) add(choice.title, choice.value, choice.hint);
    if (full == "data.generator")
        for (const JobChoice& choice : choices.generators)
            add(choice.title, QStringLiteral("{ name = \"%1\" }").arg(choice.value), choice.hint);
    if (full == "training.device") {
        add(tr("Processor"), QStringLiteral("cpu"), {});
        add_devices(*combo_, choices.devices);
    }
    combo_->setEditText(now);
}

QString JobField::written() const {
    return text_of(key_.get(draft_->job()));
}

void JobField::follow() {
    if (own_problem_ && control()->hasFocus()) return;
    if (own_problem_) set_problem({});
    own_problem_ = false;
    following_ = true;
    const QString text = written();
    if (line_ && line_->text() != text) line_->setText(text);
    if (line_ && text.isEmpty()) line_->setPlaceholderText(tr("not given"));
    if (combo_) {
        const int index = combo_->findData(text);
        if (combo_->isEditable()) {
            if (combo_->currentText() != text) combo_->setEditText(text);
            combo_->lineEdit()->setPlaceholderText(tr("not given"));
        } else if (index >= 0) {
            combo_->setCurrentIndex(index);
        }
    }
    following_ = false;
}

void JobField::apply() {
    if (following_) return;
    const QString typed = !combo_                ? line_->text()
                          : combo_->isEditable() ? combo_->currentText()
                                                 : combo_->currentData().toString();
    if (typed == written()) {
        own_problem_ = false;
        set_problem({});
        return;
    }
    std::optional<JobProblem> problem;
    if (typed.trimmed().isEmpty())
        problem = draft_->unset(key_.full_name());
    else
        problem = draft_->set(key_.full_name(), assignment(key_, typed));
    own_problem_ = problem.has_value();
    set_problem(problem ? problem->text : QString());
    if (problem) Q_EMIT refused(problem->text);
}

void JobField::set_problem(const QString& text) {
    problem_->setText(text);
    problem_->setVisible(!text.isEmpty());
    QPalette colours;
    if (!text.isEmpty()) {
        // The palette's accent is the theme's colour for what wants attention.
        colours.setColor(QPalette::WindowText, palette().color(QPalette::BrightText));
    }
    problem_->setPalette(colours);
    control()->setAccessibleDescription(text.isEmpty() ? QString::fromStdString(key_.help) : text);
}

QString JobField::problem() const {
    return problem_->text();
}

void JobField::choose_files(bool folder) {
    const bool several = key_.kind == OptionKind::paths;
    FileQuestion question{label_->text(), {}};
    question.mode = folder ? QFileDialog::Directory : several ? QFileDialog::ExistingFiles : QFileDialog::ExistingFile;
    ask_for_files(this, question, [this, several](const QStringList& files, const QString&) {
        nlohmann::json paths = nlohmann::json::array();
        for (const QString& file : files) paths.push_back(file.toStdString());
        const QString text = several ? text_of(paths) : files.value(0);
        line_ ? line_->setText(text) : combo_->setEditText(text);
        apply();
    });
}

bool JobField::eventFilter(QObject* object, QEvent* event) {
    if (event->type() == QEvent::FocusIn) Q_EMIT entered();
    return QWidget::eventFilter(object, event);
}

}  // namespace headscope::widgets
