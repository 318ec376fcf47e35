// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/start_page.h"

#include <QCommandLinkButton>
#include <QHBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QMenu>
#include <QPainter>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

namespace headscope::widgets {
namespace {

constexpr int kThumbnail = 56;
constexpr int kMostOffers = 4;  ///< of a kind

QIcon icon_of(const RecentItem& item, const QPalette& palette) {
    QPixmap picture(kThumbnail, kThumbnail);
    picture.fill(palette.color(QPalette::AlternateBase));
    QPainter painter(&picture);
    if (!item.thumbnail.isNull()) {
        painter.drawImage(picture.rect(), item.thumbnail);
    } else {
        const StartIcon which = item.kind == RecentItem::Kind::model ? StartIcon::checkpoint
                                : item.kind == RecentItem::Kind::run ? StartIcon::training
                                                                     : StartIcon::analysis;
        const int edge = (kThumbnail - kStartIcon) / 2;
        start_icon(which, palette.color(QPalette::PlaceholderText))
            .paint(&painter, QRect(edge, edge, kStartIcon, kStartIcon));
    }
    return QIcon(picture);
}

/// A frame to drop things into, drawn where nothing is yet.
class DropFrame final : public QLabel {
public:
    using QLabel::QLabel;

protected:
    void paintEvent(QPaintEvent* event) override {
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(palette().color(QPalette::Mid), 1.5, Qt::DashLine));
        painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 8, 8);
        painter.end();
        QLabel::paintEvent(event);
    }
};

}  // namespace

StartPage::StartPage(QWidget* parent)
    : QWidget(parent),
      recent_(new QListWidget(this)),
      nothing_(new DropFrame(this)),
      offer_(new QWidget(this)),
      runs_(new QWidget(this)),
      leftovers_(new QWidget(this)),
      offer_text_(new QLabel(offer_)) {
    setObjectName(QStringLiteral("start_page"));
    auto* title = new QLabel(tr("Headscope"), this);
    QFont large = title->font();
    large.setPointSizeF(large.pointSizeF() * 2.2);
    large.setBold(true);
    title->setFont(large);
    auto* subtitle = new QLabel(
        tr("See every attention head of a model on your text. Open a checkpoint folder, or drop one onto this window; "
           "then type a text on the left and press Run."),
        this);
    subtitle->setWordWrap(true);
    auto* columns = new QHBoxLayout;
    columns->addWidget(build_links(), 1);
    columns->addSpacing(16);
    columns->addWidget(build_recent(), 1);
    // Low windows scroll it.
    auto* scroll = new QScrollArea(this);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    auto* whole = new QVBoxLayout(this);
    whole->setContentsMargins(0, 0, 0, 0);
    whole->addWidget(scroll);
    auto* inside = new QWidget(scroll);
    auto* page = new QVBoxLayout(inside);
    page->setContentsMargins(32, 24, 32, 24);
    page->addWidget(title);
    page->addWidget(subtitle);
    page->addSpacing(8);
    page->addWidget(build_offer());
    page->addWidget(runs_);
    page->addWidget(leftovers_);
    page->addSpacing(8);
    page->addLayout(columns, 1);
    for (QWidget* box : {runs_, leftovers_}) {
        new QVBoxLayout(box);
        box->layout()->setContentsMargins(0, 0, 0, 0);
        box->hide();
    }
    scroll->setWidget(inside);
    draw_links();
    set_recent({});
}

QWidget* StartPage::build_links() {
    auto* box = new QWidget(this);
    auto* column = new QVBoxLayout(box);
    column->setContentsMargins(0, 0, 0, 0);
    const auto link = [&](const char* name, StartIcon icon, const QString& text, const QString& detail) {
        auto* button = new QCommandLinkButton(text, detail, box);
        button->setObjectName(QLatin1String(name));
        button->setAccessibleName(text);
        button->setIconSize({kStartIcon, kStartIcon});
        column->addWidget(button);
        links_.emplace_back(button, icon);
        return button;
    };
    auto* model =
        link("start_model", StartIcon::checkpoint, tr("Open a checkpoint"),
             tr("Open a folder with config.json and safetensors or PyTorch files, one of its files, or a GGUF file"));
    auto* analysis =
        link("start_analysis", StartIcon::analysis, tr("Open an analysis"),
             tr("Open an analysis (NAME.headscope.h5) without its model, an evaluation (NAME.evaluation.h5) or an ask "
                "file (NAME.ask.h5)"));
    auto* sample =
        link("start_sample", StartIcon::sample, tr("Try the sample"),
             tr("Open a small Llama, trained on the King James Bible and Shakespeare, with a text ready to run"));
    auto* train = link("start_train", StartIcon::training, tr("Train a model"),
                       tr("Train a small model on your own text and watch its heads while it learns"));
    column->addStretch();
    connect(train, &QPushButton::clicked, this, &StartPage::training_wanted);
    connect(model, &QPushButton::clicked, this, &StartPage::open_model_wanted);
    connect(analysis, &QPushButton::clicked, this, &StartPage::open_analysis_wanted);
    connect(sample, &QPushButton::clicked, this, &StartPage::sample_wanted);
    return box;
}

QWidget* StartPage::build_offer() {
    auto* restore = new QPushButton(tr("Bring it back"), offer_);
    restore->setObjectName(QStringLiteral("start_session"));
    connect(restore, &QPushButton::clicked, this, &StartPage::session_wanted);
    offer_text_->setWordWrap(true);
    auto* row = new QHBoxLayout(offer_);
    row->addWidget(offer_text_, 1);
    row->addWidget(restore);
    auto* decline = new QPushButton(tr("Discard"), offer_);
    decline->setObjectName(QStringLiteral("start_no_session"));
    connect(decline, &QPushButton::clicked, this, &StartPage::session_declined);
    row->addWidget(decline);
    offer_->setAutoFillBackground(true);
    offer_->setBackgroundRole(QPalette::AlternateBase);
    offer_->hide();
    return offer_;
}

QWidget* StartPage::build_recent() {
    auto* box = new QWidget(this);
    auto* column = new QVBoxLayout(box);
    column->setContentsMargins(0, 0, 0, 0);
    recent_title_ = new QLabel(tr("Recent"), box);
    recent_->setObjectName(QStringLiteral("start_recent"));
    recent_->setAccessibleName(tr("Recent checkpoints, analyses, runs, evaluations and ask files"));
    recent_->setIconSize({kThumbnail, kThumbnail});
    recent_->setFrameShape(QFrame::NoFrame);
    recent_->setTextElideMode(Qt::ElideMiddle);
    recent_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    recent_->setContextMenuPolicy(Qt::CustomContextMenu);
    nothing_->setText(
        tr("Drop a checkpoint, an analysis, the folder of a run, an evaluation, an ask file or a text anywhere on this "
           "window.\n\nFiles that you open are listed here."));
    nothing_->setAlignment(Qt::AlignCenter);
    nothing_->setWordWrap(true);
    nothing_->setMargin(16);
    nothing_->setForegroundRole(QPalette::PlaceholderText);
    nothing_->setMinimumHeight(120);
    column->addWidget(recent_title_);
    column->addWidget(recent_, 1);
    column->addWidget(nothing_, 1);
    connect(recent_, &QListWidget::itemActivated, this, [this](QListWidgetItem* item) {
        const RecentItem& recent = items_[static_cast<std::size_t>(recent_->row(item))];
        if (!recent.missing) Q_EMIT path_wanted(recent.path);
    });
    connect(recent_, &QListWidget::customContextMenuRequested, this, [this](const QPoint& place) {
        const QListWidgetItem* item = recent_->itemAt(place);
        if (!item) return;
        const QString path = items_[static_cast<std::size_t>(recent_->row(item))].path;
        auto* menu = new QMenu(this);
        menu->setAttribute(Qt::WA_DeleteOnClose);
        menu->addAction(tr("Remove from the list"), this, [this, path] { Q_EMIT forget_wanted(path); });
        menu->popup(recent_->viewport()->mapToGlobal(place));
    });
    return box;
}

void StartPage::draw_links() {
    for (const auto& [button, icon] : links_) button->setIcon(start_icon(icon, palette().color(QPalette::Highlight)));
}

void StartPage::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() != QEvent::PaletteChange) return;
    draw_links();
    list_recent();
}

void StartPage::set_recent(std::vector<RecentItem> items) {
    items_ = std::move(items);
    list_recent();
}

void StartPage::list_recent() {
    const int row = recent_->currentRow();
    recent_->clear();
    for (const RecentItem& item : items_) {
        const QString state = item.missing  ? tr("missing: %1").arg(item.path)
                              : item.silent ? tr("its disk does not answer: %1").arg(item.path)
                                            : item.detail;
        auto* line = new QListWidgetItem(icon_of(item, palette()), item.name + QLatin1Char('\n') + state, recent_);
        line->setSizeHint({0, kThumbnail + 4});  // as wide as the list: what is longer loses its middle
        line->setToolTip(item.path);
        if (item.missing || item.silent) line->setForeground(palette().color(QPalette::Disabled, QPalette::Text));
    }
    if (row < recent_->count()) recent_->setCurrentRow(row);
    recent_title_->setVisible(!items_.empty());
    recent_->setVisible(!items_.empty());
    nothing_->setVisible(items_.empty());
}

/// A row of a kind of offers; buttons go into it.
QHBoxLayout* StartPage::add_offer(QWidget* box, const QString& text, const QString& tip) {
    auto* frame = new QWidget(box);
    frame->setAutoFillBackground(true);
    frame->setBackgroundRole(QPalette::AlternateBase);
    auto* row = new QHBoxLayout(frame);
    auto* words = new QLabel(text, frame);
    words->setTextFormat(Qt::PlainText);
    words->setWordWrap(true);
    words->setToolTip(tip);
    row->addWidget(words, 1);
    box->layout()->addWidget(frame);
    frame->show();
    return row;
}

void StartPage::offer_runs(const QStringList& folders) {
    qDeleteAll(runs_->findChildren<QWidget*>(Qt::FindDirectChildrenOnly));
    for (int i = 0; i < std::min<int>(kMostOffers, static_cast<int>(folders.size())); ++i) {
        const QString folder = folders[i];
        QHBoxLayout* row =
            add_offer(runs_, tr("Training was interrupted: %1").arg(folder.section(QLatin1Char('/'), -1)), folder);
        auto* open = new QPushButton(tr("Open"), runs_);
        open->setObjectName(QStringLiteral("start_run_%1").arg(i));
        open->setAccessibleName(tr("Open the interrupted run %1").arg(folder));
        open->setToolTip(tr("Open its curves, from where you can resume it"));
        row->addWidget(open);
        connect(open, &QPushButton::clicked, this, [this, folder] { Q_EMIT path_wanted(folder); });
    }
    runs_->setVisible(!folders.isEmpty());
}

void StartPage::offer_leftovers(const QStringList& paths) {
    qDeleteAll(leftovers_->findChildren<QWidget*>(Qt::FindDirectChildrenOnly));
    for (int i = 0; i < std::min<int>(kMostOffers, static_cast<int>(paths.size())); ++i) {
        const QString path = paths[i];
        QHBoxLayout* row =
            add_offer(leftovers_, tr("An analysis did not end: %1").arg(path.section(QLatin1Char('/'), -1)), path);
        const auto add = [&](const char* name, const QString& text, const QString& tip) {
            auto* button = new QPushButton(text, leftovers_);
            button->setObjectName(QLatin1String(name) + QString::number(i));
            button->setAccessibleName(QStringLiteral("%1: %2").arg(text, path));
            button->setToolTip(tip);
            row->addWidget(button);
            return button;
        };
        connect(add("start_leftover_", tr("Open"), tr("The layers that were done")), &QPushButton::clicked, this,
                [this, path] { Q_EMIT path_wanted(path); });
        connect(add("start_leftover_remove_", tr("Remove"), tr("Deletes the file")), &QPushButton::clicked, this,
                [this, path] { Q_EMIT removal_wanted(path); });
    }
    leftovers_->setVisible(!paths.isEmpty());
}

void StartPage::offer_session(const QString& text) {
    offer_text_->setText(text);
    offer_->setVisible(!text.isEmpty());
}

}  // namespace headscope::widgets
