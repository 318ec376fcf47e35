// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/fixed_token.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/io/sha256.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::data {
namespace {

class FixedTokenSource final : public BatchSource {
public:
    FixedTokenSource(std::unique_ptr<const BatchSource> text, std::int64_t position, std::int64_t id)
        : BatchSource(text->length(), text->vocabulary()), text_(std::move(text)), position_(position), id_(id) {}
    std::int64_t epoch() const override { return text_->epoch(); }

protected:
    void write(std::int64_t index, std::int64_t* ids, std::int64_t* targets) const override {
        const DataBatch one = text_->read(index, 1);
        std::copy(one.ids.begin(), one.ids.end(), ids);
        std::copy(one.targets.begin(), one.targets.end(), targets);
        ids[position_] = id_;
    }

private:
    std::unique_ptr<const BatchSource> text_;
    std::int64_t position_, id_;
};

class FixedTokenData final : public DataSet {
public:
    FixedTokenData(std::shared_ptr<const DataSet> data, std::int64_t position, std::int64_t id)
        : data_(std::move(data)), position_(position), id_(id) {
        tokenizer_ = data_->shared_tokenizer();
        tokenizer_files_ = data_->tokenizer_files();
        vocabulary_ = data_->vocabulary();
        separator_ = data_->separator();
        hash_ = sha256_hex("fixed token\n" + data_->hash() + "\n" + std::to_string(position) + "\n" +
                           std::to_string(id) + "\n");
        summary_ = data_->summary();
    }

    std::unique_ptr<const BatchSource> source(Split split, std::uint64_t seed) const override {
        auto text = data_->source(split, seed);
        if (!text) return nullptr;
        return std::make_unique<FixedTokenSource>(std::move(text), position_, id_);
    }

private:
    std::shared_ptr<const DataSet> data_;
    std::int64_t position_, id_;
};

}  // namespace

std::int64_t fixed_id(const FixedToken& token, const tokenizer::Tokenizer& tokenizer,
                      const std::vector<TokenizerFile>& files) {
    if (token.id) return *token.id;
    if (const auto mask = special_id(tokenizer, files, {"mask_token"}, {"[MASK]", "<mask>"})) return *mask;
    if (const auto unknown = special_id(tokenizer, files, {"unk_token"}, {"[UNK]", "<unk>"})) return *unknown;
    throw Error(ErrorCode::usage, "data.fixed_token",
                "expected an id, { position = " + std::to_string(token.position) +
                    ", id = N }, or a tokenizer with a mask or unk token",
                "found neither");
}

std::shared_ptr<const DataSet> with_fixed_token(std::shared_ptr<const DataSet> data, const FixedToken& token) {
    const std::int64_t id = fixed_id(token, data->tokenizer(), data->tokenizer_files());
    if (id < 0 || id >= data->vocabulary()) {
        throw Error(ErrorCode::usage, token.id ? "data.fixed_token, id" : "data.fixed_token",
                    "expected an id from 0 to " + std::to_string(data->vocabulary() - 1) + ", as these data have",
                    "found " + std::to_string(id));
    }
    return std::make_shared<FixedTokenData>(std::move(data), token.position, id);
}

}  // namespace headscope::data
