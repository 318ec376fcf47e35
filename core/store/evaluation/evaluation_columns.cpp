// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/evaluation/evaluation_columns.h"

namespace headscope::store {

const std::vector<Column<EvaluatedModel>>& model_columns() {
    using M = EvaluatedModel;
    static const std::vector<Column<M>> columns{
        {"name", "name of the model", &M::name},
        {"path", "where it was read from", &M::path},
        {"sha256", "SHA-256 of the weights", &M::sha256},
        {"mixer", "token mixer of the layers that are not standard", &M::mixer},
        {"layout", "which layers are standard", &M::layout},
        {"layer_mixers", "token mixer of each layer", &M::layer_mixers},
        {"skipped", "layers left out", &M::skipped},
        {"parameters", "number of parameters", &M::parameters},
        {"layers", "number of layers", &M::layers},
        {"training_length", "tokens of the longest text in training; where that is not known, the model's positions",
         &M::training_length},
        {"seed", "seed of the training job, -1: not known", &M::seed},
        {"job", "SHA-256 of the training job but for its seed", &M::job, 4},
        {"attention_parameters", "weights of the attention sublayers, -1: not known", &M::attention_parameters, 5},
        {"embedding_parameters", "weights of what words are read by, -1: not known", &M::embedding_parameters, 5},
        {"variant", "name in tables of benchmarks", &M::variant, 7},
        {"benchmark_task", "task of a benchmark that the model was tuned for, empty: the results' names",
         &M::benchmark_task, 7}};
    return columns;
}

const std::vector<Column<EvaluationResult>>& result_columns() {
    using R = EvaluationResult;
    static const std::vector<Column<R>> columns{
        {"model", "index of the model in /models", &R::model},
        {"task", "task", &R::task},
        {"metric", "metric", &R::metric},
        {"length", "context length in tokens", &R::length},
        {"value", "value of the metric", &R::value},
        {"error", "standard error of the value", &R::error},
        {"count", "tokens or answers behind the value", &R::count},
        {"shots", "examples in the prompt", &R::shots, 3},
        {"text", "name of the text that was scored", &R::text, 6},
        {"subset", "part of the task's items", &R::subset, 6},
        {"data_sha256", "SHA-256 of the text or data file", &R::data_sha256, 6},
        {"cut", "items that lost tokens to the length, -1: not known", &R::cut, 6}};
    return columns;
}

}  // namespace headscope::store
