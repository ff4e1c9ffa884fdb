// Matrix instructions of a warpgroup: 64 x 256 sums in registers, operands in shared memory.
#pragma once

#include "base.cuh"

namespace mkernel {

DEVICE void mmaFence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

DEVICE void mmaCommit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most N groups are in flight.
template <int N>
DEVICE void mmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Describes a tile in shared memory whose rows of 128 bytes are swizzled in groups of eight.
DEVICE u64 tileDescriptor(u32 address, u32 leadingBytes, u32 strideBytes) {
  return (u64)((address & 0x3ffffu) >> 4) | (u64)(leadingBytes >> 4) << 16 |
         (u64)(strideBytes >> 4) << 32 | 1ull << 62;
}

// The sums of a thread as operands of the instruction.
#define SUMS_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS_16(i) SUMS_4(i), SUMS_4(i + 4), SUMS_4(i + 8), SUMS_4(i + 12)
#define SUMS_64(i) SUMS_16(i), SUMS_16(i + 16), SUMS_16(i + 32), SUMS_16(i + 48)

// Once for each type of the operands.
#define MMA(type)                                                                              \
  asm volatile(                                                                                \
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %130, 0;\n\t"                                      \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type "\n\t{"                     \
      "%0, %1, %2, %3, %4, %5, %6, %7, "                                                       \
      "%8, %9, %10, %11, %12, %13, %14, %15, "                                                 \
      "%16, %17, %18, %19, %20, %21, %22, %23, "                                               \
      "%24, %25, %26, %27, %28, %29, %30, %31, "                                               \
      "%32, %33, %34, %35, %36, %37, %38, %39, "                                               \
      "%40, %41, %42, %43, %44, %45, %46, %47, "                                               \
      "%48, %49, %50, %51, %52, %53, %54, %55, "                                               \
      "%56, %57, %58, %59, %60, %61, %62, %63, "                                               \
      "%64, %65, %66, %67, %68, %69, %70, %71, "                                               \
      "%72, %73, %74, %75, %76, %77, %78, %79, "                                               \
      "%80, %81, %82, %83, %84, %85, %86, %87, "                                               \
      "%88, %89, %90, %91, %92, %93, %94, %95, "                                               \
      "%96, %97, %98, %99, %100, %101, %102, %103, "                                           \
      "%104, %105, %106, %107, %108, %109, %110, %111, "                                       \
      "%112, %113, %114, %115, %116, %117, %118, %119, "                                       \
      "%120, %121, %122, %123, %124, %125, %126, %127"                                         \
      "}, %128, %129, p, 1, 1, 0, %131;\n\t}"                                                  \
      : SUMS_64(0), SUMS_64(64)                                                                \
      : "l"(a), "l"(b), "r"(add), "n"(TRANSPOSED ? 0 : 1))

// d = a * b, or d += a * b with `add`. B lies in rows of k when it is transposed, else in rows of n.
template <bool BF16, bool TRANSPOSED>
DEVICE void mma(float (&d)[128], u64 a, u64 b, u32 add) {
  if (BF16) {
    MMA("bf16");
  } else {
    MMA("f16");
  }
}

#undef MMA
#undef SUMS_64
#undef SUMS_16
#undef SUMS_4

}  // namespace mkernel
