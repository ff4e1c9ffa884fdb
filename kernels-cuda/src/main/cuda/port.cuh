// The contract of a port on the device: how a lane moves bytes to a peer and tells it so. A transport
// may bring its own; it names itself by the macro MKERNEL_PORT, includes this file first, and defines
// the functions below in a struct of that name. The port here is the plain one, for memory that is
// mapped: a peer's addresses are followed by loads and stores.
//
//   void put(from, to, epoch, thread, threads)
//     All `threads` of the consumer warps call it, `thread` being the caller's number. It copies the
//     rows of `from` to those of `to`, which have the same length; any alignment, any pitch. When the
//     last of them has returned and all have met at a barrier of the CTA, the bytes are on their way,
//     in the order that `raise` needs.
//
//   void raise(raise, epoch)
//     One thread calls it, after that barrier. Whoever acquires the raised value sees all bytes that
//     the CTA put before. A flag becomes `epoch`; a counter grows by one. The signal lies in the same
//     memory as its bytes, behind the same path: so their order holds.
//
// A port never waits for a peer, and never fails on its own: what can be wrong is found when the
// operation is prepared.
#pragma once

#include "elementwise.cuh"
#include "signal.cuh"

namespace mkernel {

// Raised by one when the contract changes; ports say which one they were written for.
static constexpr u32 PORT_ABI = 1;

struct MappedPort {
  static constexpr u32 ABI = PORT_ABI;

  static DEVICE void put(
      const Region& from, const Region& to, u64 epoch, u32 thread, u32 threads) {
    copy(from, to, epoch, thread, threads);
  }

  static DEVICE void raise(const Raise& raise, u64 epoch) { raiseSignal(raise, epoch); }
};

#ifndef MKERNEL_PORT
#define MKERNEL_PORT MappedPort
#endif
using Port = MKERNEL_PORT;

static_assert(Port::ABI == PORT_ABI, "a port for another version of the contract");

}  // namespace mkernel
