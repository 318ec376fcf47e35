// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/document.h"

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/json/json_events.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/text/text.h"

namespace headscope::tokenizer {

namespace {

using Json = nlohmann::json;
constexpr std::size_t entries_per_check = 4096;
constexpr std::int64_t highest_id = std::numeric_limits<std::int32_t>::max() - 1;
// Unpacked values take some 100 bytes each. A unigram model of 500 000 pieces has 1.5 million.
constexpr std::size_t most_values = 2'500'000;
// Four times what the largest vocabularies have. An entry takes some 100 bytes in the tables that are made of it, and
// in the file perhaps six.
constexpr std::size_t most_entries = 2'000'000;
constexpr std::size_t largest_odd_file = 32'000'000;  ///< whose lists cannot be packed
constexpr std::uint32_t no_right = std::numeric_limits<std::uint32_t>::max();

/// The packed form: a count, then for each entry the strings with their lengths in front, and the id.
class Packer {
public:
    Packer() : bytes_(sizeof count_) {}
    template <class Number>
    void number(Number value) {
        const std::size_t at = bytes_.size();
        bytes_.resize(at + sizeof value);
        std::memcpy(bytes_.data() + at, &value, sizeof value);
    }
    void text(std::string_view text) {
        number(static_cast<std::uint32_t>(text.size()));
        bytes_.insert(bytes_.end(), text.begin(), text.end());
    }
    std::uint64_t count_one() { return ++count_; }
    Json finish() {
        std::memcpy(bytes_.data(), &count_, sizeof count_);
        return Json::binary(std::move(bytes_));
    }

private:
    std::vector<std::uint8_t> bytes_;
    std::uint64_t count_ = 0;
};

class Unpacker {
public:
    explicit Unpacker(const Json& packed) : at_(packed.get_binary().data()), count_(number<std::uint64_t>()) {}
    std::uint64_t count() const { return count_; }
    template <class Number>
    Number number() {
        Number value;
        std::memcpy(&value, at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    std::string_view text(std::uint32_t length) {
        const std::string_view found(reinterpret_cast<const char*>(at_), length);
        at_ += length;
        return found;
    }
    std::string_view text() { return text(number<std::uint32_t>()); }

private:
    const std::uint8_t* at_;
    std::uint64_t count_;
};

/// Thrown for lists that cannot be packed, be they odd or wrong.
struct NotPackable {};

/// A tree but for the two lists. Where the tree stands is known by the keys of the two outermost objects.
class DocumentBuilder final : public JsonEvents {
public:
    DocumentBuilder(Json& root, const std::string& where) : root_(root), where_(where) {}

    void begin_object() override {
        if (mode_ != Mode::tree) throw NotPackable{};
        if (at_list("vocab")) return start(Mode::vocabulary);
        open_.push_back(add(Json::object()));
    }
    void begin_array() override {
        if (mode_ == Mode::merges && !in_pair_) {
            in_pair_ = true;
            in_pair_count_ = 0;
            return;
        }
        if (mode_ != Mode::tree) throw NotPackable{};
        if (at_list("merges")) return start(Mode::merges);
        open_.push_back(add(Json::array()));
    }
    void end_object() override {
        if (mode_ == Mode::vocabulary) return finish_list();
        open_.pop_back();
    }
    void end_array() override {
        if (in_pair_) {
            if (in_pair_count_ != 2) throw NotPackable{};
            in_pair_ = false;
            count_entry();
            return;
        }
        if (mode_ == Mode::merges) return finish_list();
        open_.pop_back();
    }
    void key(std::string& name) override {
        if (mode_ == Mode::vocabulary) return packer_.text(name);
        if (open_.size() <= 2) keys_[open_.size() - 1] = name;
        const auto [entry, fresh] = open_.back()->get_ref<Json::object_t&>().try_emplace(std::move(name));
        if (!fresh) {
            throw Error(ErrorCode::format, where_ + ", byte " + std::to_string(position()),
                        "expected each key once in an object", "found \"" + escaped(entry->first) + "\" again");
        }
        slot_ = &entry->second;
    }
    void string(std::string& value) override {
        if (mode_ == Mode::tree) {
            add(Json(std::move(value)));
            return;
        }
        if (mode_ != Mode::merges) throw NotPackable{};
        packer_.text(value);
        if (in_pair_) {
            ++in_pair_count_;
        } else {
            packer_.number(no_right);
            count_entry();
        }
    }
    void unsigned_integer(std::uint64_t value) override {
        if (mode_ == Mode::tree) {
            add(Json(value));
            return;
        }
        if (mode_ != Mode::vocabulary || value > static_cast<std::uint64_t>(highest_id)) throw NotPackable{};
        packer_.number(static_cast<std::int32_t>(value));
        count_entry();
    }
    void negative_integer(std::int64_t value) override { add_plain(Json(value)); }
    void real(double value, const std::string&) override { add_plain(Json(value)); }
    void boolean(bool value) override { add_plain(Json(value)); }
    void null() override { add_plain(Json(nullptr)); }

private:
    enum class Mode { tree, vocabulary, merges };

    bool at_list(std::string_view name) const {
        return open_.size() == 2 && open_[0]->is_object() && open_[1]->is_object() && keys_[0] == "model" &&
               keys_[1] == name;
    }
    void start(Mode mode) {
        mode_ = mode;
        packer_ = Packer();
    }
    void finish_list() {
        mode_ = Mode::tree;
        add(packer_.finish());
    }
    void count_entry() {
        if (packer_.count_one() <= most_entries) return;
        const std::string what = mode_ == Mode::merges ? "merges" : "pieces in a vocabulary";
        throw Error(ErrorCode::limit, where_ + ", byte " + std::to_string(position()),
                    "expected at most " + count_text(most_entries) + " " + what, "found more");
    }
    void add_plain(Json&& value) {
        if (mode_ != Mode::tree) throw NotPackable{};
        add(std::move(value));
    }
    Json* add(Json&& value) {
        if (++values_ > most_values) {
            throw Error(ErrorCode::limit, where_ + ", byte " + std::to_string(position()),
                        "expected at most " + count_text(most_values) + " values beside a vocabulary and merges",
                        "found more");
        }
        if (open_.empty()) {
            root_ = std::move(value);
            return &root_;
        }
        if (open_.back()->is_array()) {
            auto& elements = open_.back()->get_ref<Json::array_t&>();
            elements.push_back(std::move(value));
            return &elements.back();
        }
        *slot_ = std::move(value);
        return slot_;
    }

    Json& root_;
    const std::string& where_;
    std::vector<Json*> open_;
    Json* slot_ = nullptr;
    std::string keys_[2];
    Mode mode_ = Mode::tree;
    Packer packer_;
    bool in_pair_ = false;
    int in_pair_count_ = 0;
    std::size_t values_ = 0;
};

void check_sometimes(std::size_t index) {
    if (index % entries_per_check == 0) check_cancellation();
}

}  // namespace

nlohmann::json read_document(std::string_view text, const std::string& where) {
    try {
        Json root;
        DocumentBuilder builder(root, where);
        read_json_events(text, where, builder);
        return root;
    } catch (const NotPackable&) {
        if (text.size() > largest_odd_file) {
            throw Error(ErrorCode::limit, where,
                        "expected whole numbers in model.vocab, strings or pairs in model.merges",
                        "found other values, in a file of " + size_text(text.size()));
        }
        return parse_json(text, where);
    } catch (...) {
        throw current_error(where);
    }
}

std::size_t packed_size(const JsonView& list) {
    const Json& value = list.value();
    return value.is_binary() ? static_cast<std::size_t>(Unpacker(value).count()) : value.size();
}

void each_piece(const JsonView& vocabulary, const std::function<void(std::string_view piece, std::int32_t id)>& take) {
    std::size_t index = 0;
    if (vocabulary.value().is_binary()) {
        Unpacker packed(vocabulary.value());
        for (; index < packed.count(); ++index) {
            check_sometimes(index);
            const std::string_view piece = packed.text();
            take(piece, packed.number<std::int32_t>());
        }
        return;
    }
    for (const auto& [piece, id] : vocabulary.object().value().get_ref<const Json::object_t&>()) {
        check_sometimes(index++);
        // Only what is wrong pays for a view of its place.
        const bool whole = id.is_number_unsigned() && id.get<std::uint64_t>() <= static_cast<std::uint64_t>(highest_id);
        const std::int64_t value = whole ? id.get<std::int64_t>() : vocabulary.at(piece).integer({0, highest_id});
        take(piece, static_cast<std::int32_t>(value));
    }
}

void each_merge(const JsonView& merges, const std::function<void(std::size_t index, const MergeText& merge)>& take) {
    if (merges.value().is_binary()) {
        Unpacker packed(merges.value());
        for (std::size_t i = 0; i < packed.count(); ++i) {
            check_sometimes(i);
            MergeText merge;
            merge.left = packed.text();
            const auto length = packed.number<std::uint32_t>();
            merge.is_pair = length != no_right;
            if (merge.is_pair) merge.right = packed.text(length);
            take(i, merge);
        }
        return;
    }
    const Json& list = merges.array().value();
    for (std::size_t i = 0; i < list.size(); ++i) {
        check_sometimes(i);
        const Json& merge = list[i];
        if (merge.is_string()) {
            take(i, {merge.get_ref<const std::string&>(), {}, false});
        } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
            take(i, {merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>(), true});
        } else {
            merges.at(i).refuse(ErrorCode::format, "expected a merge \"a b\" or [\"a\", \"b\"]");
        }
    }
}

}  // namespace headscope::tokenizer
