// Encoding of payloads: little-endian scalars, length-prefixed bytes. The Reader never reads past
// its span: after the first short read every further read yields zeros and ok() is false, so a
// decoder checks once, at the end, before it acts.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace juice {

using Bytes = std::span<const uint8_t>;

class Writer {
  public:
    template <typename T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) Writer& put(T value) {
        raw(&value, sizeof value);
        return *this;
    }
    /// A host or device address, or an opaque handle's minted id.
    Writer& address(const void* value) { return put(reinterpret_cast<uint64_t>(value)); }
    /// u32 length, then the bytes.
    Writer& bytes(const void* data, size_t size) {
        put(static_cast<uint32_t>(size));
        raw(data, size);
        return *this;
    }
    Writer& text(std::string_view value) { return bytes(value.data(), value.size()); }
    /// Bytes without a length: the reader must know how many.
    void raw(const void* data, size_t size) {
        if (size == 0) return;
        const size_t at = buffer_.size();
        buffer_.resize(at + size);
        std::memcpy(buffer_.data() + at, data, size);
    }
    void clear() { buffer_.clear(); }
    size_t size() const { return buffer_.size(); }
    const uint8_t* data() const { return buffer_.data(); }
    Bytes view() const { return buffer_; }
    std::vector<uint8_t> take() { return std::move(buffer_); }

  private:
    std::vector<uint8_t> buffer_;
};

class Reader {
  public:
    Reader() = default;
    explicit Reader(Bytes data) : data_(data) {}

    template <typename T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) T get() {
        T value{};
        raw(&value, sizeof value);
        return value;
    }
    template <typename T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void get(T& value) { value = get<T>(); }
    /// u32 length, then the bytes. The span lives as long as the frame.
    Bytes bytes() {
        const auto size = get<uint32_t>();
        return take(size);
    }
    std::string_view text() {
        const Bytes b = bytes();
        return {reinterpret_cast<const char*>(b.data()), b.size()};
    }
    /// `size` bytes without a length prefix; an empty span, and ok() false, when they are not
    /// there.
    Bytes take(size_t size) {
        if (size > data_.size()) {
            fail();
            return {};
        }
        const Bytes out = data_.first(size);
        data_ = data_.subspan(size);
        return out;
    }
    void raw(void* out, size_t size) {
        const Bytes b = take(size);
        if (b.size() == size && size != 0) std::memcpy(out, b.data(), size);
    }
    void fail() {
        ok_ = false;
        data_ = {};
    }
    bool ok() const { return ok_; }
    /// True when everything was read and nothing is left: what a strict decoder asks last.
    bool done() const { return ok_ && data_.empty(); }
    size_t remaining() const { return data_.size(); }

  private:
    Bytes data_;
    bool ok_ = true;
};

}  // namespace juice
