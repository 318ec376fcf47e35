// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/ask/ask_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "core/base/error.h"
#include "core/base/site_name.h"
#include "core/store/ask/ask_file.h"
#include "core/workspace/asked_columns.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/head_columns.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/plain_controls.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/text/banner.h"
#include "widgets/text/flow_layout.h"
#include "widgets/text/line_label.h"

namespace headscope::widgets {
namespace {

constexpr qsizetype kAskEntry = 32;       // characters of a file or a text in a box
constexpr std::size_t kMostTexts = 1000;  // entries of the box of texts
const std::string kAskSequence = "sequence";

QString ask_entry(const QString& text) {
    return text.size() > kAskEntry ? text.left(kAskEntry - 1) + QStringLiteral("…") : text;
}

QString spaced_name(const std::string& name) {
    QString words = QString::fromStdString(name).replace(QLatin1Char('-'), QLatin1Char(' '));
    words.replace(QLatin1Char('_'), QLatin1Char(' '));
    if (words == QLatin1String("ov") || words == QLatin1String("qk")) return words.toUpper();  // products of a head
    return words.left(1).toUpper() + words.mid(1);
}

/// "Text 2: The king went…"
QString text_entry(const store::SequenceTokens& text, std::size_t number) {
    std::string begin;
    for (const std::string& piece : text.pieces) {
        if (begin.size() > static_cast<std::size_t>(2 * kAskEntry)) break;
        begin += piece;
    }
    const QString words = QString::fromStdString(begin).simplified();
    return ask_entry(words.isEmpty() ? AskView::tr("Text %1").arg(number)
                                     : AskView::tr("Text %1: %2").arg(number).arg(words));
}

/// The choice that leaves a request as it is; -1: none does.
int default_choice(const figures::FigureOption& option) {
    for (std::size_t i = 0; i < option.choices.size(); ++i) {
        figures::FigureRequest request;
        option.set(request, {option.choices[i]});
        if (request == figures::FigureRequest{}) return static_cast<int>(i);
    }
    return -1;
}

}  // namespace

AskView::AskView(Desk* desk, const AskPage& page, QWidget* parent)
    : View(desk, parent),
      page_(page),
      maker_(new AskMaker(&desk->runs().worker(), this)),
      bar_(new QWidget(content())),
      files_(make_combo(bar_, "ask_file", tr("The file to draw, of those of this tool"))),
      failure_(new Banner(content())),
      picture_(new FigureView(content())),
      pointed_(new LineLabel(content())) {
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 4);
    column->setSpacing(6);
    auto* row = new FlowLayout(bar_);
    row->addWidget(files_);
    column->addWidget(bar_);
    failure_->setObjectName(QStringLiteral("failure"));
    column->addWidget(failure_);
    column->addWidget(picture_, 1);
    column->addWidget(pointed_);
    pointed_->setObjectName(QStringLiteral("pointed"));
    pointed_->setTextFormat(Qt::PlainText);
    pointed_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    for (const figures::FigureOption& option : figures::figure_options()) {
        const bool read = figures::has_option(page_.recipe, option) && (!page_.reads || page_.reads(option.name));
        if (!option.of_page && option.name != "names" && read) add_option(option);
    }
    if (workspace::has_asked_columns(page_.tool)) add_overview_button();
    connect(files_, &QComboBox::activated, this, [this] { this->desk().asks().choose(files_->currentData().toInt()); });
    connect(maker_, &AskMaker::made, this, &AskView::draw);
    connect(picture_, &FigureView::clicked, this, &AskView::clicked);
    connect(picture_, &FigureView::pointed, this, &AskView::show_words);
    connect(&desk->asks(), &AskShelf::changed, this, &AskView::refresh_later);
}

void AskView::add_option(const figures::FigureOption& option) {
    const std::string name = option.name;
    const QString tip = QString::fromStdString(option.help), title = spaced_name(name);
    const QByteArray object = "ask_" + QByteArray::fromStdString(name);
    QWidget* control = nullptr;
    if (option.value.empty()) {
        auto* check = new QCheckBox(title, bar_);
        connect(check, &QCheckBox::toggled, this, [this, name](bool on) { set_option(name, on ? "on" : ""); });
        show_value_[name] = [check](const std::string& value) { check->setChecked(!value.empty()); };
        control = check;
    } else if (!option.choices.empty()) {
        auto* box = new QComboBox(bar_);
        const int standard = default_choice(option);
        if (standard < 0) box->addItem(tr("%1: usual").arg(title), QString());
        for (std::size_t i = 0; i < option.choices.size(); ++i)
            box->addItem(spaced_name(option.choices[i]),
                         static_cast<int>(i) == standard ? QString() : QString::fromStdString(option.choices[i]));
        if (standard > 0) box->setCurrentIndex(standard);
        connect(box, &QComboBox::currentIndexChanged, this,
                [this, box, name] { set_option(name, box->currentData().toString().toStdString()); });
        show_value_[name] = [box](const std::string& value) {
            if (const int at = box->findData(QString::fromStdString(value)); at >= 0) box->setCurrentIndex(at);
        };
        control = box;
    } else if (name == kAskSequence || page_.values != nullptr) {
        auto* box = new QComboBox(bar_);
        box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
        connect(box, &QComboBox::activated, this,
                [this, box, name] { set_option(name, box->currentData().toString().toStdString()); });
        by_file_[name] = box;
        show_value_[name] = [](const std::string&) {};  // fill_values() shows it
        control = box;
    } else {
        auto* line = new QLineEdit(bar_);
        line->setPlaceholderText(title);
        connect(line, &QLineEdit::editingFinished, this,
                [this, line, name] { set_option(name, line->text().trimmed().toStdString()); });
        show_value_[name] = [line](const std::string& value) { line->setText(QString::fromStdString(value)); };
        control = line;
    }
    control->setObjectName(QString::fromLatin1(object));
    control->setAccessibleName(title);
    control->setToolTip(tip);
    bar_->layout()->addWidget(control);
}

void AskView::add_overview_button() {
    overview_ = new QPushButton(tr("In the overview"), bar_);
    overview_->setObjectName(QStringLiteral("ask_overview"));
    overview_->setAccessibleName(overview_->text());
    overview_->setToolTip(tr("Colors the overview of an analysis of the same checkpoint by these scores"));
    overview_->hide();
    bar_->layout()->addWidget(overview_);
    connect(overview_, &QPushButton::clicked, this, &AskView::show_in_overview);
    add_command(overview_);
}

Study* AskView::study_with_columns() const {
    const OpenAsk* open = file();
    Study* const one = open ? study_of(*open->record) : nullptr;
    return one && workspace::of_same_model(one->header(), *open->record) ? one : nullptr;
}

void AskView::show_in_overview() {
    Study* const one = study_with_columns();
    if (!one) return;
    const OpenAsk* open = file();
    const int number = column_number(files_with_columns(desk().asks(), *one), *open);
    if (one != study()) desk().select_study(one->id());
    const QString column = QString::fromStdString(workspace::main_asked_column(*open->record, number));
    Q_EMIT desk().view_wanted(QStringLiteral("overview"));
    Q_EMIT desk().column_wanted(column);
}

void AskView::set_option(const std::string& name, const std::string& value) {
    if (filling_) return;
    if (value.empty())
        values_.erase(name);
    else
        values_[name] = value;
    refresh_later();
    Q_EMIT state_changed();
}

const OpenAsk* AskView::file() const {
    return desk().asks().chosen(page_.tool);
}

void AskView::fill_files() {
    const std::vector<const OpenAsk*> all = desk().asks().of_tool(page_.tool);
    bool same = files_->count() == static_cast<int>(all.size());
    for (int i = 0; same && i < files_->count(); ++i)
        same = files_->itemData(i).toInt() == all[static_cast<std::size_t>(i)]->id;
    if (!same) files_->clear();
    for (const OpenAsk* one : all) {
        if (same) break;
        files_->addItem(ask_entry(one->name), one->id);
        files_->setItemData(files_->count() - 1, one->path, Qt::ToolTipRole);
    }
    files_->setCurrentIndex(file() ? files_->findData(file()->id) : -1);
    files_->setVisible(all.size() > 1);
}

/// Entries of texts and of what else the file has. A value that it lacks is shown as the default.
void AskView::fill_values(const std::shared_ptr<const store::AskRecord>& shown) {
    if (filled_ == shown && filled_values_ == values_) return;
    filled_ = shown;
    filled_values_ = values_;
    const store::AskRecord& record = *shown;
    filling_ = true;
    for (const auto& [name, box] : by_file_) {
        box->clear();
        if (name == kAskSequence) {
            const std::size_t texts = record.sequences.size();
            const bool all = texts > 1 && !page_.one_text;
            if (all) box->addItem(tr("All texts"), QString());
            for (std::size_t i = 0; i < std::min(texts, kMostTexts); ++i)
                box->addItem(text_entry(record.sequences[i], i),
                             all || i > 0 ? QString::number(static_cast<qulonglong>(i)) : QString());
        } else {
            const QString title = spaced_name(name);
            box->addItem(tr("%1: %2").arg(title, tr(page_.standard)), QString());
            for (const std::string& value : page_.values(record, name)) {
                const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
                box->addItem(number ? tr("%1: %2").arg(title, QString::fromStdString(value)) : spaced_name(value),
                             QString::fromStdString(value));
            }
        }
        const auto wanted = values_.find(name);
        const int at = wanted == values_.end() ? 0 : box->findData(QString::fromStdString(wanted->second));
        box->setCurrentIndex(std::max(0, at));
        box->setEnabled(box->count() > 1);
    }
    filling_ = false;
}

figures::FigureOptions AskView::options(const store::AskRecord& record) const {
    figures::FigureRequest request;
    request.recipe = page_.recipe;
    for (const auto& [name, value] : values_) {
        const figures::FigureOption* option = figures::find_figure_option(name);
        if (!option || !figures::has_option(page_.recipe, *option)) continue;
        if (name == kAskSequence && std::stoull(value) >= record.sequences.size()) continue;
        if (name != kAskSequence && by_file_.contains(name)) {
            const std::vector<std::string> known = page_.values(record, name);
            if (std::find(known.begin(), known.end(), value) == known.end()) continue;
        }
        try {
            option->set(request, option->value.empty() ? std::vector<std::string>{} : std::vector{value});
        } catch (const Error&) {  // of another version's session
        }
    }
    return request.options;
}

void AskView::refresh() {
    const OpenAsk* open = file();
    if (!open) {
        const QString tool = QLatin1String(page_.tool);
        return show_notice(tr("No file of “ask %1” is open").arg(tool),
                           tr("Run the tool on an open model here, or drop a file NAME.ask.h5 onto this window."),
                           tr("Ask…"), [this, tool] { Q_EMIT desk().asks().ask_wanted(tool); });
    }
    picture_->set_theme(desk().theme());
    fill_files();
    if (overview_) overview_->setVisible(study_with_columns() != nullptr);
    fill_values(open->record);
    maker_->request({page_.recipe, options(*open->record), open->record});
    if (!maker_->made_figure().request.record) return show_reading();
    draw();
}

void AskView::draw() {
    const MadeAskFigure& made = maker_->made_figure();
    if (!made.request.record || !file()) return;
    failure_->set(made.failure);
    if (picture_->figure() != made.figure.get()) picture_->set_figure(made.figure);
    mark_selected();
    show_content();
    show_words();
}

Study* AskView::study_of(const store::AskRecord& record) const {
    const auto same = [&](const Study* one) {
        return !record.model_sha256.empty() && one->header().model_sha256 == record.model_sha256;
    };
    if (study() && same(study())) return study();
    for (Study* one : desk().studies())
        if (same(one)) return one;
    return nullptr;
}

void AskView::mark_selected() {
    std::vector<FigureView::Selected> marked;
    const store::AskRecord& record = *maker_->made_figure().request.record;
    if (const Study* one = study_of(record); one && one == study()) {
        const QString name = one->site_name(selection().site);
        for (std::int64_t site = 0; site < std::ssize(record.sites); ++site)
            if (QString::fromStdString(site_label(record.sites, site)) == name)
                marked.push_back({0, site, selection().head});
    }
    picture_->set_selected(std::move(marked));
}

void AskView::clicked(const figures::Subject& subject) {
    const MadeAskFigure& made = maker_->made_figure();
    if (subject.empty() || !made.request.record) return;
    const store::AskRecord& record = *made.request.record;
    Study* to = study_of(record);
    if (!to) return show_words();
    std::int64_t site = to == study() ? selection().site : 0;
    std::vector<std::int64_t> sites;
    for (const std::int64_t one : subject.sites) {
        const QString name = QString::fromStdString(site_label(record.sites, one));
        for (std::int64_t own = 0; own < std::ssize(to->sites()); ++own)
            if (to->site_name(own) == name) sites.push_back(own);
    }
    if (!subject.sites.empty() && sites.empty()) return;
    // Keeps the selected one of several attentions of a layer.
    if (!sites.empty() && std::find(sites.begin(), sites.end(), site) == sites.end()) site = sites.front();
    const std::int64_t head = subject.head.value_or(to == study() ? selection().head : 0);
    if (head >= to->sites().at(static_cast<std::size_t>(site)).heads) return;
    if (to != study()) desk().select_study(to->id());
    desk().select_head(site, head);
}

void AskView::show_words(const QString& pointed) {
    QString words = pointed;
    if (words.isEmpty() && maker_->made_figure().request.record) {
        const store::AskRecord& record = *maker_->made_figure().request.record;
        const Study* one = study_of(record);
        words = one ? tr("Click a cell: selects its head in %1").arg(one->name())
                    : tr("Click selects heads once an analysis of %1 is open")
                          .arg(QString::fromStdString(escaped(record.model_name)));
    }
    pointed_->setText(words);
    pointed_->setToolTip(words);
}

QJsonObject AskView::state() const {
    QJsonObject state;
    for (const auto& [name, value] : values_) state[QString::fromStdString(name)] = QString::fromStdString(value);
    if (const OpenAsk* open = file()) state[QLatin1String("file")] = open->path;
    return state;
}

void AskView::restore(const QJsonObject& state) {
    values_.clear();
    filling_ = true;
    for (const auto& [name, show] : show_value_) {
        std::string value = state[QString::fromStdString(name)].toString().toStdString();
        if (name == kAskSequence) {
            bool number = false;
            QString::fromStdString(value).toULongLong(&number);
            if (!number) value.clear();
        }
        show(value);
        if (!value.empty()) values_[name] = value;
    }
    filling_ = false;
    if (const OpenAsk* open = desk().asks().at(state[QLatin1String("file")].toString())) desk().asks().choose(open->id);
    refresh_later();
}

std::optional<FigureRequest> AskView::figure() const {
    const MadeAskFigure& made = maker_->made_figure();
    const OpenAsk* open = file();
    if (!open || !made.figure || made.request.record != open->record) return std::nullopt;
    FigureRequest request{page_.recipe, made.request.options, {}};
    request.paths = QStringList{open->path};
    return request;
}

}  // namespace headscope::widgets
