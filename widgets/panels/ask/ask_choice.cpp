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
    if (form.texts == AskToolForm::Texts::none) return {};
    const auto used = used_sources(choice);
    if (used.empty() && form.texts == AskToolForm::Texts::panel)
        return ask_text("Type or choose a text in the text panel");
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
    const bool folder = !option_of(choice, "--folder").isEmpty(), lines = !option_of(choice, "--json-lines").isEmpty();
    if (reads_option(form, "--folder") && folder == lines)
        return ask_text("Choose either a folder of texts or a file of JSON lines");
    const bool ranges = reads_option(form, "--queries");
    if (ranges && (option_of(choice, "--queries").isEmpty() || option_of(choice, "--keys").isEmpty()))
        return ask_text("Type the queries that lose attention, and the keys that they lose, as 8-11 and 2-4");
    const auto sets = {option_of(choice, "--positive"), option_of(choice, "--negative")};
    const auto given = std::count_if(sets.begin(), sets.end(), [](const QString& one) { return !one.isEmpty(); });
    const bool vector = !option_of(choice, "--vector").isEmpty();
    if (reads_option(form, "--positive") && (vector ? given > 0 : given < 2))
        return ask_text("Type a text that the vector points to and one that it points away from, or choose a vector");
    if (reads_option(form, "--needle") &&
        option_of(choice, "--needle").isEmpty() != option_of(choice, "--generate").isEmpty())
        return ask_text("Retrieval needs both: positions of the needle, and the number of tokens to generate");
    if (!option_of(choice, "--needle").isEmpty() && reads_option(form, "--needle") && used_sources(choice).empty())
        return ask_text("A needle lies in a text: type or choose one in the text panel");
    if (!option_of(choice, "--correlation").isEmpty() && reads_option(form, "--correlation") &&
        option_of(choice, "--approximation").isEmpty())
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
         QT_TRANSLATE_NOOP("AskDialog", "Also the importance of heads by gradients of the loss"), AskKind::flag},
        {"--epsilon", QT_TRANSLATE_NOOP("AskDialog", "Epsilon"),
         QT_TRANSLATE_NOOP("AskDialog", "Mean weight above which a key is a sink"), AskKind::words, "0.3"},
        {"--folder", QT_TRANSLATE_NOOP("AskDialog", "Folder of texts"),
         QT_TRANSLATE_NOOP("AskDialog", "A folder with .txt and .jsonl files"), AskKind::folder},
        {"--json-lines", QT_TRANSLATE_NOOP("AskDialog", "JSON lines"),
         QT_TRANSLATE_NOOP("AskDialog", "A file with a JSON object a line, in place of a folder"), AskKind::file},
        {"--field", QT_TRANSLATE_NOOP("AskDialog", "Field"),
         QT_TRANSLATE_NOOP("AskDialog", "The text of a JSON object"), AskKind::words, "text"},
        {"--intervals", QT_TRANSLATE_NOOP("AskDialog", "Intervals"),
         QT_TRANSLATE_NOOP("AskDialog", "Intervals of the largest weight that texts are kept of"), AskKind::words, "5"},
        {"--two-passes", QT_TRANSLATE_NOOP("AskDialog", "Two passes"),
         QT_TRANSLATE_NOOP("AskDialog", "Texts that set the intervals are read again and may be kept, too"),
         AskKind::flag},
        {"--queries", QT_TRANSLATE_NOOP("AskDialog", "Queries"),
         QT_TRANSLATE_NOOP("AskDialog", "Positions that lose attention, as 8-11,-1")},
        {"--keys", QT_TRANSLATE_NOOP("AskDialog", "Keys"),
         QT_TRANSLATE_NOOP("AskDialog", "Positions that they no longer see, as 2-4")},
        {"--heads", QT_TRANSLATE_NOOP("AskDialog", "Heads"),
         QT_TRANSLATE_NOOP("AskDialog", "As 3.1,3.2 (layer.head); empty: all")},
        {"--window", QT_TRANSLATE_NOOP("AskDialog", "Window of layers"),
         QT_TRANSLATE_NOOP("AskDialog", "Also forbid in this many layers around each layer in turn")},
        {"--positive", QT_TRANSLATE_NOOP("AskDialog", "Positive text"),
         QT_TRANSLATE_NOOP("AskDialog", "A text that the vector points to")},
        {"--negative", QT_TRANSLATE_NOOP("AskDialog", "Negative text"),
         QT_TRANSLATE_NOOP("AskDialog", "A text that it points away from")},
        {"--at",
         QT_TRANSLATE_NOOP("AskDialog", "Vector at"),
         QT_TRANSLATE_NOOP("AskDialog", "The texts' last token, or the mean of their positions"),
         AskKind::choice,
         "last",
         {"last", "mean"}},
        {"--factors", QT_TRANSLATE_NOOP("AskDialog", "Factors"),
         QT_TRANSLATE_NOOP("AskDialog", "Factors of the vector, separated by commas"), AskKind::words, "-2,-1,1,2"},
        {"--layers", QT_TRANSLATE_NOOP("AskDialog", "Layers"),
         QT_TRANSLATE_NOOP("AskDialog", "As 0,2,5-8; empty: all")},
        {"--vector", QT_TRANSLATE_NOOP("AskDialog", "Stored vector"),
         QT_TRANSLATE_NOOP("AskDialog", "A control vector of llama.cpp in place of two texts"), AskKind::file},
        {"--drawn", QT_TRANSLATE_NOOP("AskDialog", "Drawn texts"),
         QT_TRANSLATE_NOOP("AskDialog", "Texts of random tokens, each twice; empty: 4 without a text of yours")},
        {"--half", QT_TRANSLATE_NOOP("AskDialog", "Tokens of a half"),
         QT_TRANSLATE_NOOP("AskDialog", "Random tokens of a drawn text, which repeats them"), AskKind::words, "32"},
        {"--exclude-first", QT_TRANSLATE_NOOP("AskDialog", "Without the first token"),
         QT_TRANSLATE_NOOP("AskDialog", "Leave attention to the first token out"), AskKind::flag},
        {"--exclude-current", QT_TRANSLATE_NOOP("AskDialog", "Without itself"),
         QT_TRANSLATE_NOOP("AskDialog", "Leave attention of a token to itself out"), AskKind::flag},
        {"--needle", QT_TRANSLATE_NOOP("AskDialog", "Needle"),
         QT_TRANSLATE_NOOP("AskDialog", "Positions of the first text whose copies count, as 20-31")},
        {"--norm",
         QT_TRANSLATE_NOOP("AskDialog", "Weights"),
         QT_TRANSLATE_NOOP("AskDialog", "As they are, or with the gains of the norms ahead"),
         AskKind::choice,
         "raw",
         {"raw", "fold"}},
        {"--pairs", QT_TRANSLATE_NOOP("AskDialog", "Token pairs"),
         QT_TRANSLATE_NOOP("AskDialog", "Largest token pairs of each product"), AskKind::words, "0"},
        {"--generate", QT_TRANSLATE_NOOP("AskDialog", "Tokens to generate"),
         QT_TRANSLATE_NOOP("AskDialog", "Number of tokens that the model appends")},
        {"--temperature", QT_TRANSLATE_NOOP("AskDialog", "Temperature"),
         QT_TRANSLATE_NOOP("AskDialog", "0 takes the likeliest token"), AskKind::words, "0"},
        {"--seed", QT_TRANSLATE_NOOP("AskDialog", "Seed"), QT_TRANSLATE_NOOP("AskDialog", "Of random draws"),
         AskKind::words, "0"},
        {"--record",
         QT_TRANSLATE_NOOP("AskDialog", "Rows"),
         QT_TRANSLATE_NOOP("AskDialog", "Also keep the weights of each generated token's row"),
         AskKind::choice,
         "",
         {"", "maps"}}};
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
         {}},
        {"sinks",
         QT_TRANSLATE_NOOP("AskDialog", "Attention sinks"),
         QT_TRANSLATE_NOOP("AskDialog",
                           "Counts heads that leave their weight on a key, massive activations, and norms "
                           "of values."),
         Texts::panel,
         nullptr,
         false,
         {"--epsilon"}},
        {"corpus",
         QT_TRANSLATE_NOOP("AskDialog", "Heads over a corpus"),
         QT_TRANSLATE_NOOP("AskDialog", "Measures every head over the texts of a folder or a file of JSON lines."),
         Texts::none,
         nullptr,
         false,
         {"--folder", "--json-lines", "--field", "--intervals", "--two-passes"}},
        {"knockout",
         QT_TRANSLATE_NOOP("AskDialog", "Attention knockout"),
         QT_TRANSLATE_NOOP("AskDialog", "Forbids attention from some positions to others and reads the metric."),
         Texts::panel,
         "loss",
         true,
         {"--queries", "--keys", "--heads", "--window"}},
        {"steer",
         QT_TRANSLATE_NOOP("AskDialog", "Steering"),
         QT_TRANSLATE_NOOP("AskDialog",
                           "Adds the difference of two texts to the output of each layer in turn and reads "
                           "the metric."),
         Texts::panel,
         "loss",
         true,
         {"--positive", "--negative", "--at", "--factors", "--layers", "--vector"}},
        {"kinds",
         QT_TRANSLATE_NOOP("AskDialog", "Kinds of heads"),
         QT_TRANSLATE_NOOP("AskDialog",
                           "Scores previous-token, duplicate-token, induction, self and retrieval heads on "
                           "repeated random tokens, and on the texts of the text panel."),
         Texts::optional,
         nullptr,
         false,
         {"--drawn", "--half", "--seed", "--exclude-first", "--exclude-current", "--needle", "--generate"}},
        {"circuits",
         QT_TRANSLATE_NOOP("AskDialog", "Circuits"),
         QT_TRANSLATE_NOOP("AskDialog", "Reads the weights of heads alone: spectra, copying, composition."),
         Texts::none,
         nullptr,
         false,
         {"--norm", "--pairs", "--heads"}},
        {"generate",
         QT_TRANSLATE_NOOP("AskDialog", "Generation"),
         QT_TRANSLATE_NOOP("AskDialog", "Continues the texts and stores the likeliest tokens and every head's row."),
         Texts::panel,
         nullptr,
         false,
         {"--generate", "--top", "--temperature", "--seed", "--record"}}};
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
    } else if (form->texts != AskToolForm::Texts::none) {
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
    const bool reads_texts = form->texts != AskToolForm::Texts::none;
    if (reads_texts && choice.texts.first != TextChoice::First::automatic)
        add("--bos", choice.texts.first == TextChoice::First::yes ? QStringLiteral("yes") : QStringLiteral("no"));
    if (reads_texts && choice.texts.length > 0) add("--length", QString::number(choice.texts.length));
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
