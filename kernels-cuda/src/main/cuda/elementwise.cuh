// Tasks that the consumer warps run without the matrix units: copies, and sums in a fixed order.
#pragma once

#include "task.cuh"

namespace mkernel {

struct Vector {
  u32 word[4];
};

DEVICE void load(u64 address, Vector& to) {
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(to.word[0]), "=r"(to.word[1]), "=r"(to.word[2]), "=r"(to.word[3])
               : "l"(address)
               : "memory");
}

DEVICE void store(u64 address, const Vector& from) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(from.word[0]),
               "r"(from.word[1]), "r"(from.word[2]), "r"(from.word[3])
               : "memory");
}

DEVICE void load(u64 address, u16& to) {
  asm volatile("ld.global.u16 %0, [%1];" : "=h"(to) : "l"(address) : "memory");
}

DEVICE void store(u64 address, u16 from) {
  asm volatile("st.global.u16 [%0], %1;" ::"l"(address), "h"(from) : "memory");
}

DEVICE void load(u64 address, u8& to) {
  u16 value;
  asm volatile("ld.global.u8 %0, [%1];" : "=h"(value) : "l"(address) : "memory");
  to = static_cast<u8>(value);
}

DEVICE void store(u64 address, u8 from) {
  asm volatile("st.global.u8 [%0], %1;" ::"l"(address), "h"(static_cast<u16>(from)) : "memory");
}

// --- The two 16-bit types. ---

template <bool BF16>
DEVICE float widen(u16 value) {
  float wide;
  if (BF16) {
    wide = __uint_as_float(static_cast<u32>(value) << 16);
  } else {
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value));
  }
  return wide;
}

// Rounds two sums to nearest, the first into the lower half.
template <bool BF16>
DEVICE u32 narrow(float low, float high) {
  u32 pair;
  if (BF16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
}

// --- Regions. ---

DEVICE u64 slotAddress(const Region& region, u64 epoch) {
  return region.address + (region.depth > 1 ? epoch % region.depth * region.slotBytes : 0);
}

// All bits that say how a region is aligned.
DEVICE u64 alignment(const Region& region) {
  return region.address | region.slotBytes | region.rowBytes | (region.rows > 1 ? region.pitch : 0);
}

// Walks the items of a region; those of all threads together are each item once.
struct Walk {
  u64 row;
  u64 column;
  u64 rowStep;
  u64 columnStep;
  u64 columns;

  DEVICE Walk(u64 columns, u32 thread, u32 threads)
      : row(thread / columns),
        column(thread % columns),
        rowStep(threads / columns),
        columnStep(threads % columns),
        columns(columns) {}

  DEVICE void next() {
    row += rowStep;
    column += columnStep;
    if (column >= columns) {
      column -= columns;
      row++;
    }
  }
};

template <typename T>
DEVICE void copyAs(const Region& from, const Region& to, u64 epoch, u32 thread, u32 threads) {
  const u64 source = slotAddress(from, epoch);
  const u64 target = slotAddress(to, epoch);
  const u64 rows = to.rows;
  Walk at(to.rowBytes / sizeof(T), thread, threads);
  while (at.row < rows) {
    T value[4];
    u64 goal[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      goal[i] = 0;
      if (at.row < rows) {
        goal[i] = target + at.row * to.pitch + at.column * sizeof(T);
        load(source + at.row * from.pitch + at.column * sizeof(T), value[i]);
      }
      at.next();
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (goal[i] != 0) {
        store(goal[i], value[i]);
      }
    }
  }
}

DEVICE void copy(const Region& from, const Region& to, u64 epoch, u32 thread, u32 threads) {
  const u64 bits = alignment(from) | alignment(to);
  if (bits % 16 == 0) {
    copyAs<Vector>(from, to, epoch, thread, threads);
  } else if (bits % 2 == 0) {
    copyAs<u16>(from, to, epoch, thread, threads);
  } else {
    copyAs<u8>(from, to, epoch, thread, threads);
  }
}

template <bool BF16>
DEVICE void add(float (&sums)[8], const Vector& term) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    sums[2 * i] += widen<BF16>(static_cast<u16>(term.word[i]));
    sums[2 * i + 1] += widen<BF16>(static_cast<u16>(term.word[i] >> 16));
  }
}

// Adds the parts in their order in fp32 and rounds once: the same bits each time.
template <bool BF16>
DEVICE void reduce(
    const Part* parts, u32 count, const Region& to, u64 epoch, u32 thread, u32 threads) {
  u64 bits = alignment(to);
  for (u32 p = 0; p < count; p++) {
    bits |= alignment(parts[p].region);
  }
  const u64 target = slotAddress(to, epoch);
  if (bits % 16 == 0) {
    for (Walk at(to.rowBytes / 16, thread, threads); at.row < to.rows; at.next()) {
      float sums[8];
#pragma unroll
      for (int i = 0; i < 8; i++) {
        sums[i] = -0.0f;  // The neutral element: it keeps the sign of zeros.
      }
      for (u32 p = 0; p < count; p++) {
        const Region& from = parts[p].region;
        Vector term;
        load(slotAddress(from, epoch) + at.row * from.pitch + at.column * 16, term);
        add<BF16>(sums, term);
      }
      Vector result;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        result.word[i] = narrow<BF16>(sums[2 * i], sums[2 * i + 1]);
      }
      store(target + at.row * to.pitch + at.column * 16, result);
    }
  } else {
    for (Walk at(to.rowBytes / 2, thread, threads); at.row < to.rows; at.next()) {
      float sum = -0.0f;
      for (u32 p = 0; p < count; p++) {
        const Region& from = parts[p].region;
        u16 term;
        load(slotAddress(from, epoch) + at.row * from.pitch + at.column * 2, term);
        sum += widen<BF16>(term);
      }
      store(target + at.row * to.pitch + at.column * 2, static_cast<u16>(narrow<BF16>(sum, 0)));
    }
  }
}

}  // namespace mkernel
