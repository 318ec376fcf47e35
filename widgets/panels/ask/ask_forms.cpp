// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of the dialog of ask: a row for each control, tool and metric.
#include <QtGlobal>

#include "widgets/panels/ask/ask_choice.h"

namespace headscope::widgets {

const std::vector<AskControl>& ask_controls() {
    static const std::vector<AskControl> all{
        {"--tokens", QT_TRANSLATE_NOOP("AskDialog", "Token ids")},
        {"--clean-tokens", QT_TRANSLATE_NOOP("AskDialog", "Clean token ids")},
        {"--corrupted-tokens", QT_TRANSLATE_NOOP("AskDialog", "Corrupted token ids")},
        {"--target-text", QT_TRANSLATE_NOOP("AskDialog", "Decoder's text"), true},
        {"--target-tokens", QT_TRANSLATE_NOOP("AskDialog", "Decoder's token ids"), true},
        {"--corrupted-target-tokens", QT_TRANSLATE_NOOP("AskDialog", "Decoder's corrupted token ids"), true},
        {"--target", QT_TRANSLATE_NOOP("AskDialog", "Target")},
        {"--top", QT_TRANSLATE_NOOP("AskDialog", "Likeliest tokens")},
        {"--kind", QT_TRANSLATE_NOOP("AskDialog", "Lens")},
        {"--lens-file", QT_TRANSLATE_NOOP("AskDialog", "Lens file")},
        {"--sites", QT_TRANSLATE_NOOP("AskDialog", "Points")},
        {"--by", QT_TRANSLATE_NOOP("AskDialog", "Sweep")},
        {"--align", QT_TRANSLATE_NOOP("AskDialog", "Alignment")},
        {"--approximation", QT_TRANSLATE_NOOP("AskDialog", "Approximation")},
        {"--integrated-sites", QT_TRANSLATE_NOOP("AskDialog", "Integrated points")},
        {"--steps", QT_TRANSLATE_NOOP("AskDialog", "Steps")},
        {"--correlation", QT_TRANSLATE_NOOP("AskDialog", "Correlation")},
        {"--how", QT_TRANSLATE_NOOP("AskDialog", "Replace by")},
        {"--reference-tokens", QT_TRANSLATE_NOOP("AskDialog", "Reference tokens")},
        {"--importance", QT_TRANSLATE_NOOP("AskDialog", "Importance")},
        {"--rank", QT_TRANSLATE_NOOP("AskDialog", "Ranked heads")},
        {"--context", QT_TRANSLATE_NOOP("AskDialog", "Context")},
        {"--scorers", QT_TRANSLATE_NOOP("AskDialog", "Scorers")},
        {"--ratios", QT_TRANSLATE_NOOP("AskDialog", "Removed shares")},
        {"--kernel", QT_TRANSLATE_NOOP("AskDialog", "Kernel")},
        {"--sink", QT_TRANSLATE_NOOP("AskDialog", "Sink keys")},
        {"--future", QT_TRANSLATE_NOOP("AskDialog", "Future positions")},
        {"--epsilon", QT_TRANSLATE_NOOP("AskDialog", "Epsilon")},
        {"--folder", QT_TRANSLATE_NOOP("AskDialog", "Folder of texts")},
        {"--json-lines", QT_TRANSLATE_NOOP("AskDialog", "JSON lines")},
        {"--field", QT_TRANSLATE_NOOP("AskDialog", "Field")},
        {"--target-field", QT_TRANSLATE_NOOP("AskDialog", "Decoder's field"), true},
        {"--intervals", QT_TRANSLATE_NOOP("AskDialog", "Intervals")},
        {"--two-passes", QT_TRANSLATE_NOOP("AskDialog", "Two passes")},
        {"--headvis-tree", QT_TRANSLATE_NOOP("AskDialog", "HeadVis tree")},
        {"--queries", QT_TRANSLATE_NOOP("AskDialog", "Queries")},
        {"--keys", QT_TRANSLATE_NOOP("AskDialog", "Keys")},
        {"--attention", QT_TRANSLATE_NOOP("AskDialog", "Attention")},
        {"--heads", QT_TRANSLATE_NOOP("AskDialog", "Heads")},
        {"--window", QT_TRANSLATE_NOOP("AskDialog", "Window")},
        {"--positive", QT_TRANSLATE_NOOP("AskDialog", "Positive text")},
        {"--negative", QT_TRANSLATE_NOOP("AskDialog", "Negative text")},
        {"--positive-tokens", QT_TRANSLATE_NOOP("AskDialog", "Positive token ids")},
        {"--negative-tokens", QT_TRANSLATE_NOOP("AskDialog", "Negative token ids")},
        {"--at", QT_TRANSLATE_NOOP("AskDialog", "Vector at")},
        {"--factors", QT_TRANSLATE_NOOP("AskDialog", "Factors")},
        {"--layers", QT_TRANSLATE_NOOP("AskDialog", "Layers")},
        {"--vector", QT_TRANSLATE_NOOP("AskDialog", "Stored vector")},
        {"--save-vector", QT_TRANSLATE_NOOP("AskDialog", "Save the vectors")},
        {"--drawn", QT_TRANSLATE_NOOP("AskDialog", "Drawn texts")},
        {"--half", QT_TRANSLATE_NOOP("AskDialog", "Tokens of a half")},
        {"--exclude-first", QT_TRANSLATE_NOOP("AskDialog", "Without the first token")},
        {"--exclude-current", QT_TRANSLATE_NOOP("AskDialog", "Without itself")},
        {"--needle", QT_TRANSLATE_NOOP("AskDialog", "Needle")},
        {"--norm", QT_TRANSLATE_NOOP("AskDialog", "Weights")},
        {"--pairs", QT_TRANSLATE_NOOP("AskDialog", "Token pairs")},
        {"--generate", QT_TRANSLATE_NOOP("AskDialog", "Tokens to generate")},
        {"--temperature", QT_TRANSLATE_NOOP("AskDialog", "Temperature")},
        {"--seed", QT_TRANSLATE_NOOP("AskDialog", "Seed")},
        {"--replace", QT_TRANSLATE_NOOP("AskDialog", "Replaced tokens")},
        {"--record", QT_TRANSLATE_NOOP("AskDialog", "Rows")}};
    return all;
}

const std::vector<const char*>& ask_own_controls() {
    static const std::vector<const char*> all{
        "tool",     "model",   "--output",    "--resume", "--interventions", "--text",    "--file",     "--bos",
        "--length", "--clean", "--corrupted", "--metric", "--answer",        "--against", "--position", "--device"};
    return all;
}

const std::vector<const char*>& ask_left_out() {
    static const std::vector<const char*> all{"--csv", "--dtype", "--weights", "--threads", "--kernels"};
    return all;
}

const std::vector<AskToolForm>& ask_forms() {
    using Texts = AskToolForm::Texts;
    static const std::vector<AskToolForm> all{
        {"lens", QT_TRANSLATE_NOOP("AskDialog", "Logit lens"),
         QT_TRANSLATE_NOOP("AskDialog",
                           "Reads the residual stream before each layer with the model's own output head."),
         Texts::panel, nullptr, false},
        {"patch", QT_TRANSLATE_NOOP("AskDialog", "Activation patching"),
         QT_TRANSLATE_NOOP("AskDialog",
                           "Runs the corrupted text with one value at a time taken from the clean text's "
                           "run."),
         Texts::pair, "logit_difference", true},
        {"ablate", QT_TRANSLATE_NOOP("AskDialog", "Ablation"),
         QT_TRANSLATE_NOOP("AskDialog", "Replaces each head, attention and feed-forward in turn and reads the metric."),
         Texts::panel, "loss", true},
        {"attribution", QT_TRANSLATE_NOOP("AskDialog", "Logit attribution"),
         QT_TRANSLATE_NOOP("AskDialog",
                           "Splits a logit, or the difference of two, into terms of heads, layers and "
                           "biases."),
         Texts::panel, nullptr, true},
        {"sinks", QT_TRANSLATE_NOOP("AskDialog", "Attention sinks"),
         QT_TRANSLATE_NOOP("AskDialog",
                           "Counts heads that leave their weight on a key, massive activations, and norms "
                           "of values."),
         Texts::panel, nullptr, false},
        {"cache", QT_TRANSLATE_NOOP("AskDialog", "Smaller cache"),
         QT_TRANSLATE_NOOP("AskDialog", "Scores the keys of a context and measures outputs without the removed ones."),
         Texts::panel, nullptr, false},
        {"corpus", QT_TRANSLATE_NOOP("AskDialog", "Heads over a corpus"),
         QT_TRANSLATE_NOOP("AskDialog", "Measures every head over the texts of a folder or a file of JSON lines."),
         Texts::none, nullptr, false},
        {"series", QT_TRANSLATE_NOOP("AskDialog", "Series of checkpoints"),
         QT_TRANSLATE_NOOP("AskDialog", "Measures loss and indicators of checkpoints of one model, one after another."),
         Texts::panel, nullptr, false, true},
        {"knockout", QT_TRANSLATE_NOOP("AskDialog", "Attention knockout"),
         QT_TRANSLATE_NOOP("AskDialog", "Forbids attention from some positions to others and reads the metric."),
         Texts::panel, "loss", true},
        {"steer", QT_TRANSLATE_NOOP("AskDialog", "Steering"),
         QT_TRANSLATE_NOOP("AskDialog",
                           "Adds the difference of two texts to the output of each layer in turn and reads "
                           "the metric."),
         Texts::panel, "loss", true},
        {"kinds", QT_TRANSLATE_NOOP("AskDialog", "Kinds of heads"),
         QT_TRANSLATE_NOOP("AskDialog",
                           "Scores previous-token, duplicate-token, induction, self and retrieval heads on "
                           "repeated random tokens, and on the texts of the text panel."),
         Texts::optional, nullptr, false},
        {"circuits", QT_TRANSLATE_NOOP("AskDialog", "Circuits"),
         QT_TRANSLATE_NOOP("AskDialog", "Reads the weights of heads alone: spectra, copying, composition."),
         Texts::none, nullptr, false},
        {"generate", QT_TRANSLATE_NOOP("AskDialog", "Generation"),
         QT_TRANSLATE_NOOP("AskDialog", "Continues the texts and stores the likeliest tokens and every head's row."),
         Texts::panel, nullptr, false}};
    return all;
}

const AskToolForm* find_ask_form(const QString& tool) {
    for (const AskToolForm& form : ask_forms())
        if (tool == QLatin1String(form.tool)) return &form;
    return nullptr;
}

const std::vector<AskMetric>& ask_metrics() {
    static const std::vector<AskMetric> all{
        {"logit_difference", QT_TRANSLATE_NOOP("AskDialog", "Logit difference"), true, true},
        {"logit", QT_TRANSLATE_NOOP("AskDialog", "Logit"), true, false},
        {"log_probability", QT_TRANSLATE_NOOP("AskDialog", "Log-probability"), true, false},
        {"probability", QT_TRANSLATE_NOOP("AskDialog", "Probability"), true, false},
        {"kl", QT_TRANSLATE_NOOP("AskDialog", "KL divergence"), false, false},
        {"loss", QT_TRANSLATE_NOOP("AskDialog", "Loss"), false, false}};
    return all;
}

}  // namespace headscope::widgets
