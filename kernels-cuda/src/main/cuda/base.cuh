// Types and instructions. Compiled by NVRTC without any header of a toolkit.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define DEVICE __device__ __forceinline__

namespace mkernel {

DEVICE u32 sharedAddress(const void* pointer) {
  return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

DEVICE u64 nanoTime() {
  u64 time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

// --- Barriers in shared memory. A wait names the parity of the phase that must have ended. ---

DEVICE void barrierInit(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

DEVICE void barrierArrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

DEVICE void barrierArriveExpect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

DEVICE bool barrierTry(u32 barrier, u32 parity) {
  u32 done;
  asm volatile(
      "{\n\t.reg .pred p;\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

DEVICE void barrierWait(u32 barrier, u32 parity) {
  while (!barrierTry(barrier, parity)) {
  }
}

// Makes initialised barriers visible to the copy engine.
DEVICE void fenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Waits for all threads of a subset of the CTA.
DEVICE void namedBarrier(u32 name, u32 threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// The same, and tells each of them whether all said yes.
DEVICE bool namedVote(u32 name, u32 threads, bool yes) {
  u32 all;
  asm volatile(
      "{\n\t.reg .pred p, q;\n\t"
      "setp.ne.u32 p, %1, 0;\n\t"
      "barrier.cta.red.and.pred q, %2, %3, p;\n\t"
      "selp.u32 %0, 1, 0, q;\n\t}"
      : "=r"(all)
      : "r"(static_cast<u32>(yes)), "r"(name), "r"(threads)
      : "memory");
  return all != 0;
}

// --- The copy engine, through which shared and global memory are seen by another path. ---

// Orders what this thread did with what the copy engine does for it afterwards.
DEVICE void fenceProxy() { asm volatile("fence.proxy.async;" ::: "memory"); }

// The same for shared memory alone.
DEVICE void fenceProxyShared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

DEVICE void tileLoad(u32 to, const void* map, u32 x, u32 y, u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

DEVICE void tileStore(const void* map, u32 x, u32 y, u32 from) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
      "r"(x), "r"(y), "r"(from)
      : "memory");
}

DEVICE void tilePrefetch(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

DEVICE void prefetch(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address) : "memory");
}

DEVICE void storeCommit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until at most N groups of this thread still read shared memory.
template <int N>
DEVICE void storeWaitRead() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

// Waits until all groups of this thread are complete: their bytes are written.
DEVICE void storeWait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// --- Launches that follow each other in a stream. ---

// Lets the next launch come to wait on the multiprocessors that this one leaves.
DEVICE void launchDependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Waits until the launch before is complete and its writes are seen.
DEVICE void awaitLaunchBefore() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// --- Registers of a warpgroup. ---

template <int N>
DEVICE void registersRaise() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N>
DEVICE void registersLower() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

}  // namespace mkernel
