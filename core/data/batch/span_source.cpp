// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/batch/span_source.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/data/permutation.h"

namespace headscope::data {

QuestionRows stored_questions(std::shared_ptr<const TokenFile> file, Split split) {
    const TokenRange items = items_of(*file, split);
    const std::int64_t width = file->info().numbers_per_token;
    QuestionRows rows;
    rows.questions = items.size();
    rows.sizes = [file, items, width](std::int64_t index) {
        const std::int64_t document = 2 * (items.begin + index);
        return std::array{file->document(document).size() / width, file->document(document + 1).size() / width};
    };
    rows.read = [file, items](std::int64_t index) {
        TokenQuestion one;
        std::int64_t document = 2 * (items.begin + index);
        std::size_t end = 0;
        for (auto* to : {&one.question, &one.context}) {
            const TokenRange range = file->document(document);
            to->resize(static_cast<std::size_t>(range.size()));
            file->copy(range.begin, range.size(), to->data());
            one.answer[end++] = std::llround(file->label(document++));
        }
        return one;
    };
    return rows;
}

SpanSource::SpanSource(QuestionRows rows, ItemForm form, std::uint64_t seed)
    : BatchSource(form.length, form.code.ids()), rows_(std::move(rows)), form_(std::move(form)), seed_(seed) {
    std::int64_t windows = 0;
    for (std::int64_t i = 0; i < rows_.questions; ++i) {
        const auto [question, context] = rows_.sizes(i);
        ends_.push_back(windows += cut_context(form_, question, context).windows());
    }
}

DataBatch SpanSource::read(std::int64_t first, std::int64_t count) const {
    check_range(first, count);
    std::vector<SpoiltSequence> sequences;
    std::vector<std::int64_t> answers;
    std::int64_t cut = 0;
    for (std::int64_t i = first; i < first + count; ++i) {
        const std::int64_t all = epoch();
        const std::int64_t number = permuted(i % all, all, key_of(seed_, static_cast<std::uint64_t>(i / all)));
        const std::int64_t question = std::upper_bound(ends_.begin(), ends_.end(), number) - ends_.begin();
        const std::int64_t before = question == 0 ? 0 : ends_[static_cast<std::size_t>(question - 1)];
        const TokenQuestion one = rows_.read(question);
        const auto [asked, context] = rows_.sizes(question);
        const SpanCut windows = cut_context(form_, asked, context);
        const SpanWindow window = windows.window(number - before);
        SpanSequence made = span_sequence(form_, windows, window, one.question, one.context);
        const TokenSpan answer = answer_in(made, window, one.answer);
        answers.insert(answers.end(), answer.begin(), answer.end());
        sequences.push_back(std::move(made.tokens));
        cut += windows.question < asked ? 1 : 0;
    }
    DataBatch batch = form_.code.batch(sequences, form_.special.padding);
    batch.targets = std::move(answers);
    batch.counted = count;
    batch.cut = cut;
    return batch;
}

}  // namespace headscope::data
