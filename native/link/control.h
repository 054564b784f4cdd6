// Host to worker: one SOCK_SEQPACKET socket pair, made by the host's addon, descriptor 3 in the
// worker. One message a packet: u16 ControlKind, then the payload as native/link/codec.h writes it.
// When the host's end closes, the worker ends: workers end with the host.
//
//   worker  ready    {i32 driverVersion, bytes snapshot (snapshot.h), u64 bytes of GPU memory a
//   context costs} worker  failed   {text sentence}                     the driver did not start;
//   the worker exits 1 host    claim    {16 raw session, u64 process, 32 raw key, u64 memoryLimit
//   (0: none)} host    lane     {64 raw preface} + the descriptor (SCM_RIGHTS); lane 0 first worker
//   attached {u32 client pid}                    the handshake on lane 0 succeeded worker  ended
//   {u8 Ending, i32 sticky CUresult, text sentence}   last word; then the worker exits 0 host end
//   {u16 wire::GoodbyeReason, text sentence}          say goodbye to the client and exit
#pragma once

#include <cstdint>

namespace juice {

constexpr int kControlFd = 3;
constexpr int kUsageFd = 4;
constexpr size_t kMaxControl = 256u << 10;

enum class ControlKind : uint16_t {
    ready = 1,
    failed = 2,
    claim = 3,
    lane = 4,
    attached = 5,
    ended = 6,
    end = 7,
};

}  // namespace juice
