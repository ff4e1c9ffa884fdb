package org.mkernel.transport.rdma;

import static java.lang.foreign.MemoryLayout.structLayout;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.util.List;

/** The structs of {@code verbs_shim.h}: Java writes and reads them in place, without a call. */
final class Structs {
  static final StructLayout TRANSFER =
      structLayout(
          JAVA_LONG.withName("source"),
          JAVA_LONG.withName("target"),
          JAVA_LONG.withName("flag"),
          JAVA_LONG.withName("source_pitch"),
          JAVA_LONG.withName("pitch"),
          JAVA_LONG.withName("row_bytes"),
          JAVA_LONG.withName("rows"),
          JAVA_LONG.withName("message_bytes"),
          JAVA_INT.withName("writes"),
          JAVA_INT.withName("lkey"),
          JAVA_INT.withName("rkey"),
          JAVA_INT.withName("flag_rkey"),
          JAVA_LONG.withName("work_id"));

  static final StructLayout COMPLETION =
      structLayout(
          JAVA_LONG.withName("work_id"),
          JAVA_INT.withName("status"),
          JAVA_INT.withName("vendor_error"));

  static final StructLayout DEVICE =
      structLayout(
          JAVA_LONG.withName("max_qp"),
          JAVA_LONG.withName("max_qp_wr"),
          JAVA_LONG.withName("max_cqe"),
          JAVA_LONG.withName("max_mr_size"));

  static final StructLayout PORT =
      structLayout(
          JAVA_INT.withName("state"),
          JAVA_INT.withName("active_mtu"),
          JAVA_INT.withName("lid"),
          JAVA_INT.withName("ethernet"),
          JAVA_INT.withName("gids"),
          JAVA_INT.withName("pkeys"),
          JAVA_INT.withName("grh_required"),
          JAVA_INT.withName("max_message"));

  static final StructLayout CONNECTION =
      structLayout(
          JAVA_INT.withName("port"),
          JAVA_INT.withName("pkey_index"),
          JAVA_INT.withName("mtu"),
          JAVA_INT.withName("peer_qp"),
          JAVA_INT.withName("psn"),
          JAVA_INT.withName("peer_psn"),
          JAVA_INT.withName("peer_lid"),
          JAVA_INT.withName("global"),
          JAVA_INT.withName("gid_index"),
          JAVA_INT.withName("traffic_class"),
          JAVA_INT.withName("service_level"),
          JAVA_INT.withName("timeout"),
          JAVA_INT.withName("retries"),
          MemoryLayout.sequenceLayout(16, JAVA_BYTE).withName("peer_gid"));

  static final StructLayout EVENT =
      structLayout(JAVA_INT.withName("type"), JAVA_INT.withName("element"));

  /** In the order in which the shim tells offsets and sizes. */
  static final List<StructLayout> ALL =
      List.of(TRANSFER, COMPLETION, DEVICE, PORT, CONNECTION, EVENT);

  private Structs() {}

  /** Where a field lies. Looked up when things are prepared, never in a loop. */
  static long offset(StructLayout struct, String field) {
    return struct.byteOffset(PathElement.groupElement(field));
  }

  static void put(MemorySegment memory, StructLayout struct, String field, int value) {
    memory.set(JAVA_INT, offset(struct, field), value);
  }

  static void put(MemorySegment memory, StructLayout struct, String field, long value) {
    memory.set(JAVA_LONG, offset(struct, field), value);
  }

  static int intOf(MemorySegment memory, StructLayout struct, String field) {
    return memory.get(JAVA_INT, offset(struct, field));
  }

  static long longOf(MemorySegment memory, StructLayout struct, String field) {
    return memory.get(JAVA_LONG, offset(struct, field));
  }
}
