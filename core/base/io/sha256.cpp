// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/io/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <vector>

namespace headscope {

struct Sha256::Context {
    EVP_MD_CTX* digest = EVP_MD_CTX_new();
    Context() = default;
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context() { EVP_MD_CTX_free(digest); }
};

namespace {

void require(int result) {
    if (result != 1) throw Error(ErrorCode::internal, "SHA-256", "expected libcrypto to work", "found that it failed");
}

}  // namespace

Sha256::Sha256() : context_(std::make_unique<Context>()) {
    require(context_->digest != nullptr ? EVP_DigestInit_ex(context_->digest, EVP_sha256(), nullptr) : 0);
}

Sha256::~Sha256() = default;

void Sha256::update(const void* bytes, std::size_t size) {
    require(EVP_DigestUpdate(context_->digest, bytes, size));
}

std::string Sha256::finish() {
    std::array<unsigned char, 32> bytes{};
    unsigned int size = bytes.size();
    require(EVP_DigestFinal_ex(context_->digest, bytes.data(), &size));
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const unsigned char byte : bytes) {
        text += digits[byte >> 4U];
        text += digits[byte & 15U];
    }
    return text;
}

std::string sha256_hex(std::string_view bytes) {
    Sha256 hash;
    hash.update(bytes);
    return hash.finish();
}

std::string sha256_hex(const InputFile& file, const Cancellation& cancellation) {
    constexpr std::uint64_t piece = 4U << 20U;
    std::vector<char> buffer(static_cast<std::size_t>(std::min(piece, file.size())));
    Sha256 hash;
    for (std::uint64_t offset = 0; offset < file.size(); offset += buffer.size()) {
        cancellation.check();
        const auto size = static_cast<std::size_t>(std::min(piece, file.size() - offset));
        file.read(offset, buffer.data(), size);
        hash.update(buffer.data(), size);
    }
    file.check_unchanged();
    return hash.finish();
}

bool is_sha256_hex(std::string_view text) {
    return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace headscope
