// What the shim tells the person at the terminal. It is a guest: it speaks rarely, on stderr, one
// sentence at a time, each with the cause and the cure.
#pragma once

namespace juice {

/// "juice: " + the sentence + newline, in one write.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// The same, for the first of all calls with this key in the life of the process.
void sayOnce(const char* key, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// Only with JUICE_VERBOSE=1.
void whisper(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// Is the environment variable set to anything but "" or "0"?
bool enabled(const char* variable);

}  // namespace juice
