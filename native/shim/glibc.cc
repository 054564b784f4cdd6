// Keeps the library loadable on older systems: the C++ runtime that is linked in was built on a
// newer glibc and would ask for its latest symbols.

/// glibc 2.35's look-up of unwind tables. Nothing in this library throws and catches (an exception
/// would mean that memory has run out), so "not found" is all that is needed: such an exception
/// ends the process, as it must at a C interface.
extern "C" int _dl_find_object(void* address, void* result) {
    return -1;
}
