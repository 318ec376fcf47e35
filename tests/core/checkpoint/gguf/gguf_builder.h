// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Bytes of small GGUF files, right and wrong ones.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace headscope::test {

template <class T>
std::string little(T number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

inline std::string gguf_string(const std::string& text) {
    return little<std::uint64_t>(text.size()) + text;
}

/// One key's value as stored, its type first.
struct GgufValueBytes {
    std::string bytes;
    explicit GgufValueBytes(std::string as_stored) : bytes(std::move(as_stored)) {}
    GgufValueBytes(const char* text) : bytes(little<std::uint32_t>(8) + gguf_string(text)) {}
    GgufValueBytes(std::uint32_t number) : bytes(little<std::uint32_t>(4) + little(number)) {}
    GgufValueBytes(int number) : bytes(little<std::uint32_t>(5) + little<std::int32_t>(number)) {}
    GgufValueBytes(float number) : bytes(little<std::uint32_t>(6) + little(number)) {}
    GgufValueBytes(bool flag) : bytes(little<std::uint32_t>(7) + std::string(1, flag ? '\1' : '\0')) {}
    GgufValueBytes(const std::vector<std::string>& texts)
        : bytes(little<std::uint32_t>(9) + little<std::uint32_t>(8) + little<std::uint64_t>(texts.size())) {
        for (const std::string& text : texts) bytes += gguf_string(text);
    }
    GgufValueBytes(const std::vector<std::int32_t>& numbers)
        : bytes(little<std::uint32_t>(9) + little<std::uint32_t>(5) + little<std::uint64_t>(numbers.size())) {
        for (const std::int32_t number : numbers) bytes += little(number);
    }
    GgufValueBytes(const std::vector<float>& numbers)
        : bytes(little<std::uint32_t>(9) + little<std::uint32_t>(6) + little<std::uint64_t>(numbers.size())) {
        for (const float number : numbers) bytes += little(number);
    }
};

/// Builds a file of keys and tensors in their order.
class GgufBuilder {
public:
    std::uint32_t version = 3;
    std::uint64_t alignment = 32;  ///< of the data; the key is not written

    GgufBuilder& key(const std::string& name, const GgufValueBytes& value) {
        keys_ += gguf_string(name) + value.bytes;
        ++key_count;
        return *this;
    }

    /// `shape` fastest first.
    GgufBuilder& tensor(const std::string& name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                        const std::string& data) {
        data_.resize((data_.size() + alignment - 1) / alignment * alignment);
        tensor_at(name, shape, type, data_.size());
        data_ += data;
        return *this;
    }

    /// An entry alone.
    GgufBuilder& tensor_at(const std::string& name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                           std::uint64_t offset) {
        tensors_ += gguf_string(name) + little<std::uint32_t>(static_cast<std::uint32_t>(shape.size()));
        for (const std::uint64_t size : shape) tensors_ += little(size);
        tensors_ += little(type) + little(offset);
        ++tensor_count;
        return *this;
    }

    std::string header() const {
        return "GGUF" + little(version) + little(tensor_count) + little(key_count) + keys_ + tensors_;
    }

    std::string bytes() const {
        std::string all = header();
        if (tensor_count != 0) all.resize((all.size() + alignment - 1) / alignment * alignment);
        return all + data_;
    }

    std::uint64_t key_count = 0, tensor_count = 0;  ///< as written; may lie

private:
    std::string keys_, tensors_, data_;
};

}  // namespace headscope::test
