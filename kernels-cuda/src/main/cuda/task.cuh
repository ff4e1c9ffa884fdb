// What the host writes and the kernel reads. `TaskLayout` on the Java side has the same numbers; a
// test compares them with these structures.
#pragma once

#include "base.cuh"

namespace mkernel {

enum Kind : u8 { EXIT = 0, GEMM = 1, COPY = 2, REDUCE = 3, NOTIFY = 4, COMMAND = 5 };

enum Activation : u8 { NONE = 0, RELU = 1, GELU = 2, SILU = 3 };

enum RaiseKind : u32 { FLAG_DEVICE = 0, FLAG_SYSTEM = 1, COUNTER_DEVICE = 2, COUNTER_SYSTEM = 3 };

static constexpr u32 NO_MAP = 0xffffffffu;

// Rows of one buffer. Epoch e uses slot e mod depth, `slotBytes` after the one before; the tensor
// maps of the slots follow each other.
struct Region {
  u64 address;
  u64 pitch;
  u64 rowBytes;
  u64 rows;
  u64 slotBytes;
  u32 depth;
  u32 map;
  u32 x;  // of the map, in elements
  u32 y;  // of the map, in rows
  u64 reserved;
};

// Met when the signal is at least (epoch - lag) * count. No address: always met.
struct Wait {
  const u64* signal;
  u32 count;
  u16 lag;
  u16 system;  // raised by others than this device
};

struct Raise {
  u64* signal;
  u32 kind;
  u32 reserved;
};

struct Part {
  Region region;
  Wait wait;
};

// Followed by its outputs, raises, waits and parts, in this order. Parts of a product: the bias, if
// there is one, then a part of A and one of B in turn.
struct Task {
  u8 kind;
  u8 activation;
  u8 biased;
  u8 outputs;
  u8 raises;
  u8 waits;
  u16 parts;
  u32 number;
  u32 blocks;  // of a product: steps along k, in all parts; of a command: the transfer
};

static_assert(sizeof(Region) == 64 && sizeof(Wait) == 16 && sizeof(Raise) == 16, "as in Java");
static_assert(sizeof(Part) == 80 && sizeof(Task) == 16, "as in Java");

// What of a task is kept in shared memory; further parts are read where they lie.
static constexpr u32 SLOT_BYTES = 512;

struct Pool {
  const u8* tasks;
  u32* claims;  // how many were claimed in this launch
  u32 count;
  u32 stride;
};

struct Role {
  u32 firstPool;
  u32 pools;
  u32 lanes;
  u32 readyFirst;
};

static constexpr u32 MAX_POOLS = 16;
static constexpr u32 MAX_ROLES = 8;

// Written once by the first wait that expires, in memory that the host reads.
struct Report {
  u64 written;
  u32 lane;
  u32 task;
  u32 wait;  // counted over the waits of the task, then those of its parts
  u32 reserved;
  u64 wanted;
  u64 seen;
  u64 epoch;
};

struct Stamp {
  u64 claimed;
  u64 ready;
  u64 done;
  u64 lane;
};

// What changes, in device memory. Zero before the first launch.
struct State {
  u64 epoch;  // of the last launch that ended
  u32 tickets;
  u32 finished;
  u32 abort;
};

// The argument of the kernel. Constant for all launches, so that a captured launch stays right.
struct Plan {
  State* state;
  const u8* maps;  // 128 bytes each
  u64* progress;   // in memory that the host reads
  Report* report;
  Stamp* stamps;  // by task; none: no trace is taken
  u64 waitNanos;
  u32 lanes;
  u32 roleCount;
  u32 poolCount;
  u32 mapCount;
  Role roles[MAX_ROLES];
  Pool pools[MAX_POOLS];
};

}  // namespace mkernel
