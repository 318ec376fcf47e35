// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/job/job_keys.h"

#include <utility>

#include "core/base/device_choice.h"
#include "core/training/job/config_keys.h"

namespace headscope::training {
namespace {

using nlohmann::json;

constexpr double kMost = 1e15;  ///< largest count: doubles hold it exactly

/// Reads and writes a member of a section: key(&JobFile::training, &TrainingSettings::batch).
template <class Section, class T>
void bind(JobKey& key, Section JobFile::*section, T Section::*member) {
    key.get = [=](const JobFile& job) { return json(job.*section.*member); };
    key.set = [=](JobFile& job, const json& value) { job.*section.*member = value.get<T>(); };
}

/// As above, for an optional value.
template <class Section, class T>
void bind(JobKey& key, Section JobFile::*section, std::optional<T> Section::*member) {
    key.get = [=](const JobFile& job) { return (job.*section.*member) ? json(*(job.*section.*member)) : json(); };
    key.set = [=](JobFile& job, const json& value) {
        if (value.is_null())
            (job.*section.*member).reset();
        else
            job.*section.*member = value.get<T>();
    };
}

template <class T>
void bind(JobKey& key, T JobFile::*member) {
    key.get = [=](const JobFile& job) { return json(job.*member); };
    key.set = [=](JobFile& job, const json& value) { job.*member = value.get<T>(); };
}

/// An empty text counts as not given.
template <class Section>
void bind_optional_text(JobKey& key, Section JobFile::*section, std::string Section::*member) {
    key.get = [=](const JobFile& job) { return (job.*section.*member).empty() ? json() : json(job.*section.*member); };
    key.set = [=](JobFile& job, const json& value) {
        job.*section.*member = value.is_null() ? std::string() : value.get<std::string>();
    };
}

template <class Section>
void bind_optional_texts(JobKey& key, Section JobFile::*section, std::vector<std::string> Section::*member) {
    key.get = [=](const JobFile& job) { return (job.*section.*member).empty() ? json() : json(job.*section.*member); };
    key.set = [=](JobFile& job, const json& value) {
        job.*section.*member = value.is_null() ? std::vector<std::string>() : value.get<std::vector<std::string>>();
    };
}

class Table {
public:
    std::vector<JobKey> build() {
        top();
        model();
        objective();
        data();
        training();
        optimizer();
        schedule();
        evaluation();
        probe_and_sample();
        benchmark();
        return std::move(keys_);
    }

private:
    JobKey& add(std::string section, std::string name, OptionKind kind, std::string help) {
        JobKey key;
        key.section = std::move(section);
        key.name = std::move(name);
        key.kind = kind;
        key.help = std::move(help);
        return keys_.emplace_back(std::move(key));
    }

    JobKey& count(std::string section, std::string name, double lowest, double highest, std::string help) {
        JobKey& key = add(std::move(section), std::move(name), OptionKind::whole, std::move(help));
        key.lowest = lowest;
        key.highest = highest;
        return key;
    }

    JobKey& number(std::string section, std::string name, double lowest, double highest, std::string help) {
        JobKey& key = count(std::move(section), std::move(name), lowest, highest, std::move(help));
        key.kind = OptionKind::number;
        return key;
    }

    JobKey& choice(std::string section, std::string name, std::vector<std::string> choices, std::string help) {
        JobKey& key = add(std::move(section), std::move(name), OptionKind::choice, std::move(help));
        key.choices = std::move(choices);
        return key;
    }

    void top() {
        auto& name = add("", "name", OptionKind::text, "Name of the run in lists and figures");
        name.may_change = true;
        bind(name, &JobFile::name);
        bind(count("", "seed", 0, kMost, "Seed of weights, order of data, dropout and samples"), &JobFile::seed);
    }

    void model() {
        const auto text = [&](const char* name, OptionKind kind, std::string ModelSettings::*member, const char* help) {
            bind_optional_text(add("model", name, kind, help), &JobFile::model, member);
        };
        auto& preset = add("model", "preset", OptionKind::text,
                           "Sizes by name; see headscope list presets; \"\": those of the keys below alone");
        // An empty name is written out, unless a checkpoint stands instead: without the key tiny-1m is read.
        preset.get = [](const JobFile& job) {
            return job.model.preset.empty() && !job.model.from.empty() ? json() : json(job.model.preset);
        };
        preset.set = [](JobFile& job, const json& value) {
            job.model.preset = value.is_null() ? std::string() : value.get<std::string>();
        };
        text("from", OptionKind::path, &ModelSettings::from,
             "A checkpoint to train on, instead of a preset; data.tokenizer replaces its tokenizer");
        bind(choice("model", "weights", {"auto", "float32", "file", "stream"},
                    "Where weights of `from` stay while they are only read; training holds float32"),
             &JobFile::model, &ModelSettings::weights);
        text("mixer", OptionKind::text, &ModelSettings::mixer, "Token mixer; see headscope list mixers");
        text("layout", OptionKind::text, &ModelSettings::layout,
             "Layers with standard attention: uniform (none), even, odd, top, middle, bottom, quarter, first, last, "
             "bilateral; custom with layers");
        bind_optional_texts(add("model", "layers", OptionKind::texts, "The mixer of each layer, instead of a layout"),
                            &JobFile::model, &ModelSettings::layers);
        auto& mixers = add("model", "mixers", OptionKind::table, "Options by mixer: approximate = { ... }");
        bind(mixers, &JobFile::model, &ModelSettings::mixers);
        for (JobKey& key : config_keys()) keys_.push_back(std::move(key));
    }

    void objective() {
        using S = data::ObjectiveSettings;
        const auto section = [&](JobKey& key, auto member) {
            using Value = std::remove_reference_t<decltype(S().*member)>;
            key.get = [=](const JobFile& job) { return json(job.data.objective.*member); };
            key.set = [=](JobFile& job, const json& value) { job.data.objective.*member = value.get<Value>(); };
        };
        section(
            choice("objective", "kind", {"next_token", "masked", "shuffle_random", "translation", "classify", "spans"},
                   "Objective: the next token (decoders); masked tokens, or which tokens were shuffled or "
                   "replaced (encoders); a translation (encoder-decoders); classes of texts (encoders, decoders); "
                   "answers in contexts (encoders)"),
            &S::kind);
        section(number("objective", "mask", 0, 1,
                       "masked: share of tokens to predict; 80 % of them are masked, 10 % replaced"),
                &S::mask);
        section(number("objective", "shuffle", 0, 1, "shuffle_random: share of tokens that change places"),
                &S::shuffle);
        section(
            number("objective", "random", 0, 1, "shuffle_random: share of the other tokens that a random one replaces"),
            &S::random);
        section(count("objective", "classes", 1, 1 << 20, "classify: classes of a text; 1: a number"), &S::classes);
        section(count("objective", "stride", 0, 1 << 20, "spans: context tokens that consecutive windows share"),
                &S::stride);
    }

    void data() {
        using data::DataSettings;
        bind_optional_texts(add("data", "text", OptionKind::paths,
                                "Files, folders, patterns (*, ?, [..], **), also .gz and .zst; .jsonl files with a "
                                "\"text\" field; translation: "
                                "\"source\" and \"target\"; classify: \"label\", optional \"pair\"; spans: "
                                "\"question\", \"context\", \"answers\""),
                            &JobFile::data, &DataSettings::text);
        bind(add("data", "column", OptionKind::text,
                 "Column of JSON objects that is the text; document.text is a member of a member"),
             &JobFile::data, &DataSettings::column);
        const auto column = [&](JobKey& key, std::string data::ObjectiveSettings::*member) {
            key.get = [=](const JobFile& job) { return json(job.data.objective.*member); };
            key.set = [=](JobFile& job, const json& value) { job.data.objective.*member = value.get<std::string>(); };
        };
        column(add("data", "source", OptionKind::text, "translation: column of the text, such as translation.en"),
               &data::ObjectiveSettings::source);
        column(add("data", "target", OptionKind::text, "translation: column of its translation"),
               &data::ObjectiveSettings::target);
        bind_optional_text(
            add("data", "corpus", OptionKind::text, "A ready corpus, instead of text; see headscope list datasets"),
            &JobFile::data, &DataSettings::corpus);
        auto& generator =
            add("data", "generator", OptionKind::table,
                "A generator and its options, instead of text: { name = \"induction\" }; see headscope list datasets");
        generator.get = [](const JobFile& job) {
            if (!job.data.generator) return json();
            json value = {{"name", job.data.generator->name}};
            for (const auto& [name, option] : job.data.generator->options) value[name] = option;
            return value;
        };
        generator.set = [](JobFile& job, const json& value) {
            job.data.generator.reset();
            if (value.is_null()) return;
            data::GeneratorSettings settings;
            for (const auto& [name, option] : value.items()) {
                if (name == "name")
                    settings.name = option.get<std::string>();
                else
                    settings.options[name] = option.is_boolean() ? (option.get<bool>() ? 1 : 0) : option.get<double>();
            }
            job.data.generator = std::move(settings);
        };
        bind(add("data", "tokenizer", OptionKind::path,
                 "\"bytes\", \"train:2048\" (a BPE of that many tokens), or a tokenizer's file or folder; default: "
                 "bytes; with model.from the checkpoint's"),
             &JobFile::data, &DataSettings::tokenizer);
        bind(count("data", "sequence_length", 2, 1 << 24, "Tokens of a sequence"), &JobFile::data,
             &DataSettings::sequence_length);
        auto& validation = add("data", "validation", OptionKind::share_or_paths,
                               "Held-out share of the text, from its end; or a list of files");
        validation.lowest = 0;
        validation.highest = 0.9;
        validation.get = [](const JobFile& job) {
            return job.data.validation_files.empty() ? json(job.data.validation) : json(job.data.validation_files);
        };
        validation.set = [](JobFile& job, const json& value) {
            job.data.validation_files.clear();
            if (value.is_array())
                job.data.validation_files = value.get<std::vector<std::string>>();
            else
                job.data.validation = value.get<double>();
        };
        auto& fixed =
            add("data", "fixed_token", OptionKind::table,
                "A token that replaces the one at a position of every sequence, counted from 0: { position = 2 }, "
                "the tokenizer's mask or unk token, or { position = 2, id = 0 }");
        fixed.get = [](const JobFile& job) {
            if (!job.data.fixed_token) return json();
            json value = {{"position", job.data.fixed_token->position}};
            if (job.data.fixed_token->id) value["id"] = *job.data.fixed_token->id;
            return value;
        };
        fixed.set = [](JobFile& job, const json& value) {
            job.data.fixed_token.reset();
            if (value.is_null()) return;
            data::FixedToken token;
            token.position = value.at("position").get<std::int64_t>();
            if (value.contains("id")) token.id = value.at("id").get<std::int64_t>();
            job.data.fixed_token = token;
        };
        auto& workers =
            count("data", "workers", 1, 64, "Threads that read ahead; they do not change the order of data");
        workers.may_change = true;
        bind(workers, &JobFile::data_workers);
    }

    void training() {
        const auto section = [&](JobKey& key, auto member) { bind(key, &JobFile::training, member); };
        using S = TrainingSettings;
        const auto end = [&](JobKey& key, auto member) {
            key.ends_run = true;
            section(key, member);
        };
        end(count("training", "steps", 1, 1e12, "Updates; or give tokens, minutes or epochs"), &S::steps);
        end(count("training", "tokens", 1, kMost, "Tokens to train on, instead of steps"), &S::tokens);
        auto& minutes = number("training", "minutes", 0, 1e6, "Time limit, instead of steps");
        minutes.above = true;
        end(minutes, &S::minutes);
        auto& epochs = number("training", "epochs", 0, 1e9, "Passes over the training data, instead of steps");
        epochs.above = true;
        end(epochs, &S::epochs);
        section(count("training", "batch", 1, 1 << 20, "Sequences of one pass, of all processes together"), &S::batch);
        section(count("training", "accumulate", 1, 1 << 20, "Passes whose gradients make one update"), &S::accumulate);
        section(choice("training", "precision", {"float32", "bfloat16"},
                       "Type of weights and activations; with bfloat16 the optimizer keeps float32 weights"),
                &S::precision);
        section(number("training", "clip", 0, 1e9, "Largest norm of the gradient; 0: not clipped"), &S::clip);
        section(number("training", "dropout", 0, 0.99, "Share of activations set to 0 while training"), &S::dropout);
        section(number("training", "attention_dropout", 0, 0.99,
                       "Share of attention weights set to 0 while training, behind the normalizer"),
                &S::attention_dropout);
        section(number("training", "z_loss", 0, 1, "Weight of the squared log normalizer of the output"), &S::z_loss);
        auto& threads = count("training", "threads", 0, 4096, "Threads that compute; 0: all processors");
        threads.may_change = true;
        section(threads, &S::threads);
        auto& device = add("training", "device", OptionKind::text, {});
        static_cast<Option&>(device) = device_option();
        device.may_change = true;
        section(device, &S::device);
    }

    void optimizer() {
        const auto section = [&](JobKey& key, auto member) { bind(key, &JobFile::optimizer, member); };
        using S = OptimizerSettings;
        section(choice("optimizer", "name", {"adamw"}, "AdamW: Adam with decoupled weight decay"), &S::name);
        auto& rate = number("optimizer", "learning_rate", 0, 100, "The schedule's peak");
        section(rate, &S::learning_rate);
        auto& betas = add("optimizer", "betas", OptionKind::pair, "Decay of the running means of gradient and square");
        betas.lowest = 0;
        betas.highest = 0.9999999;
        section(betas, &S::betas);
        auto& eps = number("optimizer", "eps", 0, 1, "Added to the root of the mean square");
        eps.above = true;
        section(eps, &S::eps);
        section(
            number("optimizer", "weight_decay", 0, 100, "Decay of matrices and embeddings; gains and biases have none"),
            &S::weight_decay);
    }

    void schedule() {
        const auto section = [&](JobKey& key, auto member) { bind(key, &JobFile::schedule, member); };
        using S = ScheduleSettings;
        section(choice("schedule", "kind", {"cosine", "cosine_restarts", "linear", "constant", "wsd"},
                       "Course of the rate after warm-up; cosine_restarts: five times from the peak; wsd: constant, "
                       "then linear at the end"),
                &S::kind);
        section(count("schedule", "warmup_steps", 0, 1e9,
                      "Updates in which the rate rises to its peak; or give warmup_tokens or warmup_share"),
                &S::warmup_steps);
        section(count("schedule", "warmup_tokens", 0, kMost, "Tokens in which the rate rises, instead of warmup_steps"),
                &S::warmup_tokens);
        section(number("schedule", "warmup_share", 0, 1,
                       "Share of the run in which the rate rises, instead of warmup_steps; not with minutes"),
                &S::warmup_share);
        section(number("schedule", "warmup_start", 0, 100, "Rate before warm-up"), &S::warmup_start);
        section(number("schedule", "minimum_rate", 0, 100,
                       "Rate of the last update; default for linear and cosine_restarts: 0"),
                &S::minimum_rate);
        auto& share = number("schedule", "decay_share", 0, 1, "wsd: last share of the run, in which the rate falls");
        share.above = true;
        section(share, &S::decay_share);
    }

    void evaluation() {
        const auto every = [&](JobKey& key, auto section, auto member) {
            key.may_change = true;
            bind(key, section, member);
        };
        every(count("evaluation", "every", 0, 1e9, "Updates between evaluations on held-out text; 0: none"),
              &JobFile::evaluation, &EvaluationSettings::every);
        auto& passes = number("evaluation", "every_epochs", 0, 1e9,
                              "Passes over the training data between evaluations, instead of every");
        passes.above = true;
        every(passes, &JobFile::evaluation, &EvaluationSettings::every_epochs);
        every(count("evaluation", "batches", 1, 1e6, "Batches of an evaluation, always the same ones"),
              &JobFile::evaluation, &EvaluationSettings::batches);
        bind(choice("evaluation", "metric", {"loss", "accuracy", "f1", "matthews", "spearman", "exact_match", "bleu"},
                    "Value that patience and snapshots/best follow; but for loss, of all held-out items"),
             &JobFile::evaluation, &EvaluationSettings::metric);
        bind(count("evaluation", "patience", 0, 1e9,
                   "Evaluations in a row without a better metric that end the run; 0: none"),
             &JobFile::evaluation, &EvaluationSettings::patience);
        every(count("snapshots", "every", 0, 1e9, "Updates between snapshots; 0: only at the end"), &JobFile::snapshots,
              &SnapshotSettings::every);
        every(count("snapshots", "keep", 2, 1e6, "Kept snapshots, the best one aside"), &JobFile::snapshots,
              &SnapshotSettings::keep);
    }

    void probe_and_sample() {
        const auto probe = [&](JobKey& key, auto member) {
            key.may_change = true;
            bind(key, &JobFile::probe, member);
        };
        probe(count("probe", "every", 0, 1e9, "Updates between measurements of all indicators; 0: none"),
              &ProbeSettings::every);
        probe(count("probe", "sequences", 1, 4096, "Sequences of the fixed batch that is measured"),
              &ProbeSettings::sequences);
        probe(count("probe", "length", 2, 1 << 20, "Tokens of each, at most those of a training sequence"),
              &ProbeSettings::length);
        const auto sample = [&](JobKey& key, auto member) {
            key.may_change = true;
            bind(key, &JobFile::sample, member);
        };
        sample(count("sample", "every", 0, 1e9, "Updates between texts that the model writes; 0: none"),
               &SampleSettings::every);
        sample(count("sample", "tokens", 1, 1 << 16, "Tokens of such a text"), &SampleSettings::tokens);
        sample(add("sample", "prompt", OptionKind::text, "Beginning of the text; empty: that of the held-out text"),
               &SampleSettings::prompt);
        sample(number("sample", "temperature", 0, 100, "Temperature of sampling; 0: always the most likely token"),
               &SampleSettings::temperature);
    }

    void benchmark() {
        const auto text = [&](const char* name, std::string BenchmarkSettings::*member, const char* help) {
            JobKey& key = add("benchmark", name, OptionKind::text, help);
            key.may_change = true;
            bind_optional_text(key, &JobFile::benchmark, member);
        };
        text("variant", &BenchmarkSettings::variant,
             "Row in tables of benchmarks; default: the mixer, with a layout other than uniform");
        text("task", &BenchmarkSettings::task,
             "Column in tables of benchmarks, such as rte; default: the results' name");
    }

    std::vector<JobKey> keys_;
};

}  // namespace

const std::vector<JobKey>& job_keys() {
    static const std::vector<JobKey> keys = Table().build();
    return keys;
}

const JobKey* find_key(const std::string& full_name) {
    for (const JobKey& key : job_keys())
        if (key.full_name() == full_name) return &key;
    return nullptr;
}

}  // namespace headscope::training
