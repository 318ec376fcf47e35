// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/ask/ask_choice.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <algorithm>

namespace headscope::widgets {
namespace {

constexpr qsizetype kLongestArgument = 100'000;  // bytes: Linux passes 128 KiB in one argument

using AskKind = AskOption::Kind;

QString ask_text(const char* text) {
    return QCoreApplication::translate("AskDialog", text);
}

bool reads_option(const AskToolForm& form, const char* option) {
    return std::any_of(form.options.begin(), form.options.end(),
                       [&](const char* one) { return QLatin1String(one) == QLatin1String(option); });
}

const AskMetric* metric_of(const AskToolForm& form, const AskChoice& choice) {
    if (!form.metric) return nullptr;
    const QString name = choice.metric.isEmpty() ? QString::fromLatin1(form.metric) : choice.metric;
    for (const AskMetric& one : ask_metrics())
        if (name == QLatin1String(one.name)) return &one;
    return nullptr;
}

/// Ids and strings in quotes, separated by commas.
bool are_tokens(const QString& list) {
    static const QRegularExpression tokens(QStringLiteral("^(\\d+|\"[^\"]+\")(,(\\d+|\"[^\"]+\"))*$"));
    return tokens.match(list).hasMatch();
}

bool is_position(const QString& text, bool all) {
    static const QRegularExpression number(QStringLiteral("^-?\\d{1,9}$"));
    return (all && text == QLatin1String("all")) || number.match(text).hasMatch();
}

std::vector<TextSource> used_sources(const AskChoice& choice) {
    std::vector<TextSource> used;
    for (const TextSource& one : choice.texts.sources)
        if (one.used && !one.value.isEmpty()) used.push_back(one);
    return used;
}

QString text_problem(const AskToolForm& form, const AskChoice& choice) {
    const auto is_long = [](const QString& text) { return text.toUtf8().size() > kLongestArgument; };
    const QString too_long = ask_text("A text of more than 100,000 bytes: save it as a file and add the file");
    if (form.texts == AskToolForm::Texts::pair) {
        if (choice.clean.isEmpty()) return ask_text("Type the clean text");
        if (choice.corrupted.isEmpty()) return ask_text("Type the corrupted text, of as many tokens");
        if (choice.clean == choice.corrupted) return ask_text("The clean and the corrupted text are the same");
        return is_long(choice.clean) || is_long(choice.corrupted) ? too_long : QString();
    }
    const auto used = used_sources(choice);
    if (used.empty()) return ask_text("Type or choose a text in the text panel");
    const bool any_long = std::any_of(used.begin(), used.end(), [&](const TextSource& one) {
        return one.kind == TextSource::Kind::text && is_long(one.value);
    });
    return any_long ? too_long : QString();
}

QString answer_problem(const AskToolForm& form, const AskChoice& choice) {
    if (!form.answer) return {};
    const AskMetric* metric = metric_of(form, choice);
    if (form.metric && !metric) return ask_text("Choose a metric");
    const bool answer = !metric || metric->answer, against = metric && metric->against;
    const QString quotes = ask_text("%1: write tokens as numbers or in quotes, as \" Paris\",464");
    if (answer && choice.answer.isEmpty())
        return metric ? ask_text("%1 needs an answer: the token, or tokens, whose logits are read")
                            .arg(ask_text(metric->title))
                      : ask_text("Type the answer: the token, or tokens, whose logit is split");
    if (against && choice.against.isEmpty())
        return ask_text("%1 needs tokens that the answer is compared with").arg(ask_text(metric->title));
    if (answer && !are_tokens(choice.answer)) return quotes.arg(ask_text("Answer"));
    if (!choice.against.isEmpty() && !are_tokens(choice.against)) return quotes.arg(ask_text("Against"));
    if (!choice.position.isEmpty() && !is_position(choice.position, form.metric != nullptr))
        return form.metric ? ask_text("The position is a number (-1: the last token) or all")
                           : ask_text("The position is a number; -1 is the last token");
    return {};
}

QString option_of(const AskChoice& choice, const char* name) {
    const auto found = choice.options.find(QLatin1String(name));
    return found == choice.options.end() ? QString() : found->second;
}

QString options_problem(const AskToolForm& form, const AskChoice& choice) {
    if (reads_option(form, "--sites") && option_of(choice, "--sites").isEmpty())
        return ask_text("Type the points to patch, as hidden,attention_output or head_output,pattern");
    const QString how = option_of(choice, "--how");
    if ((how == QLatin1String("reference") || how == QLatin1String("resample")) &&
        option_of(choice, "--reference-tokens").isEmpty())
        return ask_text("Replacing by %1 needs a file of reference tokens").arg(how);
    const bool integrated = option_of(choice, "--approximation").contains(QLatin1String("integrated"));
    if (reads_option(form, "--approximation") && integrated != !option_of(choice, "--integrated-sites").isEmpty())
        return integrated ? ask_text("Integrated gradients need their points")
                          : ask_text("Points of integrated gradients need that approximation");
    if (!option_of(choice, "--correlation").isEmpty() && option_of(choice, "--approximation").isEmpty())
        return ask_text("A correlation needs an approximation");
    return {};
}

}  // namespace

const std::vector<AskOption>& ask_options() {
    static const std::vector<AskOption> all{
        {"--target", QT_TRANSLATE_NOOP("AskDialog", "Target"),
         QT_TRANSLATE_NOOP("AskDialog", "next: the text's next token; or ids, or words in quotes"), AskKind::words,
         "next"},
        {"--top", QT_TRANSLATE_NOOP("AskDialog", "Likeliest tokens"),
         QT_TRANSLATE_NOOP("AskDialog", "Likeliest tokens kept at each place"), AskKind::words, "5"},
        {"--sites", QT_TRANSLATE_NOOP("AskDialog", "Points"),
         QT_TRANSLATE_NOOP("AskDialog",
                           "Points to patch: hidden, attention_output, feed_forward_output (layers), "
                           "head_output, pattern, query, key, value (heads), separated by commas")},
        {"--by",
         QT_TRANSLATE_NOOP("AskDialog", "Sweep"),
         QT_TRANSLATE_NOOP("AskDialog", "Sweep heads as wholes, by position, both, or each weight of a pattern"),
         AskKind::choice,
         "head",
         {"head", "position", "both", "cell"}},
        {"--align",
         QT_TRANSLATE_NOOP("AskDialog", "Alignment"),
         QT_TRANSLATE_NOOP("AskDialog", "equal: texts of the same length; edges: their common beginning and end"),
         AskKind::choice,
         "equal",
         {"equal", "edges"}},
        {"--approximation",
         QT_TRANSLATE_NOOP("AskDialog", "Approximation"),
         QT_TRANSLATE_NOOP("AskDialog", "Also estimate by gradients"),
         AskKind::choice,
         "",
         {"", "attribution", "integrated", "attribution,integrated"}},
        {"--integrated-sites", QT_TRANSLATE_NOOP("AskDialog", "Integrated points"),
         QT_TRANSLATE_NOOP("AskDialog", "Points of integrated gradients")},
        {"--correlation", QT_TRANSLATE_NOOP("AskDialog", "Correlation"),
         QT_TRANSLATE_NOOP("AskDialog", "Rank correlation of the approximation with the exact values"), AskKind::flag},
        {"--how",
         QT_TRANSLATE_NOOP("AskDialog", "Replace by"),
         QT_TRANSLATE_NOOP("AskDialog", "What each head's output becomes"),
         AskKind::choice,
         "zero",
         {"zero", "mean", "reference", "resample"}},
        {"--reference-tokens", QT_TRANSLATE_NOOP("AskDialog", "Reference tokens"),
         QT_TRANSLATE_NOOP("AskDialog", "A JSON array of arrays of ids"), AskKind::file},
        {"--importance", QT_TRANSLATE_NOOP("AskDialog", "Importance"),
         QT_TRANSLATE_NOOP("AskDialog", "Also the importance of heads by gradients of the loss"), AskKind::flag}};
    return all;
}

const std::vector<AskToolForm>& ask_forms() {
    using Texts = AskToolForm::Texts;
    static const std::vector<AskToolForm> all{
        {"lens",
         QT_TRANSLATE_NOOP("AskDialog", "Logit lens"),
         QT_TRANSLATE_NOOP("AskDialog",
                           "Reads the residual stream before each layer with the model's own output head."),
         Texts::panel,
         nullptr,
         false,
         {"--target", "--top"}},
        {"patch",
         QT_TRANSLATE_NOOP("AskDialog", "Activation patching"),
         QT_TRANSLATE_NOOP("AskDialog",
                           "Runs the corrupted text with one value at a time taken from the clean text's "
                           "run."),
         Texts::pair,
         "logit_difference",
         true,
         {"--sites", "--by", "--align", "--approximation", "--integrated-sites", "--correlation"}},
        {"ablate",
         QT_TRANSLATE_NOOP("AskDialog", "Ablation"),
         QT_TRANSLATE_NOOP("AskDialog", "Replaces each head, attention and feed-forward in turn and reads the metric."),
         Texts::panel,
         "loss",
         true,
         {"--how", "--reference-tokens", "--importance"}},
        {"attribution",
         QT_TRANSLATE_NOOP("AskDialog", "Logit attribution"),
         QT_TRANSLATE_NOOP("AskDialog",
                           "Splits a logit, or the difference of two, into terms of heads, layers and "
                           "biases."),
         Texts::panel,
         nullptr,
         true,
         {}}};
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

QString problem_of(const AskChoice& choice, const std::vector<AskSource>& sources) {
    const auto source =
        std::find_if(sources.begin(), sources.end(), [&](const AskSource& one) { return one.path == choice.model; });
    if (source == sources.end()) return ask_text("Open a checkpoint first");
    if (!source->problem.isEmpty()) return source->problem;
    const AskToolForm* form = find_ask_form(choice.tool);
    if (!form) return ask_text("Choose a tool");
    for (const QString& problem :
         {text_problem(*form, choice), answer_problem(*form, choice), options_problem(*form, choice)})
        if (!problem.isEmpty()) return problem;
    if (choice.output.isEmpty()) return ask_text("Choose a file for the result");
    return {};
}

QStringList ask_words(const AskChoice& choice, const std::vector<TextExample>& examples) {
    QStringList words{QStringLiteral("ask"), choice.tool,
                      choice.model.isEmpty() ? QStringLiteral("MODEL") : choice.model, QStringLiteral("-o"),
                      choice.output.isEmpty() ? QStringLiteral("OUT.ask.h5") : choice.output};
    const AskToolForm* form = find_ask_form(choice.tool);
    if (!form) return words;
    const auto add = [&](const char* option, const QString& value) {
        // A word of its own would be taken for another option.
        if (value.startsWith(QLatin1Char('-')))
            words << QLatin1String(option) + QLatin1Char('=') + value;
        else if (!value.isEmpty())
            words << QLatin1String(option) << value;
    };
    if (form->texts == AskToolForm::Texts::pair) {
        add("--clean", choice.clean);
        add("--corrupted", choice.corrupted);
    } else {
        for (const TextSource& one : used_sources(choice)) {
            if (one.kind == TextSource::Kind::file) {
                add("--file", one.value);
                continue;
            }
            QString text = one.value;
            for (const TextExample& example : examples)
                if (one.kind == TextSource::Kind::example && example.name == one.value) text = example.text;
            add("--text", text);
        }
    }
    if (choice.texts.first != TextChoice::First::automatic)
        add("--bos", choice.texts.first == TextChoice::First::yes ? QStringLiteral("yes") : QStringLiteral("no"));
    if (choice.texts.length > 0) add("--length", QString::number(choice.texts.length));
    const AskMetric* metric = metric_of(*form, choice);
    if (metric && QLatin1String(metric->name) != QLatin1String(form->metric)) add("--metric", choice.metric);
    if (form->answer && (!metric || metric->answer)) {
        add("--answer", choice.answer);
        if (!metric || metric->against) add("--against", choice.against);
    }
    const bool placed = form->answer && (!metric || QLatin1String(metric->name) != QLatin1String("loss"));
    if (placed && choice.position != QLatin1String("-1")) add("--position", choice.position);
    for (const AskOption& option : ask_options()) {
        const QString value = reads_option(*form, option.option) ? option_of(choice, option.option) : QString();
        if (value.isEmpty() || value == QLatin1String(option.standard)) continue;
        if (option.kind == AskKind::flag)
            words << QLatin1String(option.option);
        else
            add(option.option, value);
    }
    add("--interventions", choice.interventions);
    if (choice.resume) words << QStringLiteral("--resume");
    return words;
}

}  // namespace headscope::widgets
