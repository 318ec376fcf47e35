// SPDX-License-Identifier: GPL-3.0-or-later
// Views of head embeddings and of hashed words.
#include <QComboBox>
#include <QLineEdit>
#include <QTest>
#include <catch2/catch.hpp>

#include "core/tokenizer/hashed/sample_hash.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_heads.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/views/tensors/tensor_source.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

/// An open model that hashes by LSH, and one with a table.
class HashingModels final : public TensorSource {
public:
    std::vector<Model> models() const override {
        return {{1, QStringLiteral("hashing"), QStringLiteral("/models/hashing"),
                 tokenizer::sample_hash(tokenizer::WordHashKind::lsh)},
                {2, QStringLiteral("table"), QStringLiteral("/models/table"), {}}};
    }
    void want_table(int) override {}
    void want_numbers(int, const QString&) override {}
    void stop_numbers() override {}
};

struct ShownView {
    explicit ShownView(const char* kind, TensorSource* source = nullptr, bool analysis = true) {
        desk.set_tensors(source);
        tests::write_head_embeddings_analysis(folder / "a.headscope.h5");
        if (analysis) tests::open_study(desk, folder / "a.headscope.h5");
        view.reset(tests::view_kind(kind).make(&desk, nullptr));
        view->resize(900, 600);
        view->show();
        settle();
    }
    ~ShownView() {
        view.reset();
        desk.set_tensors(nullptr);
    }
    void settle() {
        tests::settle(desk);
        QTest::qWait(20);
        tests::settle(desk);
    }
    FigureView* picture() { return view->findChild<FigureView*>(); }
    template <class Widget>
    Widget* find(const char* name) {
        auto* found = view->findChild<Widget*>(QLatin1String(name));
        REQUIRE(found);
        return found;
    }
    /// The figure is made a moment after the last key, on another thread.
    void type(const QString& words) {
        const auto* before = picture()->figure();
        find<QLineEdit>("words")->setText(words);
        for (int turn = 0; turn < 100 && picture()->figure() == before; ++turn) {
            QTest::qWait(20);
            tests::settle(desk);
        }
    }

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    std::unique_ptr<View> view;
};

}  // namespace

TEST_CASE("Head embeddings: cells choose sites and heads, one layer has squares", "[views][head-embeddings]") {
    ShownView shown("head_embeddings");
    REQUIRE(shown.picture()->figure());
    REQUIRE(shown.picture()->figure()->panels.size() == 4);
    const QPoint cell = shown.picture()->cell_point(0, 2, 3);
    QTest::mouseClick(shown.picture()->viewport(), Qt::LeftButton, {}, cell);
    shown.settle();
    CHECK(shown.desk.selection().site == 3);
    CHECK(shown.desk.selection().head == 3);
    QTest::mouseClick(shown.picture()->viewport(), Qt::LeftButton, {}, shown.picture()->cell_point(0, 1, 2));
    shown.settle();
    CHECK(shown.desk.selection().site == 2);
    auto* of = shown.find<QComboBox>("of");
    of->setCurrentIndex(of->findData(QStringLiteral("layer")));
    shown.settle();
    CHECK(shown.view->figure()->options.layer == 2);
    CHECK(shown.picture()->figure()->panels.size() == 6);
}

TEST_CASE("Hash: words are typed and hashed, by an open model or without one", "[views][hash]") {
    HashingModels models;
    ShownView shown("hash", &models, false);
    shown.type(QStringLiteral("teacher teaching"));
    REQUIRE(shown.picture()->figure());
    REQUIRE(shown.picture()->figure()->panels.size() == 4);
    CHECK(shown.picture()->figure()->panels[0].title == "MD5, bits");
    CHECK(shown.picture()->figure()->panels[2].title == "hashing, LSH, bits");
    const auto wish = shown.view->figure();
    REQUIRE(wish);
    CHECK(wish->recipe == "hash");
    CHECK(wish->options.words == "teacher teaching");
    CHECK(wish->paths == QStringList{QStringLiteral("md5"), QStringLiteral("/models/hashing")});

    auto* box = shown.find<QComboBox>("hash_model");
    REQUIRE(box->count() == 2);  // one with a table hashes nothing
    box->setCurrentIndex(0);
    Q_EMIT box->activated(0);
    CHECK(shown.view->figure()->paths == QStringList{QStringLiteral("md5"), QStringLiteral("lsh")});
    const QJsonObject state = shown.view->state();

    ShownView again("hash", &models, false);
    again.view->restore(state);
    again.type(QStringLiteral("teacher taught"));
    CHECK(again.find<QComboBox>("hash_model")->currentIndex() == 0);
    CHECK(again.picture()->figure()->panels[2].title == "LSH, bits");
    // Nothing typed, and no text that was hashed: no figure.
    again.type({});
    CHECK_FALSE(again.picture()->figure());
    CHECK_FALSE(again.view->figure());
}
