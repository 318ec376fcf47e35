// SPDX-License-Identifier: GPL-3.0-or-later
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/figures/make_figure.h"
#include "core/tokenizer/hashed/sample_hash.h"
#include "widgets/desk/presence.h"
#include "widgets/mailbox.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/text/banner.h"
#include "widgets/text/line_label.h"
#include "widgets/views/tensors/tensor_source.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

using tokenizer::WordHashKind;

constexpr int kHashTyping = 150;  // ms after the last key before words are hashed
constexpr int kMostTyped = 4000;  // characters: far more than are drawn
constexpr int kHashFieldWidth = 120;
constexpr const char* kNoHashModel = "none";  ///< in place of a model's path
const char kHashWork = 0;                     ///< owner of the reader's tasks

/// Words that are typed in, as MD5 and LSH make bits of them: those of an open model, else the program's own. Without
/// words those of the analysed text, where its model hashes words.
class HashView final : public View {
public:
    HashView(Desk* desk, QWidget* parent)
        : View(desk, parent),
          words_(new QLineEdit(content())),
          models_(new QComboBox(content())),
          failure_(new Banner(content())),
          picture_(new FigureView(content())),
          pointed_(new LineLabel(content())) {
        build();
        typing_.setSingleShot(true);
        typing_.setInterval(kHashTyping);
        connect(&typing_, &QTimer::timeout, this, &HashView::refresh_later);
        connect(desk, &Desk::tensors_changed, this, &HashView::join);
        join();
    }
    ~HashView() override {
        mailbox_.close();
        desk().reader().cancel(&kHashWork);
    }

    QJsonObject state() const override { return {{"words", words_->text()}, {"model", wanted_}}; }

    void restore(const QJsonObject& state) override {
        if (const QJsonValue words = state.value(QLatin1String("words")); words.isString())
            words_->setText(words.toString());
        if (const QJsonValue model = state.value(QLatin1String("model")); model.isString()) wanted_ = model.toString();
        refresh_later();
    }

    std::optional<FigureRequest> figure() const override {
        if (!picture_->figure()) return std::nullopt;
        FigureRequest wish{"hash", {}, {}};
        if (const Asked now = asked(); !now.words.isEmpty()) {
            wish.options.words = now.words.toStdString();
            for (const WordHashKind kind : kKinds)
                wish.paths << (now.model && kind_of(*now.model) == kind ? now.model->path
                                                                        : QLatin1String(sample_name(kind)));
            return wish;
        }
        if (!reads_text()) return std::nullopt;
        wish.options = text_options();
        wish.studies = {study()->id()};
        return named(wish);
    }

private:
    using Model = TensorSource::Model;
    struct Asked {
        QString words;
        std::optional<Model> model;  ///< of which one of the hashes is
    };
    static constexpr std::array kKinds{WordHashKind::md5, WordHashKind::lsh};

    static const char* sample_name(WordHashKind kind) { return kind == WordHashKind::lsh ? "lsh" : "md5"; }
    static WordHashKind kind_of(const Model& model) { return model.hash->settings().hash; }

    void build() {
        auto* column = new QVBoxLayout(content());
        column->setContentsMargins(8, 6, 8, 4);
        column->setSpacing(6);
        auto* tools = new QHBoxLayout;
        column->addLayout(tools);
        words_->setObjectName(QStringLiteral("words"));
        words_->setAccessibleName(tr("Words to hash"));
        words_->setPlaceholderText(tr("Words to hash (empty: those of the analyzed text)"));
        words_->setToolTip(tr("Words are lower-cased and cut like the input of models with a hash embedding"));
        words_->setClearButtonEnabled(true);
        words_->setMaxLength(kMostTyped);
        words_->setMinimumWidth(kHashFieldWidth);
        words_->setText(tr("play played player replay work worked happy"));
        connect(words_, &QLineEdit::textChanged, this, [this] {
            typing_.start();
            Q_EMIT state_changed();
        });
        models_->setObjectName(QStringLiteral("hash_model"));
        models_->setAccessibleName(tr("Hash function"));
        models_->setToolTip(tr("Use the hash of an open model. Without one, the built-in hash is used"));
        models_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        models_->setMinimumContentsLength(18);
        connect(models_, &QComboBox::activated, this, [this] {
            wanted_ = models_->currentData().toString();
            refresh_later();
            Q_EMIT state_changed();
        });
        tools->addWidget(words_, 1);
        tools->addWidget(models_);
        failure_->setObjectName(QStringLiteral("failure"));
        column->addWidget(failure_);
        column->addWidget(picture_, 1);
        column->addWidget(pointed_);
        pointed_->setObjectName(QStringLiteral("pointed"));
        pointed_->setTextFormat(Qt::PlainText);
        pointed_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
        connect(picture_, &FigureView::pointed, this, [this](const QString& text) {
            pointed_->setText(text.isEmpty() ? hint() : text);
            pointed_->setToolTip(pointed_->text());
        });
        add_command("hash_type_words", tr("Type words to hash"), {}, tr("Go to the field of words"), [this] {
            words_->setFocus(Qt::ShortcutFocusReason);
            words_->selectAll();
        });
        add_command(
            "hash_words_of_text", tr("Hash the words of the analyzed text"), {}, tr("Replace the typed words"),
            [this] { words_->clear(); }, [this] { return reads_text() && !words_->text().isEmpty(); });
    }

    void join() {
        if (source_) source_->disconnect(this);
        source_ = desk().tensors();
        if (source_) connect(source_, &TensorSource::models_changed, this, &HashView::refresh_later);
        refresh_later();
    }

    /// Open ones whose words have bits, and that a command line can name.
    std::vector<Model> hashing_models() const {
        std::vector<Model> models = source_ ? source_->models() : std::vector<Model>{};
        std::erase_if(models, [](const Model& model) {
            return !model.hash || !model.hash->settings().has_bits() || model.path.isEmpty();
        });
        return models;
    }

    void fill_models(const std::vector<Model>& models) {
        const QSignalBlocker quiet(models_);
        models_->clear();
        models_->addItem(tr("Without a model"), QLatin1String(kNoHashModel));
        for (const Model& model : models)
            models_->addItem(
                QStringLiteral("%1 (%2)").arg(model.name, QString::fromLatin1(sample_name(kind_of(model))).toUpper()),
                model.path);
        models_->setCurrentIndex(std::max(0, models_->findData(wanted_)));
        models_->setVisible(!models.empty());
    }

    Asked asked() const {
        Asked now{words_->text().simplified(), {}};
        for (const Model& model : hashing_models())
            if (model.path == wanted_) now.model = model;
        return now;
    }

    /// True if the words come from the analyzed text: its model hashes words.
    bool reads_text() const { return study() && study()->header().hashed(); }
    figures::FigureOptions text_options() const {
        figures::FigureOptions options;
        options.sequence = selection().sequence;
        options.all_sequences = !selection().sequence.has_value();
        return options;
    }

    void refresh() override {
        picture_->set_theme(desk().theme());
        const auto models = hashing_models();
        // A model that hashes words is taken at once, until another choice is made.
        if (!models.empty() && wanted_.isEmpty()) wanted_ = models.back().path;
        fill_models(models);
        show_content();
        pointed_->setText(hint());
        const Asked now = asked();
        if (now.words.isEmpty()) return show_text();
        const auto key = std::pair(now.words, now.model ? now.model->id : 0);
        if (key == shown_) return;
        shown_ = key;
        desk().reader().cancel(&kHashWork);
        desk().reader().post(&kHashWork, [this, now, key, send = mailbox_.sender()](const Cancellation& stop) {
            std::shared_ptr<const figures::FigureData> figure;
            QString failure;
            try {
                figures::FigureInputs inputs;
                for (const WordHashKind kind : kKinds) {
                    if (now.model && kind_of(*now.model) == kind)
                        inputs.hashes.push_back({now.model->name.toStdString(), now.model->hash});
                    else
                        inputs.hashes.push_back({"", tokenizer::sample_hash(kind)});
                }
                figures::FigureOptions options;
                options.words = now.words.toStdString();
                figure = std::make_shared<const figures::FigureData>(figures::make_figure("hash", inputs, options));
            } catch (...) {
                failure = QString::fromUtf8(current_error("hash").what());
            }
            if (stop.requested()) return;
            send([this, key, figure, failure] {
                if (key == shown_) show_figure(figure, failure);
            });
        });
    }

    void show_text() {
        shown_ = {};
        if (!reads_text()) return show_figure(nullptr, {});
        const auto reply = study()->figure("hash", text_options());
        if (!reply.pending || reply) show_figure(reply.value, reply.failure);
    }

    void show_figure(std::shared_ptr<const figures::FigureData> figure, const QString& failure) {
        failure_->set(failure);
        picture_->set_figure(std::move(figure));
        pointed_->setText(hint());
    }

    QString hint() const {
        if (!picture_->figure() && words_->text().simplified().isEmpty() && !reads_text())
            return tr("Type some words to see their bits and how similar they are");
        return tr("Words that share n-grams are similar under LSH; under MD5 only by chance");
    }

    TensorSource* source_ = nullptr;
    QLineEdit* words_;
    QComboBox* models_;
    Banner* failure_;
    FigureView* picture_;
    QLabel* pointed_;
    QTimer typing_;
    QString wanted_;                 ///< path of the chosen model, or kNoHashModel; empty: nothing was chosen
    std::pair<QString, int> shown_;  ///< words and model that the picture is of, or will be; empty: of the text
    Mailbox mailbox_{this};
};

/// The analysis is of hashed words, or an open model hashes words.
Presence with_hashes(const Desk& desk) {
    if (desk.current() && desk.current()->header().hashed()) return Presence::filled;
    const auto models = desk.tensors() ? desk.tensors()->models() : std::vector<TensorSource::Model>();
    return filled_if(
        std::any_of(models.begin(), models.end(), [](const auto& model) { return model.hash != nullptr; }));
}

}  // namespace

extern const ViewKind kHash{"hash",
                            "Hash",
                            "Bits and code words of typed words, and how alike MD5 and LSH make them",
                            [](Desk* desk, QWidget* parent) -> View* { return new HashView(desk, parent); },
                            ViewGroup::other,
                            with_hashes};

}  // namespace headscope::widgets
