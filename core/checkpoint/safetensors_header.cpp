// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "core/base/json/json_events.h"
#include "core/base/process/os_error.h"
#include "core/checkpoint/data_type.h"
#include "core/checkpoint/most_tensors.h"

namespace headscope::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are read as they lie in the file");

constexpr std::size_t most_dimensions = 64;
constexpr std::string_view metadata_key = "__metadata__";

/// Fills a SafetensorsHeader from the header's JSON as it is read: no document tree, whatever its length.
class HeaderEvents final : public JsonEvents {
public:
    HeaderEvents(SafetensorsHeader& header, const std::string& where) : header_(header), where_(where) {}

    void begin_object() override {
        switch (level_) {
            case Level::start:
                level_ = Level::root;
                return;
            case Level::root:
                level_ = in_metadata_ ? Level::metadata : Level::entry;
                if (!in_metadata_) fields_ = {};
                return;
            case Level::metadata:
                refuse("expected a string");
            default:
                refuse_value();
        }
    }

    void end_object() override {
        if (level_ == Level::root) {
            level_ = Level::start;
            return;
        }
        if (level_ == Level::entry) {
            for (std::size_t i = 0; i < fields_.size(); ++i) {
                if (!fields_[i]) refuse("expected dtype, shape and data_offsets", "found no " + std::string(names[i]));
            }
        }
        level_ = Level::root;
    }

    void key(std::string& text) override {
        switch (level_) {
            case Level::root:
                open(text);
                return;
            case Level::metadata: {
                const auto [entry, fresh] = header_.metadata.try_emplace(std::move(text));
                if (!fresh) refuse_again(entry->first);
                metadata_slot_ = &entry->second;
                return;
            }
            default: {
                const auto* name = std::find(names.begin(), names.end(), text);
                if (name == names.end()) {
                    refuse("expected dtype, shape and data_offsets only", "found \"" + escaped(text) + "\"");
                }
                field_ = static_cast<std::size_t>(name - names.begin());
                if (std::exchange(fields_[field_], true)) refuse_again(text);
            }
        }
    }

    void string(std::string& value) override {
        if (level_ == Level::metadata) {
            *metadata_slot_ = std::move(value);
            return;
        }
        if (level_ != Level::entry || field_ != dtype) refuse_value();
        const auto type = data_type(value);
        if (!type) {
            throw Error(ErrorCode::unsupported, place(), "expected an element type of safetensors",
                        "found \"" + escaped(value, 40) + "\"");
        }
        tensor_->type = *type;
    }

    void begin_array() override {
        if (level_ != Level::entry || field_ == dtype) refuse_value();
        level_ = Level::list;
        offsets_read_ = 0;
    }

    void end_array() override {
        level_ = Level::entry;
        if (field_ == data_offsets && offsets_read_ != 2)
            refuse("expected two data_offsets", "found " + std::to_string(offsets_read_));
    }

    void unsigned_integer(std::uint64_t value) override {
        if (level_ != Level::list) refuse_value();
        if (field_ == shape) {
            if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
                refuse("expected sizes below 2^63", "found " + std::to_string(value));
            }
            if (tensor_->shape.size() == most_dimensions) {
                throw Error(ErrorCode::limit, place(),
                            "expected at most " + std::to_string(most_dimensions) + " dimensions", "found more");
            }
            tensor_->shape.push_back(static_cast<std::int64_t>(value));
        } else {
            if (offsets_read_ == 2) refuse("expected two data_offsets", "found more");
            // The end is kept as it is until the whole header is known.
            (offsets_read_ == 0 ? tensor_->begin : tensor_->bytes) = value;
            ++offsets_read_;
        }
    }

    void negative_integer(std::int64_t value) override { refuse_value("found " + std::to_string(value)); }
    void real(double, const std::string& text) override { refuse_value("found " + escaped(text, 40)); }
    void boolean(bool value) override { refuse_value(value ? "found true" : "found false"); }
    void null() override { refuse_value("found null"); }

private:
    enum class Level { start, root, metadata, entry, list };
    enum Field : std::size_t { dtype, shape, data_offsets };
    static constexpr std::array<std::string_view, 3> names = {"dtype", "shape", "data_offsets"};

    void open(std::string& text) {
        in_metadata_ = text == metadata_key;
        if (in_metadata_) {
            if (std::exchange(metadata_seen_, true)) refuse_again(text);
            return;
        }
        const auto [entry, fresh] = header_.tensors.try_emplace(std::move(text));
        if (!fresh) refuse_again(entry->first);
        if (header_.tensors.size() > most_tensors) {
            throw Error(ErrorCode::limit, place(), "expected at most " + std::to_string(most_tensors) + " tensors",
                        "found more");
        }
        tensor_ = &entry->second;
        tensor_->name = entry->first;
    }

    std::string place() const {
        std::string text = where_ + ", byte " + std::to_string(position());
        if (level_ == Level::start) return text;
        if (in_metadata_) return text + ", __metadata__";
        return tensor_ == nullptr ? text : text + ", tensor \"" + escaped(tensor_->name) + '"';
    }
    [[noreturn]] void refuse(const std::string& expected, const std::string& found = "found something else") const {
        throw Error(ErrorCode::format, place(), expected, found);
    }
    [[noreturn]] void refuse_again(const std::string& name) const {
        refuse("expected each name once", "found \"" + escaped(name) + "\" again");
    }
    [[noreturn]] void refuse_value(const std::string& found = "found something else") const {
        switch (level_) {
            case Level::start:
                refuse("expected an object as header", found);
            case Level::root:
                refuse("expected an object for each tensor", found);
            case Level::metadata:
                refuse("expected a string", found);
            case Level::list:
                refuse("expected whole numbers in " + std::string(names[field_]), found);
            case Level::entry:
                break;
        }
        refuse(field_ == dtype ? "expected a string as dtype"
                               : "expected an array of whole numbers as " + std::string(names[field_]),
               found);
    }

    SafetensorsHeader& header_;
    const std::string& where_;
    Level level_ = Level::start;
    bool in_metadata_ = false;
    bool metadata_seen_ = false;
    std::string* metadata_slot_ = nullptr;
    TensorInfo* tensor_ = nullptr;
    std::array<bool, 3> fields_{};
    std::size_t field_ = dtype;
    std::size_t offsets_read_ = 0;
};

/// Turns begin and end, relative to the header's end, into place and size in the file, each found to be possible.
void check_tensor(TensorInfo& tensor, std::uint64_t data_start, std::uint64_t data_size, const std::string& where) {
    const auto refuse = [&](const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::format, where + ", tensor \"" + escaped(tensor.name) + '"', expected, found);
    };
    const std::uint64_t end = tensor.bytes;
    if (tensor.begin > end) {
        refuse("expected data_offsets in order",
               "found " + std::to_string(tensor.begin) + " and " + std::to_string(end));
    }
    if (end > data_size) {
        refuse("expected its data to end within the " + std::to_string(data_size) + " bytes behind the header",
               "found its end at " + std::to_string(end) + ": the file is cut short or its header lies");
    }
    const auto all_bits = checked_bits(tensor.shape, tensor.type, tensor.elements);
    if (!all_bits) refuse("expected a size below 2^64 bits", "found a shape that asks for more");
    if (*all_bits % 8 != 0) {
        refuse("expected a whole number of bytes",
               "found " + std::to_string(*all_bits) + " bits of " + std::string(name(tensor.type)));
    }
    tensor.bytes = end - tensor.begin;
    if (*all_bits / 8 != tensor.bytes) {
        refuse("expected " + std::to_string(*all_bits / 8) + " bytes by its shape and type",
               "found " + std::to_string(tensor.bytes) + " by its data_offsets");
    }
    tensor.begin += data_start;  // both at most the file's size
}

/// The data must be covered once: no hole, no overlap, nothing left.
void check_cover(const SafetensorsHeader& header, std::uint64_t data_start, std::uint64_t file_size,
                 const std::string& where) {
    std::vector<const TensorInfo*> order;
    order.reserve(header.tensors.size());
    for (const auto& [name, tensor] : header.tensors) order.push_back(&tensor);
    std::sort(order.begin(), order.end(), [](const TensorInfo* a, const TensorInfo* b) {
        return std::pair(a->begin, a->bytes) < std::pair(b->begin, b->bytes);
    });
    std::uint64_t reached = data_start;
    for (const TensorInfo* tensor : order) {
        if (tensor->begin != reached) {
            throw Error(
                ErrorCode::format, where + ", tensor \"" + escaped(tensor->name) + '"',
                "expected its data to begin at byte " + std::to_string(reached) + ", where the tensor before ends",
                "found " + std::to_string(tensor->begin) +
                    (tensor->begin < reached ? ": tensors overlap" : ": a hole between tensors"));
        }
        reached += tensor->bytes;
    }
    if (reached != file_size) {
        throw Error(ErrorCode::format, where + ", byte " + std::to_string(reached),
                    "expected the file's end behind the last tensor",
                    "found " + std::to_string(file_size - reached) + " bytes more");
    }
}

}  // namespace

SafetensorsHeader read_safetensors_header(const InputFile& file) {
    const std::string where = shown(file.path());
    try {
        if (file.size() < 8) {
            throw Error(ErrorCode::format, where, "expected a safetensors file of at least 10 bytes",
                        "found " + std::to_string(file.size()) + " bytes");
        }
        std::uint64_t length = 0;
        file.read(0, &length, sizeof length);
        const std::uint64_t left = file.size() - 8;
        if (length < 2 || length > largest_header) {
            throw Error(
                ErrorCode::format, where + ", byte 0",
                "expected a safetensors file, with a header of 2 to " + std::to_string(largest_header) + " bytes",
                "found the header length " + std::to_string(length));
        }
        if (length > left) {
            throw Error(
                ErrorCode::format, where + ", byte 0",
                "expected a header within the " + std::to_string(left) + " bytes that follow",
                "found the length " + std::to_string(length) + ": the file is cut short or no safetensors file");
        }
        std::string text(static_cast<std::size_t>(length), '\0');
        file.read(8, text.data(), text.size());
        SafetensorsHeader header;
        HeaderEvents events(header, where);
        read_json_events(text, where, events, 8);
        for (auto& [name, tensor] : header.tensors) check_tensor(tensor, 8 + length, left - length, where);
        check_cover(header, 8 + length, file.size(), where);
        return header;
    } catch (...) {
        throw current_error(where);
    }
}

}  // namespace headscope::checkpoint
