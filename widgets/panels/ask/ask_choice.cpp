// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/ask/ask_choice.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <algorithm>

#include "core/ask/options/tool_options.h"
#include "core/base/error.h"

namespace headscope::widgets {
namespace {

constexpr qsizetype kLongestArgument = 100'000;  // bytes: Linux passes 128 KiB in one argument

QString ask_text(const char* text) {
    return QCoreApplication::translate("AskDialog", text);
}

bool reads_option(const AskToolForm& form, const char* option) {
    return ask::reads_option(form.tool, ask::tool_option(option));
}

QString option_of(const AskChoice& choice, const char* name) {
    const auto found = choice.options.find(QLatin1String(name));
    return found == choice.options.end() ? QString() : found->second;
}

bool has_option(const AskChoice& choice, const char* name) {
    return !option_of(choice, name).isEmpty();
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

/// A corpus of an encoder-decoder has a decoder's text for each text.
QString pair_problem(const AskChoice& choice) {
    const bool lines = has_option(choice, "--json-lines"), field = has_option(choice, "--target-field");
    const bool targets = has_option(choice, "--target-text") || has_option(choice, "--target-tokens");
    const bool ids = targets && has_option(choice, "--tokens");
    if (lines != field || !(lines || ids))
        return ask_text("An encoder-decoder reads JSON lines with the decoder's field, or token ids with its text");
    return lines && targets ? ask_text("The decoder's text is a field of the JSON lines: clear the other") : QString();
}

QString model_problem(const AskToolForm& form, const AskChoice& choice, const std::vector<AskSource>& sources) {
    if (form.models)
        return choice.models.isEmpty()
                   ? ask_text("Add the folders of checkpoints of one model, or one folder that holds them")
                   : QString();
    const auto source =
        std::find_if(sources.begin(), sources.end(), [&](const AskSource& one) { return one.path == choice.model; });
    if (source == sources.end()) return ask_text("Open a checkpoint first");
    if (source->problem.isEmpty() && source->encoder_decoder && !reads_option(form, "--target-text"))
        return ask_text("%1 is an encoder-decoder, which the tool does not read").arg(source->name);
    const AskMetric* metric = metric_of(form, choice);
    const bool loss = metric && QLatin1String(metric->name) == QLatin1String("loss");
    if (source->problem.isEmpty() && source->encoder_decoder && loss && !has_option(choice, "--target-text") &&
        !has_option(choice, "--target-tokens"))
        return ask_text("The loss is that of the decoder's text: type it, or choose its token ids");
    if (source->problem.isEmpty() && source->encoder_decoder && reads_option(form, "--target-field"))
        return pair_problem(choice);
    return source->problem;
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
        const bool clean_ids = has_option(choice, "--clean-tokens");
        const bool corrupted_ids = has_option(choice, "--corrupted-tokens");
        if (choice.clean.isEmpty() && !clean_ids) return ask_text("Type the clean text, or choose token ids");
        if (choice.corrupted.isEmpty() && !corrupted_ids)
            return ask_text("Type the corrupted text, of as many tokens, or choose token ids");
        if (choice.clean == choice.corrupted && !clean_ids && !corrupted_ids)
            return ask_text("The clean and the corrupted text are the same");
        return is_long(choice.clean) || is_long(choice.corrupted) ? too_long : QString();
    }
    if (form.texts == AskToolForm::Texts::none) return {};
    const auto used = used_sources(choice);
    if (used.empty() && form.texts == AskToolForm::Texts::panel && !has_option(choice, "--tokens"))
        return ask_text("Type or choose a text in the text panel, or choose token ids");
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

/// "Steps: expected a whole number from 1 to 4096; found x".
QString number_problem(const AskToolForm& form, const AskChoice& choice) {
    for (const AskControl& control : ask_controls()) {
        const ask::ToolOption& option = ask::tool_option(control.option);
        const bool number = option.kind == OptionKind::whole || option.kind == OptionKind::number;
        if (!number || !reads_option(form, control.option) || !has_option(choice, control.option)) continue;
        try {
            read_number(option, option_of(choice, control.option).toStdString(), control.option);
        } catch (const Error& error) {
            return QStringLiteral("%1: %2; %3")
                .arg(ask_text(control.label), QString::fromStdString(error.expected()),
                     QString::fromStdString(error.found()));
        }
    }
    return {};
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
    const int sources = static_cast<int>(has_option(choice, "--folder")) +
                        static_cast<int>(has_option(choice, "--json-lines")) +
                        static_cast<int>(has_option(choice, "--tokens"));
    if (reads_option(form, "--folder") && sources != 1)
        return ask_text("Choose either a folder of texts, a file of JSON lines or token ids");
    const QString lens = option_of(choice, "--kind");
    const bool own_head = lens.isEmpty() || lens == QLatin1String("logit");
    if (reads_option(form, "--lens-file") && own_head == has_option(choice, "--lens-file"))
        return own_head ? ask_text("A lens file is of a tuned or a Jacobian lens: choose which")
                        : ask_text("A tuned or a Jacobian lens needs its file");
    if (reads_option(form, "--context") && option_of(choice, "--context").isEmpty())
        return ask_text("Type the number of tokens of the context, whose keys are scored");
    const bool ranges = reads_option(form, "--queries");
    if (ranges && (option_of(choice, "--queries").isEmpty() || option_of(choice, "--keys").isEmpty()))
        return ask_text("Type the queries that lose attention, and the keys that they lose, as 8-11 and 2-4");
    const bool positive = has_option(choice, "--positive") || has_option(choice, "--positive-tokens");
    const bool negative = has_option(choice, "--negative") || has_option(choice, "--negative-tokens");
    const int given = static_cast<int>(positive) + static_cast<int>(negative);
    const bool vector = has_option(choice, "--vector");
    if (reads_option(form, "--positive") && (vector ? given > 0 : given < 2))
        return ask_text("Type a text that the vector points to and one that it points away from, or choose a vector");
    if (reads_option(form, "--needle") &&
        option_of(choice, "--needle").isEmpty() != option_of(choice, "--generate").isEmpty())
        return ask_text("Retrieval needs both: positions of the needle, and the number of tokens to generate");
    if (has_option(choice, "--needle") && reads_option(form, "--needle") && used_sources(choice).empty() &&
        !has_option(choice, "--tokens"))
        return ask_text("A needle lies in a text: type or choose one in the text panel");
    if (!option_of(choice, "--correlation").isEmpty() && reads_option(form, "--correlation") &&
        option_of(choice, "--approximation").isEmpty())
        return ask_text("A correlation needs an approximation");
    return number_problem(form, choice);
}

}  // namespace

QString problem_of(const AskChoice& choice, const std::vector<AskSource>& sources) {
    const AskToolForm* form = find_ask_form(choice.tool);
    if (!form) return ask_text("Choose a tool");
    for (const QString& problem : {model_problem(*form, choice, sources), text_problem(*form, choice),
                                   answer_problem(*form, choice), options_problem(*form, choice)})
        if (!problem.isEmpty()) return problem;
    if (choice.output.isEmpty()) return ask_text("Choose a file for the result");
    return {};
}

QStringList ask_words(const AskChoice& choice, const std::vector<TextExample>& examples) {
    const AskToolForm* form = find_ask_form(choice.tool);
    QStringList words{QStringLiteral("ask"), choice.tool};
    if (form && form->models && !choice.models.isEmpty())
        words << choice.models;
    else
        words << (choice.model.isEmpty() || (form && form->models) ? QStringLiteral("MODEL") : choice.model);
    words << QStringLiteral("-o") << (choice.output.isEmpty() ? QStringLiteral("OUT.ask.h5") : choice.output);
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
    const bool reads_texts = form->texts != AskToolForm::Texts::none || reads_option(*form, "--folder");
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
    for (const AskControl& control : ask_controls()) {
        const QString value = reads_option(*form, control.option) ? option_of(choice, control.option) : QString();
        const ask::ToolOption& option = ask::tool_option(control.option);
        if (value.isEmpty() || value == QString::fromStdString(ask::standard_text(option))) continue;
        if (option.kind == OptionKind::flag)
            words << QLatin1String(control.option);
        else
            add(control.option, value);
    }
    if (choice.texts.device != TextChoice().device) add("--device", choice.texts.device);
    add("--interventions", choice.interventions);
    if (choice.resume) words << QStringLiteral("--resume");
    return words;
}

}  // namespace headscope::widgets
