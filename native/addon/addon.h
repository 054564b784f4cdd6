// The addon's parts. Each registers its functions on `exports`; src/native/addon.ts documents them
// for callers. Threads of the addon never touch JavaScript but through a thread-safe function.
#pragma once

#include <napi.h>

namespace juice::addon {

void registerInventory(Napi::Env env, Napi::Object exports);
void registerAcceptor(Napi::Env env, Napi::Object exports);
void registerWorkers(Napi::Env env, Napi::Object exports);
void registerProcessWatch(Napi::Env env, Napi::Object exports);

/// A JavaScript Error with a `code`, as Node's own system errors have.
Napi::Error errorWithCode(Napi::Env env, const std::string& code, const std::string& message);
/// The same for errno, e.g. code "EADDRINUSE", message "listen 127.0.0.1:7000: Address already in
/// use".
Napi::Error systemError(Napi::Env env, const std::string& what, int error);

}  // namespace juice::addon
