#include "native/softgpu/exec/format.h"

#include <cstdio>
#include <cstring>

namespace juice::softgpu {
namespace {

/// Takes arguments off the packed buffer.
class Arguments {
  public:
    explicit Arguments(const FormatSource& source) : source_(source) {}

    template <class T>
    bool take(T& value) {
        uint64_t aligned = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
        if (source_.data == nullptr || aligned + sizeof(T) > source_.bytes) return false;
        std::memcpy(&value, source_.data + aligned, sizeof value);
        at_ = aligned + sizeof(T);
        ++count_;
        return true;
    }
    int32_t count() const { return count_; }

  private:
    const FormatSource& source_;
    uint64_t at_ = 0;
    int32_t count_ = 0;
};

template <class... T>
void append(std::string& out, const std::string& spec, T... values) {
    char small[256];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    int length = std::snprintf(small, sizeof small, spec.c_str(), values...);
    if (length < 0) return;
    if (static_cast<size_t>(length) < sizeof small) {
        out.append(small, static_cast<size_t>(length));
        return;
    }
    std::string large(static_cast<size_t>(length) + 1, '\0');
    std::snprintf(large.data(), large.size(), spec.c_str(), values...);
#pragma GCC diagnostic pop
    out.append(large.data(), static_cast<size_t>(length));
}

constexpr size_t kWidest = 4096;  // of a field, so that no kernel prints gigabytes of blanks

/// One conversion, from after its '%'. Leaves `at` behind it.
class Conversion {
  public:
    Conversion(const std::string& format, size_t& at) {
        while (at < format.size() && std::strchr("-+ #0", format[at]) != nullptr) {
            flags_ += format[at++];
        }
        width_ = number(format, at, starWidth_);
        if (at < format.size() && format[at] == '.') {
            ++at;
            hasPrecision_ = true;
            precision_ = number(format, at, starPrecision_);
        }
        while (at < format.size() && std::strchr("hlLqjzt", format[at]) != nullptr) {
            length_ += format[at++];
        }
        if (at < format.size()) letter_ = format[at++];
    }

    char letter() const { return letter_; }

    bool print(Arguments& arguments, std::string& out,
               const std::function<bool(uint64_t, std::string&)>& readText) {
        int32_t star = 0;
        if (starWidth_) {
            if (!arguments.take(star)) return false;
            if (star < 0) flags_ += '-';
            width_ = static_cast<size_t>(star < 0 ? -int64_t{star} : star);
        }
        if (starPrecision_) {
            if (!arguments.take(star)) return false;
            hasPrecision_ = star >= 0;
            precision_ = static_cast<size_t>(star < 0 ? 0 : star);
        }
        switch (letter_) {
            case 'd':
            case 'i':
                return integer<int32_t, int64_t>(arguments, out);
            case 'u':
            case 'o':
            case 'x':
            case 'X':
                return integer<uint32_t, uint64_t>(arguments, out);
            case 'c':
                return value<int32_t>(arguments, out, "");
            case 'p':
                return pointer(arguments, out);
            case 's':
                return text(arguments, out, readText);
            default:
                return value<double>(arguments, out, "");
        }
    }

  private:
    static size_t number(const std::string& format, size_t& at, bool& star) {
        if (at < format.size() && format[at] == '*') {
            star = true;
            ++at;
            return 0;
        }
        size_t value = 0;
        while (at < format.size() && format[at] >= '0' && format[at] <= '9') {
            value = std::min(value * 10 + static_cast<size_t>(format[at++] - '0'), kWidest);
        }
        return value;
    }

    std::string spec(const char* length) const {
        std::string text = "%" + flags_;
        if (width_ != 0) text += std::to_string(std::min(width_, kWidest));
        if (hasPrecision_) text += "." + std::to_string(std::min(precision_, kWidest));
        return text + length + letter_;
    }

    template <class T>
    bool value(Arguments& arguments, std::string& out, const char* length) {
        T taken{};
        if (!arguments.take(taken)) return false;
        append(out, spec(length), taken);
        return true;
    }

    template <class Narrow, class Wide>
    bool integer(Arguments& arguments, std::string& out) {
        if (length_ == "hh" || length_ == "h")
            return value<Narrow>(arguments, out, length_.c_str());
        if (length_.empty()) return value<Narrow>(arguments, out, "");
        Wide taken{};
        if (!arguments.take(taken)) return false;
        append(out, spec("ll"), static_cast<long long>(taken));
        return true;
    }

    bool pointer(Arguments& arguments, std::string& out) {
        uint64_t address = 0;
        if (!arguments.take(address)) return false;
        append(out, spec(""), reinterpret_cast<void*>(address));
        return true;
    }

    bool text(Arguments& arguments, std::string& out,
              const std::function<bool(uint64_t, std::string&)>& readText) {
        uint64_t address = 0;
        if (!arguments.take(address)) return false;
        std::string string = "(null)";
        if (address != 0 && !readText(address, string)) return false;
        append(out, spec(""), string.c_str());
        return true;
    }

    std::string flags_, length_;
    size_t width_ = 0, precision_ = 0;
    bool starWidth_ = false, starPrecision_ = false, hasPrecision_ = false;
    char letter_ = '\0';
};

}  // namespace

bool formatText(const std::string& format, const FormatSource& source, std::string& out,
                int32_t& count, const std::function<bool(uint64_t, std::string&)>& readText) {
    Arguments arguments(source);
    for (size_t at = 0; at < format.size();) {
        if (format[at] != '%') {
            out += format[at++];
            continue;
        }
        if (++at < format.size() && format[at] == '%') {
            out += '%';
            ++at;
            continue;
        }
        Conversion conversion(format, at);
        if (conversion.letter() == '\0' ||
            std::strchr("diouxXcpsfFeEgGaA", conversion.letter()) == nullptr) {
            count = -1;
            return true;
        }
        if (!conversion.print(arguments, out, readText)) return false;
    }
    count = arguments.count();
    return true;
}

}  // namespace juice::softgpu
