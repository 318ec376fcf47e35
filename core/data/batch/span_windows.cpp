// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/batch/span_windows.h"

#include "core/data/batch/frame_texts.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::data {

SpanCut cut_context(const ItemForm& form, std::int64_t question, std::int64_t context) {
    const std::int64_t places = form.length - form.frame.inserted(true), stride = form.objective.stride;
    SpanCut cut;
    cut.context = context;
    cut.question = question + context <= places ? question : std::min(question, places - stride - 1);
    cut.room = places - cut.question;
    cut.step = std::max<std::int64_t>(cut.room - stride, 1);  // 1: of a context that fits
    return cut;
}

SpanSequence span_sequence(const ItemForm& form, const SpanCut& cut, const SpanWindow& window,
                           std::span<const std::int64_t> question, std::span<const std::int64_t> context) {
    const std::int64_t width = form.code.width();
    const auto some = [width](std::span<const std::int64_t> of, std::int64_t begin, std::int64_t tokens) {
        return of.subspan(static_cast<std::size_t>(begin * width), static_cast<std::size_t>(tokens * width));
    };
    SpanSequence made;
    made.tokens = frame_texts(form.code, form.frame.two, some(question, 0, cut.question),
                              some(context, window.begin, window.tokens), form.special.padding);
    for (const tokenizer::FramePart& part : form.frame.two) {
        if (!part.token && part.text == 1) break;
        made.context_at += part.token ? 1 : cut.question;
    }
    return made;
}

std::vector<ByteRange> token_ranges(const tokenizer::Tokenizer& tokenizer, const std::string& context,
                                    const Cancellation* cancellation) {
    const tokenizer::Encoding encoding = tokenizer.encode(context, /*add_special_tokens=*/true, cancellation);
    std::vector<ByteRange> ranges;
    for (std::size_t i = 0; i < encoding.ids.size(); ++i)
        if (encoding.special[i] == 0) ranges.push_back(encoding.offsets[i]);
    return ranges;
}

TokenSpan answer_tokens(std::span<const ByteRange> tokens, const ByteRange& answer) {
    TokenSpan span{-1, -1};
    for (std::int64_t i = 0; i < std::ssize(tokens); ++i) {
        const ByteRange& token = tokens[static_cast<std::size_t>(i)];
        if (token[0] <= answer[0]) span[0] = i;
        if (span[1] < 0 && token[1] >= answer[1]) span[1] = i;
    }
    return span[0] < 0 || span[1] < 0 ? TokenSpan{-1, -1} : span;
}

TokenSpan answer_in(const SpanSequence& sequence, const SpanWindow& window, const TokenSpan& answer) {
    if (answer[0] < window.begin || answer[0] >= window.end() || answer[1] < window.begin || answer[1] >= window.end())
        return {0, 0};
    const std::int64_t shift = sequence.context_at - window.begin;
    return {answer[0] + shift, answer[1] + shift};
}

}  // namespace headscope::data
