import { entries } from "../idl/api.ts"
import { banner, quote } from "./text.ts"

/**
 * Per-thread variants are left out: the worker names streams explicitly. So are entries whose prototype nobody knows.
 */
const loaded = entries.filter((entry) => entry.known)

/** native/gen/driver_table.h: pointers to the functions of a driver library that was loaded at run time. */
export const driverTableHeader = (): string =>
  `${[
    banner("The entry points of a driver library that is loaded at run time."),
    "#pragma once",
    "",
    "#include <string>",
    "",
    '#include "native/gen/cuda_api.h"',
    "",
    "namespace juice {",
    "",
    "/// One pointer for each entry point; null where the library lacks it.",
    "struct DriverTable {",
    ...loaded.map(({ name }) => `    decltype(&::${name}) ${name};`),
    "",
    "    /// Opens the library (dlopen, RTLD_NOW and RTLD_LOCAL) and looks every entry point up by its exported",
    "    /// name. The library is never closed. False, with one sentence in `error`, when it cannot be opened or",
    "    /// is no CUDA driver.",
    "    bool load(const char* path, std::string& error);",
    "};",
    "",
    "}  // namespace juice"
  ].join("\n")}\n`

export const driverTableSource = (): string =>
  `${[
    banner("Loading of the driver's entry points."),
    '#include "native/gen/driver_table.h"',
    "",
    "#include <dlfcn.h>",
    "",
    "#include <type_traits>",
    "",
    "namespace juice {",
    "",
    "bool DriverTable::load(const char* path, std::string& error) {",
    "    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);",
    "    if (library == nullptr) {",
    "        const char* why = dlerror();",
    '        error = std::string("cannot load the CUDA driver ") + path + ": " + (why != nullptr ? why : "unknown reason");',
    "        return false;",
    "    }",
    "    const auto find = [library](auto& pointer, const char* name) {",
    "        pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(library, name));",
    "    };",
    ...loaded.map(({ name }) => `    find(${name}, ${quote(name)});`),
    "    if (cuInit == nullptr) {",
    '        error = std::string(path) + " is not a CUDA driver: it lacks cuInit";',
    "        return false;",
    "    }",
    "    return true;",
    "}",
    "",
    "}  // namespace juice"
  ].join("\n")}\n`
