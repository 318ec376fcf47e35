// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/guide_text.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/data/source/text_parts.h"
#include "core/data/token_code.h"
#include "core/data/token_file.h"
#include "core/mixers/types/type.h"

namespace headscope::training {
namespace {

/// Leaves a file once it has enough tokens.
struct Enough {};

/// The first tokens of documents, each followed by `separator`, as token files have them.
class FirstTokens final : public data::PartSink {
public:
    FirstTokens(const data::TokenCode& code, std::int64_t separator, std::size_t wanted,
                const Cancellation& cancellation)
        : code_(code), separator_(separator), wanted_(wanted), cancellation_(cancellation) {}

    void begin_document() override {}
    void part(std::string_view text) override {
        for (const std::int32_t id : code_.encode(text, &cancellation_)) add(id);
    }
    void end_document() override {
        if (separator_ >= 0) add(separator_);
    }
    const std::vector<std::int64_t>& ids() const { return ids_; }

private:
    void add(std::int64_t id) {
        ids_.push_back(id);
        if (ids_.size() >= wanted_) throw Enough();
    }

    const data::TokenCode& code_;
    std::int64_t separator_;
    std::size_t wanted_;
    const Cancellation& cancellation_;
    std::vector<std::int64_t> ids_;
};

std::vector<std::int64_t> tokens_of_file(const Session& session, const std::string& path, std::int64_t wanted,
                                         Progress& progress, const Cancellation& cancellation) {
    const data::TokenCode code(session.data->shared_tokenizer());
    FirstTokens tokens(code, session.data->separator(), static_cast<std::size_t>(wanted), cancellation);
    try {
        for (const data::SourceFile& source : data::find_sources({path}, session.job.base, kGuideText)) {
            const InputFile file(source.path, "text file");
            data::read_parts(file, source.kind, tokens, [&](std::uint64_t bytes) {
                progress.advance(static_cast<double>(bytes), static_cast<double>(file.size()), "reading the guide");
            });
        }
    } catch (const Enough&) {
        return tokens.ids();
    } catch (const Error& error) {
        const bool named = error.where() == kGuideText;
        throw error_at_key(session.job, kGuideText,
                           Error(error.code(), named ? "" : error.where(), error.expected(), error.found()));
    }
    throw error_at_key(
        session.job, kGuideText,
        Error(ErrorCode::usage, "",
              "expected at least " + std::to_string(wanted) + " tokens, the model's max_position_embeddings",
              "found " + std::to_string(tokens.ids().size())));
}

std::vector<std::int64_t> tokens_of_data(const Session& session, std::int64_t wanted) {
    if (const auto& path = session.data->summary().token_file; !path.empty()) {
        const auto file = data::TokenFile::open(path);
        const data::TokenRange range = file->range(data::Split::training);
        std::vector<std::int64_t> ids(static_cast<std::size_t>(std::min(wanted, range.size())));
        file->copy(range.begin, static_cast<std::int64_t>(ids.size()), ids.data());
        return ids;
    }
    const std::int64_t count = (wanted + session.source->length() - 1) / session.source->length();
    return session.source->read(0, count).ids;
}

/// The job makes layers that read tokens, rather than taking them from a checkpoint.
bool makes_guided_layers(const ModelSettings& settings) {
    const auto reads_tokens = [](const std::string& name) {
        const mixers::MixerType* type = mixers::find_type(name);
        return type != nullptr && type->query_key_source == mixers::QueryKeySource::fixed_guide;
    };
    return settings.from.empty() || reads_tokens(settings.mixer) ||
           std::any_of(settings.layers.begin(), settings.layers.end(), reads_tokens);
}

}  // namespace

void set_guide(Session& session, Progress& progress, const Cancellation& cancellation) {
    model::Trainable& model = session.learner->model();
    const std::string path = guide_text(session.job);
    if (!path.empty() && !model.has_guide_ids())
        throw error_at_key(session.job, kGuideText,
                           Error(ErrorCode::usage, "", "expected a model with fixed_seq_qk layers", "found none"));
    if (!model.has_guide_ids() || (path.empty() && !makes_guided_layers(session.job.model))) return;
    const std::int64_t wanted = std::max<std::int64_t>(1, std::as_const(model).model().config().max_positions);
    const std::vector<std::int64_t> ids =
        path.empty() ? tokens_of_data(session, wanted) : tokens_of_file(session, path, wanted, progress, cancellation);
    at::Tensor tensor = at::empty({static_cast<std::int64_t>(ids.size())}, at::kLong);
    std::memcpy(tensor.mutable_data_ptr(), ids.data(), ids.size() * sizeof(std::int64_t));
    const at::NoGradGuard no_gradient;
    model.set_guide_ids(tensor);
}

}  // namespace headscope::training
