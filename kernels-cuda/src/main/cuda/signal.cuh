// Signals: 64-bit, monotonic, never reset. Every wait ends: met, expired, or because the launch is
// aborted.
#pragma once

#include "task.cuh"

namespace mkernel {

DEVICE u64 acquire(const u64* signal, bool system) {
  u64 value;
  if (system) {
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(signal) : "memory");
  } else {
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(signal) : "memory");
  }
  return value;
}

DEVICE u32 loadRelaxed(const u32* word) {
  u32 value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

DEVICE u64 loadRelaxed(const u64* word) {
  u64 value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

DEVICE void releaseSystem(u64* word, u64 value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// What this thread saw happens before what whoever sees the raise does.
DEVICE void raiseSignal(const Raise& raise, u64 epoch) {
  switch (raise.kind) {
    case FLAG_DEVICE:
      asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(raise.signal), "l"(epoch)
                   : "memory");
      break;
    case FLAG_SYSTEM:
      releaseSystem(raise.signal, epoch);
      break;
    case COUNTER_DEVICE:
      asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(raise.signal) : "memory");
      break;
    default:
      asm volatile("red.release.sys.global.add.u64 [%0], 1;" ::"l"(raise.signal) : "memory");
      break;
  }
}

DEVICE bool isMet(const Wait& wait, u64 epoch) {
  return wait.signal == nullptr ||
         acquire(wait.signal, wait.system) >= (epoch - wait.lag) * wait.count;
}

DEVICE bool aborted(const Plan& plan) { return loadRelaxed(&plan.state->abort) != 0; }

// The first to expire tells the host which wait it was.
DEVICE void report(const Plan& plan, const Wait& wait, u64 epoch, u32 lane, u32 task) {
  if (atomicCAS(&plan.state->abort, 0, 1) != 0) {
    return;
  }
  Report* to = plan.report;
  to->lane = lane;
  to->task = task;
  to->signal = wait.signal;
  to->wanted = (epoch - wait.lag) * wait.count;
  to->seen = acquire(wait.signal, wait.system);
  to->epoch = epoch;
  releaseSystem(&to->written, 1);
}

// Waits for a signal. Returns whether it was met.
static __device__ __noinline__ bool awaitSlowly(
    const Plan& plan, const Wait& wait, u64 epoch, u32 lane, u32 task) {
  const u64 since = nanoTime();
  for (u32 polls = 1;; polls++) {
    if (isMet(wait, epoch)) {
      return true;
    }
    if (polls % 64 == 0) {
      if (aborted(plan)) {
        return false;
      }
      if (nanoTime() - since > plan.waitNanos) {
        report(plan, wait, epoch, lane, task);
        return false;
      }
    }
  }
}

DEVICE bool await(
    const Plan& plan, const Wait& wait, u64 epoch, u32 lane, u32 task) {
  return isMet(wait, epoch) || awaitSlowly(plan, wait, epoch, lane, task);
}

}  // namespace mkernel
