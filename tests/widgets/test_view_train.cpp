// SPDX-License-Identifier: GPL-3.0-or-later
// The job as form and text, and the layout editor.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTableWidget>
#include <QTest>
#include <QToolButton>
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/widgets/child.h"
#include "tests/widgets/desk_fixture.h"
#include "tests/widgets/run_fixture.h"
#include "widgets/plain_edit.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/training/job_editor.h"
#include "widgets/training/job_form.h"
#include "widgets/training/layer_column.h"
#include "widgets/views/layout.h"
#include "widgets/views/train.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

using tests::child;

struct Page {
    explicit Page(const char* name) {
        desk.runs().draft().set_choices(tests::made_choices());
        desk.runs().draft().set_layers({"mlp", "standard", "mlp", "standard"});
        desk.runs().draft().set_estimate(tests::made_estimate({"mlp", "standard", "mlp", "standard"}));
        view.reset(tests::view_kind(name).make(&desk, nullptr));
        view->resize(1000, 600);
        view->show();
        turn();
    }
    void turn() const {
        for (int i = 0; i < 5; ++i) QApplication::processEvents();
    }
    JobDraft& draft() { return desk.runs().draft(); }

    bool application = (ensure_application(), true);
    Desk desk;
    std::unique_ptr<View> view;
};

void type(QLineEdit* line, const QString& text) {
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, text);
    QTest::keyClick(line, Qt::Key_Return);
}

}  // namespace

TEST_CASE("The first job of a window can be read", "[train]") {
    ensure_application();
    JobDraft draft;
    INFO((draft.problem() ? draft.problem()->text.toStdString() : std::string()));
    CHECK_FALSE(draft.problem());
    CHECK(draft.job().data.corpus == "kjv");
}

TEST_CASE("What is typed in the form is in the text, and the other way round", "[train][form]") {
    Page page("train");
    type(child<QLineEdit>(*page.view, "job_training_steps"), QStringLiteral("77"));
    CHECK(page.draft().job().training.steps == 77);
    auto* text = child<QPlainTextEdit>(*page.view, "job_text");
    CHECK(text->toPlainText().contains(QStringLiteral("steps = 77")));
    CHECK(text->toPlainText().contains(QStringLiteral("# or minutes = 10")));  // comments stay
    text->setPlainText(
        QString(text->toPlainText()).replace(QStringLiteral("steps = 77"), QStringLiteral("steps = 78")));
    CHECK(QTest::qWaitFor([&] { return page.draft().job().training.steps == 78; }, 3000));
    page.turn();
    CHECK(child<QLineEdit>(*page.view, "job_training_steps")->text() == "78");
}

TEST_CASE("What is pasted is no job when it is megabytes, and the job that is there stays", "[train][text]") {
    Page page("train");
    auto* text = child<QPlainTextEdit>(*page.view, "job_text");
    const QString before = text->toPlainText();
    QGuiApplication::clipboard()->setText(QString(2'000'000, QLatin1Char('x')));
    text->paste();
    CHECK(text->toPlainText() == before);
    auto* problem = child<QLabel>(*page.view, "job_problem");
    CHECK_FALSE(problem->isHidden());
    CHECK(problem->text().contains(QString::number(2'000'000 + before.size())));
    QGuiApplication::clipboard()->setText(QStringLiteral("# a word of my own\n"));
    text->paste();
    CHECK(text->toPlainText() == QStringLiteral("# a word of my own\n") + before);
}

TEST_CASE("A job on a checkpoint has its tokenizer, and the summary shows it", "[train][form]") {
    Page page("train");
    CHECK(page.draft().job().data.tokenizer == "bytes");
    CHECK(page.view->findChild<QLabel*>(QStringLiteral("fact_tokenizer_value")) == nullptr);
    type(child<QLineEdit>(*page.view, "job_model_from"), QStringLiteral("/models/llama"));
    page.turn();
    CHECK(page.draft().job().data.tokenizer == "/models/llama");
    CHECK(child<QComboBox>(*page.view, "job_data_tokenizer")->currentText() == "/models/llama");
    CHECK_FALSE(page.draft().text().contains(QStringLiteral("\ntokenizer")));
    CHECK(child<QLabel>(*page.view, "fact_tokenizer_value")->text() == "the checkpoint's");
    type(child<QLineEdit>(*page.view, "job_data_tokenizer_line"), QStringLiteral("bytes"));
    page.turn();
    CHECK(page.draft().job().data.tokenizer == "bytes");
    CHECK(child<QLabel>(*page.view, "fact_tokenizer_value")->text() == "bytes");
    // Emptied it is the checkpoint's again.
    CHECK_FALSE(page.draft().unset("data.tokenizer"));
    CHECK(page.draft().job().data.tokenizer == "/models/llama");
}

TEST_CASE("Keys of the model's configuration are in the form", "[train][form]") {
    Page page("train");
    auto* activation = child<QComboBox>(*page.view, "job_model_hidden_act");
    CHECK(activation->currentText() == "as the preset");
    activation->setCurrentIndex(activation->findData(QStringLiteral("gelu")));
    Q_EMIT activation->activated(activation->currentIndex());
    CHECK(page.draft().job().model.config.at("hidden_act") == "gelu");
    activation->setCurrentIndex(0);
    Q_EMIT activation->activated(0);
    CHECK_FALSE(page.draft().job().model.config.contains("hidden_act"));
    type(child<QLineEdit>(*page.view, "job_model_rope_parameters"),
         QStringLiteral("{ rope_type = \"linear\", factor = 2 }"));
    CHECK(page.draft().job().model.config.at("rope_parameters").at("factor") == 2);
    CHECK(child<QComboBox>(*page.view, "job_model_rotary")->currentText() == "as the preset");
}

TEST_CASE("A stack of the specification's keys is set in the form", "[train][form]") {
    Page page("train");
    const auto choose = [&](const char* name, const char* value) {
        auto* box = child<QComboBox>(*page.view, name);
        box->setCurrentIndex(box->findData(QString::fromLatin1(value)));
        Q_EMIT box->activated(box->currentIndex());
    };
    choose("job_model_stack", "encoder");
    choose("job_model_norm", "layer");
    choose("job_model_norm_place", "post");
    choose("job_model_positions", "learned");
    choose("job_model_feed_forward", "plain");
    choose("job_model_embedding_norm", "true");
    type(child<QLineEdit>(*page.view, "job_model_type_vocab_size"), QStringLiteral("2"));
    type(child<QLineEdit>(*page.view, "job_model_head"), QStringLiteral("{ kind = \"none\" }"));
    const auto& config = page.draft().job().model.config;
    CHECK(config.at("stack") == "encoder");
    CHECK(config.at("norm") == "layer");
    CHECK(config.at("norm_place") == "post");
    CHECK(config.at("positions") == "learned");
    CHECK(config.at("feed_forward") == "plain");
    CHECK(config.at("embedding_norm") == true);
    CHECK(config.at("type_vocab_size") == 2);
    CHECK(config.at("head").at("kind") == "none");
    CHECK_FALSE(page.draft().problem());
}

TEST_CASE("Without its checkpoint a job has the first preset again", "[train][form]") {
    Page page("train");
    CHECK_FALSE(page.draft().set("model.from", "\"/models/llama\""));
    CHECK(page.draft().job().model.preset.empty());
    CHECK_FALSE(page.draft().unset("model.from"));
    CHECK(page.draft().job().model.preset == "tiny-1m");
}

TEST_CASE("A refused value shows its error under its field, and the job stays", "[train][form]") {
    Page page("train");
    const QString before = page.draft().text();
    type(child<QLineEdit>(*page.view, "job_training_batch"), QStringLiteral("-4"));
    auto* problem = child<QLabel>(*page.view, "job_training_batch_problem");
    CHECK(problem->isVisible());
    CHECK(problem->text().contains(QStringLiteral("training.batch")));
    CHECK(page.draft().text() == before);
    CHECK(child<QPushButton>(*page.view, "job_start")->isEnabled());
    type(child<QLineEdit>(*page.view, "job_training_batch"), QStringLiteral("4"));
    CHECK_FALSE(problem->isVisible());
    CHECK(page.draft().job().training.batch == 4);
}

TEST_CASE("An error of the text is shown at its key, and the job cannot be started", "[train][form]") {
    Page page("train");
    page.draft().set_text(
        QString(page.draft().text()).replace(QStringLiteral("batch = 16"), QStringLiteral("bach = 16")));
    page.turn();
    REQUIRE(page.draft().problem());
    CHECK(page.draft().problem()->line == 16);
    CHECK(page.draft().problem()->text.contains(QStringLiteral("batch")));  // the nearest name
    CHECK_FALSE(child<QPushButton>(*page.view, "job_start")->isEnabled());
    CHECK(child<QLabel>(*page.view, "job_problem")->isVisible());
    page.draft().set_text(JobDraft::first_text());
    page.turn();
    CHECK(child<QPushButton>(*page.view, "job_start")->isEnabled());
    // An error that only a check finds: a key without a line.
    JobEstimate estimate;
    estimate.problem = JobProblem{QStringLiteral("[data.corpus] expected an installed one; found none"), 0,
                                  QStringLiteral("data.corpus")};
    page.draft().set_estimate(estimate);
    page.turn();
    CHECK(child<QLabel>(*page.view, "job_data_corpus_problem")->isVisible());
    CHECK_FALSE(child<QPushButton>(*page.view, "job_start")->isEnabled());
}

TEST_CASE("Choices by name set their key; one of several ways to say what to train on", "[train][form]") {
    Page page("train");
    auto* preset = child<QComboBox>(*page.view, "job_model_preset");
    preset->setCurrentIndex(preset->findData(QStringLiteral("nano-100k")));
    Q_EMIT preset->activated(preset->currentIndex());
    CHECK(page.draft().job().model.preset == "nano-100k");
    auto* generator = child<QComboBox>(*page.view, "job_data_generator");
    generator->setCurrentIndex(generator->findText(QStringLiteral("induction")));
    Q_EMIT generator->activated(generator->currentIndex());
    REQUIRE(page.draft().job().data.generator);
    CHECK(page.draft().job().data.generator->name == "induction");
    CHECK(page.draft().job().data.corpus.empty());
    page.turn();
    CHECK(child<QComboBox>(*page.view, "job_data_corpus")->currentText().isEmpty());
}

TEST_CASE("The device is chosen among the GPUs of the machine", "[train][form]") {
    Page page("train");
    auto* device = child<QComboBox>(*page.view, "job_training_device");
    CHECK_FALSE(device->isVisible());
    JobChoices choices = page.draft().choices();
    choices.devices = {{QStringLiteral("cuda:0"), QStringLiteral("A card"), 70.3e9, {}},
                       {QStringLiteral("cuda:1"), QStringLiteral("B card"), -1, QStringLiteral("no kernels")}};
    page.draft().set_choices(choices);
    page.turn();
    CHECK(device->isVisible());
    CHECK(device->currentText() == "cpu");
    REQUIRE(device->count() == 3);
    CHECK(device->itemText(1) == "cuda:0 A card, 70.3 GB free");
    CHECK(device->itemData(2, Qt::ToolTipRole).toString() == "Found no kernels");
    device->setCurrentIndex(1);
    Q_EMIT device->activated(1);
    CHECK(page.draft().job().training.device == "cuda:0");
    page.turn();
    CHECK(device->currentText() == "cuda:0");
    type(child<QLineEdit>(*page.view, "job_training_device_line"), QStringLiteral("cuda"));
    CHECK(page.draft().job().training.device == "cuda");
    // The machine's GPUs are gone, the job's choice is not.
    choices.devices.clear();
    page.draft().set_choices(choices);
    page.turn();
    CHECK(device->isVisible());
    CHECK(device->currentText() == "cuda");
}

TEST_CASE("Names of files stay whole, with commas in them too", "[train][form]") {
    Page page("train");
    auto* files = child<QLineEdit>(*page.view, "job_data_text");
    const auto type = [&](QLineEdit* line, const QString& text) {
        line->setText(text);
        Q_EMIT line->editingFinished();
    };
    const auto names = [](const std::vector<std::string>& paths) {
        std::vector<std::string> all;
        for (const std::string& path : paths) all.push_back(std::filesystem::path(path).filename().string());
        return all;
    };
    using Names = std::vector<std::string>;
    REQUIRE_FALSE(page.draft().set("data.text", "[\"a, b.txt\", \"c.txt\"]"));
    page.turn();
    type(files, files->text() + QLatin1Char(' '));
    CHECK(names(page.draft().job().data.text) == Names{"a, b.txt", "c.txt"});
    type(files, QStringLiteral("d.txt, e.txt"));
    CHECK(names(page.draft().job().data.text) == Names{"d.txt", "e.txt"});
    auto* held_out = child<QLineEdit>(*page.view, "job_data_validation");
    type(held_out, QStringLiteral("f.txt, g.txt"));
    CHECK(names(page.draft().job().data.validation_files) == Names{"f.txt", "g.txt"});
    type(held_out, QStringLiteral("0.25"));
    CHECK(page.draft().job().data.validation == 0.25);
}

TEST_CASE("A key is found by its name and by its help", "[train][form]") {
    Page page("train");
    CHECK_FALSE(child<QLineEdit>(*page.view, "job_optimizer_eps")->isVisible());
    child<QLineEdit>(*page.view, "job_find")->setText(QStringLiteral("root mean square"));
    page.turn();
    CHECK(child<QLineEdit>(*page.view, "job_optimizer_eps")->isVisible());
    CHECK_FALSE(child<QLineEdit>(*page.view, "job_training_steps")->isVisible());
    child<QLineEdit>(*page.view, "job_find")->clear();
    page.turn();
    CHECK(child<QLineEdit>(*page.view, "job_training_steps")->isVisible());
}

TEST_CASE("Every key of a job has a field with a name and a tool tip", "[train][form]") {
    Page page("train");
    for (const auto& key : training::job_keys()) {
        const QString name = QStringLiteral("job_") +
                             QString::fromStdString(key.full_name()).replace(QLatin1Char('.'), QLatin1Char('_'));
        const auto* field = page.view->findChild<QWidget*>(name);
        INFO(name.toStdString());
        REQUIRE(field);
        CHECK_FALSE(field->accessibleName().isEmpty());
        CHECK_FALSE(field->toolTip().isEmpty());
    }
}

TEST_CASE("The job is the view's state, and comes back with what it goes on from", "[train]") {
    Page page("train");
    REQUIRE_FALSE(page.draft().set("training.steps", "123"));
    page.draft().set_fork({QStringLiteral("/runs/a/snapshots/step-000100"), QStringLiteral("step 100 of a"), false});
    const QJsonObject state = page.view->state();
    Page other("train");
    other.view->restore(state);
    other.turn();
    CHECK(other.draft().text() == page.draft().text());
    CHECK(other.draft().fork() == page.draft().fork());
    CHECK(child<QLabel>(*other.view, "job_fork_words")->text().contains(QStringLiteral("step 100 of a")));
    child<QPushButton>(*other.view, "job_fork_off")->click();
    CHECK(other.draft().fork().path.isEmpty());
    other.view->restore({{"job", 7}});
    CHECK(other.draft().text() == page.draft().text());
}

TEST_CASE("Layers are said in the shortest way", "[train][layout]") {
    ensure_application();
    JobDraft draft;
    draft.set_choices(tests::made_choices());
    draft.set_layers({"approximate", "standard", "approximate", "standard"});
    CHECK(draft.job().model.mixer == "approximate");
    CHECK(draft.job().model.layout == "even");
    CHECK(draft.job().model.layers.empty());
    draft.set_layers({"standard", "standard", "standard", "standard"});
    CHECK(draft.job().model.mixer == "standard");
    draft.set_layers({"mlp", "standard", "approximate", "standard"});
    CHECK(draft.job().model.layers == std::vector<std::string>{"mlp", "standard", "approximate", "standard"});
    CHECK_FALSE(draft.problem());
    draft.set_layers({"mlp", "mlp", "mlp", "mlp"});
    CHECK(draft.job().model.layout == "uniform");
    CHECK(draft.job().model.mixer == "mlp");
}

TEST_CASE("A click cycles a layer, a drag fills, keys give mixers", "[train][layout]") {
    Page page("layout");
    auto* column = child<LayerColumn>(*page.view, "layers");
    REQUIRE(column->layers().size() == 4);
    const auto middle = [&](int row) { return column->visualItemRect(column->item(row)).center(); };
    QTest::mouseClick(column->viewport(), Qt::LeftButton, {}, middle(0));
    CHECK(column->layers()[0] == "approximate");  // the one after mlp
    CHECK(page.draft().job().model.layers.at(0) == "approximate");
    QTest::mousePress(column->viewport(), Qt::LeftButton, {}, middle(1));
    for (const int row : {2, 3}) {
        QMouseEvent move(QEvent::MouseMove, middle(row), column->viewport()->mapToGlobal(middle(row)), Qt::NoButton,
                         Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(column->viewport(), &move);
    }
    QTest::mouseRelease(column->viewport(), Qt::LeftButton, {}, middle(3));
    CHECK(column->layers() == std::vector<std::string>{"approximate", "standard", "standard", "standard"});
    CHECK(page.draft().job().model.layers == column->layers());
    page.turn();
    CHECK(column->layers()[2] == "standard");  // before any estimate of it came
    column->setFocus();
    column->setCurrentRow(1);
    QTest::keyClick(column, Qt::Key_Down, Qt::ShiftModifier);
    QTest::keyClick(column, Qt::Key_2);
    CHECK(column->layers() == std::vector<std::string>{"approximate", "mlp", "mlp", "standard"});
    QTest::keyClick(column, Qt::Key_Space);
    CHECK(column->layers()[1] == column->layers()[2]);
    CHECK(column->layers()[1] == "approximate");
    child<QToolButton>(*page.view, "mixer_static_emb_qk")->click();
    CHECK(column->layers()[2] == "static_emb_qk");
}

TEST_CASE("The table of costs shows its headers and numbers whole in a narrow window", "[train][layout]") {
    Page page("layout");
    page.view->resize(760, 480);
    page.turn();
    page.turn();
    const auto* table = child<QTableWidget>(*page.view, "layout_costs");
    REQUIRE(table->rowCount() == 3);
    CHECK(table->horizontalScrollBar()->maximum() == 0);
    CHECK(table->verticalScrollBar()->maximum() == 0);
    for (int column = 0; column < table->columnCount(); ++column) {
        INFO(column);
        CHECK(table->columnWidth(column) >= table->horizontalHeader()->sectionSizeHint(column));
        const QFontMetrics metrics(table->item(2, column)->font());
        CHECK(table->columnWidth(column) > metrics.horizontalAdvance(table->item(2, column)->text()));
    }
}

TEST_CASE("A drag ends where the job gets another stack meanwhile", "[train][layout]") {
    Page page("layout");
    auto* column = child<LayerColumn>(*page.view, "layers");
    REQUIRE(column->layers().size() == 4);
    const auto middle = [&](int row) { return column->visualItemRect(column->item(row)).center(); };
    QTest::mousePress(column->viewport(), Qt::LeftButton, {}, middle(3));
    const std::vector<std::string> other{"standard", "mlp"};
    column->set_layers(other);
    QMouseEvent move(QEvent::MouseMove, middle(0), column->viewport()->mapToGlobal(middle(0)), Qt::NoButton,
                     Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(column->viewport(), &move);
    CHECK(column->layers() == other);
    QTest::mouseRelease(column->viewport(), Qt::LeftButton, {}, middle(1));
    CHECK(column->layers() == other);
}

TEST_CASE("A layout by name fills the column with the mixer that is there", "[train][layout]") {
    Page page("layout");
    auto* names = child<QListWidget>(*page.view, "layout_names");
    REQUIRE(names->count() == 5);
    CHECK(names->currentItem()->text() == "even");  // what is shown
    Q_EMIT names->itemClicked(names->item(2));      // odd
    CHECK(page.draft().job().model.layout == "odd");
    CHECK(page.draft().job().model.mixer == "mlp");
}
