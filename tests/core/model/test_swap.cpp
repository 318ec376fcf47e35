// SPDX-License-Identifier: GPL-3.0-or-later
// Mixers of some layers replaced in checkpoints that are there.
#include "tests/catch_with_torch.h"

#include <ATen/ops/equal.h>

#include "core/base/error.h"
#include "core/model/fresh/swap.h"
#include "core/model/towers/stack.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using model::Trainable;
using test::GoldenModel;
using test::IsError;
using test::TemporaryFolder;

namespace {

std::shared_ptr<const checkpoint::Checkpoint> written(const std::string& golden, const TemporaryFolder& folder) {
    test::golden_model(golden).checkpoint.write(folder.path());
    return checkpoint::Checkpoint::open(folder.path());
}

at::Tensor forward(model::Model& model, const GoldenModel& golden) {
    return model.forward(golden.batch);
}

}  // namespace

TEST_CASE("Swapped layers keep the weights that fit, and the others are fresh", "[swap]") {
    for (const char* name : {"llama", "qwen2", "qwen3", "native-standard-norms"}) {
        INFO(name);
        const TemporaryFolder folder;
        const auto file = written(name, folder);
        const auto own = Trainable::open(*file, at::kFloat);
        const auto swapped = Trainable::open(*file, at::kFloat, {{{1, "static_emb_qk"}}});
        CHECK(swapped->model().mixers()[1] == "static_emb_qk");
        CHECK(swapped->model().mixers()[0] == "standard");
        CHECK(at::equal(swapped->weights(), own->weights()));
        const GoldenModel golden = test::golden_model(name);
        CHECK(test::largest_difference(forward(swapped->model(), golden), forward(own->model(), golden)) > 1e-3);

        const auto mlp = Trainable::open(*file, at::kFloat, {{{1, "mlp"}}}, 5);
        const auto* kept = test::find_parameter(*mlp, "model.layers.1.self_attn.o_proj.weight");
        CHECK(at::equal(kept->value, test::find_parameter(*own, kept->name)->value));
        CHECK(test::find_parameter(*mlp, "model.layers.1.self_attn.q_proj.weight") == nullptr);
        const auto* fresh = test::find_parameter(*mlp, "model.layers.1.self_attn.gate_proj.weight");
        REQUIRE(fresh != nullptr);
        const auto again = Trainable::open(*file, at::kFloat, {{{1, "mlp"}}}, 5);
        CHECK(at::equal(again->weights(), mlp->weights()));
        const auto notes = mlp->model().report().notes;
        CHECK(std::any_of(notes.begin(), notes.end(),
                          [](const std::string& note) { return note.find("gate_proj") != std::string::npos; }));
    }
}

TEST_CASE("A converted swap is the swapped model, in a file", "[swap]") {
    NoProgress progress;
    for (const char* name : {"llama", "qwen3", "native-standard-norms"}) {
        for (const char* mixer : {"mlp", "rnd_emb_qk", "fixed_seq_qk", "static_emb_qk"}) {
            INFO(name << " " << mixer);
            const TemporaryFolder folder, made;
            const auto file = written(name, folder);
            const model::MixerSwap swap{{{0, mixer}}};
            const auto fresh = model::convert_swapped(*file, swap, 7, made / "swapped", checkpoint::LoadAs::stored,
                                                      progress, Cancellation());
            CHECK(fresh.size() == (std::string(mixer) == "static_emb_qk" ? 0 : std::string(mixer) == "mlp" ? 3 : 1));
            const auto read = checkpoint::Checkpoint::open(made / "swapped");
            CHECK(read->config().at("model_type") == "headscope");
            const auto model = model::Model::build(*read);
            CHECK(model->report().left_over.empty());
            const auto direct = Trainable::open(*file, at::kFloat, swap, 7);
            const GoldenModel golden = test::golden_model(name);
            CHECK(at::equal(forward(*model, golden), forward(direct->model(), golden)));
        }
    }
}

TEST_CASE("A guide that no layer reads any more is not written", "[swap]") {
    NoProgress progress;
    const TemporaryFolder folder, made;
    const auto file = written("qwen3", folder);
    const auto all = [&](const char* mixer) { return model::MixerSwap{{{0, mixer}, {1, mixer}}}; };
    for (const char* mixer : {"rnd_emb_qk", "fixed_seq_qk"}) {
        const auto there = made / mixer, back = made / (std::string(mixer) + "-back");
        model::convert_swapped(*file, all(mixer), 7, there, checkpoint::LoadAs::stored, progress, Cancellation());
        const auto guided = checkpoint::Checkpoint::open(there);
        CHECK(guided->tensors().size() == file->tensors().size() + 1);
        model::convert_swapped(*guided, all("standard"), 7, back, checkpoint::LoadAs::stored, progress, Cancellation());
        const auto again = checkpoint::Checkpoint::open(back);
        CHECK(again->tensors().size() == file->tensors().size());
        CHECK(again->config().at("model_type") == "qwen3");
    }
}

TEST_CASE("A swap that changes nothing leaves the model what it was", "[swap]") {
    const TemporaryFolder folder;
    const auto file = written("qwen3", folder);
    const auto same = Trainable::open(*file, at::kFloat, {{{0, "standard"}, {1, "standard"}}});
    CHECK(same->model().config().family == "qwen3");
}

TEST_CASE("Swaps that cannot be are refused", "[swap]") {
    const TemporaryFolder folder, other;
    const auto file = written("llama", folder);
    CHECK_THROWS_MATCHES(Trainable::open(*file, at::kFloat, {{{2, "mlp"}}}), Error,
                         IsError(ErrorCode::limit, "a layer from 0 to 1"));
    CHECK_THROWS_MATCHES(Trainable::open(*file, at::kFloat, {{{0, "nothing"}}}), Error,
                         IsError(ErrorCode::unsupported, "found nothing"));
    CHECK_THROWS_MATCHES(Trainable::open(*written("gpt2", other), at::kFloat, {{{0, "mlp"}}}), Error,
                         IsError(ErrorCode::unsupported, "native format"));
    CHECK_THROWS_MATCHES(Trainable::open(*file, at::kFloat, {{{0, "mlp"}}, R"({"mlp": {"width": 3}})"}), Error,
                         IsError(ErrorCode::mismatch, "mixers: mlp] expected no options; found width"));
    CHECK_THROWS_MATCHES(Trainable::open(*file, at::kFloat, {{{0, "mlp"}}, R"({"aproximate": {}})"}), Error,
                         IsError(ErrorCode::mismatch, "found aproximate"));
}

TEST_CASE("A tied head's copy is dropped where it is one, and kept where it differs", "[trainable]") {
    // Tensors of a tiny checkpoint follow from their names, so a head of its own differs from the embedding.
    GoldenModel golden = test::golden_model("qwen2");
    const TemporaryFolder folder, made;
    golden.checkpoint.tensors["lm_head.weight"] = {43, 24};
    golden.checkpoint.write(folder.path());
    const auto both = Trainable::open(*checkpoint::Checkpoint::open(folder.path()), at::kFloat);
    CHECK(test::find_parameter(*both, "lm_head.weight") != nullptr);
    CHECK(both->config_json().find("\"tie_word_embeddings\": false") != std::string::npos);
    NoProgress progress;
    both->save(made / "saved", {}, progress, Cancellation());
    const auto saved = checkpoint::Checkpoint::open(made / "saved");
    CHECK(at::equal(Trainable::open(*saved, at::kFloat)->weights(), both->weights()));

    const TemporaryFolder tied;
    golden.checkpoint.tensors.erase("lm_head.weight");
    golden.checkpoint.write(tied.path());
    const auto one = Trainable::open(*checkpoint::Checkpoint::open(tied.path()), at::kFloat);
    CHECK(test::find_parameter(*one, "lm_head.weight") == nullptr);
    const auto table = test::find_parameter(*one, "model.embed_tokens.weight")->value;
    checkpoint::SaveRequest request;
    const nlohmann::json config = nlohmann::json::parse(one->config_json());
    request.destination = made / "copied";
    request.config = &config;
    request.tensors = one->output_tensors();
    request.tensors.push_back(checkpoint::output_tensor("lm_head.weight", table));
    checkpoint::save_checkpoint(request, progress, Cancellation());
    const auto copied = Trainable::open(*checkpoint::Checkpoint::open(made / "copied"), at::kFloat);
    CHECK(test::find_parameter(*copied, "lm_head.weight") == nullptr);
    CHECK(at::equal(copied->weights(), one->weights()));
}
