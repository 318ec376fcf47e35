// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/batch/item_reader.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/json/json_events.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/data/objectives/list.h"
#include "core/data/source/json_objects.h"

namespace headscope::data {
namespace {

constexpr double kLargestLabel = 3.4e38;  // token files have float32

struct Field {
    enum class Kind { text, number, other } kind = Kind::other;
    std::string text;  ///< of other: what it is
    double number = 0;
};
using Fields = std::map<std::string, Field>;

/// The members of one object; those of objects within as "translation.en", unless a member has that name.
class FieldReader final : public JsonEvents {
public:
    explicit FieldReader(std::string where) : where_(std::move(where)) {}
    Fields fields, nested;

    void begin_object() override {
        open("an object");
        path_.emplace_back();
    }
    void end_object() override {
        path_.pop_back();
        --depth_;
    }
    void begin_array() override {
        open("an array");
        ++arrays_;
    }
    void end_array() override {
        --arrays_;
        --depth_;
    }
    void key(std::string& name) override {
        path_.back() = name;
        field_ = nullptr;
        if (arrays_ > 0) return;
        if (depth_ > 1) {
            std::string whole = path_.front();
            for (std::size_t i = 1; i < path_.size(); ++i) whole += "." + path_[i];
            field_ = &nested[whole];
            return;
        }
        const auto [entry, is_new] = fields.try_emplace(std::move(name));
        if (!is_new) {
            throw Error(ErrorCode::format, where_, "expected one \"" + escaped(entry->first, 40) + "\" in an object",
                        "found another");
        }
        field_ = &entry->second;
    }
    void string(std::string& value) override { take({Field::Kind::text, std::move(value)}, "a string"); }
    void unsigned_integer(std::uint64_t value) override { number(static_cast<double>(value)); }
    void negative_integer(std::int64_t value) override { number(static_cast<double>(value)); }
    void real(double value, const std::string&) override { number(value); }
    void boolean(bool) override { take({Field::Kind::other, "a truth value"}, "a truth value"); }
    void null() override { take({Field::Kind::other, "null"}, "null"); }

private:
    void number(double value) { take({Field::Kind::number, "", value}, "a number"); }
    void open(const char* what) {
        if (depth_ > 0 || what != std::string_view("an object")) take({Field::Kind::other, what}, what);
        ++depth_;
    }
    void take(Field field, const char* what) {
        if (depth_ == 0) throw Error(ErrorCode::format, where_, "expected an object", std::string("found ") + what);
        if (field_ != nullptr) *field_ = std::move(field);
        field_ = nullptr;
    }

    std::string where_;
    Field* field_ = nullptr;  ///< of the last key, while its value is awaited
    std::vector<std::string> path_;
    int depth_ = 0, arrays_ = 0;
};

/// Columns of the two texts; several columns of one are joined by spaces.
struct Columns {
    std::vector<std::string> text, other;
};

const std::vector<Columns>& known_columns() {
    static const std::vector<Columns> all = {
        {{"text"}, {"pair"}},
        {{"text"}, {"span1_text", "span2_text"}},
        {{"text"}, {}},
        {{"word", "sentence1"}, {"sentence2"}},
        {{"sentence1"}, {"sentence2"}},
        {{"question1"}, {"question2"}},
        {{"premise"}, {"hypothesis"}},
        {{"premise", "question"}, {"choice1", "choice2"}},
        {{"question"}, {"sentence"}},
        {{"sentence"}, {}},
        {{"paragraph"}, {"question", "answer"}},
        {{"passage"}, {"question"}},
    };
    return all;
}

std::string names_of(const Fields& fields) {
    std::vector<std::string> names;
    for (const auto& [name, field] : fields) names.push_back(escaped(name, 40));
    return names.empty() ? "an empty object" : list_text(names);
}

class LineReader {
public:
    LineReader(std::string where, const ObjectiveSettings& objective, std::string_view line)
        : where_(std::move(where)), objective_(objective) {
        FieldReader reader(where_);
        read_json_events(
            line, [this](std::size_t) { return where_; }, reader);
        fields_ = std::move(reader.fields);
        nested_ = std::move(reader.nested);
    }

    TextItem item() const {
        if (kind_of(objective_).translates) {
            for (const std::string& name : {objective_.source, objective_.target})
                if (find(name) == nullptr)
                    refuse("expected a \"" + escaped(objective_.source, 40) + "\" and a \"" +
                               escaped(objective_.target, 40) + '"',
                           names_of(fields_));
            return {text(objective_.source), text(objective_.target), true};
        }
        for (const Columns& columns : known_columns()) {
            const auto there = [this](const std::string& name) { return fields_.contains(name); };
            if (!std::all_of(columns.text.begin(), columns.text.end(), there) ||
                !std::all_of(columns.other.begin(), columns.other.end(), there))
                continue;
            return {joined(columns.text), joined(columns.other), !columns.other.empty(), label()};
        }
        refuse("expected a \"text\", or the columns of a task of GLUE or SuperGLUE", names_of(fields_));
    }

private:
    [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
        throw Error(ErrorCode::format, where_, expected, "found " + found);
    }

    /// A member, else one of an object within.
    const Field* find(const std::string& name) const {
        for (const Fields* all : {&fields_, &nested_})
            if (const auto found = all->find(name); found != all->end()) return &found->second;
        return nullptr;
    }

    std::string text(const std::string& name) const {
        const Field& field = *find(name);
        if (field.kind != Field::Kind::text) {
            refuse("expected a string for \"" + name + '"',
                   field.kind == Field::Kind::other ? field.text : std::string("a number"));
        }
        return field.text;
    }

    std::string joined(const std::vector<std::string>& names) const {
        std::string all;
        for (const std::string& name : names) all += (all.empty() ? "" : " ") + text(name);
        return all;
    }

    double label() const {
        const std::int64_t classes = objective_.classes;
        const std::string expected =
            classes == 1 ? "expected a number for \"label\""
                         : "expected a whole number from 0 to " + std::to_string(classes - 1) + " for \"label\"";
        const auto found = fields_.find("label");
        if (found == fields_.end()) refuse(expected, names_of(fields_));
        const Field& field = found->second;
        if (field.kind == Field::Kind::text)
            refuse(expected, '"' + escaped(field.text, 40) + "\"; give each class its number");
        if (field.kind == Field::Kind::other) refuse(expected, field.text);
        const bool fits = classes == 1 ? std::abs(field.number) < kLargestLabel
                                       : field.number == std::floor(field.number) && field.number >= 0 &&
                                             field.number < static_cast<double>(classes);
        if (!fits) {
            refuse(expected, field.number == -1 ? "-1, which says that the classes of these items are kept secret"
                                                : short_number(field.number));
        }
        return field.number;
    }

    static std::string short_number(double number) {
        std::string text = std::to_string(number);
        while (text.ends_with('0')) text.pop_back();
        if (text.ends_with('.')) text.pop_back();
        return text;
    }

    std::string where_;
    const ObjectiveSettings& objective_;
    Fields fields_, nested_;
};

}  // namespace

bool reads_items(const ObjectiveSettings& objective) {
    return kind_of(objective).reads_items();
}

void read_items(const InputFile& file, SourceKind kind, const ObjectiveSettings& objective,
                const std::function<void(const TextItem&)>& take, const std::function<void(std::uint64_t)>& progress) {
    std::vector<std::string> columns;  // of "classify": those that a record has decide
    if (kind_of(objective).translates) columns = {objective.source, objective.target};
    read_records(
        file, kind,
        [&](std::string_view line, std::uint64_t number) {
            take(LineReader(shown(file.path()) + ":" + std::to_string(number), objective, line).item());
        },
        progress, columns);
    file.check_unchanged();
    progress(file.size());
}

}  // namespace headscope::data
