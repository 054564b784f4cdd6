#include "native/shim/say.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

namespace juice {
namespace {

void write(const char* format, va_list arguments) {
    char line[2048] = "juice: ";
    const size_t start = std::strlen(line);
    const int wanted = std::vsnprintf(line + start, sizeof line - start - 1, format, arguments);
    if (wanted < 0) return;
    const size_t length = std::strlen(line);
    line[length] = '\n';
    // Straight to the descriptor: the program's stderr stream may be locked or closed.
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, length + 1);
}

}  // namespace

void say(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write(format, arguments);
    va_end(arguments);
}

void sayOnce(const char* key, const char* format, ...) {
    {
        static auto& mutex = *new std::mutex;
        static auto& said = *new std::set<std::string, std::less<>>;
        const std::lock_guard lock(mutex);
        if (!said.emplace(key).second) return;
    }
    va_list arguments;
    va_start(arguments, format);
    write(format, arguments);
    va_end(arguments);
}

bool enabled(const char* variable) {
    const char* const value = std::getenv(variable);
    return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

void whisper(const char* format, ...) {
    static const bool verbose = enabled("JUICE_VERBOSE");
    if (!verbose) return;
    va_list arguments;
    va_start(arguments, format);
    write(format, arguments);
    va_end(arguments);
}

}  // namespace juice
