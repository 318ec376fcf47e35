// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/parquet/adapter.h"

#include <arrow/api.h>
#include <arrow/io/interfaces.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/schema.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

namespace headscope::data::parquet {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{8} << 20;  // uncompressed, of a batch
constexpr std::int64_t kMostRows = 256;                      // a dictionary may expand rows far beyond their share
constexpr std::int64_t kStreamBytes = std::int64_t{1} << 20;
constexpr int kDeepestSchema = 48;  // the JSON reader takes 64 levels

/// The host's file.
class HostFile final : public arrow::io::RandomAccessFile {
public:
    HostFile(Host& host, arrow::MemoryPool* pool, bool& stopped) : host_(host), pool_(pool), stopped_(stopped) {}

    arrow::Status Close() override {
        closed_ = true;
        return arrow::Status::OK();
    }
    bool closed() const override { return closed_; }
    arrow::Result<std::int64_t> Tell() const override { return at_; }
    arrow::Status Seek(std::int64_t position) override {
        at_ = position;
        return arrow::Status::OK();
    }
    arrow::Result<std::int64_t> GetSize() override { return static_cast<std::int64_t>(host_.size()); }

    arrow::Result<std::int64_t> Read(std::int64_t count, void* to) override {
        ARROW_ASSIGN_OR_RAISE(const std::int64_t done, ReadAt(at_, count, to));
        at_ += done;
        return done;
    }
    arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t count) override {
        ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(at_, count));
        at_ += buffer->size();
        return buffer;
    }
    arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t count, void* to) override {
        const auto size = static_cast<std::int64_t>(host_.size());
        if (position < 0 || count < 0 || position > size) return arrow::Status::Invalid("a place outside of the file");
        count = std::min(count, size - position);
        if (count > 0 && !host_.read(static_cast<std::uint64_t>(position), to, static_cast<std::size_t>(count))) {
            stopped_ = true;
            return arrow::Status::Cancelled("stopped");
        }
        return count;
    }
    arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(std::int64_t position, std::int64_t count) override {
        const auto size = static_cast<std::int64_t>(host_.size());
        count = std::clamp<std::int64_t>(count, 0, std::max<std::int64_t>(size - position, 0));
        ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(count, pool_));
        ARROW_ASSIGN_OR_RAISE(const std::int64_t done, ReadAt(position, count, buffer->mutable_data()));
        ARROW_RETURN_NOT_OK(buffer->Resize(done));
        return std::shared_ptr<arrow::Buffer>(std::move(buffer));
    }

private:
    Host& host_;
    arrow::MemoryPool* pool_;
    bool& stopped_;
    std::int64_t at_ = 0;
    bool closed_ = false;
};

/// False: JSON has no such values.
bool is_readable(const arrow::DataType& type) {
    switch (type.id()) {
        case arrow::Type::NA:
        case arrow::Type::BOOL:
        case arrow::Type::UINT8:
        case arrow::Type::INT8:
        case arrow::Type::UINT16:
        case arrow::Type::INT16:
        case arrow::Type::UINT32:
        case arrow::Type::INT32:
        case arrow::Type::UINT64:
        case arrow::Type::INT64:
        case arrow::Type::FLOAT:
        case arrow::Type::DOUBLE:
        case arrow::Type::STRING:
        case arrow::Type::LARGE_STRING:
        case arrow::Type::STRING_VIEW:
        case arrow::Type::STRUCT:
            return true;
        case arrow::Type::LIST:
        case arrow::Type::LARGE_LIST:
        case arrow::Type::FIXED_SIZE_LIST:
            return is_readable(*type.field(0)->type());
        case arrow::Type::DICTIONARY:
            return is_readable(*static_cast<const arrow::DictionaryType&>(type).value_type());
        default:
            return false;
    }
}

/// The first field that cannot be read, there or within; null: none.
const arrow::Field* unreadable(const arrow::FieldVector& fields) {
    for (const auto& field : fields) {
        if (!is_readable(*field->type())) return field.get();
        if (const auto* inner = unreadable(field->type()->fields())) return inner;
    }
    return nullptr;
}

class JsonWriter {
public:
    std::string text;

    void row(const arrow::RecordBatch& batch, std::int64_t row) {
        text.clear();
        members(batch.schema()->fields(), [&](int i) { value(*batch.column(i), row); });
    }

private:
    template <class WriteValue>
    void members(const arrow::FieldVector& fields, const WriteValue& write) {
        text += '{';
        bool first = true;
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (!is_readable(*fields[i]->type())) continue;
            if (!first) text += ',';
            first = false;
            string(fields[i]->name());
            text += ':';
            write(static_cast<int>(i));
        }
        text += '}';
    }

    void string(std::string_view bytes) {
        constexpr const char* digits = "0123456789abcdef";
        text += '"';
        std::size_t begin = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            const auto c = static_cast<unsigned char>(bytes[i]);
            if (c >= 0x20 && c != '"' && c != '\\') continue;
            text += bytes.substr(begin, i - begin);
            begin = i + 1;
            if (c >= 0x20) {
                text += '\\';
                text += bytes[i];
            } else {
                text += "\\u00";
                text += digits[c >> 4U];
                text += digits[c & 15U];
            }
        }
        text += bytes.substr(begin);
        text += '"';
    }

    template <class Number>
    void number(Number value) {
        char buffer[40];
        const auto end = std::to_chars(std::begin(buffer), std::end(buffer), value).ptr;
        text.append(buffer, end);
    }
    void real(double value) {
        if (!std::isfinite(value)) {
            text += "null";
            return;
        }
        const std::size_t begin = text.size();
        number(value);
        if (text.find_first_of(".e", begin) == std::string::npos) text += ".0";
    }

    template <class List>
    void list(const arrow::Array& array, std::int64_t row) {
        const auto& lists = static_cast<const List&>(array);
        const auto begin = static_cast<std::int64_t>(lists.value_offset(row));
        const auto count = static_cast<std::int64_t>(lists.value_length(row));
        text += '[';
        for (std::int64_t i = 0; i < count; ++i) {
            if (i > 0) text += ',';
            value(*lists.values(), begin + i);
        }
        text += ']';
    }

    template <class Array>
    static auto at(const arrow::Array& array, std::int64_t row) {
        return static_cast<const Array&>(array).GetView(row);
    }

    void value(const arrow::Array& array, std::int64_t row) {
        if (array.IsNull(row)) {
            text += "null";
            return;
        }
        switch (array.type_id()) {
            case arrow::Type::BOOL:
                text += at<arrow::BooleanArray>(array, row) ? "true" : "false";
                return;
            case arrow::Type::UINT8:
                return number<unsigned>(at<arrow::UInt8Array>(array, row));
            case arrow::Type::INT8:
                return number<int>(at<arrow::Int8Array>(array, row));
            case arrow::Type::UINT16:
                return number(at<arrow::UInt16Array>(array, row));
            case arrow::Type::INT16:
                return number(at<arrow::Int16Array>(array, row));
            case arrow::Type::UINT32:
                return number(at<arrow::UInt32Array>(array, row));
            case arrow::Type::INT32:
                return number(at<arrow::Int32Array>(array, row));
            case arrow::Type::UINT64:
                return number(at<arrow::UInt64Array>(array, row));
            case arrow::Type::INT64:
                return number(at<arrow::Int64Array>(array, row));
            case arrow::Type::FLOAT:
                return real(static_cast<double>(at<arrow::FloatArray>(array, row)));
            case arrow::Type::DOUBLE:
                return real(at<arrow::DoubleArray>(array, row));
            case arrow::Type::STRING:
                return string(at<arrow::StringArray>(array, row));
            case arrow::Type::LARGE_STRING:
                return string(at<arrow::LargeStringArray>(array, row));
            case arrow::Type::STRING_VIEW:
                return string(at<arrow::StringViewArray>(array, row));
            case arrow::Type::LIST:
                return list<arrow::ListArray>(array, row);
            case arrow::Type::LARGE_LIST:
                return list<arrow::LargeListArray>(array, row);
            case arrow::Type::FIXED_SIZE_LIST:
                return list<arrow::FixedSizeListArray>(array, row);
            case arrow::Type::DICTIONARY: {
                const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
                return value(*coded.dictionary(), coded.GetValueIndex(row));
            }
            case arrow::Type::STRUCT: {
                const auto& object = static_cast<const arrow::StructArray&>(array);
                return members(object.struct_type()->fields(), [&](int i) { value(*object.field(i), row); });
            }
            default:
                text += "null";  // NA; is_readable() leaves the others out
        }
    }
};

/// True if the path or a beginning of it, with dots between its names, is one of the columns.
bool leads_into(const std::vector<std::string>& path, const std::vector<std::string>& columns) {
    std::string joined;
    for (const std::string& name : path) {
        joined += joined.empty() ? name : "." + name;
        if (std::find(columns.begin(), columns.end(), joined) != columns.end()) return true;
    }
    return false;
}

std::vector<int> leaves_of(const ::parquet::SchemaDescriptor& schema, const std::vector<std::string>& columns) {
    std::vector<int> leaves;
    for (int i = 0; i < schema.num_columns(); ++i)
        if (columns.empty() || leads_into(schema.Column(i)->path()->ToDotVector(), columns)) leaves.push_back(i);
    return leaves;
}

std::int64_t batch_rows(const ::parquet::RowGroupMetaData& group, const std::vector<int>& leaves) {
    std::int64_t bytes = 0;
    for (const int leaf : leaves)
        bytes += std::max<std::int64_t>(group.ColumnChunk(leaf)->total_uncompressed_size(), 0);
    const std::int64_t row_bytes = bytes / std::max<std::int64_t>(group.num_rows(), 1) + 1;
    return std::clamp<std::int64_t>(kPieceBytes / row_bytes, 1, kMostRows);
}

arrow::Status read_rows(Host& host, const std::vector<std::string>& columns, bool& stopped) {
    arrow::CappedMemoryPool pool(arrow::system_memory_pool(), largest_memory);
    ::parquet::ReaderProperties properties(&pool);
    properties.enable_buffered_stream();
    properties.set_buffer_size(kStreamBytes);
    properties.set_page_checksum_verification(true);
    properties.set_schema_depth_limit(kDeepestSchema);
    ::parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
    arrow_properties.set_pre_buffer(false);

    ::parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(std::make_shared<HostFile>(host, &pool, stopped), properties));
    ARROW_ASSIGN_OR_RAISE(const auto reader, builder.memory_pool(&pool)->properties(arrow_properties)->Build());
    const auto metadata = reader->parquet_reader()->metadata();
    const std::vector<int> leaves = leaves_of(*metadata->schema(), columns);
    const auto rows = static_cast<std::uint64_t>(std::max<std::int64_t>(metadata->num_rows(), 0));

    JsonWriter json;
    std::uint64_t done = 0;
    const auto hand_on = [&] {
        stopped = !host.row(json.text, rows);
        ++done;
        return stopped ? arrow::Status::Cancelled("stopped") : arrow::Status::OK();
    };
    for (int group = 0; group < metadata->num_row_groups(); ++group) {
        const auto group_data = metadata->RowGroup(group);
        if (leaves.empty()) {  // no column of these names
            json.text = "{}";
            for (std::int64_t i = 0; i < group_data->num_rows(); ++i) ARROW_RETURN_NOT_OK(hand_on());
            continue;
        }
        reader->set_batch_size(batch_rows(*group_data, leaves));
        ARROW_ASSIGN_OR_RAISE(const auto batches, reader->GetRecordBatchReader({group}, leaves));
        if (const auto* field = columns.empty() ? nullptr : unreadable(batches->schema()->fields()))
            return arrow::Status::NotImplemented("column ", field->name(), " of type ", field->type()->ToString());
        for (;;) {
            ARROW_ASSIGN_OR_RAISE(const auto batch, batches->Next());
            if (!batch) break;
            ARROW_RETURN_NOT_OK(batch->ValidateFull());  // a damaged file's offsets and indices may lead anywhere
            for (std::int64_t i = 0; i < batch->num_rows(); ++i) {
                json.row(*batch, i);
                ARROW_RETURN_NOT_OK(hand_on());
            }
        }
    }
    if (done != rows) return arrow::Status::Invalid(done, " rows in place of ", rows);
    return arrow::Status::OK();
}

Result result_of(const arrow::Status& status, bool stopped) {
    if (status.ok()) return {};
    if (stopped) return {Outcome::stopped, {}};
    const Outcome outcome = status.IsOutOfMemory()      ? Outcome::memory
                            : status.IsNotImplemented() ? Outcome::unsupported
                                                        : Outcome::damaged;
    return {outcome, status.message().substr(0, status.message().find('\n'))};
}

Result read_all(Host& host, const std::vector<std::string>& columns) noexcept {
    bool stopped = false;
    try {
        return result_of(read_rows(host, columns, stopped), stopped);
    } catch (const ::parquet::ParquetStatusException& error) {
        return result_of(error.status(), stopped);
    } catch (const std::bad_alloc&) {
        return {Outcome::memory, "no memory"};
    } catch (const std::exception& error) {
        return result_of(arrow::Status::Invalid(error.what()), stopped);
    }
}

}  // namespace

extern "C" [[gnu::visibility("default")]] ReadRows headscope_parquet_reader(std::uint32_t version) noexcept {
    return version == adapter_version ? &read_all : nullptr;
}

}  // namespace headscope::data::parquet
