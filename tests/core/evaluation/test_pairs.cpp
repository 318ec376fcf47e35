// SPDX-License-Identifier: GPL-3.0-or-later
// Pairs of texts from folder to logits, attention and gradients, against transformers
// (tests/oracle/generate/pair_classes.py).
#include "tests/catch_with_torch.h"

#include <cmath>
#include <fstream>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <nlohmann/json.hpp>

#include "core/analysis/input.h"
#include "core/analysis/request.h"
#include "core/data/batch/item_source.h"
#include "core/data/batch/objective_reader.h"
#include "core/evaluation/labelled.h"
#include "core/model/objectives/objective.h"
#include "core/model/trainable.h"
#include "core/store/analysis/analysis_file.h"
#include "core/training/trainer/learner.h"
#include "tests/core/base/bytes_read.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using nlohmann::json;
using Ids = std::vector<std::int64_t>;

namespace {

json golden() {
    std::ifstream file(test::golden_file("pair_classes.json"));
    return json::parse(file);
}

/// A case's folder, as it lies on the hub.
class HubFolder {
public:
    explicit HubFolder(const json& one) {
        test::golden_checkpoint(one.at("model").get<std::string>() + "-text-classes").write(folder_.path());
        test::write_file(folder_ / "tokenizer.json", one.at("tokenizer").dump());
        test::write_file(folder_ / "tokenizer_config.json", one.at("tokenizer_config").dump());
        checkpoint = checkpoint::Checkpoint::open(folder_.path());
    }
    data::ChosenTokenizer tokenizer() const { return data::tokenizer_at(folder_.path()); }
    std::filesystem::path operator/(const char* name) const { return folder_ / name; }

    std::shared_ptr<const checkpoint::Checkpoint> checkpoint;

private:
    test::TemporaryFolder folder_;
};

evaluation::LabelledItems items_of(const json& data, const json& one) {
    evaluation::LabelledItems items{"pairs", {}, {}};
    for (std::size_t i = 0; i < data.at("items").size(); ++i) {
        const json& item = data.at("items")[i];
        const bool pair = item[1].is_string();
        items.items.push_back(
            {item[0], pair ? item[1].get<std::string>() : "", pair, one.at("labels")[i].get<double>()});
    }
    return items;
}

data::DataBatch batch_of(const HubFolder& folder, const evaluation::LabelledItems& items, std::int64_t length,
                         std::int64_t classes) {
    data::DataSettings settings;
    settings.objective.kind = "classify";
    settings.objective.classes = classes;
    settings.sequence_length = length;
    const data::ObjectiveReader reader(settings, folder.tokenizer());
    return reader
        .source(
            data::made_items([&](std::int64_t i) { return items.items[static_cast<std::size_t>(i)]; }, reader.code()))
        ->read(0, std::ssize(items.items));
}

std::string name_of(const json& one) {
    return one.at("model").get<std::string>() + " with " + one.at("tokenizer_config").dump();
}

}  // namespace

TEST_CASE("Classes of pairs are transformers', in every batch", "[evaluation][pairs][golden]") {
    const json data = golden();
    for (const json& one : data.at("cases")) {
        INFO(name_of(one));
        const HubFolder folder(one);
        const auto model = model::Model::build(*folder.checkpoint, checkpoint::LoadAs::float32);
        const std::int64_t length = data.at("length"), classes = model->config().classes;
        evaluation::LabelledWork work;
        work.tokenizer = folder.tokenizer();
        const auto items = items_of(data, one);
        const auto logits = one.at("logits").get<std::vector<double>>();
        for (const std::int64_t batch_tokens : {std::int64_t{1}, std::int64_t{4096}}) {
            evaluation::ScoreOptions options;
            options.batch_tokens = batch_tokens;
            double largest = 0;
            const auto values = evaluation::classify(
                *model, work, items, length, options,
                [&](const evaluation::AnsweredItem& answered) {
                    const double* row = logits.data() + answered.number * classes;
                    double sum = 0;
                    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(row[c]);
                    for (std::int64_t c = 0; c < classes; ++c) {
                        const double ours = answered.score.requests[static_cast<std::size_t>(c)].loglikelihood;
                        largest = std::max(largest, std::abs(ours - (row[c] - std::log(sum))));
                    }
                },
                {});
            CHECK(largest < test::kFloatError * 4);
            for (const auto& value : values) {
                if (value.metric == "loss") CHECK(value.value == Approx(one.at("loss").get<double>()).epsilon(1e-5));
                CHECK(value.cut == 2);
            }
        }
    }
}

TEST_CASE("Texts that pass each layer together have the classes of float32", "[evaluation][pairs][residence]") {
    const json data = golden();
    const json& one = data.at("cases").front();
    const HubFolder folder(one);
    const std::int64_t length = data.at("length");
    evaluation::LabelledWork work;
    work.tokenizer = folder.tokenizer();
    const auto items = items_of(data, one);
    REQUIRE(items.items.size() > 2);
    struct Classes {
        std::vector<double> values;
        std::vector<std::int64_t> order;  ///< of items
        std::uint64_t read = 0;           ///< bytes
    };
    const auto classes_of = [&](model::Residence residence, std::int64_t group_tokens) {
        const auto model =
            model::Model::build(*folder.checkpoint, checkpoint::LoadAs::float32, nullptr, nullptr, residence);
        evaluation::ScoreOptions options;
        options.batch_tokens = 1;  // each text is a batch
        options.group_tokens = group_tokens;
        Classes found;
        const std::uint64_t before = test::bytes_read();
        const auto values = evaluation::classify(*model, work, items, length, options,
                                                 [&found](const evaluation::AnsweredItem& answered) {
                                                     found.order.push_back(answered.number);
                                                     for (const auto& request : answered.score.requests)
                                                         found.values.push_back(request.loglikelihood);
                                                 },
                                                 {});
        found.read = test::bytes_read() - before;
        for (const auto& value : values) found.values.push_back(value.value);
        return found;
    };
    const Classes expected = classes_of(model::Residence::float32, 1), alone = classes_of(model::Residence::stream, 1),
                  together = classes_of(model::Residence::stream, 1 << 18);
    CHECK(together.values == expected.values);
    CHECK(together.order == expected.order);
    CHECK(alone.values == expected.values);
    CHECK(together.read < alone.read);
}

TEST_CASE("Training reads the ids and types that transformers does, and moves every row of types",
          "[evaluation][pairs][golden]") {
    const json data = golden();
    for (const json& one : data.at("cases")) {
        INFO(name_of(one));
        const HubFolder folder(one);
        const auto items = items_of(data, one);
        auto trainable = model::Trainable::open(*folder.checkpoint, at::kFloat);
        const std::int64_t classes = std::as_const(*trainable).model().config().classes;
        const data::DataBatch batch = batch_of(folder, items, data.at("length"), classes);
        Ids ids, types;
        for (const json& row : one.at("ids")) ids.insert(ids.end(), row.begin(), row.end());
        CHECK(batch.ids == ids);
        CHECK(batch.lengths == one.at("lengths").get<Ids>());
        if (one.at("types").is_array())
            for (const json& row : one.at("types")) types.insert(types.end(), row.begin(), row.end());
        CHECK(batch.types == types);
        training::JobFile job;
        job.data.objective.kind = "classify";
        job.data.objective.classes = classes;
        job.training.dropout = 0;
        job.optimizer.weight_decay = 0;
        training::Learner learner(std::move(trainable), job);
        const training::Loss loss = learner.gradients({batch}, 0);
        CHECK(loss.mean() == Approx(one.at("loss").get<double>()).epsilon(1e-5));
        if (!one.contains("type_gradient")) continue;
        for (const model::Parameter& parameter : learner.model().parameters()) {
            if (!parameter.name.ends_with("token_type_embeddings.weight")) continue;
            const auto wanted = one.at("type_gradient").get<std::vector<double>>();
            REQUIRE(parameter.value.size(0) == std::ssize(wanted));
            const at::Tensor before = parameter.value.clone();
            learner.update(1e-3, learner.gradient_norm(), 1);
            const at::Tensor moved = at::linalg_vector_norm(parameter.value - before, 2, at::IntArrayRef{1});
            for (std::size_t row = 0; row < wanted.size(); ++row)
                CHECK((moved[static_cast<std::int64_t>(row)].item<double>() > 1e-6) == (wanted[row] > 0));
        }
    }
}

TEST_CASE("analyze sees a pair as transformers gives it to the model", "[evaluation][pairs][golden]") {
    const json data = golden();
    std::size_t compared = 0;
    for (const json& one : data.at("cases")) {
        INFO(name_of(one));
        const HubFolder folder(one);
        analysis::InputOptions options;
        options.texts = {data.at("items")[0][0]};
        options.pairs = {data.at("items")[0][1]};
        const auto tokenizer = tokenizer::Tokenizer::from_folder(folder.checkpoint->path());
        auto input = analysis::read_input(options, tokenizer.get());
        const auto ids = one.at("whole").get<std::vector<std::int32_t>>();
        CHECK(input.sequences.at(0).ids == ids);
        const bool typed = one.at("types").is_array();
        CHECK(input.sequences.at(0).types.back() == (typed ? 1 : 0));
        CHECK(input.sequences.at(0).regions.back() == 0);
        CHECK(input.sequences.at(0).regions[6] == 2);
        if (!one.contains("attention")) continue;
        ++compared;
        const auto model = model::Model::build(*folder.checkpoint, checkpoint::LoadAs::float32);
        analysis::AnalysisRequest request;
        request.sequences = std::move(input.sequences);
        request.record.attention = true;
        NoProgress progress;
        analysis::run(*model, request, folder / "pair.headscope.h5", {}, progress, Cancellation());
        const auto file = store::AnalysisFile::open(folder / "pair.headscope.h5");
        const auto length = static_cast<std::int64_t>(ids.size()), heads = model->config().heads;
        for (std::int64_t layer = 0; layer < model->config().layers; ++layer) {
            const auto theirs = one.at("attention")[static_cast<std::size_t>(layer)].get<std::vector<double>>();
            double largest = 0;
            for (std::int64_t head = 0; head < heads; ++head) {
                const auto rows = file->attention_rows(0, layer, head, 0, length).value();
                for (std::int64_t i = 0; i < length * length; ++i)
                    largest = std::max(largest, std::abs(rows.data[static_cast<std::size_t>(i)] -
                                                         theirs[static_cast<std::size_t>(head * length * length + i)]));
            }
            CHECK(largest < test::kFloatError);
        }
    }
    CHECK(compared == 7);
}
