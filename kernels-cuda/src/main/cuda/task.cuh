// What the host writes and the kernel reads. `TaskLayout` on the Java side has the same numbers; a
// test compares them with these structures.
#pragma once

#include "base.cuh"

namespace mkernel {

enum Kind : u8 { EXIT = 0, GEMM = 1, COPY = 2, REDUCE = 3, NOTIFY = 4 };

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
  u32 blocks;  // of a product: steps along k, in all parts
};

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
  u32 reserved;
};

static constexpr u32 MAX_POOLS = 16;
static constexpr u32 MAX_ROLES = 8;

// Written once by the first wait that expires, in memory that the host reads.
struct Report {
  u64 written;
  u32 lane;
  u32 task;
  const u64* signal;
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

// The same numbers are in `TaskLayout`; its test reads them from here.
#define SIZE(type, bytes) static_assert(sizeof(type) == bytes, "as in TaskLayout")
#define FIELD(type, field, offset) \
  static_assert(__INTADDR__(&static_cast<type*>(nullptr)->field) == offset, "as in TaskLayout")
SIZE(Task, 16);
FIELD(Task, kind, 0);
FIELD(Task, activation, 1);
FIELD(Task, biased, 2);
FIELD(Task, outputs, 3);
FIELD(Task, raises, 4);
FIELD(Task, waits, 5);
FIELD(Task, parts, 6);
FIELD(Task, number, 8);
FIELD(Task, blocks, 12);
SIZE(Region, 64);
FIELD(Region, address, 0);
FIELD(Region, pitch, 8);
FIELD(Region, rowBytes, 16);
FIELD(Region, rows, 24);
FIELD(Region, slotBytes, 32);
FIELD(Region, depth, 40);
FIELD(Region, map, 44);
FIELD(Region, x, 48);
FIELD(Region, y, 52);
SIZE(Wait, 16);
FIELD(Wait, signal, 0);
FIELD(Wait, count, 8);
FIELD(Wait, lag, 12);
FIELD(Wait, system, 14);
SIZE(Raise, 16);
FIELD(Raise, signal, 0);
FIELD(Raise, kind, 8);
SIZE(Part, 80);
SIZE(Role, 16);
FIELD(Role, firstPool, 0);
FIELD(Role, pools, 4);
FIELD(Role, lanes, 8);
SIZE(Pool, 24);
FIELD(Pool, tasks, 0);
FIELD(Pool, claims, 8);
FIELD(Pool, count, 16);
FIELD(Pool, stride, 20);
SIZE(State, 24);
FIELD(State, abort, 16);
SIZE(Report, 48);
FIELD(Report, written, 0);
FIELD(Report, lane, 8);
FIELD(Report, task, 12);
FIELD(Report, signal, 16);
FIELD(Report, wanted, 24);
FIELD(Report, seen, 32);
FIELD(Report, epoch, 40);
SIZE(Stamp, 32);
FIELD(Stamp, claimed, 0);
FIELD(Stamp, ready, 8);
FIELD(Stamp, done, 16);
FIELD(Stamp, lane, 24);
SIZE(Plan, 576);
FIELD(Plan, state, 0);
FIELD(Plan, maps, 8);
FIELD(Plan, progress, 16);
FIELD(Plan, report, 24);
FIELD(Plan, stamps, 32);
FIELD(Plan, waitNanos, 40);
FIELD(Plan, lanes, 48);
FIELD(Plan, roleCount, 52);
FIELD(Plan, poolCount, 56);
FIELD(Plan, mapCount, 60);
FIELD(Plan, roles, 64);
FIELD(Plan, pools, 192);
#undef FIELD
#undef SIZE

}  // namespace mkernel
