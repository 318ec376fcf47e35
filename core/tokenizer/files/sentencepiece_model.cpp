// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/files/sentencepiece_model.h"

#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/text/text.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

// The largest known have 5 MB and 260 000 pieces.
constexpr std::uint64_t largest_file = 64'000'000;
constexpr std::size_t most_pieces = 1'000'000;
constexpr std::size_t pieces_per_check = 4096;

/// The fields of one message, one after the other.
class Fields {
public:
    /// `origin`: where `bytes` begins in the file.
    Fields(std::string_view bytes, std::size_t origin, const std::string& where)
        : bytes_(bytes), origin_(origin), where_(where) {}

    /// Moves on to the next field; false at the end.
    bool next() {
        if (at_ == bytes_.size()) return false;
        begin_ = at_;
        const std::uint64_t key = varint();
        number_ = key >> 3U;
        type_ = static_cast<unsigned>(key & 7U);
        switch (type_) {
            case varint_type:
                value_ = varint();
                break;
            case eight_bytes:
                take(8);
                break;
            case four_bytes:
                take(4);
                break;
            case counted_bytes:
                take(varint());
                break;
            default:
                refuse("a field of type " + std::to_string(type_));
        }
        return true;
    }

    std::uint64_t number() const { return number_; }
    std::uint64_t value() const {
        expect(varint_type, "a whole number");
        return value_;
    }
    bool flag() const { return value() != 0; }
    std::string_view text() const {
        expect(counted_bytes, "bytes");
        return taken_;
    }
    Fields message() const { return {text(), origin_ + at_ - taken_.size(), where_}; }
    float real() const {
        expect(four_bytes, "four bytes");
        float value = 0;
        std::memcpy(&value, taken_.data(), sizeof value);  // little endian, as every machine that this is built for
        return value;
    }

    [[noreturn]] void refuse(const std::string& found) const {
        throw Error(ErrorCode::format, where_ + ", byte " + std::to_string(origin_ + begin_),
                    "expected a field of a sentencepiece model", "found " + found);
    }

private:
    static constexpr unsigned varint_type = 0, eight_bytes = 1, counted_bytes = 2, four_bytes = 5;

    void expect(unsigned type, const char* what) const {
        if (type_ != type) refuse("one of number " + std::to_string(number_) + " that is not " + what);
    }
    void take(std::uint64_t size) {
        if (size > bytes_.size() - at_) refuse("one that ends beyond what it is in");
        taken_ = bytes_.substr(at_, static_cast<std::size_t>(size));
        at_ += static_cast<std::size_t>(size);
    }
    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (at_ == bytes_.size()) refuse("one that ends within a number");
            const auto byte = static_cast<unsigned char>(bytes_[at_++]);
            value |= static_cast<std::uint64_t>(byte & 127U) << shift;
            if (byte < 128) return value;
        }
        refuse("a number of more than 64 bits");
    }

    std::string_view bytes_;
    std::size_t origin_;
    const std::string& where_;
    std::size_t at_ = 0, begin_ = 0;
    std::uint64_t number_ = 0, value_ = 0;
    unsigned type_ = 0;
    std::string_view taken_;
};

SentencePieceModel::Piece read_piece(Fields fields) {
    SentencePieceModel::Piece piece;
    while (fields.next()) {
        if (fields.number() == 1) {
            piece.text = fields.text();
            if (find_invalid_utf8(piece.text) != std::string::npos)
                fields.refuse("the piece \"" + escaped(piece.text, 60) + "\", which is no UTF-8");
        } else if (fields.number() == 2) {
            piece.score = fields.real();
            if (!std::isfinite(piece.score)) fields.refuse("a score that is no number");
        } else if (fields.number() == 3) {
            if (fields.value() < 1 || fields.value() > 6)
                fields.refuse("a piece of kind " + std::to_string(fields.value()));
            piece.kind = static_cast<SentencePieceModel::Kind>(fields.value());
        }
    }
    return piece;
}

void read_training(SentencePieceModel& model, Fields fields) {
    while (fields.next()) {
        if (fields.number() == 3) {
            if (fields.value() < 1 || fields.value() > 4)
                fields.refuse("a model of type " + std::to_string(fields.value()));
            model.type = static_cast<SentencePieceModel::Type>(fields.value());
        } else if (fields.number() == 24) {
            model.space_is_suffix = fields.flag();
        } else if (fields.number() == 35) {
            model.byte_fallback = fields.flag();
        }
    }
}

void read_normalisation(SentencePieceModel& model, Fields fields) {
    while (fields.next()) {
        if (fields.number() == 2) model.character_map = fields.text();
        if (fields.number() == 3) model.dummy_prefix = fields.flag();
        if (fields.number() == 4) model.extra_spaces_removed = fields.flag();
        if (fields.number() == 5) model.spaces_escaped = fields.flag();
    }
}

}  // namespace

SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& where) {
    SentencePieceModel model;
    Fields fields(bytes, 0, where);
    while (fields.next()) {
        if (fields.number() == 1) {
            if (model.pieces.size() % pieces_per_check == 0) check_cancellation();
            if (model.pieces.size() == most_pieces) {
                throw Error(ErrorCode::limit, where, "expected at most " + count_text(most_pieces) + " pieces",
                            "found more");
            }
            model.pieces.push_back(read_piece(fields.message()));
        } else if (fields.number() == 2) {
            read_training(model, fields.message());
        } else if (fields.number() == 3) {
            read_normalisation(model, fields.message());
        }
    }
    if (model.pieces.empty())
        throw Error(ErrorCode::format, where, "expected a sentencepiece model", "found no piece in it");
    return model;
}

SentencePieceModel read_sentencepiece_model(const std::filesystem::path& path) {
    return parse_sentencepiece_model(read_small_file(path, largest_file, "sentencepiece model"),
                                     escaped(path.string()));
}

}  // namespace headscope::tokenizer
