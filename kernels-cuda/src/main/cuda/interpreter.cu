// The persistent kernel. One CTA is one lane: its producer warp claims tasks, waits for signals and
// feeds the copy engine; two consumer warpgroups compute; a store warp for each of them writes their
// tiles out and raises the signals of the task, while the consumers go on with the next one.
//
// Everything that blocks, blocks on the producer warp alone, and its waits expire: when the launch
// is aborted it feeds the task at hand to its end, no signal is raised, and the CTA leaves.

#include "elementwise.cuh"
#include "mma.cuh"
#include "port.cuh"
#include "signal.cuh"
#include "task.cuh"

#ifndef MKERNEL_BF16
#define MKERNEL_BF16 1
#endif
#ifndef MKERNEL_TRANSPOSED
#define MKERNEL_TRANSPOSED 0
#endif

namespace mkernel {

static constexpr u32 TILE_ROWS = 128;
static constexpr u32 TILE_COLUMNS = 256;
static constexpr u32 BLOCK = 64;  // along k: 128 bytes, the width of a swizzled row
static constexpr u32 STAGES = 4;
static constexpr u32 SLOTS = 4;
static constexpr u32 LOOK_AHEAD = 6;  // blocks before the end of a product
static constexpr u32 GROUP_ROWS = 64;  // of a consumer warpgroup
static constexpr u32 CHUNK_COLUMNS = 64;
static constexpr u32 CHUNKS = TILE_COLUMNS / CHUNK_COLUMNS;
static constexpr u32 STAGED = 2;  // chunks of a warpgroup on their way out

static constexpr u32 BYTES_OF_A = TILE_ROWS * BLOCK * 2;
static constexpr u32 BYTES_OF_B = TILE_COLUMNS * BLOCK * 2;
static constexpr u32 BYTES_OF_CHUNK = GROUP_ROWS * CHUNK_COLUMNS * 2;

static constexpr u32 CONSUMERS = 256;

// Bytes of shared memory.
static constexpr u32 AT_A = 0;
static constexpr u32 AT_B = AT_A + STAGES * BYTES_OF_A;
static constexpr u32 AT_CHUNKS = AT_B + STAGES * BYTES_OF_B;
static constexpr u32 AT_SLOTS = AT_CHUNKS + 2 * STAGED * BYTES_OF_CHUNK;
static constexpr u32 AT_SHARED = AT_SLOTS + SLOTS * SLOT_BYTES;

struct alignas(8) Shared {
  u64 full[STAGES];
  u64 empty[STAGES];
  u64 taskFull[SLOTS];
  u64 taskEmpty[SLOTS];
  u64 staged[2][STAGED];
  u64 freed[2][STAGED];
  u64 epoch;
  const u8* source[SLOTS];  // where the whole task lies
  u64 claimed[SLOTS];
  u64 ready[SLOTS];
  u32 dead[SLOTS];
  u32 stored[SLOTS];
  u32 lane;
  u32 deadAtStart;
};

static constexpr u32 SHARED_BYTES = AT_SHARED + sizeof(Shared);
static_assert(SHARED_BYTES <= 232448, "what a CTA can have");

extern __shared__ __align__(1024) u8 memory[];

DEVICE Shared& shared() { return *reinterpret_cast<Shared*>(memory + AT_SHARED); }

// A place in a ring, and the parity of the phase there.
template <u32 LENGTH>
struct Cursor {
  u32 index = 0;
  u32 phase = 0;

  DEVICE void next() {
    if (++index == LENGTH) {
      index = 0;
      phase ^= 1;
    }
  }
};

// A task as the warps of a CTA see it.
struct View {
  const u8* slot;
  const u8* source;

  DEVICE explicit View(u32 index)
      : slot(memory + AT_SLOTS + index * SLOT_BYTES), source(shared().source[index]) {}

  DEVICE const Task& task() const { return *reinterpret_cast<const Task*>(slot); }
  DEVICE const Region& output(u32 i) const {
    return reinterpret_cast<const Region*>(slot + sizeof(Task))[i];
  }
  DEVICE u32 atRaises() const { return sizeof(Task) + task().outputs * sizeof(Region); }
  DEVICE u32 atWaits() const { return atRaises() + task().raises * sizeof(Raise); }
  DEVICE u32 atParts() const { return atWaits() + task().waits * sizeof(Wait); }
  DEVICE const Raise& raise(u32 i) const {
    return reinterpret_cast<const Raise*>(slot + atRaises())[i];
  }
  DEVICE const Wait& wait(u32 i) const {
    return reinterpret_cast<const Wait*>(slot + atWaits())[i];
  }
  DEVICE const Part* parts() const { return reinterpret_cast<const Part*>(source + atParts()); }
  DEVICE const Part& part(u32 i) const {
    const u32 at = atParts() + i * sizeof(Part);
    return *reinterpret_cast<const Part*>((at + sizeof(Part) <= SLOT_BYTES ? slot : source) + at);
  }
};

DEVICE const u8* mapOf(const Plan& plan, const Region& region, u64 epoch) {
  const u32 slot = region.depth > 1 ? static_cast<u32>(epoch % region.depth) : 0;
  return plan.maps + (region.map + slot) * 128ull;
}

DEVICE void raiseAll(const Plan& plan, const View& view, u32 slot, u64 epoch) {
  if (!shared().dead[slot]) {
    for (u32 i = 0; i < view.task().raises; i++) {
      Port::raise(view.raise(i), epoch);
    }
    if (plan.stamps != nullptr) {
      Stamp& stamp = plan.stamps[view.task().number];
      stamp.claimed = shared().claimed[slot];
      stamp.ready = shared().ready[slot];
      stamp.done = nanoTime();
      stamp.lane = shared().lane;
    }
  }
}

// ------------------------------------------------------------------------------------- producer

// Looks ahead while it feeds a product: each step towards the next task starts what the step after
// it needs, so that the latencies of memory pass while the consumers compute.
struct Producer {
  enum Ahead { NOTHING, CLAIMED, LOADED, POLLED, DRAINED };

  const Plan& plan;
  const u64 epoch;
  const u32 lane;    // of the schedule
  const u32 thread;  // of the warp
  const Role& role;
  Ahead ahead = NOTHING;
  u32 pool;
  u32 ticket = 0;
  const u8* source = nullptr;
  uint4 quad;        // of the task, one for each thread
  bool met = false;  // the waits that this thread looks at
  bool dead;
  u64 claimed = 0;
  Cursor<SLOTS> slot;  // of the next task
  Cursor<STAGES> stage;

  DEVICE Producer(
      const Plan& plan, u64 epoch, u32 lane, const Role& role, bool dead, u32 thread)
      : plan(plan), epoch(epoch), lane(lane), thread(thread), role(role), pool(role.firstPool),
        dead(dead) {}

  DEVICE void claim() {
    if (thread == 0) {
      ticket = atomicAdd(plan.pools[pool].claims, 1);
    }
    ahead = CLAIMED;
  }

  // The first claim of a kernel with one role is made before anything else is known.
  DEVICE void claimedAlready(u32 first) {
    ticket = first;
    ahead = CLAIMED;
  }

  // Goes one step towards the next task. Never blocks for long.
  DEVICE void step() {
    if (ahead == NOTHING) {
      claim();
    } else if (ahead == CLAIMED) {
      const u32 index = __shfl_sync(~0u, ticket, 0);
      const Pool& from = plan.pools[pool];
      if (index < from.count) {
        source = from.tasks + static_cast<u64>(index) * from.stride;
        quad = reinterpret_cast<const uint4*>(source)[thread];
        claimed = plan.stamps != nullptr ? nanoTime() : 0;
        ahead = LOADED;
      } else {
        ahead = ++pool == role.firstPool + role.pools ? DRAINED : NOTHING;
      }
    } else if (ahead == LOADED) {
      if (!barrierTry(sharedAddress(&shared().taskEmpty[slot.index]), slot.phase ^ 1)) {
        return;
      }
      reinterpret_cast<uint4*>(memory + AT_SLOTS + slot.index * SLOT_BYTES)[thread] = quad;
      if (thread == 0) {
        shared().source[slot.index] = source;
        shared().claimed[slot.index] = claimed;
        shared().stored[slot.index] = 0;
      }
      __syncwarp();
      met = poll<false>(View(slot.index));
      ahead = POLLED;
    }
  }

  // Looks at the signals of a task, or waits for them: of a product's parts only for the bias.
  template <bool WAITS>
  DEVICE bool poll(const View& view) {
    const Task& task = view.task();
    const u32 parts = task.kind == GEMM ? task.biased : task.parts;
    bool all = true;
#pragma unroll 1
    for (u32 i = thread; i < task.waits + parts; i += 32) {
      const Wait& wait = i < task.waits ? view.wait(i) : view.part(i - task.waits).wait;
      all = all && (WAITS ? await(plan, wait, epoch, lane, task.number) : isMet(wait, epoch));
    }
    return all;
  }

  DEVICE void run() {
    for (;;) {
      while (ahead < POLLED && !dead) {
        step();
      }
      if (ahead == DRAINED || dead) {
        break;
      }
      ahead = NOTHING;
      const u32 index = slot.index;
      const View view(index);
      dead = !__all_sync(~0u, met || poll<true>(view));
      if (thread == 0) {
        shared().dead[index] = dead;
        shared().ready[index] = plan.stamps != nullptr ? nanoTime() : 0;
      }
      __syncwarp();
      if (view.task().kind == NOTIFY) {
        if (thread == 0) {
          raiseAll(plan, view, index, epoch);
        }
        __syncwarp();
        continue;  // with the same slot: nobody else saw it
      }
      barrierArrive(sharedAddress(&shared().taskFull[index]));
      slot.next();
      if (view.task().kind == GEMM) {
        product(view, index);
      }
    }
    barrierWait(sharedAddress(&shared().taskEmpty[slot.index]), slot.phase ^ 1);
    if (thread == 0) {
      reinterpret_cast<Task*>(memory + AT_SLOTS + slot.index * SLOT_BYTES)->kind = EXIT;
    }
    barrierArrive(sharedAddress(&shared().taskFull[slot.index]));
  }

  // Feeds the tiles of a product, and looks ahead at the last of them.
  DEVICE void product(const View& view, u32 slotOfTask) {
    const u32 blocks = view.task().blocks;
    const u32 pairs = (view.task().parts - view.task().biased) / 2;
    u32 fed = 0;
    for (u32 pair = 0; pair < pairs; pair++) {
      const u32 first = view.task().biased + 2 * pair;
      const Part& left = view.part(first);
      const Part& right = view.part(first + 1);
      bool met = true;
      if (thread < 2 && !dead) {
        met = await(plan, (thread == 0 ? left : right).wait, epoch, lane, view.task().number);
      }
      if (!__all_sync(~0u, met)) {
        dead = true;
        if (thread == 0) {
          // Before the last tile is fed, so before anyone can come to raise a signal.
          shared().dead[slotOfTask] = 1;
          __threadfence_block();
        }
        __syncwarp();
      }
      const u8* const mapOfA = mapOf(plan, left.region, epoch);
      const u8* const mapOfB = mapOf(plan, right.region, epoch);
      const u32 count = static_cast<u32>((left.region.rowBytes / 2 + BLOCK - 1) / BLOCK);
      const u32 xOfA = left.region.x;
      const u32 yOfA = left.region.y;
      const u32 xOfB = right.region.x;
      const u32 yOfB = right.region.y;
      if (thread == 0) {
        fenceProxy();
      }
      for (u32 block = 0; block < count; block++) {
        if (fed + LOOK_AHEAD >= blocks) {
          step();
        }
        if (thread == 0) {
          barrierWait(sharedAddress(&shared().empty[stage.index]), stage.phase ^ 1);
          const u32 full = sharedAddress(&shared().full[stage.index]);
          const u32 a = sharedAddress(memory + AT_A + stage.index * BYTES_OF_A);
          const u32 b = sharedAddress(memory + AT_B + stage.index * BYTES_OF_B);
          barrierArriveExpect(full, BYTES_OF_A + BYTES_OF_B);
          tileLoad(a, mapOfA, xOfA + block * BLOCK, yOfA, full);
          if (MKERNEL_TRANSPOSED) {
            tileLoad(b, mapOfB, xOfB + block * BLOCK, yOfB, full);
          } else {
#pragma unroll
            for (u32 i = 0; i < TILE_COLUMNS / BLOCK; i++) {
              tileLoad(b + i * BLOCK * 128, mapOfB, xOfB + i * BLOCK, yOfB + block * BLOCK, full);
            }
          }
        }
        stage.next();
        fed++;
      }
    }
    __syncwarp();
  }
};

// ------------------------------------------------------------------------------------ consumers

DEVICE float activated(float x, u8 activation) {
  switch (activation) {
    case RELU:
      return fmaxf(x, 0.0f);
    case GELU:
      return 0.5f * x * erfcf(x * -0.70710678118654752f);
    case SILU:
      return x / (1.0f + expf(-x));
    default:
      return x;
  }
}

// The staging area holds half a tile. The other half waits in registers, already rounded, until the
// next product is under way; or until there is nothing to do at once, because what comes next may
// wait for this very tile.
struct Consumer {
  static constexpr u32 DEFERRED = CHUNKS - STAGED;

  const Plan& plan;
  const u64 epoch;
  const u32 group;   // 0 or 1
  const u32 thread;  // of the group
  Cursor<SLOTS> slot;
  Cursor<STAGES> stage;
  Cursor<STAGED> chunk;
  u32 deferred[DEFERRED][16];
  u32 deferredCount = 0;

  DEVICE Consumer(const Plan& plan, u64 epoch, u32 group, u32 thread)
      : plan(plan), epoch(epoch), group(group), thread(thread) {}

  DEVICE void run() {
    for (;;) {
      await(sharedAddress(&shared().taskFull[slot.index]), slot.phase);
      const View view(slot.index);
      const u8 kind = view.task().kind;
      if (kind != GEMM) {
        flush();
        if (kind == EXIT) {
          return;
        }
        elementwise(view);
      } else {
        product(view);
      }
      __syncwarp();
      if (thread % 32 == 0) {
        barrierArrive(sharedAddress(&shared().taskEmpty[slot.index]));
      }
      slot.next();
    }
  }

  // Waits for a barrier; nothing is held back meanwhile. The warps of a group must agree: one that
  // hands out the rest of a tile waits for the others to do so, and they can't while they multiply.
  DEVICE void await(u32 barrier, u32 parity) {
    if (deferredCount > 0 && !namedVote(2 + group, 128, barrierTry(barrier, parity))) {
      flush();
    }
    barrierWait(barrier, parity);
  }

  DEVICE void elementwise(const View& view) {
    const u32 of = group * 128 + thread;
    if (!shared().dead[slot.index]) {
      if (view.task().kind == COPY) {
        Port::put(view.part(0).region, view.output(0), epoch, of, CONSUMERS);
      } else {
        reduce<MKERNEL_BF16>(
            view.parts(), view.task().parts, view.output(0), epoch, of, CONSUMERS);
      }
    }
    namedBarrier(1, CONSUMERS);
    if (of == 0) {
      raiseAll(plan, view, slot.index, epoch);
    }
  }

  DEVICE void product(const View& view) {
    float sums[128];
    const u32 blocks = view.task().blocks;
    await(sharedAddress(&shared().full[stage.index]), stage.phase);
    multiply(sums, 0);
    flush();
    u32 previous = stage.index;
    stage.next();
    for (u32 block = 1; block < blocks; block++) {
      barrierWait(sharedAddress(&shared().full[stage.index]), stage.phase);
      multiply(sums, 1);
      mmaWait<1>();
      release(previous);
      previous = stage.index;
      stage.next();
    }
    mmaWait<0>();
    release(previous);
    finish(view, sums);
  }

  // Starts the products of a block.
  DEVICE void multiply(float (&sums)[128], u32 add) {
    const u32 a = sharedAddress(memory + AT_A + stage.index * BYTES_OF_A + group * 64 * 128);
    const u32 b = sharedAddress(memory + AT_B + stage.index * BYTES_OF_B);
    const u64 left = tileDescriptor(a, 16, 1024);
    const u64 right =
        MKERNEL_TRANSPOSED ? tileDescriptor(b, 16, 1024) : tileDescriptor(b, BLOCK * 128, 1024);
    mmaFence();
#pragma unroll
    for (u32 k = 0; k < BLOCK / 16; k++) {
      mma<MKERNEL_BF16, MKERNEL_TRANSPOSED>(
          sums, left + k * 2, right + k * (MKERNEL_TRANSPOSED ? 2 : 128), add + k);
    }
    mmaCommit();
  }

  DEVICE void release(u32 index) {
    if (thread == 0) {
      barrierArrive(sharedAddress(&shared().empty[index]));
    }
  }

  // Adds the bias, applies the activation, rounds, and hands the tile to the store warp.
  DEVICE void finish(const View& view, float (&sums)[128]) {
    const Task& task = view.task();
    const u32 columns = static_cast<u32>(view.output(0).rowBytes / 2);
    if (task.biased) {
      addBias(slotAddress(view.part(0).region, epoch), columns, sums);
    }
    if (task.activation != NONE) {
#pragma unroll
      for (u32 i = 0; i < 128; i++) {
        sums[i] = activated(sums[i], task.activation);
      }
    }
    const u32 chunks = (columns + CHUNK_COLUMNS - 1) / CHUNK_COLUMNS;
#pragma unroll
    for (u32 c = 0; c < CHUNKS; c++) {
      u32 pairs[16];
#pragma unroll
      for (u32 i = 0; i < 16; i++) {
        pairs[i] = narrow<MKERNEL_BF16>(sums[c * 32 + 2 * i], sums[c * 32 + 2 * i + 1]);
      }
      if (c < CHUNKS - DEFERRED) {
        if (c < chunks) {
          stageChunk(pairs);
        }
      } else {
#pragma unroll
        for (u32 i = 0; i < 16; i++) {
          deferred[c - (CHUNKS - DEFERRED)][i] = pairs[i];
        }
      }
    }
    deferredCount = chunks > CHUNKS - DEFERRED ? chunks - (CHUNKS - DEFERRED) : 0;
  }

  DEVICE void flush() {
#pragma unroll
    for (u32 c = 0; c < DEFERRED; c++) {
      if (c < deferredCount) {
        stageChunk(deferred[c]);
      }
    }
    deferredCount = 0;
  }

  DEVICE void addBias(u64 bias, u32 columns, float (&sums)[128]) {
#pragma unroll
    for (u32 j = 0; j < TILE_COLUMNS / 8; j++) {
      const u32 column = j * 8 + thread % 4 * 2;
      u16 low = 0;
      u16 high = 0;
      if (column < columns) {
        load(bias + column * 2, low);
      }
      if (column + 1 < columns) {
        load(bias + column * 2 + 2, high);
      }
      const float x = widen<MKERNEL_BF16>(low);
      const float y = widen<MKERNEL_BF16>(high);
      sums[j * 4] += x;
      sums[j * 4 + 1] += y;
      sums[j * 4 + 2] += x;
      sums[j * 4 + 3] += y;
    }
  }

  // Writes 64 columns of the group's rows, swizzled, where the store warp takes them.
  DEVICE void stageChunk(const u32 (&pairs)[16]) {
    barrierWait(sharedAddress(&shared().freed[group][chunk.index]), chunk.phase ^ 1);
    const u32 laneOfWarp = thread % 32;
    const u32 row = thread / 32 * 16 + laneOfWarp % 16;
    const u32 base = sharedAddress(
        memory + AT_CHUNKS + (group * STAGED + chunk.index) * BYTES_OF_CHUNK + row * 128);
#pragma unroll
    for (u32 j = 0; j < 8; j += 2) {
      const u32 unit = j + laneOfWarp / 16;
      asm volatile(
          "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
              base + ((unit ^ (row % 8)) << 4)),
          "r"(pairs[j * 2]), "r"(pairs[j * 2 + 1]), "r"(pairs[j * 2 + 2]), "r"(pairs[j * 2 + 3])
          : "memory");
    }
    fenceProxyShared();
    __syncwarp();
    if (laneOfWarp == 0) {
      barrierArrive(sharedAddress(&shared().staged[group][chunk.index]));
    }
    chunk.next();
  }
};

// --------------------------------------------------------------------------------------- stores

// The second to arrive saw the first one's rows, and raises the signals of the task.
DEVICE u32 arriveStored(u32* count) {
  u32 before;
  asm volatile("atom.acq_rel.cta.shared.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "r"(sharedAddress(count))
               : "memory");
  return before;
}

struct Storer {
  const Plan& plan;
  const u64 epoch;
  const u32 group;
  const u32 thread;  // of the warp
  Cursor<SLOTS> slot;
  Cursor<STAGED> chunk;
  Cursor<STAGED> freeNext;

  DEVICE Storer(const Plan& plan, u64 epoch, u32 group, u32 thread)
      : plan(plan), epoch(epoch), group(group), thread(thread) {}

  DEVICE void run() {
    for (;;) {
      barrierWait(sharedAddress(&shared().taskFull[slot.index]), slot.phase);
      const View view(slot.index);
      const u8 kind = view.task().kind;
      if (kind == EXIT) {
        return;
      }
      if (kind == GEMM) {
        product(view);
      }
      __syncwarp();
      if (thread == 0) {
        barrierArrive(sharedAddress(&shared().taskEmpty[slot.index]));
      }
      slot.next();
    }
  }

  DEVICE void product(const View& view) {
    const Region& to = view.output(0);
    const u32 columns = static_cast<u32>(to.rowBytes / 2);
    const bool byEngine = to.map != NO_MAP;
    const u8* const map = byEngine ? mapOf(plan, to, epoch) : nullptr;
    u32 held = 0;
    for (u32 c = 0; c * CHUNK_COLUMNS < columns; c++) {
      barrierWait(sharedAddress(&shared().staged[group][chunk.index]), chunk.phase);
      const u32 at = (group * STAGED + chunk.index) * BYTES_OF_CHUNK;
      if (byEngine) {
        if (thread == 0 && group * GROUP_ROWS < to.rows) {
          // Rows of the map end where the region ends: nothing beyond it is written.
          tileStore(map, to.x + c * CHUNK_COLUMNS, to.y + group * GROUP_ROWS,
                    sharedAddress(memory + AT_CHUNKS + at));
          storeCommit();
          storeWaitRead<STAGED - 1>();
        }
      } else {
        writeRows(view, c * CHUNK_COLUMNS, columns, memory + AT_CHUNKS + at);
      }
      chunk.next();
      if (++held == STAGED) {
        free();
        held--;
      }
    }
    __syncwarp();
    if (thread == 0) {
      storeWait();
    }
    for (; held > 0; held--) {
      free();
    }
    if (thread == 0 && arriveStored(&shared().stored[slot.index]) == 1) {
      raiseAll(plan, view, slot.index, epoch);
    }
  }

  // Gives the oldest chunk back to the consumers.
  DEVICE void free() {
    if (thread == 0) {
      barrierArrive(sharedAddress(&shared().freed[group][freeNext.index]));
    }
    freeNext.next();
  }

  // For rows that the copy engine can't write: at odd addresses, or of several owners.
  DEVICE void writeRows(const View& view, u32 column, u32 columns, const u8* from) {
    u32 first = 0;
    for (u32 o = 0; o < view.task().outputs; o++) {
      const Region& to = view.output(o);
      const u32 rows = static_cast<u32>(to.rows);
      const u64 address = slotAddress(to, epoch);
      for (u32 r = 0; r < GROUP_ROWS; r++) {
        const u32 row = group * GROUP_ROWS + r;
        if (row < first || row >= first + rows) {
          continue;
        }
        for (u32 x = thread; x < CHUNK_COLUMNS && column + x < columns; x += 32) {
          const u32 unit = x / 8 ^ r % 8;
          store(address + (row - first) * to.pitch + (column + x) * 2,
                *reinterpret_cast<const u16*>(from + r * 128 + unit * 16 + x % 8 * 2));
        }
      }
      first += rows;
    }
    __syncwarp();
  }
};

}  // namespace mkernel

extern "C" __global__ void __launch_bounds__(384, 1)
mkernel_interpreter(const __grid_constant__ mkernel::Plan plan) {
  using namespace mkernel;
  Shared& s = shared();
  const u32 warp = threadIdx.x / 32;
  const u32 thread = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < STAGES; i++) {
      barrierInit(sharedAddress(&s.full[i]), 1);
      barrierInit(sharedAddress(&s.empty[i]), 2);
    }
    for (u32 i = 0; i < SLOTS; i++) {
      barrierInit(sharedAddress(&s.taskFull[i]), 32);
      barrierInit(sharedAddress(&s.taskEmpty[i]), CONSUMERS / 32 + 2);
    }
    for (u32 g = 0; g < 2; g++) {
      for (u32 i = 0; i < STAGED; i++) {
        barrierInit(sharedAddress(&s.staged[g][i]), 4);
        barrierInit(sharedAddress(&s.freed[g][i]), 1);
      }
    }
    fenceBarrierInit();
  } else if (warp == 1) {
    if (thread < plan.mapCount) {
      tilePrefetch(plan.maps + thread * 128);
    }
    // What this CTA is likely to claim first.
    const Pool& pool = plan.pools[0];
    if (blockIdx.x < pool.count && thread * 32 < pool.stride) {
      prefetch(pool.tasks + static_cast<u64>(blockIdx.x) * pool.stride + thread * 32);
    }
  }
  launchDependents();
  awaitLaunchBefore();
  u32 ticket = 0;
  if (threadIdx.x == 0) {
    const u64 before = loadRelaxed(&plan.state->epoch);
    const bool dead = aborted(plan);
    ticket = atomicAdd(
        plan.roleCount > 1 ? &plan.state->tickets : plan.pools[plan.roles[0].firstPool].claims, 1);
    s.lane = plan.roleCount > 1 ? ticket : blockIdx.x;
    s.epoch = before + 1;
    s.deadAtStart = dead;
  }
  u32 role = 0;
  __syncthreads();
  for (u32 first = 0; role + 1 < plan.roleCount && s.lane >= first + plan.roles[role].lanes; role++) {
    first += plan.roles[role].lanes;
  }
  const u64 epoch = s.epoch;
  if (warp < 4) {
    registersLower<72>();
    if (warp == 0) {
      Producer producer(plan, epoch, s.lane, plan.roles[role], s.deadAtStart, thread);
      if (plan.roleCount == 1) {
        producer.claimedAlready(ticket);
      }
      producer.run();
    } else if (warp < 3) {
      Storer(plan, epoch, warp - 1, thread).run();
    }
  } else {
    registersRaise<216>();
    Consumer(plan, epoch, warp / 4 - 1, threadIdx.x % 128).run();
  }
  __syncthreads();
  // The last CTA prepares the next launch, then says that this one is done.
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(&plan.state->finished, 1) == plan.lanes - 1) {
      __threadfence();
      for (u32 i = 0; i < plan.poolCount; i++) {
        *plan.pools[i].claims = 0;
      }
      plan.state->tickets = 0;
      plan.state->finished = 0;
      plan.state->epoch = epoch;
      // Who reads it looks at the report first.
      releaseSystem(plan.progress, epoch);
    }
  }
}
